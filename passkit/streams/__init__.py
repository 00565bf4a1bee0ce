"""Operation streams: record operations on arrays, and run them later as a few fused kernels.

Source: Burn's operation streams (`burn-fusion`), with liveness decided when a stream is flushed.

A `Stream` queues operations in program order. The sequence of operations in *relative form*, with
numbers in place of arrays and symbols in place of extents, is a path in a trie; a plan at the end
of the path is a compiled executable that runs the entire sequence at any sizes.

- `operation`: operations, and the types of their results
- `recorder`: what runs for every operation, in C (`recorder.c`) or Python (`recording`): array
  types, values, queues and the position in the trie
- `trie`: the processor that chooses between deferring, exploring and executing
- `stream`: the queue of one thread, and how it is executed
- `plan`, `plan_store`, `plan_file`: plans and their variants; those of a device; those on disk
- `settings`: how streams queue and run operations
- `inspection`, `plan_details`, `run_tables`, `run_picture`: records of executions, and how they are
  explained, printed and drawn
"""
