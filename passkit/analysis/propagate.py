"""Propagation of splits: what a block needs of each operand, for its part of a result.

One rule serves all operators whose reads are known. The coordinates of a result's element are
written as those of its block and those inside of it; that gives the indices at which its operands
are read. An operand has a split where the algebra of indices proves that each of them lies in the
same block; else each block needs a slab, as far as leading coordinates are proven to be its own.
Nothing is guessed: what cannot be proven is a larger need.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import accumulate
from operator import mul
from weakref import WeakKeyDictionary

from passkit.analysis.accesses import Index, accesses_of, broadcast_index
from passkit.analysis.tilemap import (
    WHOLE,
    Digit,
    Reject,
    Split,
    SplitKind,
    SplitState,
    Whole,
    join,
    single_block,
)
from passkit.ast import Expr, Var, size_of
from passkit.ast.folds import Contract
from passkit.ast.index import Known, Sum, add, divide, normal, ravel, times
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import (
    call_attribute,
    contraction_of,
    reduce_of,
    refuse_result,
    scan_of,
)
from passkit.graph.graph import post_order
from passkit.graph.narrow import expand_node
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.graph.op import (
    FCodeGen,
    FContract,
    FElement,
    FExpand,
    FReduce,
    FScan,
    FSchedule,
    TStateful,
)
from passkit.values import dtype as dt
from passkit.values.size import Extent, Shape, at_least, divide_exactly, numel

Found = SplitState | Diagnostic | None
_memo: WeakKeyDictionary[Node, dict[tuple[int, SplitState], tuple[Found, ...]]]
_memo = WeakKeyDictionary()
_alike: dict[tuple[Hashable, SplitState], tuple[Found, ...]] = {}
ALIKE = 1 << 14
"""How many answers are kept for operators that are alike, whose groups come and go."""
_BY_ELEMENT = FElement, FReduce, FScan, FContract, FSchedule, TStateful


def operand_tile_maps(entry: Entry, state: SplitState) -> tuple[Found, ...]:
    """What each operand of a result must be, for the result to be ``state``.

    A `Split` of an operand has the same blocks as that of the result; a `Whole` is what every
    block needs at most; None that no element is read; a `Diagnostic` says why the operator cannot
    run in such blocks.

    Raises: ScheduleError for an FSchedule whose answer does not fit.
    """
    known = _memo.setdefault(entry.node, {})
    key = entry.index, state
    found = known.get(key)
    if found is None:
        same = _passes_on(entry)
        found = (state,) * len(entry.node.inputs) if same else _found(entry, state)
        known[key] = found
    return found


def _found(entry: Entry, state: SplitState) -> tuple[Found, ...]:
    """The same for an operator that is new, but may be like one that was asked about."""
    signature = _signature(entry)
    if signature is None:
        return _operand_states(entry, state)
    key = signature, state
    found = _alike.get(key)
    if found is None:
        if len(_alike) >= ALIKE:
            _alike.clear()
        found = _alike[key] = _operand_states(entry, state)
    return found


def _signature(entry: Entry) -> Hashable | None:
    """What the answer for an operator depends on: its rules, its parameters, and shapes.

    None where that may be more, as rules may look at values that are constant.
    """
    node = entry.node
    op = node.op
    assert op is not None
    if FExpand.get(op.name) is not None:
        return None
    if any(e.node.op is not None and e.node.op.name == "constant" for e in node.inputs):
        return None
    rules = tuple(column.get(op.name) for column in (FCodeGen, *_BY_ELEMENT))
    facts = tuple((e.shape, e.dtype) for e in (*node.inputs, *node.entries))
    found = op.name, rules, tuple(sorted(node.params.items())), facts, entry.index
    try:
        hash(found)
    except TypeError:  # a parameter that is an array, or a list
        return None
    return found


def _passes_on(entry: Entry) -> bool:
    """Whether each element is made of those at the same place in operands of the same shape."""
    op = entry.node.op
    assert op is not None
    return all(e.shape == entry.shape for e in entry.node.inputs) and _is_elementwise(op.name)


def _is_elementwise(name: str) -> bool:
    """Whether an operator has an element for each element of its operands, which may broadcast."""
    return FCodeGen.get(name) is not None and not any(c.get(name) for c in _BY_ELEMENT)


@lru_cache(maxsize=ALIKE)
def _aligned_state(shape: Shape, state: SplitState, operand: Shape) -> Found:
    """What a block needs of an operand that broadcasts to a result, whatever the operator is."""
    block = Block(state, shape)
    return block.state_of(operand, [broadcast_index(block.index, operand)])


def _operand_states(entry: Entry, state: SplitState) -> tuple[Found, ...]:
    node, shape = entry.node, known_shape(entry)
    op, shapes = node.op, [known_shape(e) for e in node.inputs]
    assert op is not None
    if TStateful.get(op.name):
        return (Diagnostic("op.state", {"op": op.name}),) * len(shapes)
    if isinstance(state, Split) and not all(at_least(n, 1) for n in shape):
        empty = Diagnostic("tile.empty_shape", {"shape": shape})
        return (empty,) * len(shapes)
    if isinstance(state, Split) and not state.digits(shape):  # one block has all of everything
        return tuple(None if 0 in s else single_block(s) for s in shapes)
    rule = FSchedule.get(op.name)
    if rule is not None and isinstance(state, Split):
        return _scheduled(node, state, shapes)
    if state == WHOLE or rule is not None:
        return (WHOLE,) * len(shapes)
    if _is_elementwise(op.name):
        return tuple(_aligned_state(shape, state, s) for s in shapes)
    block = Block(state, shape)
    reads = _reads(node, block)
    if reads is None:
        unknown = Diagnostic("tile.unknown_reads", {"op": op.name})
        return _expanded(entry, state) or (unknown,) * len(shapes)
    if isinstance(reads, Diagnostic):
        return (reads,) * len(shapes)
    at: list[list[Index]] = [[] for _ in shapes]
    for k, index in reads:
        at[k].append(index)
    return tuple(block.state_of(s, found) for s, found in zip(shapes, at, strict=True))


def _scheduled(node: Node, state: Split, shapes: Sequence[Shape]) -> tuple[Found, ...]:
    """What a block needs of each operand, by FSchedule.

    Raises: RuleError where that does not fit the operands.
    """
    requirements = call_attribute(FSchedule, node, node, state, tuple(shapes))
    kinds = (Split, Whole, Reject, type(None))
    fits = isinstance(requirements, (tuple, list)) and len(requirements) == len(shapes)
    if not fits or not all(isinstance(x, kinds) for x in requirements):
        need = f"a sequence of {len(shapes)}, a Split, WHOLE or a Reject for each operand"
        refuse_result(FSchedule, node, need, requirements)
    return tuple(
        x.canonical(s) if isinstance(x, (Split, Whole)) else _refused(node, x)
        for x, s in zip(requirements, shapes, strict=True)
    )


def _refused(node: Node, requirement: Reject | None) -> Diagnostic | None:
    """Return a refusal of an operator's FSchedule as a diagnostic."""
    if requirement is None:
        return None
    assert node.op is not None
    return Diagnostic("tile.refused", {"op": node.op.name, "reason": requirement.reason})


