"""Convolutions: one operator that libraries run, channels last, and the names it goes by.

A filter is (*window, channels / groups, filters), as in TensorFlow. With ``data_format`` of channels
first the input is transposed there and back, which fuses with what stands around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.dtype import dtype_of
from passkit.errors import GraphError, ShapeError
from passkit.infer import agree, show_shape
from passkit.lazy import Lazy
from passkit.node import Entry, Node, known_shape
from passkit.op import REQUIRED, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.movement import movement
from passkit.ops.rules import extents, make, takes
from passkit.ops.windowed import WINDOWED, Windows, spatial, windows_of
from passkit.size import Extent, Shape

if TYPE_CHECKING:
    from passkit import ast, folds
    from passkit.ast import Expr
    from passkit.folds import Convolution
    from passkit.reads import Index, Reader
else:
    ast, folds = Lazy("passkit.ast"), Lazy("passkit.folds")

CONVOLVED = {**WINDOWED, "groups": 1}

convolution = register_op(
    "convolution",
    num_inputs=2,
    params=CONVOLVED,
    doc="(batch, *size, channels), (*window, channels / groups, filters) -> (batch, *result, "
    "filters): sums of products under each window",
)


def _window(node: Node, filters: Shape) -> tuple[int, ...]:
    """The window of a filter. Raises: ShapeError where it is not known."""
    if any(not isinstance(n, int) for n in filters):
        raise ShapeError(
            f"{node.where} needs a filter whose shape is known, got {show_shape(filters)}"
        )
    return tuple(int(n) for n in filters[:-2])


def _geometry(node: Node, x: Shape, filters: Shape) -> Windows:
    """Where windows lie. Raises: ShapeError where shapes do not fit."""
    size = spatial(node, x)
    if len(filters) != len(x):
        raise ShapeError(
            f"{node.where} needs a filter of rank {len(x)}, (*window, channels / groups, filters), "
            f"got {show_shape(filters)}"
        )
    window = _window(node, filters)
    groups = node.params["groups"]
    if type(groups) is not int or groups < 1 or int(filters[-1]) % groups:
        raise ShapeError(
            f"{node.where} needs groups that divide {filters[-1]} filters, got {groups!r}"
        )
    agree(node, x[-1], filters[-2] * groups, "channels of input and filter")
    return windows_of(node, size, window)


def _shape(node: Node, x: Shape, filters: Shape) -> Shape:
    """Shapes: (batch, *size, channels), (*window, channels / groups, filters)."""
    return (x[0], *_geometry(node, x, filters).result, filters[-1])


def _contract(node: Node) -> Convolution:
    """In three spatial axes; those that are missing have length 1. One axis is cut as rows are."""
    x, filters = (known_shape(e) for e in node.inputs)
    found = _geometry(node, x, filters)
    front, back = ((1,), (1,)) if len(found.size) == 1 else ((1,) * (3 - len(found.size)), ())
    none = tuple(0 for _ in front), tuple(0 for _ in back)

    return folds.Convolution(
        x[0], (*front, *found.size, *back), int(filters[-2]) * node.params["groups"],
        int(filters[-1]), (*front, *found.window, *back), (*front, *found.result, *back),
        (*front, *found.stride, *back), (*none[0], *found.before, *none[1]),
        (*front, *found.dilation, *back), node.params["groups"],
    )  # fmt: skip


def _compute(node: Node, x: Any, filters: Any) -> Any:
    """Windows times filter, summed in double and rounded once."""
    found = _geometry(node, x.shape, filters.shape)
    groups, count = node.params["groups"], len(found.size)
    result = tuple(int(n) for n in found.result)
    pads = [(b, int(a)) for b, a in zip(found.before, found.after, strict=True)]
    wide = np.pad(x.astype(np.float64), ((0, 0), *pads, (0, 0)))
    out = np.zeros((x.shape[0], *result, filters.shape[-1]))
    own, each = filters.shape[-2], filters.shape[-1] // groups
    for tap in np.ndindex(*found.window):
        at = [
            slice(k * d, k * d + (o - 1) * s + 1 if o else 0, s)
            for k, d, o, s in zip(tap, found.dilation, result, found.stride, strict=True)
        ]
        seen = wide[(slice(None), *at)]
        for g in range(groups):
            part = filters[tap][:, g * each : (g + 1) * each].astype(np.float64)
            out[..., g * each : (g + 1) * each] += seen[..., g * own : (g + 1) * own] @ part
    assert out.ndim == count + 2
    return out.astype(x.dtype)


convolution.set_attr("FInferShape", _shape)
convolution.set_attr("FInferType", takes("f"))
convolution.set_attr("FContract", _contract)
convolution.set_attr("FCompute", _compute)
convolution.set_attr("TOpPattern", OpPattern.CONTRACT)
convolution.set_attr("TOpCost", "expensive")
convolution.set_attr("TLibraryCall", "convolution")


# What gradients are made of: filters turned round, and zeros between elements.


def _turned_shape(node: Node, shape: Shape) -> Shape:
    """Shapes: (*window, channels / groups, filters) -> (*window, filters / groups, channels)."""
    groups = node.params["groups"]
    return (*shape[:-2], shape[-1] // groups, shape[-2] * groups)


def _turned_element(node: Node, index: Index, read: Reader) -> Expr:
    shape, groups = known_shape(node.inputs[0]), node.params["groups"]
    taps = [ast.size_of(n - 1) - i for i, n in zip(index, shape[:-2], strict=False)]
    own, each = shape[-2], shape[-1] // groups
    filter_, channel = index[-2:]
    if groups == 1:
        return read(*taps, channel, filter_)
    group = channel // ast.size_of(own)
    return read(*taps, channel % ast.size_of(own), group * ast.size_of(each) + filter_)


filter_turned = movement(
    "filter_turned",
    {"groups": 1},
    "(*window, channels / groups, filters) -> (*window, filters / groups, channels), the window "
    "reversed: the filter of the convolution that goes back",
    OpPattern.INJECTIVE,
)
filter_turned.set_attr("FInferShape", _turned_shape)
filter_turned.set_attr("FElement", _turned_element)
filter_turned.set_attr(
    "FGradient", lambda node, dy: [make("filter_turned", dy, groups=node.params["groups"])]
)


def _dilate_params(node: Node, shape: Shape) -> list[tuple[int, Extent, Extent]]:
    """Factor, padding in front and behind of each axis."""
    factors, padding = node.params["factors"], node.params["padding"]
    if len(factors) != len(shape) or len(padding) != len(shape):
        raise ShapeError(
            f"{node.where} needs a factor and a pair of paddings for each axis of "
            f"{show_shape(shape)}, got {factors} and {padding}"
        )
    return [(f, low, high) for f, (low, high) in zip(factors, padding, strict=True)]


def _dilate_shape(node: Node, shape: Shape) -> Shape:
    found: list[Extent] = []
    for n, (f, low, high) in zip(shape, _dilate_params(node, shape), strict=True):
        length = (n - 1) * f + 1 if n != 0 else 0
        found.append(length + low + high)
    return tuple(found)


def _dilate_element(node: Node, index: Index, read: Reader) -> Expr:
    shape = known_shape(node.inputs[0])
    at: list[Expr] = []
    inside: Expr | None = None
    for i, n, (f, low, high) in zip(index, shape, _dilate_params(node, shape), strict=True):
        place = i - ast.size_of(low) if low != 0 else i
        whole = place // ast.size_of(f) if f != 1 else place
        tests = []
        if low != 0:
            tests.append(place >= ast.size_of(0))
        if f != 1:
            tests.append(ast.equal(whole * ast.size_of(f), place))
        if f != 1 or high != 0:
            tests.append(whole < ast.size_of(n))
        for test in tests:
            inside = test if inside is None else inside & test
        at.append(whole)
    dtype = node.inputs[0].dtype
    assert dtype is not None
    value = read(*at)
    return value if inside is None else ast.where(inside, value, ast.const(0, dtype))


dilate = movement(
    "dilate",
    {"factors": REQUIRED, "padding": REQUIRED},
    "x with its elements factors[k] apart along axis k, and zeros between, in front and behind; "
    "negative padding cuts off",
    OpPattern.INJECTIVE,
)
dilate.set_attr("FInferShape", _dilate_shape)
dilate.set_attr("FElement", _dilate_element)


def _dilate_gradient(node: Node, dy: Entry) -> list[Entry]:
    shape = known_shape(node.inputs[0])
    factors, padding = node.params["factors"], node.params["padding"]
    back = tuple((0 - low, 0 - high) for low, high in padding)
    whole = make("dilate", dy, factors=(1,) * len(shape), padding=back)
    if all(f == 1 for f in factors):
        return [whole]
    begin = (0,) * len(shape)
    return [make("slice", whole, begin=begin, size=shape, step=tuple(factors))]


dilate.set_attr("FGradient", _dilate_gradient)


def _passed(node: Node) -> dict[str, Any]:
    return {k: node.params[k] for k in CONVOLVED}


def _input_back(node: Node, filters: Entry, dy: Entry) -> Entry:
    """Source: the convolution of dy, its elements a stride apart, with the filter turned round."""
    size = extents(node, node.params["size"], "size")
    window = _window(node, known_shape(filters))
    found = windows_of(node, size, window)
    shape = known_shape(dy)
    padding: list[tuple[Extent, Extent]] = [(0, 0)]
    for k, n in enumerate(size):
        low = found.reach[k] - 1 - found.before[k]
        length = (shape[1 + k] - 1) * found.stride[k] + 1 if shape[1 + k] != 0 else 0
        padding.append((low, n + found.reach[k] - 1 - length - low))
    factors = (1, *found.stride, 1)
    groups = node.params["groups"]
    spread = make("dilate", dy, factors=factors, padding=(*padding, (0, 0)))
    turned = make("filter_turned", filters, groups=groups)
    return make("convolution", spread, turned, dilations=found.dilation, groups=groups)


def _filter_back(node: Node, x: Entry, dy: Entry) -> Entry:
    """Source: the windows of x, one below the other and transposed, times dy."""
    window = node.params["window"]
    groups = node.params["groups"]
    shape, filters = known_shape(x), known_shape(dy)[-1]
    view = make("windows", x, window=window, **{k: node.params[k] for k in WINDOWED})
    rows: Extent = 1
    for n in known_shape(dy)[:-1]:
        rows = rows * n
    taps = int(np.prod(window))
    own, each = int(shape[-1]) // groups, int(filters) // groups
    if groups == 1:
        left = make("reshape", view, shape=(rows, taps * own))
        right = make("reshape", dy, shape=(rows, filters))
        out = make("matmul", left, right, transpose_a=True)
        return make("reshape", out, shape=(*window, own, filters))
    left = make("reshape", view, shape=(rows, taps, groups, own))
    left = make("reshape", make("transpose", left, axes=(2, 1, 3, 0)), shape=(groups, -1, rows))
    right = make("transpose", make("reshape", dy, shape=(rows, groups, each)), axes=(1, 0, 2))
    out = make("reshape", make("matmul", left, right), shape=(groups, taps, own, each))
    out = make("transpose", out, axes=(1, 2, 0, 3))
    return make("reshape", out, shape=(*window, own, filters))


composite(
    "convolution_backprop_input",
    ["filter", "dy"],
    _input_back,
    "(*window, channels / groups, filters), (batch, *result, filters) -> (batch, *size, channels): "
    "what goes back to the input of a convolution",
    {"size": REQUIRED, **CONVOLVED},
)
composite(
    "convolution_backprop_filter",
    ["input", "dy"],
    _filter_back,
    "(batch, *size, channels), (batch, *result, filters) -> (*window, channels / groups, filters): "
    "what goes back to the filter of a convolution",
    {"window": REQUIRED, **CONVOLVED},
)


def _gradient(node: Node, dy: Entry) -> list[Entry]:
    x, filters = node.inputs
    passed = _passed(node)
    size, window = known_shape(x)[1:-1], known_shape(filters)[:-2]
    return [
        make("convolution_backprop_input", filters, dy, size=size, **passed),
        make("convolution_backprop_filter", x, dy, window=window, **passed),
    ]


convolution.set_attr("FGradient", _gradient)


# The names of TensorFlow and others: a fixed number of spatial axes, and either order of channels.

FIRST = {1: ("NCW", "NCL"), 2: ("NCHW",), 3: ("NCDHW",)}
LAST = {1: ("NWC", "NLC"), 2: ("NHWC",), 3: ("NDHWC",)}


def channels_first(node: Node, count: int) -> bool:
    """Whether data_format says so. Raises: GraphError for one that means nothing here."""
    given = node.params["data_format"]
    if given in (*FIRST[count], "channels_first"):
        return True
    if given in (*LAST[count], "channels_last"):
        return False
    raise GraphError(
        f"{node.where} needs {LAST[count][0]!r} or {FIRST[count][0]!r} as data_format, got {given!r}"
    )


def to_last(x: Entry, first: bool) -> Entry:
    """``x`` with channels last."""
    rank = len(known_shape(x))
    return make("transpose", x, axes=(0, *range(2, rank), 1)) if first else x


def from_last(x: Entry, first: bool) -> Entry:
    """``x``, whose channels are last, as a node's data_format has them."""
    rank = len(known_shape(x))
    return make("transpose", x, axes=(0, rank - 1, *range(1, rank - 1))) if first else x


