"""Cases of the operators, a file for each family with a function ``cases(tf)``."""
