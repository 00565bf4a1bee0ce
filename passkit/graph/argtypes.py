"""Types of the arguments of operators, as type stubs and documentation name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from passkit.graph.node import Entry
from passkit.values.dtype import DType
from passkit.values.size import Size

Numbers = (
    Sequence[complex]
    | Sequence[Sequence[complex]]
    | Sequence[Sequence[Sequence[complex]]]
    | Sequence[Sequence[Sequence[Sequence[complex]]]]
)
"""Nested lists of numbers, up to four levels; deeper ones must be converted to arrays."""
OperandLike = Entry | np.ndarray[Any, Any] | np.generic | complex | Numbers
"""An input: an entry; an array, a list or a number becomes a constant."""
ShapeLike = int | Size | Sequence[int | Size]
"""A shape: its lengths, or one number for a vector."""
DTypeLike = str | type[Any] | np.dtype[Any] | DType
"""A dtype: its name, NumPy's, or the Python type of such numbers."""
Padding = Literal["SAME", "VALID"] | int | Sequence[int] | Sequence[Sequence[int]]
"""The padding of a windowed input."""
