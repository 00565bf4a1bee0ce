"""Tables of templates for the statements that only some languages have.

A template is a format string. Its placeholders stand in braces: ``{type}`` is the scalar type of a
value, ``{name}`` the name of what it declares or uses, ``{at}`` a pointer to an element, ``{mask}``
the mask of a vector's elements. A loop gets ``{var}``, ``{start}`` and ``{stop}``. Other ones stand
with their template.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from passkit.errors import RegistryError
from passkit.ir.features import AccessFeatures, VectorFeatures


@frozen(kw_only=True)
class RowTemplates:
    """Templates for reductions of the short rows of a tile.

    Attributes:
        row_results: declares the results of at most ``{max_rows}`` rows of an ``{accumulator}``.
        begin_row: begins a row.
        end_row: ends row ``{row}``.
        store_results: stores the results of ``{count}`` rows to the array ``{to}``.
        reciprocals: declares the reciprocals of the numbers of ``{count}`` rows in ``{buffer}``.
        reciprocal: declares that of row ``{row}``.
    """

    row_results: str
    begin_row: str
    end_row: str
    store_results: str
    reciprocals: str
    reciprocal: str


@frozen(kw_only=True)
class RowGroupTemplates:
    """Templates for short rows that form whole vectors in groups.

    Attributes:
        rows: the templates around and inside of the rows.
        pair_loop: a loop over two of ``{rows}`` rows of ``{length}`` elements at a time; ``{even}``
            is the following.
        even: says that no single row is left.
        any_loop: a loop over as many rows at a time as form whole vectors, without reductions.
        end: the end of either loop.
        vector_loop: the loop over the vectors of a group.
        values: loads a number for each row of a group.
        value: declares the vector of these numbers.
        load: a load with rows ``{stride}`` elements apart.
        store: a store of ``{value}`` with rows that far apart.
    """

    rows: RowTemplates
    pair_loop: str
    any_loop: str
    even: str
    end: str
    vector_loop: str
    values: str
    value: str
    load: str
    store: str


@frozen(kw_only=True)
class VectorTemplates:
    """Templates of a language whose statements compute with vectors, as on a CPU.

    Attributes:
        let: declares a vector with a ``{value}``.
        loop: a loop over vectors; its body has the mask ``m``.
        whole_loop: one whose vectors are all full.
        interleaved_loop: one over ``{width}`` elements at a time, several vectors.
        aligned_loop: one whose second iteration begins at a cache line of ``{at}``.
        unrolled_loop: one of literal length; the vectors are numbered by ``k``.
        paired_loop: one with two vectors in an iteration, ``k`` being 2, or 1 in the last one.
        reversed_loop: one from the last elements to the first.
        loop_end: the end of each of these.
        load: a load of consecutive elements.
        load_one: a load of one element for all, if any element of the mask is set.
        load_strided: a load of elements ``{stride}`` apart.
        load_second: a load of every second element.
        load_back: a load in reversed order.
        gather: a load whose ``{index}`` of ``{buffer}`` is an expression of the loop's ``{var}``.
        gather_at: a load from a vector of indices.
        store: a store of consecutive elements.
        stream: one that bypasses the caches.
        store_strided: a store of elements ``{stride}`` apart.
        select: a choice by the mask ``{condition}`` between ``{a}`` and ``{b}``.
        branch: a choice by a scalar condition.
        splat: a vector whose elements are all ``{value}``, of the width of the vector ``{like}``.
        element_number: the vector of the values of the loop's ``{var}``.
        mask_and: a mask where a ``{condition}`` holds.
        mask_and_not: a mask where it does not hold.
        divisor: prepares a division by the scalar ``{value}``.
        known_divisor: one by a literal with the reciprocal ``{high} + {low}``.
        masked_divisor: a prepared divisor that is 1 outside of the mask.
        array: declares an array of ``{count}`` vectors in registers.
        accumulator: a reduction by a ``{function}``, from an ``{identity}``.
        function: a function of ``a`` and ``b`` that returns ``{combine}``.
        functions: functions of certain ``{combine}``, in place of ``function``.
        extreme_accumulator: one by maximum or minimum, as ``{which}`` says; NaN propagates.
        sum_accumulator: a long sum of floats.
        declare_accumulator: declares an ``{accumulator}``.
        accumulate: adds ``{value}`` to the accumulator ``{acc}``.
        finish: declares the result of an accumulator.
        rows: reductions of short rows.
        row_groups: short rows in groups.
        block_loop: a loop over blocks of ``{count}`` iterations, whose inner loop goes from
            ``{var}_low`` to ``{var}_high``.
        block_end: declares ``{var}_high``.
        transposed_load: loads a block of ``{count}`` rows ``{stride}`` apart, across the rows.
        wide_transposed_load: loads up to ``{max_count}`` rows of ``{points}`` elements.
        dense_transposed_load: loads rows of ``{count}`` elements that follow each other.
        prefetch_rows: prefetches a block of rows.
        transposed_row: declares the vector of row ``{place}``.
        transposed_block: declares a block to store rows in.
        put_row: sets row ``{place}`` of a block to ``{value}``.
        transposed_store: stores a block across its rows.
        declare: declares a variable that changes.
        scan: begins a scan by a ``{function}``, which is ``{exclusive}`` or ``{reversed}`` or not.
        scan_vector: declares the results of the scan ``{scan}`` for the vector ``{value}``.
        columns: loads a row of ``{count}`` consecutive elements for each element of the mask.
        column: element ``{k}`` of all these rows.
        width: the number of elements of a vector, a power of two from 16 on.
        pack: the number of elements of an interleaved loop, a multiple of ``width``.
    """

    let: str
    loop: str
    whole_loop: str
    interleaved_loop: str
    aligned_loop: str
    unrolled_loop: str
    paired_loop: str
    reversed_loop: str
    loop_end: str
    load: str
    load_one: str
    load_strided: str
    load_second: str
    load_back: str
    gather: str
    gather_at: str
    store: str
    stream: str
    store_strided: str
    select: str
    branch: str
    splat: str
    element_number: str
    mask_and: str
    mask_and_not: str
    divisor: str
    known_divisor: str
    masked_divisor: str
    array: str
    accumulator: str
    function: str
    extreme_accumulator: str
    sum_accumulator: str
    declare_accumulator: str
    accumulate: str
    finish: str
    rows: RowTemplates
    row_groups: RowGroupTemplates
    block_loop: str
    block_end: str
    transposed_load: str
    wide_transposed_load: str
    dense_transposed_load: str
    prefetch_rows: str
    transposed_row: str
    transposed_block: str
    put_row: str
    transposed_store: str
    declare: str
    scan: str
    scan_vector: str
    functions: Mapping[str, str] = field(factory=dict)
    columns: str = ""
    column: str = ""
    width: int = 16
    pack: int = 64

    def __attrs_post_init__(self) -> None:
        """Check the widths.

        Raises: RegistryError if ``width`` is no power of two from 16 on, or ``pack`` no multiple.
        """
        if self.width < 16 or self.width & (self.width - 1):
            raise RegistryError(
                f"a dialect has vectors of {self.width} elements; the width must be a power of two "
                f"from 16 on"
            )
        if self.pack < self.width or self.pack % self.width:
            raise RegistryError(
                f"a dialect has packs of {self.pack} elements and vectors of {self.width}; a pack "
                f"must be one or more vectors"
            )

    @property
    def features(self) -> VectorFeatures:
        """The widths of vectors, and which loops and loads the language has."""
        return VectorFeatures(
            width=self.width,
            interleaved_width=self.pack,
            unrolls=bool(self.unrolled_loop),
            loads_columns=bool(self.columns),
        )


@frozen(kw_only=True)
class PartTemplates:
    """Templates for packed kernels in a language whose kernels get a range of tiles.

    Attributes:
        function: the head of the function ``{name}`` of a part.
        call: its call for the kernel's tiles from ``{first}`` to ``{last}``; the function counts
            its own from 0, ``{begin}`` to ``{end}``. It gets ``{buffers}`` and ``{sizes}``.
        buffer: the kernel's buffer number ``{k}``.
        size: the kernel's size argument number ``{k}``.
    """

    function: str
    call: str
    buffer: str
    size: str


@frozen(kw_only=True)
class PhaseTemplates:
    """Templates for kernels of several phases, between which all tiles wait for each other.

    Attributes:
        function: the head of the function of a phase; without ``turn`` it is what is launched.
        turn: the line of the kernel that calls ``{function}`` if size argument ``{k}``, behind the
            last one, is ``{phase}``.
    """

    function: str
    turn: str = ""


@frozen(kw_only=True)
class ThreadVectorTemplates:
    """Templates for threads that compute with vectors of ``{count}`` elements of a ``{type}``.

    Attributes:
        kind: the type of a vector.
        splat: a vector whose elements are all ``{value}``.
        convert: a conversion to another element type.
        select: a choice by the mask ``{condition}`` between ``{a}`` and ``{b}``.
        load: a load, of which ``{remaining}`` elements exist.
        store: a store of ``{value}``, of which ``{remaining}`` elements exist.
        spaces: the ``{space}`` of a parameter, and that of a scratch array.
        element_numbers: the vector of ``{numbers}`` behind ``{first}``.
        masked_update: ``{new}`` for the ``{remaining}`` elements that exist, else ``{old}``.
        reduce_elements: combines the elements of ``{name}`` into ``{acc}`` by ``{combine}``.
        masks: the element types of masks, by number of bytes.
        calls: the functions of vectors.
    """

    kind: str
    splat: str
    convert: str
    select: str
    load: str
    store: str
    spaces: tuple[str, str]
    element_numbers: str
    masked_update: str
    reduce_elements: str
    masks: Mapping[int, str]
    calls: Mapping[str, str]


@frozen(kw_only=True)
class AccessTemplates:
    """Templates for accesses of one thread to ``{count}`` consecutive elements.

    Attributes:
        whole: declares the number of accesses of the loop ``{name}``.
        first: declares the number of the first element of an access.
        array: declares an array of elements.
        load: loads an array from an aligned address.
        load_any: loads it from any address.
        load_some: loads the ``{remaining}`` elements that exist.
        store: stores an array to an aligned address.
        store_any: stores it to any address.
        store_some: stores the ``{remaining}`` elements that exist.
        unroll: the directive in front of an unrolled loop.
        each: the loop over the elements of an access, ``{name}_k``.
        element: declares the number of an element.
        within: tests that an element is before ``{stop}``.
        rest: declares the number of the first element behind all accesses.
        aligned: tests the alignment of ``{at}``.
        spaces: the ``{space}`` of a parameter, and that of a scratch array.
        nbytes: the number of bytes of the widest access.
        least: the number of accesses of a loop below which most threads would be idle; a loop that
            is known to have fewer uses single elements.
        has_arithmetic: whether threads compute with vectors.
        vectors: the templates of these.
    """

    whole: str
    first: str
    array: str
    load: str
    load_any: str
    load_some: str
    store: str
    store_any: str
    store_some: str
    unroll: str
    each: str
    element: str
    within: str
    rest: str
    aligned: str
    spaces: tuple[str, str] = ("", "")
    nbytes: int = 16
    least: int = 16
    has_arithmetic: bool = False
    vectors: ThreadVectorTemplates | None = None

    @property
    def features(self) -> AccessFeatures:
        """The accesses of a thread, and the functions of its vectors."""
        functions = None
        if self.has_arithmetic and self.vectors is not None:
            functions = frozenset(self.vectors.calls)
        return AccessFeatures(
            nbytes=self.nbytes,
            least=self.least,
            vector_functions=functions,
        )


@frozen(kw_only=True)
class QuotientTemplates:
    """Templates for quotients of float32 without a division, with the bits of a division.

    Attributes:
        known_divisor: a literal divisor ``{value}`` with the reciprocal ``{high} + {low}``.
        measured: a divisor ``{value}`` whose reciprocal is computed.
        prepare: declares a divisor that all threads share.
        over: the quotient of ``{x}`` by a ``{divisor}``.
        over_array: sets the array ``{name}`` to the quotients of the array ``{x}``.
        near_over: the quotient by a literal, with other bits next to 0.
        reciprocal: the reciprocal of ``{x}``.
        near_reciprocal: that of an ``{x}`` from 1 to infinity, with other bits next to 0.
    """

    known_divisor: str
    measured: str
    prepare: str
    over: str
    over_array: str
    near_over: str
    reciprocal: str
    near_reciprocal: str
