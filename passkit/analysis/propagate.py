"""Propagation of tile maps: what a tile needs of each operand, for its part of a result.

One rule serves all operators whose accesses are known. The coordinates of a result's element are
written as those of its tile and those inside of it; that gives the indices at which its operands
are read. The tiles partition an operand where the algebra of indices proves that each of these
indices lies in the same tile. Otherwise a tile needs a slab: all elements with the leading
coordinates that are proven to be its own. What cannot be proven makes the part larger.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import accumulate
from operator import mul
from weakref import WeakKeyDictionary

from passkit.analysis.accesses import Index, accesses_of, broadcast_index
from passkit.analysis.tilemap import (
    Reject,
    Split,
    SplitKind,
    TileMap,
    Whole,
    slab_map,
    whole_map,
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

OperandMap = TileMap | Diagnostic | None
"""The part of an operand that a tile needs; None if it reads none; or why it has no such part."""
_memo: WeakKeyDictionary[Node, dict[tuple[int, TileMap], tuple[OperandMap, ...]]]
_memo = WeakKeyDictionary()
_equivalent: dict[tuple[Hashable, TileMap], tuple[OperandMap, ...]] = {}
MAX_EQUIVALENT = 1 << 14
"""How many answers are kept for equivalent operators, whose groups come and go."""
_BY_ELEMENT = FElement, FReduce, FScan, FContract, FSchedule, TStateful


def operand_tile_maps(entry: Entry, tile_map: TileMap) -> tuple[OperandMap, ...]:
    """Return what each tile needs of the operands of a result of which it has a part.

    Maps of operands have as many tiles. One that is no partition is what every tile needs at most.

    Args:
        entry: the result.
        tile_map: the part of the result.

    Raises: RuleError for an FSchedule whose answer does not fit.
    """
    by_map = _memo.setdefault(entry.node, {})
    key = entry.index, tile_map
    maps = by_map.get(key)
    if maps is None:
        same = _passes_on(entry)
        maps = (tile_map,) * len(entry.node.inputs) if same else _of_equivalent(entry, tile_map)
        by_map[key] = maps
    return maps


def _of_equivalent(entry: Entry, tile_map: TileMap) -> tuple[OperandMap, ...]:
    """Return `operand_tile_maps` of a new node, whose operator may have been asked about before."""
    signature = _signature(entry)
    if signature is None:
        return _operand_maps(entry, tile_map)
    key = signature, tile_map
    maps = _equivalent.get(key)
    if maps is None:
        if len(_equivalent) >= MAX_EQUIVALENT:
            _equivalent.clear()
        maps = _equivalent[key] = _operand_maps(entry, tile_map)
    return maps


def _signature(entry: Entry) -> Hashable | None:
    """Return what the answer for an operator depends on: its rules, its parameters and shapes.

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
    signature = op.name, rules, tuple(sorted(node.params.items())), facts, entry.index
    try:
        hash(signature)
    except TypeError:  # a parameter that is an array, or a list
        return None
    return signature


def _passes_on(entry: Entry) -> bool:
    """Return whether an element is made of those at the same place in operands of its shape."""
    op = entry.node.op
    assert op is not None
    return all(e.shape == entry.shape for e in entry.node.inputs) and _is_elementwise(op.name)


def _is_elementwise(name: str) -> bool:
    """Return whether an operator has an element for each of its operands, which may broadcast."""
    return FCodeGen.get(name) is not None and not any(c.get(name) for c in _BY_ELEMENT)


@lru_cache(maxsize=MAX_EQUIVALENT)
def _broadcast_map(tile_map: TileMap, operand: Shape) -> TileMap | None:
    """Return what a tile needs of an operand that broadcasts to a result, for any operator."""
    block = Block(tile_map)
    return block.map_of(operand, [broadcast_index(block.index, operand)])


