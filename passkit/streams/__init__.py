"""Operation streams: record operations on arrays, and run them later as a few fused kernels.

Source: Burn's operation streams (`burn-fusion`), with liveness decided when a stream is flushed.

A `Stream` queues operations in program order. The sequence of operations in *relative form*, with
numbers in place of arrays and symbols in place of extents, is a path in the `PlanTrie`; a plan at
the end of the path is a compiled executable that runs the whole sequence at any sizes.

- `operation`: operations, values and array types
- `trie`: the trie of plans, and the processor that chooses between deferring, exploring, executing
- `stream`: the queue of one thread, and flushes
- `plan`: plans, their variants, and how they are compiled and run
"""
