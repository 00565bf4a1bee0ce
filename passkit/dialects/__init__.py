"""Printers of kernels in final form, and a table of templates for each dialect.

The tables of the built-in dialects, `CUDA`, `CXX` and `OPENCL`, are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from passkit.dialects.base import BUILT_IN, Dialect, dialect_of, register_dialect
from passkit.dialects.templates import VectorTemplates

if TYPE_CHECKING:
    from passkit.dialects.cuda import CUDA
    from passkit.dialects.cxx import CXX
    from passkit.dialects.opencl import OPENCL
else:

    def __getattr__(name: str) -> Dialect:
        """Return the table of a built-in dialect. Raises: AttributeError for another name."""
        if name not in map(str.upper, BUILT_IN):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{name.lower()}"), name)


__all__ = [
    "CUDA",
    "CXX",
    "OPENCL",
    "Dialect",
    "VectorTemplates",
    "dialect_of",
    "register_dialect",
]
