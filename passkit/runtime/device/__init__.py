"""What runs programs on a device, OpenCL's and CUDA's alike: memory, transfers, steps, calls."""
