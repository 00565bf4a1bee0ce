"""The features of a language and its devices, for the passes that decide on text."""

from __future__ import annotations

from attrs import frozen

MAXIMUM_NUMBER = "maximum_number"
"""The function of two numbers; of a number and NaN it is the number."""


@frozen(kw_only=True)
class VectorFeatures:
    """Vectors of a CPU's language.

    Attributes:
        width: the positions of a vector, whatever the dtype.
        interleaved_width: the positions of several vectors, whose chains of operations are
            independent; a multiple of ``width``.
        unrolls: whether loops of known length are unrolled.
        loads_columns: whether rows of a few elements are loaded as whole vectors.
    """

    width: int
    interleaved_width: int
    unrolls: bool
    loads_columns: bool


@frozen(kw_only=True)
class AccessFeatures:
    """Vector accesses of a thread to consecutive elements.

    Attributes:
        nbytes: the bytes of the widest access.
        least: the accesses of a loop below which most threads would be idle.
        vector_functions: the functions of vectors, with which a thread computes; None where it
            computes with one element at a time.
    """

    nbytes: int
    least: int
    vector_functions: frozenset[str] | None = None


@frozen(kw_only=True)
class Features:
    """The features of a language, for a device with certain threads.

    Attributes:
        name: the language's name, for errors.
        vectors: its vectors, for languages of CPUs.
        accesses: the vector accesses of threads; None for none.
        has_products: whether it has a function for products of matrices.
        counts_rows: whether the coordinates of rows are counted instead of divided.
        has_parts: whether parts of packed kernels are functions.
        has_phases: whether it has functions for the phases of a kernel.
        has_warps: whether the threads of a warp exchange values, and wait for each other alone.
        has_quotients: whether it has quotients by shared divisors.
        aliased: how it marks buffers that share memory with another; "" if it does not.
    """

    name: str
    vectors: VectorFeatures | None = None
    accesses: AccessFeatures | None = None
    has_products: bool = False
    counts_rows: bool = False
    has_parts: bool = False
    has_phases: bool = False
    has_warps: bool = False
    has_quotients: bool = False
    aliased: str = ""