def wide(x: Entry) -> Entry:
    """Floats of 16 bits as float32, in which their products are added."""
    narrow = x.dtype is not None and x.dtype.is_float and x.dtype.nbytes == 2
    return make("cast", x, dtype="float32") if narrow else x


def as_dtype(x: Entry, like: Entry) -> Entry:
    """``x`` in the dtype of ``like``."""
    if like.dtype is None or x.dtype is like.dtype:
        return x
    return make("cast", x, dtype=dtype_of(like.dtype).name)


def _rank(node: Node, x: Entry, count: int) -> None:
    if len(known_shape(x)) != count + 2:
        raise ShapeError(
            f"{node.where} needs an input of rank {count + 2}, got {show_shape(known_shape(x))}"
        )


def _named(count: int) -> Any:
    def expand(node: Node, x: Entry, filters: Entry) -> Entry:
        _rank(node, x, count)
        first = channels_first(node, count)
        inner = to_last(wide(x), first)
        out = make("convolution", inner, wide(filters), **_passed(node))
        return as_dtype(from_last(out, first), x)

    return expand


def _transposed(count: int) -> Any:
    """Source: the gradient of a convolution with respect to its input."""

    def expand(node: Node, x: Entry, filters: Entry) -> Entry:
        _rank(node, x, count)
        first = channels_first(node, count)
        inner = to_last(wide(x), first)
        size = _grown(node, known_shape(inner)[1:-1], _window(node, known_shape(filters)))
        out = make(
            "convolution_backprop_input", wide(filters), inner, size=size, **_passed(node)
        )
        return as_dtype(from_last(out, first), x)

    return expand


