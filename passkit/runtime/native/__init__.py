"""Native programs: kernels are compiled, cached, loaded, and run by a C extension, the launcher."""
