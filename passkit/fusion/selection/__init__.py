"""Selection of disjoint, acyclic fusion patterns with the largest gain."""