class Block:
    """A block of a result: its elements' coordinates, as those of the block and those inside.

    ``digits`` of its number are variables, outermost first; ``index`` is the element; all extents
    are in ``extents``. ``per`` blocks in a row have the same digits.
    """

    def __init__(self, state: SplitState, shape: Shape) -> None:
        self.extents = Known(())
        self.split = state if isinstance(state, Split) else None
        self.per: Extent = 1
        if isinstance(state, Split):
            digits = state.digits(shape)
        else:
            lead = enumerate(shape[: state.prefix])
            digits, self.per = tuple(Digit(k, 1, n) for k, n in lead if n != 1), state.per
        self.counts = tuple(d.pieces for d in digits)
        self.digits = tuple(self.fresh(f"b{k}", n) for k, n in enumerate(self.counts))
        cut = {d.dim: (var, d.chunk) for var, d in zip(self.digits, digits, strict=True)}
        self.index = tuple(self._coordinate(k, n, cut) for k, n in enumerate(shape))
        self.number = self._number(0, len(digits))

    def fresh(self, name: str, extent: Extent) -> Var:
        """A variable of this extent."""
        self.extents[name] = extent
        return Var(name, dt.int64)

    def _coordinate(self, dim: int, extent: Extent, cut: dict[int, tuple[Var, Extent]]) -> Expr:
        if dim not in cut:
            return self.fresh(f"i{dim}", extent)
        var, chunk = cut[dim]
        return var if chunk == 1 else var * size_of(chunk) + self.fresh(f"i{dim}", chunk)

    def _number(self, first: int, last: int) -> Sum:
        """The number that digits ``first`` to ``last`` make."""
        total = Sum(())
        for var, count in zip(self.digits[first:last], self.counts[first:last], strict=True):
            total = add(normal(var, self.extents), times(total, count))
        return total

    def state_of(self, shape: Shape, reads: Sequence[Index]) -> SplitState | None:
        """What a block needs of an operand of which each of its elements reads ``reads``."""
        if not reads or 0 in shape:
            return None
        if self.split is not None:
            for split in self.candidates(shape, reads[0]):
                if all(self.owns(split, shape, index) for index in reads):
                    return split.canonical(shape)
        return self.slab(shape, reads)

    def candidates(self, shape: Shape, index: Index) -> Iterator[Split]:
        """Splits of an operand that have as many blocks: few, each of which is then proven."""
        assert self.split is not None
        before = list(accumulate(shape, mul, initial=1))
        first, other = self.split.kind, {*SplitKind} - {self.split.kind}
        for kind in (first, *other):
            for dim, n in enumerate(shape):
                outer, behind = before[dim], divide_exactly(before[-1], before[dim + 1])
                rest = outer if kind is SplitKind.ROW else behind
                pieces = None if rest is None else divide_exactly(numel(self.counts), rest)
                if pieces is None or n == 1:
                    continue
                at = normal(index[dim], self.extents)
                steps = (at.coefficient(self.digits[k]) for k in (-1, 0))
                for size in dict.fromkeys((self.split.chunk, *steps, divide_exactly(n, pieces))):
                    if size is not None and _fits(size, n, pieces):
                        yield Split(dim, size, kind)

    def owns(self, split: Split, shape: Shape, index: Index) -> bool:
        """Whether the element at ``index`` certainly is this block's, as ``split`` has it."""
        total = Sum(())
        for dim, chunk, pieces in split.digits(shape):
            digit = divide(normal(index[dim], self.extents), chunk, self.extents)
            total = add(digit, times(total, pieces))
        return total == self.number

    def slab(self, shape: Shape, reads: Sequence[Index]) -> Whole:
        """The most leading coordinates that all ``reads`` certainly share with the block."""
        for prefix in range(len(shape), 0, -1):
            lead = shape[:prefix]
            if lead[-1] == 1:
                continue
            found = {ravel(index[:prefix], lead, self.extents) for index in reads}
            per = self._shared(found.pop(), numel(lead)) if len(found) == 1 else None
            if per is not None:
                return Whole(prefix, per).canonical(shape)
        return WHOLE

    def _shared(self, linear: Sum, count: Extent) -> Extent | None:
        """How many blocks in a row share ``linear``, if some of their digits in a row make it."""
        for last in range(len(self.digits), 0, -1):
            for first in range(last):
                if numel(self.counts[first:last]) == count and self._number(first, last) == linear:
                    return self.per * numel(self.counts[last:])
        return None


