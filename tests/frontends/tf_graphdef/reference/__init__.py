"""What TensorFlow says: cases, the fixtures they are kept in, and the page made from them."""
