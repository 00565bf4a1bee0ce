"""What operator files share: which dtypes an operator takes, axes, and exact rewriting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError, PasskitError, ShapeError
from passkit.graph.infer import agree, same_dtype_rule, show_shape
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import REQUIRED, Op, get_op
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, Size


def make(name: str, *inputs: Any, **params: Any) -> Entry:
    """A call of the operator called ``name``, which has one result."""
    return get_op(name)(*inputs, **params)  # type: ignore[no-any-return]


KINDS = {
    **{"b": "bools", "i": "signed integers", "u": "unsigned integers", "f": "floats"},
    "c": "complex numbers",
}
"""The kinds of dtype as messages name them; an operator's row says which it takes."""

INSTEAD = {"b": "bool", "i": "int32", "u": "uint32", "f": "float32", "c": "complex64"}


def take(node: Node, kinds: str, *dtypes: DType) -> None:
    """Check that all ``dtypes`` are of one of ``kinds``. Raises: DTypeError naming another."""
    for k, d in enumerate(dtypes):
        if d.kind not in kinds:
            wanted = " or ".join(KINDS[kind] for kind in kinds)
            way_out = INSTEAD["f" if "f" in kinds else kinds[0]]
            which = f" as input {k}" if len(dtypes) > 1 else ""
            raise DTypeError(
                f"{node.where} needs {wanted}, got {d}{which}; pk.ops.cast(x, '{way_out}')"
            )


def takes(kinds: str, result: DType | None = None) -> Callable[..., Any]:
    """The FInferType of an operator of ``kinds`` whose inputs share one dtype, as its result does.

    ``result`` is what it gives otherwise.
    """

    def infer_type(node: Node, *dtypes: DType) -> Any:
        take(node, kinds, same_dtype_rule(node, *dtypes))
        return result or dtypes[0]

    return infer_type


def axes_of(node: Node, rank: int, given: Any, what: str = "axis") -> tuple[int, ...]:
    """``given`` as sorted axes below ``rank``: None is all of them.

    Raises: ShapeError for an axis that is no int, out of range or given twice.
    """
    if given is None:
        return tuple(range(rank))
    axes = given if isinstance(given, tuple) else (given,)
    found = [one_axis(node, rank, axis, what) for axis in axes]
    if len(set(found)) < len(found):
        twice = next(a for a, b in zip(axes, found, strict=True) if found.count(b) > 1)
        raise ShapeError(f"{node.where}: {what}={given} has axis {twice} twice; name each once")
    return tuple(sorted(found))


def one_axis(node: Node, rank: int, axis: Any, what: str = "axis") -> int:
    """An axis below ``rank``, from one that may be negative."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ShapeError(f"{node.where} needs an int as {what}, got {axis!r}")
    if not -rank <= axis < rank:
        span = f"{-rank} to {rank - 1}" if rank else "none: the input is a scalar"
        raise ShapeError(f"{node.where}: {what} {axis} is out of range; there are axes {span}")
    return axis % rank


def extents(node: Node, given: Any, what: str) -> Shape:
    """A parameter as extents: ints, and Sizes such as ``x.shape[0]``.

    Raises: ShapeError for anything else.
    """
    parts = given if isinstance(given, tuple) else (given,)
    found: list[Extent] = []
    for d in parts:
        if not isinstance(d, (int, Size)) or isinstance(d, bool):
            raise ShapeError(f"{node.where} needs ints or sizes as {what}, got {given!r}")
        found.append(d)
    return tuple(found)


def one_extent(node: Node, what: str) -> Extent:
    """The parameter ``what`` as one int or Size. Raises: ShapeError for anything else."""
    given = node.params[what]
    if isinstance(given, tuple):
        raise ShapeError(f"{node.where} needs one int or size as {what}, got {given!r}")
    return extents(node, given, what)[0]


def one_int(node: Node, what: str, error: type[PasskitError] = ShapeError) -> int:
    """The parameter ``what`` as an int. Raises: ``error`` for anything else."""
    given = node.params[what]
    if isinstance(given, bool) or not isinstance(given, int):
        raise error(f"{node.where} needs an int as {what}, got {given!r}")
    return given


def one_number(node: Node, what: str) -> float:
    """The parameter ``what`` as a number. Raises: GraphError for anything else.

    Where it is None by default, it may be, and is left out by the caller.
    """
    given = node.params[what]
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        default = node.op.params[what] if node.op is not None else REQUIRED
        rest = ", or None" if default is None else ""
        raise GraphError(f"{node.where} needs a number as {what}{rest}, got {given!r}")
    return given


def check_stretch(node: Node, shape: Shape, wanted: Shape, what: str = "") -> None:
    """Make sure that ``shape``, that of ``what``, broadcasts to ``wanted`` and to no larger one.

    Raises: ShapeError where it does not.
    """
    lead, named = len(wanted) - len(shape), f"{what} " if what else ""
    pairs = [(n, wanted[k]) for k, n in enumerate(shape, lead) if n != 1] if lead >= 0 else []
    if lead < 0 or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        raise ShapeError(
            f"{node.where} cannot stretch {named}{show_shape(shape)} to {show_shape(wanted)}; only "
            f"lengths of 1 stretch, aligned at the end"
        )
    for n, m in pairs:
        agree(node, n, m, f"a dimension {'of ' if named else ''}{named}that is not stretched")


def count_of(node: Node, what: str) -> Extent:
    """The parameter ``what`` as a number of elements: an int of at least 0, or a Size.

    Raises: ShapeError for anything else.
    """
    found = one_extent(node, what)
    if isinstance(found, int) and found < 0:
        raise ShapeError(f"{node.where} needs {what} >= 0, got {found}")
    return found


def unchanged(node: Node, x: Entry) -> Entry | None:
    """``x`` if it may stand for the node's result as to shape and dtype, else None."""
    out = node.entries[0]
    fits = out.shape is not None and x.shape == out.shape and x.dtype is out.dtype
    return x if fits and x.dtype is not None else None


def scalar(x: Entry) -> Any:
    """The value of a constant of one real element, as a NumPy scalar, spread out or not; else None.

    Complex constants give None too: even 1 times an infinite complex number changes it, since NaN
    comes of the product of infinity and the imaginary part 0.
    """
    while x.node.op is not None and x.node.op.name == "broadcast_to":
        x = x.node.inputs[0]
    if x.node.op is not CONSTANT:
        return None
    value = x.node.params["value"]
    return value.reshape(-1)[0] if value.size == 1 and value.dtype.kind != "c" else None


def is_scalar(x: Entry, value: float) -> bool:
    """Whether ``x`` is the constant ``value``; 0.0 is not -0.0."""
    found = scalar(x)
    return found is not None and bool(found == value and np.signbit(found) == np.signbit(value))


def alias(op: Op, names: str) -> None:
    """Give ``op`` the other ``names``, separated by spaces."""
    for name in names.split():
        op.add_alias(name)


def same_shape(node: Node, *shapes: Shape) -> Shape:
    """The first input's shape. Raises: GraphError where there is none."""
    if not shapes:
        raise GraphError(f"{node.where} needs at least one input, got none")
    return shapes[0]


def shapes_text(shapes: Sequence[Shape | None]) -> str:
    """Shapes as messages show them."""
    return " and ".join(show_shape(s) for s in shapes)
