"""An oracle that runs a graph to find the input elements that each result element depends on.

An element of an input is changed, to others and to NaN; the elements of the result that change
depend on it. Nothing here reads what operators say of themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

import passkit as pk
from passkit.analysis.tilemap import Split, SplitKind, TileMap, slab_map

Array = Any


def dependence(
    outputs: list[pk.Entry], feeds: Mapping[str, Array], asked: Collection[str] | None = None
) -> dict[str, list[Array]]:
    """For each input ``asked`` for, and output: which elements the latter's elements depend on.

    Each is a matrix of bools, (elements of the input, elements of the output).
    """
    graph = pk.Graph(outputs)
    rng = np.random.default_rng(5)
    plain = pk.interpret(graph, feeds)
    dependencies: dict[str, list[Array]] = {}
    for name, array in feeds.items():
        if asked is not None and name not in asked:
            continue
        flat = array.reshape(-1)
        needs = [np.zeros((flat.size, p.size), bool) for p in plain]
        for k in range(flat.size):
            for value in others(flat[k], rng):
                changed = flat.copy()
                changed[k] = value
                again = pk.interpret(graph, {**feeds, name: changed.reshape(array.shape)})
                for need, a, b in zip(needs, plain, again, strict=True):
                    need[k] |= (bits(a) != bits(b)).reshape(-1)
        dependencies[name] = needs
    return dependencies


def bits(array: Array) -> Array:
    """The array as integers, so that NaNs are equal and zeros of either sign are not."""
    array = np.ascontiguousarray(array)
    return array if array.dtype == bool else array.view(f"i{array.dtype.itemsize}")


def others(value: Any, rng: np.random.Generator) -> list[Any]:
    """Return other values for an element."""
    if value.dtype.kind == "f":
        return [np.nan, value + 1 + rng.random(), -100 * (1 + rng.random()), 100.0]
    if value.dtype.kind == "b":
        return [~value]
    return [0, 1, 2, value + 1, max(value - 1, 0)]


def blocks_of(split: Split, shape: tuple[int, ...]) -> Array:
    """The number of the block of each element, from the definition of the triple."""
    shape = shape or (1,)
    where = np.indices(shape).reshape(len(shape), -1)
    d, n = split.split_dim, shape[split.split_dim]
    piece, pieces = where[d] // split.chunk, -(-n // split.chunk)
    if split.kind is SplitKind.ROW:
        outer = np.zeros(where.shape[1], int)
        for k in range(d):
            outer = outer * shape[k] + where[k]
        return outer * pieces + piece
    number = piece
    for k in range(d + 1, len(shape)):
        number = number * shape[k] + where[k]
    return number


def allowed(tile_map: TileMap | None, shape: tuple[int, ...], tiles: int) -> Array:
    """Return which elements each tile has, by definition: (tiles, elements); of None none."""
    elements = np.ones((tiles, int(np.prod(shape))), bool)
    if tile_map is None:
        return ~elements
    where = np.indices(shape).reshape(len(shape), elements.shape[1])
    for own, at in zip(tile_map.dims, where, strict=True):
        if own.count != 1:
            chunk = np.arange(tiles) // own.stride % own.count
            elements &= chunk[:, None] == (at // own.chunk)[None]
    return elements


def slabs(shape: tuple[int, ...], tiles: int) -> list[TileMap]:
    """Return maps by leading coordinates, with several repetitions."""
    return [
        slab_map(shape, prefix, tiles, repeats)
        for prefix in range(len(shape) + 1)
        for repeats in (1, 2, 3, 6)
        if tiles % (int(np.prod(shape[:prefix])) * repeats) == 0
    ]


def violations(
    tile_map: TileMap | None, source: tuple[int, ...], owner: Array, needs: Array
) -> int:
    """How many (block, element) pairs are read though the map does not give them.

    ``owner`` is the block of each element of the result, ``needs`` is (source, result).
    """
    blocks = int(owner.max()) + 1
    read = np.zeros((blocks, needs.shape[0]), bool)
    for block in range(blocks):
        read[block] = needs[:, owner == block].any(axis=1)
    return int((read & ~allowed(tile_map, source, blocks)).sum())


def all_splits(shape: tuple[int, ...]) -> list[Split]:
    """Every triple of a shape, short last blocks included."""
    return [
        Split(d, chunk, kind)
        for kind in SplitKind
        for d, n in enumerate(shape or (1,))
        for chunk in range(1, n + 1)
    ]
