"""Random graphs over all operators, from a seed, with arrays to feed them; and what they cover.

A graph grows from a pool of entries: a kind picks some, mostly young ones, and adds what it makes
of them. What would be mostly NaN, or too inexact to compare, is thrown away again.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

import passkit as pk
from passkit import ops
from passkit.dtype import DType, bool_, dtype_of
from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph import Graph
from passkit.node import Entry, Node, constant, known_shape, state, var
from passkit.op import FExpand, FReduce, get_op, list_ops, op_group
from passkit.size import Extent, Shape, Size, evaluate
from tests.error_bounds import Value, apply, openness

DTYPES = ("float32", "float64", "int32", "int64", "bool")
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 20, 31, 33, 64, 65, 70, 100, 130, 300, 515, 1030)
SYMBOLS = (1, 2, 3, 5, 8, 16, 17, 33, 40, 65, 100, 257)
NOT_DRAWN = frozenset({"constant", "fused", "assign"})
"""Operators that no kind draws by name: literals, what Fusion makes, and what writes state."""


@frozen(eq=False)
class Case:
    """A graph, arrays for each of several runs by input name, and how to compile it."""

    seed: int
    graph: Graph
    feeds: tuple[dict[str, Any], ...]
    fusion: str = "stitch"
    tile: int = 8192

    def __str__(self) -> str:
        shapes = [{k: f"{a.dtype}{list(a.shape)}" for k, a in f.items()} for f in self.feeds]
        runs = "".join(f"\n  run {k}: {s}" for k, s in enumerate(shapes))
        return f"seed {self.seed}, fusion {self.fusion}, tile {self.tile}{runs}\n{text_of(self)}"


def standard_ops() -> list[str]:
    """The operators of the library, without those that tests and examples register."""
    home = Path(str(ops.__file__)).parent
    return [n for n in list_ops() if Path(get_op(n).place.rpartition(":")[0]).parent == home]


def text_of(case: Case) -> str:
    """The graph as text."""
    lines = str(pk.to_text(case.graph)).splitlines()
    return "\n".join(x if len(x) < 300 else f"{x[:300]}…" for x in lines)


def random_case(seed: int) -> Case:
    """The graph of a seed, and what to feed it."""
    return _Growth(seed).case()


Kind = Callable[["_Growth"], "Entry | Sequence[Entry] | None"]
_KINDS: dict[str, tuple[float, Kind]] = {}


def _kind(weight: float) -> Callable[[Kind], Kind]:
    def register(make: Kind) -> Kind:
        _KINDS[make.__name__.strip("_")] = weight, make
        return make

    return register


class _Growth:
    """One graph in the making: a pool of entries with their values in the first run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.pool: list[Entry] = []
        self.values: dict[Entry, Value] = {}
        self.styles: dict[str, str] = {}
        self.inputs: list[Entry] = []
        self.writes: list[Entry] = []
        self.runs: list[dict[str, int]] = [{}]
        self.most = self.rng.choices((600, 4000, 40000), (70, 24, 6))[0]
        self.special = self.rng.random() < 0.15

    # Choices.

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, fits: Callable[[Entry], bool] = lambda e: True) -> Entry | None:
        """A young entry, more often than an old one."""
        found = [e for e in self.pool if fits(e)]
        if not found:
            return None
        if self.chance(0.7):
            return found[-1 - int(len(found) * self.rng.random() ** 3)]
        return self.rng.choice(found)

    def number(self, size: Extent, run: int = 0) -> int:
        return evaluate(size, self.runs[run])

    def shape_of(self, entry: Entry, run: int = 0) -> tuple[int, ...]:
        return tuple(self.number(n, run) for n in known_shape(entry))

    # Making entries.

    def add(self, entry: Entry) -> Entry | None:
        """Take an entry into the pool, with all that it is made of; None when it is no good."""
        fresh = [n for n in Graph([entry]).nodes if n.entries[0] not in self.values]
        for node in fresh:
            if node.is_variable:
                raise AssertionError(f"{node.where} was not made by fresh()")
            inputs = [self.values[e] for e in node.inputs]
            if any(np.prod(self.shape_of(e), dtype=float) > 4 * self.most for e in node.entries):
                return None
            values = apply(node, inputs, self.runs[0])
            for e, value in zip(node.entries, values, strict=True):
                if not self.is_good(value) and not self.chance(0.05):
                    return None
                self.values[e] = value
        self.pool.append(entry)
        return entry

    def is_good(self, value: Value) -> bool:
        """Whether a value is worth comparing: most elements are finite and nearly exact."""
        array = np.asarray(value.array)
        if array.size == 0 or (self.special and array.dtype.kind != "f"):
            return True
        _, bounded, anything = openness(value)
        if anything > 0.05 * array.size:
            return False
        if array.dtype.kind != "f":
            return True
        finite = np.isfinite(array)
        if finite.mean() < (0.3 if self.special else 0.8):
            return False
        if not bounded or not finite.any():
            return True
        size = np.abs(array[finite]).max()
        error = np.asarray(np.broadcast_to(value.bound, array.shape))[finite]
        return bool(np.median(error) <= 1e-3 * (size + 1e-30))

    def fresh(self, shape: Shape, dtype: str, exact_sizes: bool = False) -> Entry:
        """A new input; now and then one of its unknown sizes gets a name of its own."""
        name = f"x{len(self.inputs)}"
        dims: list[Any] = list(shape)
        for k, n in enumerate(shape):
            if isinstance(n, Size) and not exact_sizes and self.chance(0.12):
                dims[k] = None
                for r, sizes in enumerate(self.runs):
                    stretched = r > 0 and self.chance(0.15)
                    sizes[f"{name}.{k}"] = 1 if stretched else evaluate(n, sizes)
        entry = var(name, dims, dtype)
        self.styles[name] = self.style(entry.dtype)
        self.inputs.append(entry)
        self.values[entry] = Value(self.array(entry, 0))
        self.pool.append(entry)
        return entry

    def style(self, dtype: DType | None) -> str:
        assert dtype is not None
        if dtype.is_float:
            weights = (30, 35, 15, 10, 25 if self.special else 0)
            return self.rng.choices(("whole", "unit", "quarters", "wide", "special"), weights)[0]
        if dtype.is_integer:
            return self.rng.choices(("whole", "bits", "limits"), (70, 18, 12))[0]
        return "coin"

    def array(self, entry: Entry, run: int) -> Any:
        """What an input is fed: it depends on the seed, the name and the run only."""
        name = entry.node.name
        rng = np.random.default_rng(zlib.crc32(f"{self.seed} {name} {run}".encode()))
        assert entry.dtype is not None
        shape = tuple(max(n, 0) for n in self.shape_of(entry, run))  # n - 1 at n = 0
        return draw(rng, self.styles[name], shape, entry.dtype)

    def literal(self, shape: tuple[int, ...], dtype: DType) -> Entry:
        """A constant array."""
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        entry = constant(draw(rng, self.style(dtype), shape, dtype))
        self.values[entry] = Value(entry.node.params["value"])
        return entry

    def mate(self, like: Entry, dtype: DType) -> Entry | None:
        """An entry that broadcasts with another: of the pool, cast, new, or a constant."""
        shape = known_shape(like)
        chosen = self.rng.random()
        if chosen < 0.08 and like.dtype is dtype:
            return like
        if chosen < 0.55:
            found = self.pick(lambda e: e.dtype is dtype and _joins(known_shape(e), shape))
            if found is not None:
                return found
        if chosen < 0.66:
            found = self.pick(lambda e: _joins(known_shape(e), shape))
            if found is not None:
                return self.add(get_op("cast")(found, dtype=dtype.name))
        if chosen < 0.9 or any(isinstance(n, Size) for n in shape):
            return self.fresh(self.narrowed(shape), dtype.name)
        dims = tuple(n for n in self.narrowed(shape) if isinstance(n, int))
        return self.literal(dims if len(dims) < 2 or self.chance(0.5) else dims[-1:], dtype)

    def narrowed(self, shape: Shape) -> Shape:
        """A shape that broadcasts to ``shape``: the same, with ones, of lower rank, or ()."""
        chosen = self.rng.random()
        if chosen < 0.45:
            return shape
        if chosen < 0.75:
            return tuple(1 if self.chance(0.5) else n for n in shape)
        if chosen < 0.9:
            return shape[self.rng.randint(0, len(shape)) :]
        return () if chosen < 0.97 else (1,) * self.rng.randint(0, len(shape) + 1)

    def control(self) -> dict[str, Any]:
        """Now and then a node that must run before."""
        if not self.chance(0.04):
            return {}
        other = self.pick(lambda e: not e.node.is_variable)
        return {} if other is None else {"control": [other.node]}

    # The whole graph.

    def start(self) -> None:
        rank = self.rng.choices((0, 1, 2, 3, 4), (4, 20, 40, 26, 10))[0]
        shape: list[Extent] = []
        room = self.most
        for _ in range(rank):
            menu = [n for n in EXTENTS if n <= room]
            n = self.rng.choice(menu) if menu else 1
            if self.chance(0.015):
                n = 0
            shape.append(n)
            room //= max(n, 1)
        self.rng.shuffle(shape)
        if self.chance(0.35):
            for k in range(rank):
                if self.chance(0.5):
                    self.open(shape, k)
        base = tuple(shape)
        for _ in range(self.rng.randint(1, 3)):
            self.fresh(base if self.chance(0.7) else self.narrowed(base), self.dtype())

    def open(self, shape: list[Extent], axis: int) -> None:
        """Make an extent unknown: it is what it was in the first run, and another in the next."""
        name = self.rng.choice(("n", "m"))
        if name in self.runs[0]:
            shape[axis] = Size.symbol(name)
            return
        if len(self.runs) == 1:
            self.runs += [dict(self.runs[0]), dict(self.runs[0])]
        known = shape[axis]
        assert isinstance(known, int)
        self.runs[0][name] = known
        for sizes in self.runs[1:]:
            menu = [n for n in SYMBOLS if n <= max(8, 3 * known)]
            sizes[name] = 0 if self.chance(0.04) else self.rng.choice(menu)
        shape[axis] = Size.symbol(name)

    def dtype(self) -> str:
        return self.rng.choices(DTYPES, (55, 15, 14, 6, 10))[0]

    def case(self) -> Case:
        self.start()
        wanted = self.rng.choices((3, 8, 16, 30, 50), (12, 28, 32, 20, 8))[0]
        kinds = [k for _, k in _KINDS.values()]
        weights = [w for w, _ in _KINDS.values()]
        for _ in range(4 * wanted):
            if len(self.pool) - len(self.inputs) >= wanted:
                break
            self.try_kind(self.rng.choices(kinds, weights)[0])
        graph = Graph(self.outputs())
        names = {n.name for n in graph.inputs}
        feeds = tuple(
            {e.node.name: self.array(e, r) for e in self.inputs if e.node.name in names}
            for r in range(len(self.runs))
        )
        fusion = self.rng.choices(("stitch", "nnvm", "none"), (86, 7, 7))[0]
        return Case(self.seed, graph, feeds, fusion, self.rng.choice((8192, 8192, 64, 256)))

    def try_kind(self, make: Kind) -> None:
        try:
            made = make(self)
            for entry in [made] if isinstance(made, Entry) else made or ():
                if self.add(entry) is None:
                    return
        except (ShapeError, DTypeError):
            return  # these operands do not fit this operator

    def outputs(self) -> list[Entry]:
        """What nobody reads, some values in between, at times an input, a constant or a twin."""
        read = {e for x in self.pool for n in [x.node] for e in n.inputs}
        made = [e for e in self.pool if not e.node.is_variable]
        sinks = [e for e in made if e not in read]
        found = sinks[-self.rng.choice((1, 2, 3, 5, 8)) :] or [self.pool[-1]]
        if made and self.chance(0.4):
            found += self.rng.sample(made, min(len(made), self.rng.randint(1, 3)))
        found += [w for w in self.writes if w not in found]
        if self.chance(0.04):
            found.append(self.rng.choice(self.inputs))
        if self.chance(0.03):
            found.append(self.literal((2,), dtype_of("float32")))
        found = list(dict.fromkeys(found))
        self.rng.shuffle(found)
        if self.chance(0.03):
            found.append(found[0])
        return found


