"""Printers of kernel ASTs: one C printer, and a table for each dialect."""

from passkit.dialects.base import Dialect, Vectors, dialect_of, register_dialect
from passkit.dialects.cuda import CUDA
from passkit.dialects.cxx import CXX
from passkit.dialects.opencl import OPENCL
from passkit.dialects.printer import print_kernel

__all__ = [
    "CUDA",
    "CXX",
    "OPENCL",
    "Dialect",
    "Vectors",
    "dialect_of",
    "print_kernel",
    "register_dialect",
]
