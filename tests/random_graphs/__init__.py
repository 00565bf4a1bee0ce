"""Random graphs over all operators, from a seed, with arrays to feed them; and what they cover."""

from tests.random_graphs import movement, products, states  # importing them registers kinds
from tests.random_graphs.case import Case
from tests.random_graphs.coverage import coverage, covered, expected, table
from tests.random_graphs.growth import Growth

__all__ = [
    "Case",
    "coverage",
    "covered",
    "expected",
    "movement",
    "products",
    "random_case",
    "states",
    "table",
]


def random_case(seed: int) -> Case:
    """The graph of a seed, and what to feed it."""
    return Growth(seed).case()
