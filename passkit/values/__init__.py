"""Values that everything else is made of: dtypes, sizes, units, and small tools of Python."""