def _fits(chunk: Extent, extent: Extent, pieces: Extent) -> bool:
    """Whether chunks of this size make so many pieces of an extent."""
    return at_least(chunk, 1) and Split(0, chunk).blocks((extent,)) == pieces


OperandAccesses = list[tuple[int, Index]]


def _reads(node: Node, block: Block) -> OperandAccesses | Diagnostic | None:
    """Where the block's elements read each operand: FElement, a fold or a product."""
    assert node.op is not None
    if FElement.get(node.op.name) is not None:
        return list(accesses_of(node, block.index, block.extents).at)
    for fold in (_reduced, _scanned):
        found = fold(node, block)
        if found is not None:
            return [(0, found)]
    contract = contraction_of(node)
    if contract is not None:
        return (
            _product(node, contract, block)
            if isinstance(contract, Contract)
            else _slid(node, block)
        )
    return None


def _reduced(node: Node, block: Block) -> Index | None:
    """All elements along the folded axes; of a fold in chunks, those of its chunk."""
    fold = reduce_of(node)
    if fold is None:
        return None
    own = list(block.index)
    chunk = own.pop(0) if fold.chunks is not None else None
    out: list[Expr] = []
    for k, n in enumerate(known_shape(node.inputs[0])):
        if k not in fold.axes:
            out.append(own.pop(0))
            continue
        if fold.keepdims:
            own.pop(0)
        if fold.chunks is not None and fold.chunks.axis == k:
            assert chunk is not None
            length = fold.chunks.length
            out.append(chunk * size_of(length) + block.fresh(f"r{k}", length))
        else:
            out.append(block.fresh(f"r{k}", n))
    return tuple(out)