def _operand_maps(entry: Entry, tile_map: TileMap) -> tuple[OperandMap, ...]:
    """Return `operand_tile_maps` without looking at earlier answers."""
    node, shape = entry.node, tile_map.shape
    op, shapes = node.op, [known_shape(e) for e in node.inputs]
    assert op is not None
    if TStateful.get(op.name):
        return (Diagnostic("op.state", {"op": op.name}),) * len(shapes)
    if tile_map.is_partition and not all(at_least(n, 1) for n in shape):
        return (Diagnostic("tile.empty_shape", {"shape": shape}),) * len(shapes)
    if tile_map.is_partition and not tile_map.split_dims:  # one tile has all of everything
        return tuple(None if 0 in s else whole_map(s) for s in shapes)
    rule = FSchedule.get(op.name)
    split = None if rule is None else tile_map.triple()
    if split is not None:
        return _scheduled(node, split, tile_map.tiles, shapes)
    if not tile_map.split_dims or rule is not None:
        return tuple(whole_map(s, tile_map.tiles) for s in shapes)
    if _is_elementwise(op.name):
        return tuple(_broadcast_map(tile_map, s) for s in shapes)
    block = Block(tile_map)
    reads = _reads(node, block)
    if reads is None:
        unknown = Diagnostic("tile.unknown_reads", {"op": op.name})
        return _expansion_maps(entry, tile_map) or (unknown,) * len(shapes)
    if isinstance(reads, Diagnostic):
        return (reads,) * len(shapes)
    at: list[list[Index]] = [[] for _ in shapes]
    for k, index in reads:
        at[k].append(index)
    return tuple(block.map_of(s, indices) for s, indices in zip(shapes, at, strict=True))


def _scheduled(
    node: Node, split: Split, tiles: Extent, shapes: Sequence[Shape]
) -> tuple[OperandMap, ...]:
    """Return what a tile needs of each operand, by FSchedule.

    Raises: RuleError where that does not fit the operands.
    """
    requirements = call_attribute(FSchedule, node, node, split, tuple(shapes))
    kinds = (Split, Whole, Reject, type(None))
    fits = isinstance(requirements, (tuple, list)) and len(requirements) == len(shapes)
    if not fits or not all(isinstance(x, kinds) for x in requirements):
        need = f"a sequence of {len(shapes)}, a Split, WHOLE or a Reject for each operand"
        refuse_result(FSchedule, node, need, requirements)
    maps: list[OperandMap] = []
    for k, (requirement, shape) in enumerate(zip(requirements, shapes, strict=True)):
        if isinstance(requirement, Split):
            tile_map = requirement.tile_map(shape)
            if tile_map.tiles != tiles:
                need = f"for operand {k} a Split into {tiles} tiles, as many as its result has"
                refuse_result(FSchedule, node, need, f"{requirement}, {tile_map.tiles} tiles")
            maps.append(tile_map)
        elif isinstance(requirement, Whole):
            maps.append(whole_map(shape, tiles))
        else:
            maps.append(_refused(node, requirement))
    return tuple(maps)


def _refused(node: Node, requirement: Reject | None) -> Diagnostic | None:
    """Return a refusal of an operator's FSchedule as a diagnostic."""
    if requirement is None:
        return None
    assert node.op is not None
    return Diagnostic("tile.refused", {"op": node.op.name, "reason": requirement.reason})


