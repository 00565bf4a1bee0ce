"""Dialects: how one C-like language spells what a kernel AST says. A dialect is a table."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from passkit.ast import VARIANTS
from passkit.errors import RegistryError, nearest
from passkit.ir.features import (
    MAXIMUM_NUMBER,
    AccessFeatures,
    AheadFeatures,
    Features,
    PhaseForm,
    VectorFeatures,
)
from passkit.values.dtype import DType
from passkit.values.named import NamedRegistry

SCALARS = {
    "bool": "bool",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
}

NARROW_CASTS = {
    "float16/float32": "widen_f16({value})",
    "bfloat16/float32": "widen_bf16({value})",
    **dict.fromkeys(["float32/float16", "float64/float16"], "narrow_f16({value})"),
    "float32/bfloat16": "narrow_bf16({value})",
}
"""The conversions of 16-bit floats that kernels need, for dialects that store those as integers."""


@frozen(kw_only=True)
class RowTemplates:
    """Spellings for tiles of short rows: what stands in front of the rows, in one, behind them.

    ``{name}`` is a fold's name or a divisor's, ``{most}`` the most rows, ``{rows}`` how many there
    are and ``{row}`` the number of one; ``{fold}`` begins a fold, ``{to}`` is where results lie.
    """

    folds: str
    begin: str
    end: str
    results: str
    divisors: str
    divisor: str


@frozen(kw_only=True)
class PairTemplates:
    """Spellings for short rows that a loop takes two at a time, as whole vectors.

    ``rows`` are those of what stands around them; ``loop`` is the loop over {rows} of {length}
    elements, to its ``end``. No single one is left where their number is ``even``. ``fixed`` is the
    loop of their vectors. ``values`` loads a number of each row, ``value`` is that as a vector. In
    ``load`` and ``store`` a row begins {stride} elements behind the one before. ``bundles`` is the
    loop over rows that fold nothing: as many at a time as are whole vectors.
    """

    rows: RowTemplates
    loop: str
    bundles: str
    even: str
    end: str
    fixed: str
    values: str
    value: str
    load: str
    store: str


@frozen(kw_only=True)
class Vectors:
    """Spellings of a dialect in which one statement handles many lanes.

    The lane loop's body is active under the mask ``m``, whose lanes are as many as its vectors
    have: ``width``, a power of two from 16 on, or in a ``pack_loop`` {lanes} at a time, which are
    ``pack``, a multiple of ``width``. A ``whole_loop`` has full vectors only. ``aligned_loop``
    takes the lanes up to a cache line of {at} first. ``fixed`` is the loop of a known short extent,
    whose vectors are numbered by k and may stay in an ``array``; ``paired`` one of which an
    iteration has two vectors, with k = 2 and 1.
    ``{type}`` is a scalar type.
    ``folding`` starts a fold by a {function}, ``extreme`` one by maximum or minimum that keeps NaN,
    ``summing`` a long one that adds floats; ``begin`` names it. ``functions`` are those of which
    {combine} is a key, ``function`` is any other one. A ``block`` of {turns} turns of a loop over a
    folded axis goes inside the lanes, from {var}_low to {var}_high, which ``block_end`` sets;
    ``total`` is what a fold has in it so far. ``running`` starts a scan along the lanes, ``scan``
    gives each lane its part; ``down_loop`` takes the last lanes first.
    ``turn`` loads a block of an input that lies along such a loop, ``turn_rows`` one of up to
    {most} turns that is many {lanes} wide, up to {width}, ``apart`` one of rows of {turns} elements
    that follow each other; ``turned`` is the vector of turn number {place}. ``ahead`` asks memory
    for a block of an input along the lanes. ``room`` is for a block of such rows, ``put`` a turn's
    vector in it, ``together`` stores the rows; a row has {vector} elements, which are ``width``,
    and a block for ``turn`` has {block}. ``columns`` loads rows of {count} elements that follow
    each other, one row for each lane, from {at} on; ``column`` is element {k} of all rows.
    """

    local: str
    loop: str
    whole_loop: str
    pack_loop: str
    aligned_loop: str
    fixed: str
    paired: str
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
    lane_value: str
    both: str
    only: str
    divisor: str
    known_divisor: str
    among: str
    array: str
    folding: str
    function: str
    extreme: str
    summing: str
    begin: str
    take: str
    result: str
    rows: RowTemplates
    pairs: PairTemplates
    block: str
    block_end: str
    turn: str
    turn_rows: str
    apart: str
    ahead: str
    turned: str
    room: str
    put: str
    together: str
    total: str
    running: str
    scan: str
    down_loop: str
    functions: Mapping[str, str] = field(factory=dict)
    columns: str = ""
    column: str = ""
    width: int = 16
    pack: int = 64

    def __attrs_post_init__(self) -> None:
        """Check the widths. Raises: RegistryError if they cannot be."""
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
        """The widths of vectors, and what the language does with them."""
        return VectorFeatures(
            width=self.width,
            interleaved_width=self.pack,
            unrolls=bool(self.fixed),
            loads_columns=bool(self.columns),
        )


@frozen(kw_only=True)
class PartTemplates:
    """Spellings for packed kernels in a dialect whose kernels get begin and end of their tiles.

    ``function`` opens the function of a part called {name}; ``call`` calls it for its own of the
    kernel's tiles, those from {first} to {last}, which it counts from 0, as {begin} to {end}. It
    gets {buffers} and {sizes}: of those of the kernel the one that is number {k}.
    """

    function: str
    call: str
    buffer: str
    size: str


@frozen(kw_only=True)
class PhaseTemplates:
    """Spellings for kernels of several phases, between which all tiles wait for each other.

    Either tiles can ``wait`` in the middle of a kernel called {name}, with ``head`` in front of it,
    and ``buffer`` is one that a phase reads of an earlier one, so that no load moves up; or
    each phase is a ``function`` opened as a kernel is, and a launch for each runs one after the
    other. What is launched is the function itself, or with a ``turn`` the kernel: a line of it
    calls {function} if the size argument behind the last one, number {k}, is {phase}.
    """

    head: str = ""
    wait: str = ""
    buffer: str = ""
    function: str = ""
    turn: str = ""

    @property
    def form(self) -> PhaseForm:
        """How the phases of a kernel follow each other."""
        return PhaseForm.BARRIER if self.wait else PhaseForm.FUNCTIONS


@frozen(kw_only=True)
class WholeTemplates:
    """Spellings for bundles that are vectors of {count} numbers of a {type}, computed as one.

    ``take`` loads one from {at} on, of which {left} elements are there, and ``put`` stores
    {value}; both may ask for the {space} of a buffer: ``space`` is that of arguments and of
    scratch. ``places`` are a loop's next ones behind {first}. A comparison gives a mask, whose
    elements have the type that is in ``masks`` for their bytes; ``select`` takes {a} where it is
    set. ``keep`` is {new} where elements are, else {old}; ``each`` joins the elements of {name}
    into {acc} by {combine}. ``calls`` are the functions that take vectors.
    """

    kind: str
    splat: str
    convert: str
    select: str
    take: str
    put: str
    space: tuple[str, str]
    places: str
    keep: str
    each: str
    masks: Mapping[int, str]
    calls: Mapping[str, str]


@frozen(kw_only=True)
class AheadTemplates:
    """Spellings for several bundles in each turn of a lane, all of which it asks for first.

    So more memory is on its way. ``array`` is what is loaded for {turns} of them, and ``loop`` a
    loop over these, {name}_turn; {name}_``here`` is the number of a bundle, which has the next
    lane's ``step`` behind it, or of all threads of a tile ``step_of_tile``; ``within`` a test that
    there is such a bundle, ``beyond`` ends the loop where there is none, and ``now`` names what was
    loaded for one. A lane asks for ``most`` at a time, and ``nbytes``, of which each bundle takes
    what it loads; where there are known to be fewer than ``lanes`` have in all their turns, there
    are fewer turns.
    """

    array: str
    loop: str
    here: str
    within: str
    beyond: str
    now: str
    step: str
    step_of_tile: str
    most: int = 2
    nbytes: int = 64
    lanes: int = 8


@frozen(kw_only=True)
class BundleTemplates:
    """Spellings for elements that follow each other and that one lane takes, {count} at a time.

    ``whole`` is how many bundles there are of the lanes called {name}, ``first`` where one begins,
    {name}_first; ``each`` a loop over its elements, {name}_k, which ``unroll`` announces,
    ``element`` the number of one, ``within`` a test that it is before {stop}; ``rest`` where the
    lanes begin that are in none. An ``array`` {name} is ``load``-ed from {at} and ``store``-d
    there, which is ``aligned``, or ``load_any`` and ``store_any`` ask whether it is; ``load_some``
    and ``store_some`` also where only {left} elements are there. Elements have a {type}; {space}
    is where their buffer is, of ``space``: that of arguments and of scratch. The widest access has
    ``nbytes``. Where there are known to be less than ``least`` bundles, which would leave most
    lanes idle, there are none. A lane may ask for several ``ahead``. What ``computes`` with several
    elements at once has ``vectors`` of them instead.
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
    space: tuple[str, str] = ("", "")
    nbytes: int = 16
    least: int = 16
    computes: bool = False
    vectors: WholeTemplates | None = None
    ahead: AheadTemplates | None = None

    @property
    def features(self) -> AccessFeatures:
        """The vector accesses of a thread, and vectors with which it computes."""
        ahead, functions = self.ahead, None
        if self.computes and self.vectors is not None:
            functions = frozenset(self.vectors.calls)
        return AccessFeatures(
            nbytes=self.nbytes,
            least=self.least,
            ahead=None
            if ahead is None
            else AheadFeatures(most=ahead.most, nbytes=ahead.nbytes, threads=ahead.lanes),
            vector_functions=functions,
        )