def draw(rng: np.random.Generator, style: str, shape: tuple[int, ...], dtype: DType) -> Any:
    """An array of a style: small whole numbers sum exactly, special ones have NaN and inf."""
    kind = dtype.numpy
    match style:
        case "coin":
            return rng.random(shape) < 0.5
        case "whole":
            return rng.integers(-4, 5, shape).astype(kind)
        case "bits":
            info = np.iinfo(kind)
            return rng.integers(info.min, info.max, shape, kind, endpoint=True)
        case "limits":
            info = np.iinfo(kind)
            return rng.choice(np.array([info.min, info.max, 0, 1, 2, info.max - 1], kind), shape)
        case "quarters":
            return (rng.integers(-32, 33, shape) / 4).astype(kind)
        case "wide":
            powers = np.exp2(rng.integers(-12, 13, shape))
            return (rng.standard_normal(shape) * powers).astype(kind)
        case "special":
            info = np.finfo(kind)
            odd = [0.0, -0.0, np.inf, -np.inf, np.nan, info.tiny / 8, 1.0, -1.0, 100.0, -100.0]
            plain = rng.standard_normal(shape)
            return np.where(rng.random(shape) < 0.2, rng.choice(odd, shape), plain).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def _joins(a: Shape, b: Shape) -> bool:
    """Whether two shapes broadcast together without asking a call."""
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(m == n or m == 1 or n == 1 for m, n in pairs)


