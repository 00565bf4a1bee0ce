"""Loop IR: kernels as nested loops over typed expressions, from schedule to printed text."""
