"""CUDA run time: drivers, compiler, NVIDIA's libraries, kernel launches and graph capture."""