def _is_float(entry: Entry) -> bool:
    return entry.dtype is not None and entry.dtype.is_float


def _elementwise(arity: int) -> list[pk.Op]:
    members = op_group("elementwise").members
    return [o for o in members if o.num_inputs == arity and o.name not in ("cast", "where")]


def _accepts(op: pk.Op, dtype: DType) -> bool:
    key = op.name, dtype.name
    if key not in _accepted:
        x = var("x", (), dtype)
        try:
            op(*[x] * op.num_inputs)
            _accepted[key] = True
        except DTypeError:
            _accepted[key] = False
    return _accepted[key]


_accepted: dict[tuple[str, str], bool] = {}


def _axes(g: _Growth, rank: int) -> Any:
    """Axes of a reduction: last, first, middle, several, all or none."""
    menu: list[Any] = [None, ()] if g.chance(0.25) else []
    menu += [-1, rank - 1, 0] if rank else [None]
    if rank > 2:
        menu += [rank // 2, (0, rank - 1), (1, 2), tuple(range(1, rank)), tuple(range(rank - 1))]
    elif rank == 2:
        menu += [(0, 1), (-1,)]
    return g.rng.choice(menu)


def _operate(g: _Growth, op: pk.Op) -> Entry | None:
    x = g.pick(lambda e: e.dtype is not None and _accepts(op, e.dtype))
    if x is None:
        return None
    assert x.dtype is not None
    rest = [g.mate(x, x.dtype) for _ in range(op.num_inputs - 1)]
    if any(r is None for r in rest):
        return None
    sides = [x, *rest]
    if g.chance(0.4):
        g.rng.shuffle(sides)
    return op(*sides, **g.control())  # type: ignore[no-any-return]


@_kind(5)
def _unary(g: _Growth) -> Entry | None:
    return _operate(g, g.rng.choice(_elementwise(1)))


@_kind(7)
def _binary(g: _Growth) -> Entry | None:
    return _operate(g, g.rng.choice(_elementwise(2)))


@_kind(4)
def _arithmetic(g: _Growth) -> Entry | None:
    return _operate(g, get_op(g.rng.choice(("add", "sub", "mul", "maximum"))))


@_kind(1.2)
def _ternary(g: _Growth) -> Entry | None:
    return _operate(g, g.rng.choice(_elementwise(3)))


@_kind(1.5)
def _where(g: _Growth) -> Entry | None:
    x = g.pick()
    if x is None:
        return None
    assert x.dtype is not None
    condition, y = g.mate(x, bool_), g.mate(x, x.dtype)
    if condition is None or y is None:
        return None
    return get_op("where")(condition, x, y, **g.control())  # type: ignore[no-any-return]


@_kind(1.5)
def _scalar(g: _Growth) -> Entry | None:
    """A Python scalar, which is weak."""
    x = g.pick(lambda e: e.dtype is not bool_)
    if x is None:
        return None
    value = g.rng.choice((2, 3, 1, 0, -1, 0.5, -2.0, 1.0, 10))
    if not _is_float(x):
        value = int(value)
    return g.rng.choice(
        (
            lambda: x + value,
            lambda: value - x,
            lambda: x * value,
            lambda: x / (value or 3),
            lambda: x > value,
            lambda: x // value if not _is_float(x) else x - value,
            lambda: x % value if not _is_float(x) else -x,
            lambda: x**2,
        )
    )()


@_kind(1.5)
def _cast(g: _Growth) -> Entry | None:
    x = g.pick()
    return None if x is None else get_op("cast")(x, dtype=g.dtype(), **g.control())


@_kind(1.2)
def _diamond(g: _Growth) -> Entry | None:
    """Two functions of one value, joined again."""
    x = g.pick(_is_float)
    if x is None:
        return None
    ops = ("neg", "abs", "square", "relu", "tanh", "sigmoid", "floor", "sin", "identity")
    sides = [get_op(g.rng.choice(ops))(x) for _ in range(2)]
    return get_op(g.rng.choice(("add", "mul", "sub", "minimum")))(*sides)


@_kind(4)
def _reduce(g: _Growth) -> Entry | None:
    op = g.rng.choice([get_op(n) for n in standard_ops() if n in FReduce.rows])
    x = g.pick(lambda e: e.dtype is not None and _accepts(op, e.dtype))
    if x is None:
        return None
    axis = _axes(g, len(known_shape(x)))
    return op(x, axis=axis, keepdims=g.chance(0.5), **g.control())  # type: ignore[no-any-return]


def _spread_back(g: _Growth, x: Entry, name: str, axis: int) -> Entry:
    """A reduction that broadcasts back to what it reduced, in one of several spellings."""
    shape = known_shape(x)
    kept = tuple(1 if k == axis else n for k, n in enumerate(shape))
    fold = get_op(name)
    if g.chance(0.5):
        out = fold(x, axis=axis, keepdims=True)
    elif g.chance(0.5):
        out = get_op("expand_dims")(fold(x, axis=axis), axis=axis)
    else:
        out = get_op("reshape")(fold(x, axis=axis), shape=kept)
    if g.chance(0.2):
        out = get_op("broadcast_to")(out, shape=shape)
    return out  # type: ignore[no-any-return]


@_kind(1.6)
def _normalise(g: _Growth) -> Entry | None:
    """Softmax, centring and scaling by primitives, over any axis."""
    x = g.pick(lambda e: _is_float(e) and len(known_shape(e)) > 0)
    if x is None:
        return None
    axis = g.rng.randrange(len(known_shape(x)))
    form = g.rng.randrange(4)
    if form == 0:
        e = get_op("exp")(x - _spread_back(g, x, "reduce_max", axis))
        return e / _spread_back(g, e, "reduce_sum", axis)
    if form == 1:
        d = x - _spread_back(g, x, "reduce_mean", axis)
        return d * get_op("rsqrt")(_spread_back(g, d * d, "reduce_mean", axis) + 1e-3)
    if form == 2:
        return x / (_spread_back(g, get_op("abs")(x), "reduce_max", axis) + 1.0)
    return get_op("reduce_sum")(x - _spread_back(g, x, "reduce_min", axis), axis=axis)


@_kind(2.5)
def _reshape(g: _Growth) -> Entry | None:
    """Neighbouring axes joined, or an axis cut in two; or a shape of ones more or less."""
    x = g.pick()
    if x is None:
        return None
    shape = list(known_shape(x))
    for _ in range(g.rng.randint(1, 2)):
        k = g.rng.randrange(len(shape) + 1)
        n = shape[k] if k < len(shape) else 1
        if k + 1 < len(shape) and g.chance(0.5):
            shape[k : k + 2] = [n * shape[k + 1]]
        elif isinstance(n, int) and n > 1:
            factors = [f for f in range(1, n + 1) if n % f == 0]
            f = g.rng.choice(factors)
            shape[k : k + 1] = [f, n // f]
        else:
            shape.insert(k, 1)
    if len(shape) > 5:
        return None
    if g.chance(0.2) and shape and 0 not in shape:
        shape[g.rng.randrange(len(shape))] = -1
    return get_op("reshape")(x, shape=shape, **g.control())  # type: ignore[no-any-return]


@_kind(0.8)
def _expand_dims(g: _Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) < 4)
    if x is None:
        return None
    rank = len(known_shape(x))
    axis: Any = g.rng.randint(-rank - 1, rank)
    if g.chance(0.2):
        axis = (0, rank + 1)
    return get_op("expand_dims")(x, axis=axis, **g.control())  # type: ignore[no-any-return]


@_kind(0.8)
def _squeeze(g: _Growth) -> Entry | None:
    x = g.pick(lambda e: 1 in known_shape(e))
    if x is None:
        return None
    ones = [k for k, n in enumerate(known_shape(x)) if n == 1]
    axis = None if g.chance(0.3) else g.rng.choice(ones)
    return get_op("squeeze")(x, axis=axis, **g.control())  # type: ignore[no-any-return]


@_kind(1.6)
def _transpose(g: _Growth) -> Entry | None:
    rank = 2 if g.chance(0.9) else 0
    x = g.pick(lambda e: len(known_shape(e)) >= rank)
    if x is None:
        return None
    axes = list(range(len(known_shape(x))))
    g.rng.shuffle(axes)
    given = None if g.chance(0.3) else axes
    return get_op("transpose")(x, axes=given, **g.control())  # type: ignore[no-any-return]


@_kind(1.0)
def _broadcast_to(g: _Growth) -> Entry | None:
    x = g.pick(lambda e: 1 in known_shape(e)) if g.chance(0.6) else g.pick()
    if x is None:
        return None
    other = g.pick()
    assert other is not None
    room = [n for n in known_shape(other) if n != 1] + [2, 3, 17]
    shape = [g.rng.choice(room) if n == 1 and g.chance(0.8) else n for n in known_shape(x)]
    if g.chance(0.4) and len(shape) < 4:
        shape.insert(0, g.rng.choice(room))
    return get_op("broadcast_to")(x, shape=shape, **g.control())  # type: ignore[no-any-return]


@_kind(1.4)
def _concat(g: _Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) > 0)
    if x is None:
        return None
    assert x.dtype is not None
    shape = known_shape(x)
    axis = g.rng.randrange(len(shape))

    def fits(e: Entry) -> bool:
        other = known_shape(e)
        same = [m == n or k == axis for k, (m, n) in enumerate(zip(other, shape, strict=False))]
        return e.dtype is x.dtype and len(other) == len(shape) and all(same)

    parts = [x]
    for _ in range(g.rng.randint(0 if g.chance(0.1) else 1, 3)):
        part = g.pick(fits) if g.chance(0.7) else None
        if part is None:
            n = g.rng.choice((1, 2, 5, 16, shape[axis]))
            part = g.fresh((*shape[:axis], n, *shape[axis + 1 :]), x.dtype.name, exact_sizes=True)
        parts.append(part)
    g.rng.shuffle(parts)
    given = axis - len(shape) if g.chance(0.4) else axis
    return get_op("concat")(*parts, axis=given, **g.control())  # type: ignore[no-any-return]


