"""Native programs: kernels compiled, cached, loaded, and run by one small extension."""
