"""Independent checks of kernels: races, bounds and missing barriers."""