class Block:
    """A tile of a result: the coordinates of its elements, as those of the tile and those inside.

    ``digits`` of the tile's number are variables, outermost first; ``index`` is the element; all
    extents are in ``extents``. ``repeats`` tiles in a row have the same digits.
    """

    def __init__(self, tile_map: TileMap) -> None:
        self.extents = Known(())
        self.tiles, self.repeats = tile_map.tiles, tile_map.repeats
        self.split = tile_map.triple()
        dims = tile_map.split_dims
        self.counts = tuple(tile_map.dims[k].count for k in dims)
        self.digits = tuple(self.fresh(f"b{k}", n) for k, n in enumerate(self.counts))
        digit_of = dict(zip(dims, self.digits, strict=True))
        self.index = tuple(
            self._coordinate(k, d.chunk, digit_of.get(k)) for k, d in enumerate(tile_map.dims)
        )
        self.number = self._number(0, len(dims))

    def fresh(self, name: str, extent: Extent) -> Var:
        """Return a new variable with an extent."""
        self.extents[name] = extent
        return Var(name, dt.int64)

    def _coordinate(self, dim: int, chunk: Extent, digit: Var | None) -> Expr:
        """Return the coordinate of the element along a dimension."""
        if digit is None:
            return self.fresh(f"i{dim}", chunk)
        return digit if chunk == 1 else digit * size_of(chunk) + self.fresh(f"i{dim}", chunk)

    def _number(self, first: int, last: int) -> Sum:
        """Return the number that digits ``first`` to ``last`` make."""
        total = Sum(())
        for var, count in zip(self.digits[first:last], self.counts[first:last], strict=True):
            total = add(normal(var, self.extents), times(total, count))
        return total

    def map_of(self, shape: Shape, reads: Sequence[Index]) -> TileMap | None:
        """Return what a tile needs of an operand of which each of its elements reads ``reads``."""
        if not reads or 0 in shape:
            return None
        for tile_map in self.candidates(shape, reads[0]):
            if all(self.owns(tile_map, index) for index in reads):
                return tile_map
        return self.slab(shape, reads)

    def candidates(self, shape: Shape, index: Index) -> Iterator[TileMap]:
        """Yield maps of an operand with as many tiles: few, each of which is then proven."""
        if self.split is None:
            return
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
                        yield Split(dim, size, kind).tile_map(shape)

    def owns(self, tile_map: TileMap, index: Index) -> bool:
        """Return whether this tile certainly has the element of an operand at ``index``."""
        total = Sum(())
        for dim in tile_map.split_dims:
            own = tile_map.dims[dim]
            digit = divide(normal(index[dim], self.extents), own.chunk, self.extents)
            total = add(digit, times(total, own.count))
        return total == self.number

    def slab(self, shape: Shape, reads: Sequence[Index]) -> TileMap:
        """Return the most leading coordinates that all ``reads`` certainly share with the tile."""
        for prefix in range(len(shape), 0, -1):
            lead = shape[:prefix]
            if lead[-1] == 1:
                continue
            places = {ravel(index[:prefix], lead, self.extents) for index in reads}
            repeats = self._shared(places.pop(), numel(lead)) if len(places) == 1 else None
            if repeats is not None:
                return slab_map(shape, prefix, self.tiles, repeats)
        return whole_map(shape, self.tiles)

    def _shared(self, linear: Sum, count: Extent) -> Extent | None:
        """Return how many tiles in a row share a linear index that some of their digits make."""
        for last in range(len(self.digits), 0, -1):
            for first in range(last):
                if numel(self.counts[first:last]) == count and self._number(first, last) == linear:
                    return self.repeats * numel(self.counts[last:])
        return None


def _fits(chunk: Extent, extent: Extent, pieces: Extent) -> bool:
    """Return whether an extent has so many chunks of a size."""
    return at_least(chunk, 1) and Split(0, chunk).tile_map((extent,)).tiles == pieces


OperandAccesses = list[tuple[int, Index]]
"""For each read the number of the operand and the index."""


def _reads(node: Node, block: Block) -> OperandAccesses | Diagnostic | None:
    """Return the indices at which the elements of a tile read each operand.

    Returns: None if they are not known; a diagnostic if the tile is none of a product.
    """
    assert node.op is not None
    if FElement.get(node.op.name) is not None:
        return list(accesses_of(node, block.index, block.extents).at)
    for access_of in (_reduction_access, _scan_access):
        index = access_of(node, block)
        if index is not None:
            return [(0, index)]
    contract = contraction_of(node)
    if contract is None:
        return None
    if isinstance(contract, Contract):
        return _product_accesses(node, contract, block)
    return _convolution_accesses(node, block)


