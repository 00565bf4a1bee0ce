"""The features of a language and its devices, for the passes that decide on text."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

MAXIMUM_NUMBER = "maximum_number"
"""The function of two numbers; of a number and NaN it is the number."""


class PhaseForm(Enum):
    """How the phases of a kernel follow each other.

    NONE: there is one at most. BARRIER: all tiles wait for each other in the kernel. FUNCTIONS:
    each phase is a function, and a launch.
    """

    NONE = "none"
    BARRIER = "barrier"
    FUNCTIONS = "functions"


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
class AheadFeatures:
    """Several accesses that a thread asks for before it uses the first.

    Attributes:
        most: the most iterations of a loop whose accesses come first.
        nbytes: the most bytes that these load.
        threads: the threads that should all have that many iterations.
    """

    most: int
    nbytes: int
    threads: int


@frozen(kw_only=True)
class AccessFeatures:
    """Vector accesses of a thread to consecutive elements.

    Attributes:
        nbytes: the bytes of the widest access.
        least: the accesses of a loop below which most threads would be idle.
        ahead: the accesses that come first; None for one at a time.
        vector_functions: the functions of vectors, with which a thread computes; None where it
            computes with one element at a time.
    """

    nbytes: int
    least: int
    ahead: AheadFeatures | None = None
    vector_functions: frozenset[str] | None = None


@frozen(kw_only=True)
class Features:
    """The features of a language, for a device with certain threads.

    Attributes:
        name: the language's name, for errors.
        vectors: its vectors, for languages of CPUs.
        accesses: the vector accesses of threads; None for none.
        has_reciprocals: whether it divides float32 by prepared divisors.
        has_products: whether it has a function for products of matrices.
        counts_rows: whether the coordinates of rows are counted instead of divided.
        has_maximum_number: whether it has a maximum that leaves out NaN.
        has_parts: whether parts of packed kernels are functions.
        phases: how the phases of a kernel follow each other.
        aliased: how it marks buffers that share memory with another; "" if it does not.
    """

    name: str
    vectors: VectorFeatures | None = None
    accesses: AccessFeatures | None = None
    has_reciprocals: bool = False
    has_products: bool = False
    counts_rows: bool = False
    has_maximum_number: bool = False
    has_parts: bool = False
    phases: PhaseForm = PhaseForm.NONE
    aliased: str = ""
