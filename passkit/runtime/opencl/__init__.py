"""OpenCL at run time, by pyopencl: devices, programs, memory, and how a program's steps run."""
