"""What an operator reads: for an element of its result, the elements of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from passkit.ast import Expr, Var, size_of, variables
from passkit.errors import CodeGenError
from passkit.index import Extents, simplify
from passkit.node import Node, known_shape
from passkit.op import FCodeGen, FElement
from passkit.size import Shape

Index = tuple[Expr, ...]
Reader = Callable[..., Expr]


def aligned(index: Sequence[Expr], shape: Shape) -> Index:
    """The index into an input of ``shape`` that broadcasts to a result indexed by ``index``."""
    tail = index[len(index) - len(shape) :]
    return tuple(size_of(0) if n == 1 else i for i, n in zip(tail, shape, strict=True))


def element(node: Node, index: Index, readers: Sequence[Reader]) -> Expr | tuple[Expr, ...]:
    """The value(s) of ``node`` at ``index``, given a reader for each input.

    Raises: CodeGenError for an operator that has neither FElement nor FCodeGen.
    """
    op = node.op
    assert op is not None
    by_index = FElement.get(op.name)
    if by_index is not None:
        return by_index(node, index, *readers)  # type: ignore[no-any-return]
    code = FCodeGen.get(op.name)
    if code is None:
        raise CodeGenError(
            f"{node.where} has no code: set FCodeGen or FElement on op {op.name}, or FCompute to "
            f"run it in NumPy"
        )
    values = [
        read(*aligned(index, known_shape(e))) for read, e in zip(readers, node.inputs, strict=True)
    ]
    return code(node, *values)  # type: ignore[no-any-return]


@frozen
class Reads:
    """Each read of an input, in order: its position and simplified index; and pinned variables.

    ``pinned`` are the index variables that the value itself depends on.
    """

    at: tuple[tuple[int, Index], ...]
    pinned: frozenset[Var] = frozenset()


def reads_of(node: Node, index: Index, extents: Extents) -> Reads:
    """What ``node`` reads for its element at ``index``."""
    op = node.op
    assert op is not None
    if not op.has_attr("FElement"):
        shapes = [known_shape(e) for e in node.inputs]
        return Reads(tuple((k, aligned(index, s)) for k, s in enumerate(shapes)))
    found: list[tuple[int, Index]] = []

    def reader(k: int) -> Reader:
        entry = node.inputs[k]
        assert entry.dtype is not None
        probe = Var(f"input {k}", entry.dtype)

        def read(*at: Expr) -> Expr:
            found.append((k, tuple(simplify(i, extents) for i in at)))
            return probe

        return read

    out = element(node, index, [reader(k) for k in range(len(node.inputs))])
    values = out if isinstance(out, tuple) else (out,)
    pinned = frozenset(v for x in values for v in variables(x) if v.name in extents)
    return Reads(tuple(found), pinned)
