"""Packed kernels taken apart: each part as a kernel of its own, with numbered names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from attrs import evolve, frozen

from passkit.ast import Expr, const
from passkit.ast.renaming import names_in, renamed
from passkit.ast.stage import Buffer, KernelAST, Loop, Part, Phase
from passkit.values.dtype import int64
from passkit.values.size import Extent, Size, substitute, symbols_of


@frozen
class Separate:
    """A part as a kernel, the numbers of the whole kernel's buffers and sizes that it gets.

    Parts that do the same have equal kernels, whatever they do it to.
    """

    ast: KernelAST
    span: tuple[Expr, Expr]
    buffers: tuple[int, ...]
    sizes: tuple[int, ...]


def is_packed(ast: KernelAST) -> bool:
    """Return whether the parts of a kernel have tiles of their own."""
    return any(part.span is not None for phase in ast.phases for part in phase.parts)


def separated(ast: KernelAST) -> Iterator[Separate]:
    """Yield the parts of a packed kernel, each as a kernel."""
    (phase,) = ast.phases
    params = {b.name: k for k, b in enumerate(ast.params)}
    sizes = {n: k for k, n in enumerate(ast.sizes)}
    scratch = {b.name: b for b in ast.scratch}
    for parts in _apart(phase.parts, {*scratch, *(b.name for b in ast.params if b.written)}):
        span = parts[0].span
        assert span is not None
        own = tuple(evolve(p, span=None) for p in parts)
        names_used = dict.fromkeys(names_in(own))
        arrays = [scratch[n] for n in scratch if n in names_used]
        extents = [x for b in arrays for x in (b.extent, b.offset) if x is not None]
        names_used |= dict.fromkeys(sorted(symbols_of(extents)))
        used = [n for n in names_used if n in params]
        numbers = [n for n in names_used if n in sizes]
        names = {n: f"b{k}" for k, n in enumerate(used)}
        names |= {n: f"n{k}" for k, n in enumerate(numbers)}
        names |= {b.name: f"{b.name[0]}{k}" for k, b in enumerate(arrays)}
        start = const(0, int64)
        tile = Loop(phase.tile.var, start, start, phase.tile.level)
        yield Separate(
            KernelAST(
                tuple(evolve(ast.params[params[n]], name=names[n]) for n in used),
                tuple(names[n] for n in numbers),
                tuple(_moved(b, names) for b in arrays),
                (Phase(tile, renamed(own, names)),),
            ),
            span,
            tuple(params[n] for n in used),
            tuple(sizes[n] for n in numbers),
        )


def _apart(parts: Iterable[Part], meeting: Set[str]) -> list[tuple[Part, ...]]:
    """Return the parts that run one after the other in each tile: those that meet in a buffer."""
    groups: list[tuple[list[Part], set[str]]] = []
    for part in parts:
        own, names = [part], set(meeting & set(names_in(part)))
        for k, (before, theirs) in enumerate(groups):
            if before[0].span == part.span and names & theirs:
                own = [*(p for ps, _ in groups[k:] for p in ps), part]
                names.update(*(n for _, n in groups[k:]))
                del groups[k:]
                break
        groups.append((own, names))
    return [tuple(ps) for ps, _ in groups]


def _moved(b: Buffer, names: dict[str, str]) -> Buffer:
    """Return a scratch array under the names that the part has."""
    symbols = {n: Size.symbol(new) for n, new in names.items()}

    def extent(x: Extent | None) -> Extent | None:
        return None if x is None else substitute(x, symbols)

    own_extent = extent(b.extent)
    assert own_extent is not None
    return evolve(b, name=names[b.name], extent=own_extent, offset=extent(b.offset))
