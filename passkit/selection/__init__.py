"""Which patterns of operators become kernels: disjoint ones, that gain most and make no cycle."""
