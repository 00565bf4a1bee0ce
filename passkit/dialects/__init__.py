"""Printers of kernels: C printers of their final forms, and a table for each dialect."""

from passkit.dialects.base import Dialect, Vectors, dialect_of, register_dialect
from passkit.dialects.cuda import CUDA
from passkit.dialects.cxx import CXX
from passkit.dialects.opencl import OPENCL

__all__ = [
    "CUDA",
    "CXX",
    "OPENCL",
    "Dialect",
    "Vectors",
    "dialect_of",
    "register_dialect",
]
