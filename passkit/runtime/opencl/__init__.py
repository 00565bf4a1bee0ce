"""OpenCL run time, through pyopencl: devices, compilation, and how programs run."""
