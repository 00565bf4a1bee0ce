"""Operators that a kernel can compute, and why others are left to libraries or to the host."""

from __future__ import annotations

from passkit.diagnostics import Diagnostic
from passkit.dialects.base import language_of
from passkit.graph.graph import Graph
from passkit.graph.kernel import own_kernel_of
from passkit.graph.node import Node, is_leaf
from passkit.graph.op import (
    FCodeGen,
    FContract,
    FElement,
    FExpand,
    FHostCall,
    FReduce,
    FScan,
    Op,
    OpPattern,
    THostLibrary,
    TLibraryCall,
    TOpPattern,
    TStateful,
)
from passkit.target import Target

KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NATIVE = frozenset((*KINDS, "float16", "bfloat16", "float32", "float64"))
"""The dtypes that kernels compute with."""
CODE = (FCodeGen, FElement, FReduce, FScan)
"""Attributes of which one tells a kernel how to compute an operator."""


def why_opaque(graph: Graph, node: Node, target: Target) -> Diagnostic | None:
    """Return why no generated kernel computes ``node``; None if one can."""
    op = node.op
    if op is None or is_leaf(node):
        return Diagnostic("op.leaf")
    if TStateful.get(op.name):
        return Diagnostic("op.state", {"op": op.name})
    if own_kernel_of(node, language_of(target.dialect)) is not None:
        return Diagnostic("op.kernel", {"op": op.name, "count": len(node.inputs)})
    if TOpPattern.get(op.name) is OpPattern.OPAQUE or THostLibrary.get(op.name) is not None:
        return _marked_opaque(op)
    if FContract.get(op.name) is not None or TLibraryCall.get(op.name) is not None:
        dtype = graph.dtype(node.entries[0])
        if dtype.is_float:
            return Diagnostic("op.library", {"op": op.name})
        return Diagnostic("op.no_library", {"op": op.name, "dtype": dtype})
    if not any(t.get(op.name) for t in CODE):
        return _without_code(op)
    if FScan.get(op.name) is not None and target.lanes == 1:
        return Diagnostic("op.target_scan", {"target": target.name})
    if len(node.entries) != 1:
        return Diagnostic("op.results", {"op": op.name, "count": len(node.entries)})
    for entry in (*node.inputs, *node.entries):
        dtype = graph.dtype(entry)
        if dtype.name not in NATIVE:
            code = "op.complex" if dtype.numpy.kind == "c" else "op.dtype"
            return Diagnostic(code, {"dtype": dtype})
    return None


def _marked_opaque(op: Op) -> Diagnostic:
    """Return why an operator's pattern is OPAQUE: what runs it instead of a kernel."""
    if (library := THostLibrary.get(op.name)) is not None:
        return Diagnostic("op.host_library", {"op": op.name, "library": library})
    if FHostCall.get(op.name) is not None:
        return Diagnostic("op.host_program", {"op": op.name})
    if FContract.get(op.name) is not None or TLibraryCall.get(op.name) is not None:
        return Diagnostic("op.call", {"op": op.name})
    if any(t.get(op.name) for t in CODE):
        return Diagnostic("op.marked", {"op": op.name})
    return _without_code(op)


def _without_code(op: Op) -> Diagnostic:
    """Return why an operator that has no code is in no kernel."""
    is_composite = FExpand.get(op.name) is not None
    return Diagnostic("op.composite" if is_composite else "op.code", {"op": op.name})
