"""Device run time shared by OpenCL and CUDA: memory, transfers, kernel building, program calls."""
