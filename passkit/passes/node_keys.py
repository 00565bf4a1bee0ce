"""Keys for common subexpression elimination: equal keys mean that two nodes compute the same."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from passkit.graph.node import CONSTANT, Node
from passkit.graph.op import TCommutative, TStateful
from passkit.values.dtype import DType
from passkit.values.size import Size


def node_key(node: Node) -> Hashable | None:
    """Return the key of a node: its operator, inputs, control dependencies and parameters.

    The inputs of a commutative operator (`TCommutative`) have no order. The key of a constant is
    its value alone: dtype, shape and bytes. None for a variable, and for an operator with
    TStateful, such as an assignment; they equal no other node. Random operators are functions of
    their keys, so they have keys here, too. Names are no part of a key.
    """
    if node.op is None or TStateful.get(node.op.name):
        return None
    if node.op is CONSTANT:
        return value_key(node.params["value"])
    params = tuple(sorted((k, value_key(v)) for k, v in node.params.items()))
    inputs: Hashable = node.inputs
    if TCommutative.get(node.op.name) and len(set(node.inputs)) == len(node.inputs) == 2:
        inputs = frozenset(node.inputs)
    return node.op, inputs, node.control, params


def value_key(value: Any) -> Hashable:
    """Return the key of a parameter: equal for equal bits of equal types, else by identity.

    Arrays and NumPy scalars have equal keys if dtype, shape and bytes are equal; so have lists and
    tuples of such values, and mappings with the same texts of keys. Objects of other types than
    these, Python's numbers, strings, bytes, None, DType and Size equal only themselves.

    >>> value_key(0.0) == value_key(-0.0), value_key(1) == value_key(True), value_key((1, 2))
    (False, False, ('tuple', (('int', '1'), ('int', '2'))))
    """
    if isinstance(value, (np.ndarray, np.generic)):
        data = np.ascontiguousarray(value).tobytes()
        content = data if len(data) <= 64 else hashlib.sha256(data).digest()
        return "array", str(value.dtype), value.shape, content
    if value is None or isinstance(value, (bool, int, str, bytes, float, complex)):
        # The repr of a float has its sign and all its bits; 1, 1.0 and True stay apart.
        return type(value).__name__, repr(value)
    if isinstance(value, (tuple, list)):
        return "tuple", tuple(value_key(v) for v in value)
    if isinstance(value, Mapping):
        return "mapping", tuple(sorted((str(k), value_key(v)) for k, v in value.items()))
    if isinstance(value, (DType, Size)):
        return type(value).__name__, str(value)
    return _IdentityKey(value)


class _IdentityKey:
    """A key that equals only that of the same object."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a key by identity of the same object as this one."""
        return isinstance(other, _IdentityKey) and self.value is other.value

    def __hash__(self) -> int:
        """Return the id of the object that this is a key of."""
        return id(self.value)