@_kind(1.6)
def _slice(g: _Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) > 0)
    if x is None:
        return None
    begin, size, step = [], [], []
    for n in known_shape(x):
        if not isinstance(n, int) or n == 0 or g.chance(0.4):
            b, k, s = 0, -1 if g.chance(0.5) or isinstance(n, Size) else n, 1
        else:
            k = g.rng.randint(1 if g.chance(0.95) else 0, n)
            s = g.rng.choice((1, 1, 1, 2, 3, -1, -2))
            k = min(k, (n - 1) // abs(s) + 1)
            b = g.rng.randint(0, n - 1 - (k - 1) * abs(s)) if k else 0
            b = b if s > 0 else n - 1 - b
        begin.append(b)
        size.append(k)
        step.append(s)
    given = None if all(s == 1 for s in step) else step
    made = get_op("slice")(x, begin=begin, size=size, step=given, **g.control())
    return made  # type: ignore[no-any-return]


@_kind(1.0)
def _index(g: _Growth) -> Entry | None:
    """Python's own indexing, with ends that depend on unknown sizes."""
    x = g.pick(lambda e: len(known_shape(e)) > 0)
    if x is None:
        return None
    menu = (slice(1, None), slice(None, -1), slice(None, None, 2), 0, -1, None, ..., slice(None))
    key = tuple(g.rng.choice(menu) for _ in known_shape(x))
    return None if key.count(...) > 1 else x[key]


@_kind(0.5)
def _split(g: _Growth) -> Sequence[Entry] | None:
    x = g.pick(lambda e: any(isinstance(n, int) and n > 1 for n in known_shape(e)))
    if x is None:
        return None
    shape = known_shape(x)
    axis = g.rng.choice([k for k, n in enumerate(shape) if isinstance(n, int) and n > 1])
    n = shape[axis]
    assert isinstance(n, int)
    cut = g.rng.randint(1, n - 1)
    return ops.split(x, [cut, n - cut], axis)  # type: ignore[no-any-return]


@_kind(1.0)
def _matmul(g: _Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) > 1 and e.dtype is not bool_)
    if x is None:
        return None
    assert x.dtype is not None
    shape, flip_a, flip_b = known_shape(x), g.chance(0.25), g.chance(0.25)
    k = shape[-2] if flip_a else shape[-1]
    n = g.rng.choice((1, 2, 5, 16, 33, shape[-1]))
    batch = shape[:-2] if g.chance(0.5) else tuple(1 if g.chance(0.5) else d for d in shape[:-2])
    batch = batch if g.chance(0.6) else ()
    y = g.fresh((*batch, *((n, k) if flip_b else (k, n))), x.dtype.name, exact_sizes=True)
    made = get_op("matmul")(x, y, transpose_a=flip_a, transpose_b=flip_b, **g.control())
    return made  # type: ignore[no-any-return]


