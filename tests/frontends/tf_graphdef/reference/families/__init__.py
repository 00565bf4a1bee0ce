"""Cases for the operators, a file for each family: ``cases(tf)`` yields them."""
