"""The operators to draw, and choices among them that hold when one comes or changes its name."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path

from passkit import ops
from passkit.graph.op import REQUIRED, Op, get_op, list_ops
from tests.ops.specimens import SPECIMENS, Specimen

NOT_DRAWN = frozenset({"constant", "fused", "assign"})
"""Operators that no kind draws by name: literals, what Fusion makes, and what writes state."""

PERIOD = 100
"""Each operator has its turn in one graph of so many."""


@cache
def standard_ops() -> tuple[str, ...]:
    """The operators of the library, sorted, without those that tests and examples register."""
    home = Path(str(ops.__file__)).parent
    return tuple(n for n in list_ops() if Path(get_op(n).place.rpartition(":")[0]).parent == home)


def digest(text: str) -> int:
    """A number that a text always has."""
    return zlib.crc32(text.encode())


def chosen(names: Iterable[str], nonce: str) -> str:
    """One of ``names``: whichever else there are, the winner of two stays the same."""
    return min(names, key=lambda name: (digest(f"{nonce} {name}"), name))


def turn_of(seed: int) -> list[str]:
    """The operators whose turn it is in the graph of a seed."""
    drawn = [n for n in standard_ops() if n not in NOT_DRAWN]
    return [n for n in drawn if digest(n) % PERIOD == seed % PERIOD]


@cache
def specimens_of(name: str) -> tuple[Specimen, ...]:
    """The specimens of an operator: how it is called."""
    folder = Path(__file__).parents[1] / "ops"
    for file in sorted(folder.glob("specimen_*.py")):
        import_module(f"tests.ops.{file.stem}")
    return tuple(SPECIMENS.get(name, ()))


def callable_plainly(op: Op) -> bool:
    """Whether an operator needs its inputs only."""
    return all(default is not REQUIRED for default in op.params.values())
