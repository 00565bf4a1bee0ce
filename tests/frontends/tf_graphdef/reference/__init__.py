"""Reference results of TensorFlow: cases, their fixtures, and the pages made from them."""
