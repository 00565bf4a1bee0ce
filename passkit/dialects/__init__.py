"""Printers of kernels in final form, and a table of templates for each dialect."""

from passkit.dialects.base import Dialect, dialect_of, register_dialect
from passkit.dialects.cuda import CUDA
from passkit.dialects.cxx import CXX
from passkit.dialects.opencl import OPENCL
from passkit.dialects.templates import VectorTemplates

__all__ = [
    "CUDA",
    "CXX",
    "OPENCL",
    "Dialect",
    "VectorTemplates",
    "dialect_of",
    "register_dialect",
]
