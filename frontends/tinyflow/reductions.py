"""Folds over axes: sums, means, extremes, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import either
from passkit.frontends.tinyflow.tensors import Tensor, made, named, read, wrapped
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.op import get_op

Function = Callable[..., Tensor]


def axes_of(axis: Any) -> Any:
    """Axes as passkit has them: None, a number or a tuple; a known tensor is its numbers."""
    known = getattr(axis, "known", None)
    if known is not None:
        axis = known.tolist()
    if axis is None or isinstance(axis, int):
        return axis
    if hasattr(axis, "tolist"):
        axis = axis.tolist()
    return tuple(map(_index, axis)) if isinstance(axis, (list, tuple)) else _index(axis)


def _index(axis: Any) -> Any:
    """An axis as an int; what is none is refused by the operator that is to have it."""
    whole = hasattr(axis, "__index__") and not isinstance(axis, type)
    return axis.__index__() if whole else axis


def _fold(op: str, default: str) -> Function:
    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        where = f"reduce_{default.lower()}"
        axis = either(where, "axis", axis, "reduction_indices", reduction_indices)
        keep = either(where, "keepdims", keepdims, "keep_dims", keep_dims)
        entry = read(input_tensor)
        if op == "reduce_mean" and entry.dtype is not None and entry.dtype.name == "bool":
            entry = get_op("cast")(entry, dtype="float32")  # as TinyFlow's programs have it
        return made(op, default, name, entry, axis=axes_of(axis), keepdims=bool(keep))

    doc = get_op(op).doc
    function.__doc__ = f"{doc[:1].upper()}{doc[1:]}; over all axes by default."
    return function


FUNCTIONS: dict[str, Function] = {
    "reduce_sum": _fold("reduce_sum", "Sum"),
    "reduce_mean": _fold("reduce_mean", "Mean"),
    "reduce_max": _fold("reduce_max", "Max"),
    "reduce_min": _fold("reduce_min", "Min"),
    "reduce_prod": _fold("reduce_prod", "Prod"),
    "reduce_all": _fold("reduce_all", "All"),
    "reduce_any": _fold("reduce_any", "Any"),
    "reduce_logsumexp": _fold("logsumexp", "LogSumExp"),
}


def _place(op: str, default: str) -> Function:
    def function(
        input: Any,
        axis: int | None = None,
        name: str | None = None,
        dimension: int | None = None,
        output_type: Any = "int64",
    ) -> Tensor:
        found = either(default, "axis", axis, "dimension", dimension)
        full = named(name, default)
        place = get_op(op)(read(input), axis=0 if found is None else axes_of(found), name=full)
        wanted = as_dtype(output_type)
        if wanted.name != "int64":
            place = get_op("cast")(place, dtype=wanted.name)
        return wrapped(place, full)

    doc = get_op(op).doc
    function.__doc__ = f"{doc[:1].upper()}{doc[1:]}; along axis 0 by default."
    return function


FUNCTIONS["argmax"] = _place("argmax", "ArgMax")
FUNCTIONS["argmin"] = _place("argmin", "ArgMin")


def arg_max(
    input: Any, dimension: int, output_type: Any = "int64", name: str | None = None
) -> Tensor:
    """Where the largest element is along ``dimension``: the older name of `argmax`."""
    return FUNCTIONS["argmax"](input, dimension, name, output_type=output_type)


def arg_min(
    input: Any, dimension: int, output_type: Any = "int64", name: str | None = None
) -> Tensor:
    """Where the smallest element is along ``dimension``: the older name of `argmin`."""
    return FUNCTIONS["argmin"](input, dimension, name, output_type=output_type)


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance over ``axes``. ``shift`` is refused: the variance is exact."""
    from passkit.errors import SettingError

    if shift is not None:
        raise SettingError(f"moments takes no shift, got {shift!r}; the variance needs none")
    keep = bool(either("moments", "keepdims", keepdims, "keep_dims", keep_dims))
    full, entry = named(name, "moments"), read(x)
    if not axes and len(known_shape(entry, "moments")) == 0:
        axes = None
    mean = get_op("reduce_mean")(entry, axis=axes_of(axes), keepdims=True)
    square = get_op("squared_difference")(entry, get_op("stop_gradient")(mean))
    variance = get_op("reduce_mean")(square, axis=axes_of(axes), keepdims=keep)
    shown = mean if keep else get_op("reduce_mean")(entry, axis=axes_of(axes))
    return wrapped(shown, f"{full}/mean"), wrapped(variance, f"{full}/variance")


def cumsum(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Sums so far along ``axis``; those before with ``exclusive``, from the end on ``reverse``."""
    params = {"axis": axes_of(axis), "exclusive": exclusive, "reverse": reverse}
    return made("cumsum", "Cumsum", name, read(x), **params)


def cumprod(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Products so far along ``axis``, as in `cumsum`."""
    params = {"axis": axes_of(axis), "exclusive": exclusive, "reverse": reverse}
    return made("cumprod", "Cumprod", name, read(x), **params)


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The length of vectors along ``axis``, or of matrices along two axes; by default of all.

    ``ord`` is "euclidean", 1, 2, inf or another number above 0; of matrices "fro", 1 or inf.
    Raises: SettingError for others.
    """
    from passkit.errors import SettingError
    from passkit.ops.helpers import make

    keep = bool(either("norm", "keepdims", keepdims, "keep_dims", keep_dims))
    along, x = axes_of(axis), made("abs", "abs", None, read(tensor)).entry
    pair = isinstance(along, tuple) and len(along) == 2
    if isinstance(along, tuple) and len(along) == 1:
        along = along[0]
    params = {"axis": along, "keepdims": keep}
    if ord in ("euclidean", "fro") or (ord == 2 and not pair):
        squares = make("reduce_sum", make("square", x), **params)
        return made("sqrt", "norm", name, squares)
    number = isinstance(ord, (int, float)) and not isinstance(ord, bool) and ord > 0
    if not number or (pair and ord not in (1, float("inf"))):
        raise SettingError(
            f"norm needs 'euclidean', 'fro', 1, 2, inf or another number above 0 as ord, of "
            f"matrices 'fro', 1 or inf, got {ord!r}"
        )
    if pair:
        rank = len(known_shape(x, "norm"))
        rows, columns = (a % rank for a in along)
        inner, outer = (rows, columns) if ord == 1 else (columns, rows)
        sums = make("reduce_sum", x, axis=inner, keepdims=True)
        most = make("reduce_max", sums, axis=outer, keepdims=True)
        return made("squeeze" if not keep else "identity", "norm", name, most,
                    **({} if keep else {"axis": (rows, columns)}))
    if ord == float("inf"):
        return made("reduce_max", "norm", name, x, **params)
    powers = make("reduce_sum", x if ord == 1 else make("pow", x, float(ord)), **params)
    return made("pow", "norm", name, powers, 1.0 / ord) if ord != 1 else wrapped(
        powers, named(name, "norm")
    )
