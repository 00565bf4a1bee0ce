"""Small networks of many families, with reproducible random weights."""