@frozen(kw_only=True)
class QuotientTemplates:
    """Spellings of float32 quotients {x} / s without a division, which have its bits.

    ``known_divisor`` is a literal {value}, 1 / s = {high} + {low}, as a divisor, ``measured`` any
    {value};
    ``prepare`` names it {name} where all lanes have the same. ``over`` divides {x} by {divisor},
    ``over_array`` the elements of an array, into the array {name}. ``near_over`` takes a known one
    and ``near_reciprocal`` an {x} from 1 to infinity: they give other bits where the quotient is
    next to 0. ``reciprocal`` does not.
    """

    known_divisor: str
    measured: str
    prepare: str
    over: str
    over_array: str
    near_over: str
    reciprocal: str
    near_reciprocal: str


@frozen
class Reach:
    """What a lane of a device can do, where a dialect leaves that open.

    It takes so many bytes at a time, with which it ``computes`` at once or one by one, and
    ``shuffles`` numbers with those next to it.
    """

    nbytes: int = 16
    computes: bool = False
    shuffles: bool = False


@frozen(kw_only=True)
class Dialect:
    """The spellings of one language; `passkit.dialects.printer` does the printing.

    ``kernel`` opens a kernel and gets {name} and {params}. Loops get {var}, {start}, {stop};
    ``fold`` joins the partial results of all lanes in {acc} into {name} by {combine} of a and b,
    in a dialect without vectors; ``shuffled``, if given, does so where lanes hand each other
    numbers. ``preamble`` stands before the kernels of a translation unit.
    ``cast`` converts; ``saturate``, if given, does so from float to integer, ``truth`` to bool, and
    ``casts`` are for pairs such as "float16/float32". ``wide`` ends literals of 64 bits.
    ``rounded`` is a float32 of which only the bits are left that {type} has.
    ``scratch_of_row``, if given, is scratch of which each row of a tile has {total} bytes;
    ``loop_of_tile``, if given, a loop shared out over all threads of a tile where rows have some of
    their own, ``fold_of_tile`` a reduction over all of them. ``first`` and ``first_of_row`` let the
    first thread of a tile, or of a row, do alone what follows. ``wait`` lets all threads of a tile
    come so far, ``wait_of_row`` those of a row: {memory} is the first of ``memory``, or where a
    kernel reads its own results the second. ``product``, if given, multiplies the matrices {a} and
    {b} into {c}, each a pointer and its strides down and along: (m, k) by (k, n).
    ``aliased`` is a buffer whose bytes another one of the kernel has as well, where ``buffer`` says
    that none has. ``counter``, if given, is a local that rows, taken one after the other, count up.
    Where a language leaves open what signed integers do that overflow, ``wraps`` asks for functions
    in the place of operators: wrapped_add, wrapped_sub and wrapped_mul.
    ``whole_tiles``, if given, comes first in a kernel of which all tiles have equally many rows.
    ``unpack`` and ``unpack_size``, if given, fetch arguments in front of the body; ``fence`` ends a
    kernel that streams. With ``bundles`` a lane has several elements, with ``parts`` the parts of
    packed kernels are functions; ``phases`` are for kernels of several. Kernels that are
    ``compiled_here`` are C++ for passkit's prelude, with the arguments of the CPU's launcher.
    ``language`` is the name by which operators know it that bring their own kernels, if it is not
    the dialect's.
    Divisions by numbers that all lanes share are ``quotients``, if given. ``calls`` maps function
    names to spellings; where a language has one for each float type, use "exp/float32".
    """

    name: str
    kernel: str
    buffer: str
    aliased: str = ""
    size: str = "const int64_t {name}"
    unpack: str = ""
    unpack_size: str = ""
    scratch: str
    scratch_of_row: str = ""
    scratch_base: str = ""
    grid: str
    warp: str = "for (int64_t {var} = {start}; {var} < {stop}; ++{var})"
    lane: str
    thread: str = "for (int64_t {var} = {start}; {var} < {stop}; ++{var})"
    thread_down: str = "for (int64_t {var} = {stop}; {var}-- > {start};)"
    loop_of_tile: str = ""
    fold: str = ""
    fold_of_tile: str = ""
    shuffled: str = ""
    first: str = ""
    first_of_row: str = ""
    wait: str = ""
    wait_of_row: str = ""
    memory: tuple[str, str] = ("", "")
    local: str = "const {type} {name} = {value};"
    counter: str = ""
    cast: str = "({type})({value})"
    saturate: str = ""
    truth: str = ""
    casts: Mapping[str, str] = field(factory=dict)
    rounded: str = ""
    wraps: bool = False
    infinity: str = "INFINITY"
    wide: str = "ll"
    bits: str = "{type}({bits})"
    prologue: tuple[str, ...] = ()
    whole_tiles: str = ""
    scalars: Mapping[str, str] = field(factory=lambda: dict(SCALARS))
    calls: Mapping[str, str] = field(factory=dict)
    vectors: Vectors | None = None
    bundles: BundleTemplates | None = None
    quotients: QuotientTemplates | None = None
    product: str = ""
    parts: PartTemplates | None = None
    phases: PhaseTemplates | None = None
    prefetch: str = ""
    fence: str = ""
    preamble: str = ""
    compiled_here: bool = False
    language: str = ""

    def for_lanes(self, reach: Reach) -> Dialect:
        """The dialect for lanes of a device that can do so much."""
        own = evolve(self, fold=self.shuffled) if reach.shuffles and self.shuffled else self
        if own.bundles is None:
            return own
        if not reach.nbytes:
            return evolve(own, bundles=None)
        computes = reach.computes and own.bundles.vectors is not None
        return evolve(own, bundles=evolve(own.bundles, nbytes=reach.nbytes, computes=computes))

    @property
    def features(self) -> Features:
        """The features of the language that passes read to decide how stages are printed."""
        vectors, b = self.vectors, self.bundles
        return Features(
            name=self.name,
            vectors=None if vectors is None else vectors.features,
            accesses=None if b is None else b.features,
            has_reciprocals=self.quotients is not None,
            has_products=bool(self.product),
            counts_rows=bool(self.counter),
            has_maximum_number=f"{MAXIMUM_NUMBER}/float32" in self.calls,
            has_parts=self.parts is not None,
            phases=PhaseForm.NONE if self.phases is None else self.phases.form,
            aliased=self.aliased,
        )

    def type_of(self, dtype: DType) -> str:
        """The scalar type of a dtype. Raises: RegistryError when the language has none."""
        if dtype.name not in self.scalars:
            raise RegistryError(
                f"dialect {self.name} has no type for {dtype}; cast to "
                f"{nearest(dtype.name, self.scalars)}"
            )
        return self.scalars[dtype.name]

    def cast_of(self, source: DType, target: DType, value: str) -> str:
        """A value of one dtype converted to another."""
        own = self.casts.get(f"{source}/{target}")
        if own is not None:
            return own.format(type=self.type_of(target), value=value)
        if target.name == "bool" and self.truth:
            return self.truth.format(value=value)
        saturates = self.saturate and source.is_float and target.is_integer
        template = self.saturate if saturates else self.cast
        return template.format(type=self.type_of(target), source=self.type_of(source), value=value)

    def rounded_of(self, dtype: DType, value: str) -> str:
        """A float32 rounded to what a float of 16 bits can hold."""
        return self.rounded.format(type=self.type_of(dtype), short=dtype.short, value=value)

    def call_of(self, name: str, dtype: DType) -> str:
        """The spelling of a function for arguments of ``dtype``."""
        own = self.calls.get(f"{name}/{dtype.name}", self.calls.get(name))
        if own is None and name in VARIANTS:
            return self.call_of(VARIANTS[name], dtype)
        return name if own is None else own


_dialects: NamedRegistry[Dialect] = NamedRegistry("dialect", RegistryError)


def register_dialect(dialect: Dialect) -> Dialect:
    """Make a dialect known by its name; a later one of the same name replaces it.

    Raises: RegistryError for what is no Dialect.
    """
    if not isinstance(dialect, Dialect):
        raise RegistryError(f"register_dialect needs a pk.Dialect, got {dialect!r}")
    _dialects.register(dialect.name, dialect)
    return dialect


def language_of(name: str) -> str:
    """The language for which operators bring kernels, of a dialect that may not be registered."""
    return (_dialects[name].language if name in _dialects else "") or name


def dialect_of(what: str | Dialect) -> Dialect:
    """A registered dialect. Raises: RegistryError with the nearest name."""
    if isinstance(what, Dialect):
        return what
    return _dialects[what]
