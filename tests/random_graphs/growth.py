"""The growth of a random graph: a pool of entries, from which kinds pick what they work on.

What would be mostly NaN, or too inexact to compare, is thrown away again.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from passkit.errors import DTypeError, FeedError, ShapeError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, constant, known_shape, var
from passkit.graph.op import Op, get_op
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size, evaluate
from tests.error_bounds import Value, apply, openness
from tests.error_bounds.values import is_float, unit_of
from tests.random_graphs.arrays import DTYPES, EXTENTS, SYMBOLS, draw
from tests.random_graphs.case import FUSIONS, Case
from tests.random_graphs.gradient import differentiated
from tests.random_graphs.kinds import KINDS, Kind, joins
from tests.random_graphs.registry import chosen, turn_of
from tests.random_graphs.specimen import drawn

UNFIT = (ShapeError, DTypeError, FeedError)
MOST = 1 << 22
"""Elements of an input at most, in any run."""
"""The errors of operators whose operands do not fit by dtype, shape or value."""


class Growth:
    """One graph in the making: a pool of entries with their values in the first run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.given: dict[str, Any] = {}
        self.preferred_outputs: list[Entry] = []
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
        """True now and then."""
        return self.rng.random() < p

    def pick(self, fits: Callable[[Entry], bool] = lambda e: True) -> Entry | None:
        """A young entry, more often than an old one."""
        picked = [e for e in self.pool if fits(e)]
        if not picked:
            return None
        if self.chance(0.7):
            return picked[-1 - int(len(picked) * self.rng.random() ** 3)]
        return self.rng.choice(picked)

    def op(self, names: Iterable[str]) -> Op:
        """One of these operators; see `chosen`."""
        return get_op(chosen(names, str(self.rng.random())))

    def number(self, size: Extent, run: int = 0) -> int:
        """An extent in a run."""
        return evaluate(size, self.runs[run])

    def shape_of(self, entry: Entry, run: int = 0) -> tuple[int, ...]:
        """The shape of an entry in a run."""
        return tuple(self.number(n, run) for n in known_shape(entry))

    # Making entries.

    def add(self, entry: Entry) -> Entry | None:
        """Take an entry into the pool, with all that it is made of; None when it is no good."""
        nodes = Graph([entry]).nodes
        fresh = [n for n in nodes if any(e not in self.values for e in n.entries)]
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

    def taken(self, entry: Entry) -> bool:
        """Whether an entry is taken into the pool; it may not fit what it works on."""
        try:
            return self.add(entry) is not None
        except UNFIT:
            return False

    def is_good(self, value: Value) -> bool:
        """Whether a value is worth comparing: most elements are finite and nearly exact."""
        array = np.asarray(value.array)
        if array.size == 0 or (self.special and not is_float(array)):
            return True
        _, bounded, anything = openness(value)
        if anything > 0.05 * array.size:
            return False
        if not is_float(array):
            return True
        array = array.astype(np.float64)
        finite = np.isfinite(array)
        if finite.mean() < (0.3 if self.special else 0.8):
            return False
        if not bounded or not finite.any():
            return True
        size = np.abs(array[finite]).max()
        error = np.asarray(np.broadcast_to(value.bound, array.shape))[finite]
        unit = unit_of(dtype_of(np.asarray(value.array).dtype))
        return bool(np.median(error) <= max(1e-3, 30 * unit) * (size + 1e-30))

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

    def fed(self, array: Any) -> Entry:
        """A new input that is fed this array in each run."""
        name = f"x{len(self.inputs)}"
        entry = var(name, array.shape, array.dtype)
        self.given[name] = np.ascontiguousarray(array).reshape(array.shape)
        self.inputs.append(entry)
        self.values[entry] = Value(self.given[name])
        self.pool.append(entry)
        return entry

    def style(self, dtype: DType | None) -> str:
        """Return the style that the values of an input of a dtype are drawn in."""
        assert dtype is not None
        if dtype.is_float:
            weights = (30, 35, 15, 10, 25 if self.special else 0)
            return self.rng.choices(("whole", "unit", "quarters", "wide", "special"), weights)[0]
        if dtype.is_integer:
            return self.rng.choices(("whole", "bits", "limits"), (70, 18, 12))[0]
        return "coin"

    def array(self, entry: Entry, run: int) -> Any:
        """Return the array of an input, which depends only on the seed, the name and the run."""
        name = entry.node.name
        if name in self.given:
            return self.given[name]
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
            picked = self.pick(lambda e: e.dtype is dtype and joins(known_shape(e), shape))
            if picked is not None:
                return picked
        if chosen < 0.66:
            picked = self.pick(lambda e: joins(known_shape(e), shape))
            if picked is not None:
                return self.add(get_op("cast")(picked, dtype=dtype.name))
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
        """The first inputs, and which sizes are unknown."""
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
                    extent = shape[k]
                    self.open(shape, k)
                    if self.largest(shape) > MOST:  # the same name for several axes
                        shape[k] = extent
        base = tuple(shape)
        for _ in range(self.rng.randint(1, 3)):
            self.fresh(base if self.chance(0.7) else self.narrowed(base), self.dtype())

    def largest(self, shape: list[Extent]) -> int:
        """The elements of a shape, in the run that has most."""
        return max(prod(self.number(n, k) for n in shape) for k in range(len(self.runs)))

    def open(self, shape: list[Extent], axis: int) -> None:
        """Make an extent unknown: it is what it was in the first run, and another in the next."""
        name = self.rng.choice(("n", "m"))
        if name in self.runs[0]:
            shape[axis] = Size.symbol(name)
            return
        if len(self.runs) == 1:
            self.runs += [dict(self.runs[0]), dict(self.runs[0])]
        extent = shape[axis]
        assert isinstance(extent, int)
        self.runs[0][name] = extent
        for sizes in self.runs[1:]:
            menu = [n for n in SYMBOLS if n <= max(8, 3 * extent)]
            sizes[name] = 0 if self.chance(0.04) else self.rng.choice(menu)
        shape[axis] = Size.symbol(name)

    def dtype(self) -> str:
        """A dtype for an input or a cast."""
        return self.rng.choices(list(DTYPES), list(DTYPES.values()))[0]

    def case(self) -> Case:
        """The finished graph."""
        self.start()
        turn = turn_of(self.seed)
        few = self.rng.choices((3, 6, 12, 24, 50), (20, 36, 28, 13, 3))[0]
        kinds = [k for _, k in KINDS.values()]
        weights = [w for w, _ in KINDS.values()]
        for k in range(4 * few):
            if turn and k % 2:
                self.take_turn(turn.pop())
            if len(self.pool) - len(self.inputs) >= few:
                break
            self.try_kind(self.rng.choices(kinds, weights)[0])
        for name in turn:
            self.take_turn(name)
        slopes = differentiated(self) if self.seed % 3 == 0 else []
        self.preferred_outputs += slopes
        graph = Graph(self.outputs())
        names = {n.name for n in graph.inputs}
        feeds = tuple(
            {e.node.name: self.array(e, r) for e in self.inputs if e.node.name in names}
            for r in range(len(self.runs))
        )
        fusion = self.rng.choices([*FUSIONS], [*FUSIONS.values()])[0]
        tile = self.rng.choice((8192, 8192, 64, 256))
        return Case(self.seed, graph, feeds, fusion, tile, bool(slopes))

    def take_turn(self, name: str) -> None:
        """Draw an operator, in several ways until one gives something; it will be an output."""
        outer, self.rng = self.rng, random.Random(f"{self.seed} {name}")
        for attempt in range(8):
            before = len(self.pool)
            self.try_kind(lambda g: drawn(g, name, plainly=attempt < 2))  # noqa: B023
            created = [e for e in self.pool[before:] if e.node.op and e.node.op.name == name]
            if created:
                self.preferred_outputs += created
                break
        self.rng = outer

    def try_kind(self, make: Kind) -> None:
        """Add what a kind makes, if its operands fit and its value is worth comparing."""
        try:
            created = make(self)
            for entry in [created] if isinstance(created, Entry) else created or ():
                if self.add(entry) is None:
                    return
        except UNFIT:
            return

    def outputs(self) -> list[Entry]:
        """Return outputs: unread values, some others, at times an input, a constant or a repeat."""
        read = {e for x in self.pool for n in [x.node] for e in n.inputs}
        created = [e for e in self.pool if not e.node.is_variable]
        sinks = [e for e in created if e not in read]
        picked = sinks[-self.rng.choice((1, 2, 3, 5, 8)) :] or [self.pool[-1]]
        if created and self.chance(0.4):
            picked += self.rng.sample(created, min(len(created), self.rng.randint(1, 3)))
        picked += [w for w in [*self.preferred_outputs, *self.writes] if w not in picked]
        if self.chance(0.04):
            picked.append(self.rng.choice(self.inputs))
        if self.chance(0.03):
            picked.append(self.literal((2,), dtype_of("float32")))
        picked = list(dict.fromkeys(picked))
        self.rng.shuffle(picked)
        if self.chance(0.03):
            picked.append(picked[0])
        return picked
