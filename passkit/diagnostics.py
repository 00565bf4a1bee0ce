"""Diagnostics: why something is not possible, or was decided so, with the values it is about.

A diagnostic is a code and the values of its text. Functions return one in place of a result; where
a user must know, an error with its text is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

TEXTS: dict[str, str] = {
    "op.scan": "{op} is a scan, which a nest in registers does not compute",
    "domain.extent": "axis {axis} has the extent {extent}; a number is needed",
    "domain.chunks": "the reduction is split into chunks",
    "domain.order": "the reduced axes are not the last ones",
    "memory.registers": "a row of {length} elements does not fit in the registers of a block",
    "limit.unroll": "{count} operations in an unrolled loop exceed {limit}",
    "tile.composition": "the kernel consists of several loop nests",
}
"""The text of each code, with the names of its values in braces."""


@frozen
class Diagnostic:
    """A reason.

    Attributes:
        code: its code, a key of `TEXTS`.
        data: the values of the text by name.
        at: the names of the operators or values that it is about.
    """

    code: str
    data: Mapping[str, Any] = field(factory=dict)
    at: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text."""
        return TEXTS[self.code].format(**self.data)