@_kind(0.4)
def _linear(g: _Growth) -> Entry | None:
    x = g.pick(lambda e: _is_float(e) and len(known_shape(e)) > 0)
    if x is None:
        return None
    assert x.dtype is not None
    hidden = g.rng.choice((1, 3, 17))
    rest = [g.fresh((hidden, known_shape(x)[-1]), x.dtype.name, exact_sizes=True)]
    if g.chance(0.6):
        rest.append(g.fresh((hidden,), x.dtype.name))
    return get_op("linear")(x, *rest, no_bias=len(rest) == 1)  # type: ignore[no-any-return]


@_kind(1.6)
def _composite(g: _Growth) -> Entry | None:
    names = [n for n in standard_ops() if n in FExpand.rows and n not in ("linear", "assign")]
    name = g.rng.choice(names)
    x = g.pick(lambda e: _is_float(e) and (len(known_shape(e)) > 0 or name in ("gelu", "silu")))
    if x is None:
        return None
    assert x.dtype is not None
    op = get_op(name)
    params: dict[str, Any] = {}
    if "axis" in op.params:
        axis = _axes(g, len(known_shape(x)))
        params["axis"] = axis if axis != () else -1
    if "keepdims" in op.params:
        params["keepdims"] = g.chance(0.5)
    if "approximate" in op.params:
        params["approximate"] = g.rng.choice(("none", "tanh", "sigmoid"))
    if name != "layer_norm":
        return op(x, **params, **g.control())  # type: ignore[no-any-return]
    shape = known_shape(x)
    axes = params["axis"]
    axes = range(len(shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    wanted = tuple(shape[k] for k in sorted(a % len(shape) for a in axes))
    scale, center = g.chance(0.7), g.chance(0.7)
    rest = [g.fresh(wanted, x.dtype.name, exact_sizes=True) for _ in range(scale + center)]
    return op(x, *rest, **params, scale=scale, center=center)  # type: ignore[no-any-return]


@_kind(0.5)
def _state(g: _Growth) -> Entry | None:
    """A state variable to read."""
    x = g.pick(lambda e: not any(isinstance(n, Size) for n in known_shape(e)))
    if x is None or len(g.pool) < 2:
        return None
    assert x.dtype is not None
    rng = np.random.default_rng(g.rng.randrange(1 << 30))
    made = state(f"s{len(g.pool)}", draw(rng, g.style(x.dtype), g.shape_of(x), x.dtype))
    g.values[made] = Value(made.node.params["initial"])
    g.pool.append(made)
    return None


@_kind(0.6)
def _assign(g: _Growth) -> Entry | None:
    """A state variable is written."""
    target = g.pick(lambda e: bool(e.node.is_variable and e.node.params.get("state")))
    if target is None:
        return None
    shape, dtype = known_shape(target), target.dtype
    value = g.pick(lambda e: known_shape(e) == shape and e.dtype is dtype and e is not target)
    if value is None:
        return None
    made = get_op("assign")(target, value, **g.control())
    g.values[made] = g.values[value]
    g.pool.append(made)
    g.writes.append(made)
    return None


# What a case covers, read off the finished graph.


def covered(case: Case) -> set[str]:
    """The kinds of graph that a case is one of."""
    graph = case.graph
    found = {f"fusion {case.fusion}"}
    for node in graph.nodes:
        found.update(_of_node(node))
    shapes = [a.shape for f in case.feeds for a in f.values()]
    found |= {"zero size" for s in shapes if 0 in s}
    found |= {"size 1" for s in shapes if 1 in s}
    found |= {"odd size" for s in shapes for n in s if n % 2 and n > 2}
    found |= {"row over 16" for s in shapes if s and s[-1] > 16}
    found |= {"row over 64" for s in shapes if s and s[-1] > 64}
    users = graph.users
    outputs = list(graph.outputs)
    if len(set(outputs)) > 1:
        found.add("several outputs")
    if len(set(outputs)) < len(outputs):
        found.add("one output twice")
    if any(users.get(e) and not e.node.is_variable for e in outputs):
        found.add("fetched intermediate")
    if any(e.node.is_variable for e in outputs):
        found.add("output that is an input")
    if len(case.feeds) > 1:
        found.add("unknown size")
    if any(isinstance(n, Size) and "." in str(n) for e in graph.inputs for n in e.entries[0].shape):
        found.add("unknown size of its own")
    if _has_diamond(graph):
        found.add("diamond")
    return found


def _of_node(node: Node) -> Iterable[str]:
    if node.op is None:
        yield "state" if node.params.get("state") else "input"
        yield f"dtype {node.entries[0].dtype}"
        return
    yield f"op {node.op.name}"
    yield f"dtype {node.entries[0].dtype}"
    if node.control:
        yield "control edge"
    if len(set(node.inputs)) < len(node.inputs):
        yield "repeated input"
    if FReduce.get(node.op.name) is not None:
        yield from _of_reduction(node)
    elif node.op in op_group("elementwise").members and len(node.inputs) > 1:
        shapes = [known_shape(e) for e in node.inputs]
        whole = known_shape(node.entries[0])
        yield from ("broadcast of a scalar" for s in shapes if s == () != whole)
        yield from ("broadcast of ranks" for s in shapes if 0 < len(s) < len(whole))
        yield from (
            "broadcast of a size 1" for s in shapes if len(s) == len(whole) and s != whole
        )
        yield from ("no broadcast" for s in shapes if s == whole)


def _of_reduction(node: Node) -> Iterable[str]:
    fold = FReduce.get(node.op.name)(node)  # type: ignore[union-attr]
    rank = len(known_shape(node.inputs[0]))
    yield "reduction with keepdims" if fold.keepdims else "reduction without keepdims"
    match fold.axes:
        case ():
            yield "reduction of no axis"
        case axes if len(axes) == rank > 1:
            yield "reduction of all axes"
        case axes if len(axes) > 1:
            yield "reduction of several axes"
        case (axis,) if axis == rank - 1:
            yield "reduction of the last axis"
        case (0,):
            yield "reduction of the first axis"
        case _:
            yield "reduction of a middle axis"


def _has_diamond(graph: Graph) -> bool:
    """Whether two different operators read one value, and one operator reads both of them."""
    users = graph.users
    for readers in users.values():
        distinct = list(dict.fromkeys(readers))
        after = [{u for e in r.entries for u in users.get(e, ())} for r in distinct]
        if any(a & b for k, a in enumerate(after) for b in after[k + 1 :]):
            return True
    return False


def expected() -> list[str]:
    """Every kind that many graphs together must have."""
    features = (
        "input, state, control edge, repeated input, diamond, zero size, size 1, odd size, "
        "row over 16, row over 64, several outputs, one output twice, fetched intermediate, "
        "output that is an input, unknown size, unknown size of its own, no broadcast, "
        "broadcast of a scalar, broadcast of ranks, broadcast of a size 1, "
        "reduction with keepdims, reduction without keepdims, reduction of no axis, "
        "reduction of all axes, reduction of several axes, reduction of the last axis, "
        "reduction of the first axis, reduction of a middle axis"
    )
    wanted = [*features.split(", "), *(f"dtype {d}" for d in DTYPES), "op assign", "op constant"]
    wanted += [f"fusion {f}" for f in ("stitch", "nnvm", "none")]
    return wanted + [f"op {n}" for n in standard_ops() if n not in NOT_DRAWN]


def coverage(cases: Iterable[Case]) -> Counter[str]:
    """How many of the cases have each kind; kinds that are expected are there even at 0."""
    count = Counter(dict.fromkeys(expected(), 0))
    for case in cases:
        count.update(covered(case))
    return count


def table(count: Mapping[str, int]) -> str:
    """Coverage as lines of text."""
    rows = [f"{n:6d}  {kind}" for kind, n in sorted(count.items())]
    third = -(-len(rows) // 3)
    columns = [rows[k * third : (k + 1) * third] for k in range(3)]
    lines = [
        "".join(c[k].ljust(36) for c in columns if k < len(c)).rstrip() for k in range(third)
    ]
    return "\n".join(lines)


__all__ = ["Case", "GraphError", "coverage", "covered", "expected", "random_case", "table"]
