"""Networks of many families, small, with weights that are drawn once and for all."""
