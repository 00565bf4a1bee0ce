"""CUDA at run time: what is asked of a driver, its two libraries, NVRTC, and how steps run."""