def _scanned(node: Node, block: Block) -> Index | None:
    """All elements along the axis: those before an element are some of them."""
    scan = scan_of(node)
    if scan is None:
        return None
    n = known_shape(node.inputs[0])[scan.axis]
    step = block.fresh(f"r{scan.axis}", n)
    return (*block.index[: scan.axis], step, *block.index[scan.axis + 1 :])


def _product(node: Node, contract: Contract, block: Block) -> OperandAccesses | Diagnostic:
    """A row of the left operand and a column of the right one, of the same place in the batch.

    Blocks share out places and rows, or columns: who had parts of both would read again what
    others do.
    """
    *batch, row, column = block.index
    cut = [bool(_digits_in(i, block)) for i in block.index]
    if block.split is not None and cut[-1] and any(cut[:-1]):
        return Diagnostic("tile.product")
    step = block.fresh("k", contract.k)
    sides = ((row, step, contract.transpose_a), (step, column, contract.transpose_b))
    out: OperandAccesses = []
    for k, (first, second, turned) in enumerate(sides):
        lead = broadcast_index(batch, known_shape(node.inputs[k])[:-2])
        out.append((k, (*lead, *((second, first) if turned else (first, second)))))
    return out


def _digits_in(x: Expr, block: Block) -> list[Expr]:
    return [a for a, _ in normal(x, block.extents).terms if a in block.digits]


def _slid(node: Node, block: Block) -> OperandAccesses:
    """A convolution: all of an image, and all filters."""
    image, filters = (known_shape(e) for e in node.inputs)
    rest = [block.fresh(f"r{k}", n) for k, n in enumerate(image[1:])]
    taps = [block.fresh(f"t{k}", n) for k, n in enumerate(filters)]
    return [(0, (block.index[0], *rest)), (1, tuple(taps))]


def _expanded(entry: Entry, state: SplitState) -> tuple[Found, ...] | None:
    """Propagate what a block needs through a composite by its expansion."""
    node = entry.node
    assert node.op is not None
    inputs = [
        Node(None, (), {"shape": known_shape(e), "dtype": e.dtype}, f"x{k}").entries[0]
        for k, e in enumerate(node.inputs)
    ]
    heads = None if FExpand.get(node.op.name) is None else expand_node(node, inputs)
    if heads is None:
        return None
    head = heads[entry.index]
    asked: dict[Entry, dict[SplitState, None]] = {head: {state: None}}
    for inner in reversed(list(post_order([head.node]))):
        for result in () if is_leaf(inner) else inner.entries:
            for wanted in asked.get(result, ()):
                for operand, found in zip(
                    inner.inputs, operand_tile_maps(result, wanted), strict=True
                ):
                    if isinstance(found, Diagnostic):
                        return (found,) * len(inputs)
                    if found is not None:
                        asked.setdefault(operand, {})[found] = None
    return tuple(_joined(asked.get(e, {}), known_shape(e)) for e in inputs)


def _joined(states: Iterable[SplitState], shape: Shape) -> SplitState | None:
    found = list(states)
    return reduce(lambda a, b: join(a, b, shape), found) if found else None