def _grown(node: Node, size: tuple[Extent, ...], window: tuple[int, ...]) -> tuple[Extent, ...]:
    """The size of the input whose convolution has ``size``: the output_shape, if it is given."""
    given = node.params["output_shape"]
    count = len(size)
    if given is not None:
        found = extents(node, given, "output_shape")
        return found[1:-1] if len(found) == count + 2 else found
    from passkit.ops.windowed import each

    stride, dilation = each(node, "strides", count), each(node, "dilations", count)
    extra = each(node, "output_padding", count, 0)
    out: list[Extent] = []
    for k, n in enumerate(size):
        reach = (window[k] - 1) * dilation[k] + 1
        padding = node.params["padding"]
        if padding == "SAME":
            out.append(n * stride[k] + extra[k])
            continue
        pair = (0, 0) if padding == "VALID" else padding
        pair = pair[k] if isinstance(pair, tuple) and padding != "VALID" else pair
        low, high = pair if isinstance(pair, tuple) else (pair, pair)
        out.append((n - 1) * stride[k] + reach - low - high + extra[k])
    return tuple(out)


for _count in (1, 2, 3):
    _layout = LAST[_count][0]
    composite(
        f"conv{_count}d",
        ["input", "filter"],
        _named(_count),
        f"the convolution over {_count} spatial axes",
        {**CONVOLVED, "data_format": _layout},
    )
    composite(
        f"conv{_count}d_transpose",
        ["input", "filter"],
        _transposed(_count),
        f"the transpose of conv{_count}d: (batch, *result, filters) and its filter -> (batch, "
        "*size, channels); output_shape or output_padding chooses among the sizes that fit",
        {**CONVOLVED, "data_format": _layout, "output_shape": None, "output_padding": 0},
    )