def _reduction_access(node: Node, block: Block) -> Index | None:
    """Return the index of the elements that are reduced; None for another operator.

    It runs over the whole reduced axes, or over a chunk of the axis that is reduced in chunks.
    """
    reduction = reduce_of(node)
    if reduction is None:
        return None
    result_index = list(block.index)
    chunks = reduction.chunks
    chunk_number = result_index.pop(0) if chunks is not None else None
    index: list[Expr] = []
    for k, n in enumerate(known_shape(node.inputs[0])):
        if k not in reduction.axes:
            index.append(result_index.pop(0))
            continue
        if reduction.keepdims:
            result_index.pop(0)
        if chunks is not None and chunks.axis == k:
            assert chunk_number is not None
            start = chunk_number * size_of(chunks.length)
            index.append(start + block.fresh(f"r{k}", chunks.length))
        else:
            index.append(block.fresh(f"r{k}", n))
    return tuple(index)


def _scan_access(node: Node, block: Block) -> Index | None:
    """Return an index over the whole scanned axis, of which an element reads some coordinates.

    None for another operator.
    """
    scan = scan_of(node)
    if scan is None:
        return None
    n = known_shape(node.inputs[0])[scan.axis]
    coordinate = block.fresh(f"r{scan.axis}", n)
    return (*block.index[: scan.axis], coordinate, *block.index[scan.axis + 1 :])


def _product_accesses(node: Node, contract: Contract, block: Block) -> OperandAccesses | Diagnostic:
    """Return the accesses to a row of the left operand and a column of the right one.

    Returns: a diagnostic if tiles divide columns as well as rows or the batch: then several tiles
    would read the same elements of both operands.
    """
    *batch, row, column = block.index
    is_divided = [bool(_tile_digits(i, block)) for i in block.index]
    if block.split is not None and is_divided[-1] and any(is_divided[:-1]):
        return Diagnostic("tile.product")
    step = block.fresh("k", contract.k)
    operands = ((row, step, contract.transpose_a), (step, column, contract.transpose_b))
    accesses: OperandAccesses = []
    for k, (first, second, is_transposed) in enumerate(operands):
        lead = broadcast_index(batch, known_shape(node.inputs[k])[:-2])
        matrix_index = (second, first) if is_transposed else (first, second)
        accesses.append((k, (*lead, *matrix_index)))
    return accesses


def _tile_digits(x: Expr, block: Block) -> list[Expr]:
    """Return the digits of the tile's number on which a coordinate depends."""
    return [a for a, _ in normal(x, block.extents).terms if a in block.digits]


def _convolution_accesses(node: Node, block: Block) -> OperandAccesses:
    """Return the accesses of a convolution to all of an image, and to all filters."""
    image, filters = (known_shape(e) for e in node.inputs)
    coordinates = [block.fresh(f"r{k}", n) for k, n in enumerate(image[1:])]
    taps = [block.fresh(f"t{k}", n) for k, n in enumerate(filters)]
    return [(0, (block.index[0], *coordinates)), (1, tuple(taps))]


def _expansion_maps(entry: Entry, tile_map: TileMap) -> tuple[OperandMap, ...] | None:
    """Propagate tile maps through a composite by its expansion; None without one."""
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
    needed: dict[Entry, dict[TileMap, None]] = {head: {tile_map: None}}
    for inner in reversed(list(post_order([head.node]))):
        for result in () if is_leaf(inner) else inner.entries:
            for result_map in needed.get(result, ()):
                operand_maps = operand_tile_maps(result, result_map)
                for operand, operand_map in zip(inner.inputs, operand_maps, strict=True):
                    if isinstance(operand_map, Diagnostic):
                        return (operand_map,) * len(inputs)
                    if operand_map is not None:
                        needed.setdefault(operand, {})[operand_map] = None
    return tuple(reduce(TileMap.joined, needed[e]) if e in needed else None for e in inputs)
