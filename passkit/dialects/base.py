"""Dialects: tables of the templates by which kernels are printed in C-like languages."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from passkit.ast import VARIANTS
from passkit.dialects.loop_templates import LoopTemplates
from passkit.dialects.templates import (
    AccessTemplates,
    PartTemplates,
    PhaseTemplates,
    QuotientTemplates,
    VectorTemplates,
)
from passkit.errors import CodeGenError, RegistryError, nearest
from passkit.ir.features import Features
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
"""The conversions of 16-bit floats for dialects that store them as integers."""


@frozen
class ThreadFeatures:
    """The features of a thread of a device that a language leaves open.

    Attributes:
        access_nbytes: the number of bytes of its widest access; 0 for single elements only.
        has_vector_arithmetic: whether it computes with vectors.
        has_shuffles: whether the threads of a warp exchange values without memory.
    """

    access_nbytes: int = 16
    has_vector_arithmetic: bool = False
    has_shuffles: bool = False


@frozen(kw_only=True)
class Dialect:
    """The templates of one language; `passkit.dialects.printer` prints kernels with them.

    A template is a format string with placeholders in braces, see `passkit.dialects.templates`.

    Attributes:
        name: the name by which targets refer to the dialect.
        kernel: the head of a kernel ``{name}`` with ``{params}``. This and the other templates of
            tiles are empty in a language whose kernels are loop IR only.
        buffer: the declaration of a buffer whose bytes no other parameter has; ``{const}`` is empty
            for outputs.
        aliased: that of one whose bytes another parameter has, too.
        size: the declaration of a size argument.
        unpack: fetches buffer number ``{k}`` in front of the body, if parameters are packed.
        unpack_size: fetches size argument number ``{k}``.
        scratch: the declaration of a scratch array at ``{offset}`` bytes.
        grid: the loop over tiles.
        lane: a loop whose iterations are shared out over the threads of a tile.
        thread: a loop of one thread, also over the rows of a tile.
        thread_reversed: one from the last iteration to the first.
        fold: combines the partial results ``{acc}`` of all threads by ``{combine}`` of ``a`` and
            ``b``, and declares the result; for languages without vectors.
        first: stands in front of a statement that the first thread of a tile executes alone.
        wait: a barrier of the threads of a tile.
        memory: the ``{memory}`` of barriers: of a kernel in general, and of one that loads its own
            outputs.
        local: the declaration of a constant.
        counter: the declaration of a variable that counts rows; empty for a division.
        cast: a conversion.
        saturate: a conversion from float to integer that saturates.
        truth: a conversion to bool.
        casts: conversions of certain pairs of types, such as "float16/float32".
        rounded: a float32 rounded to the narrow float ``{type}``.
        wraps: whether signed overflow is undefined in the language, so that functions
            (``wrapped_add``, ``wrapped_sub``, ``wrapped_mul``) stand for operators.
        infinity: the literal of infinity.
        wide: the suffix of literals of 64 bits.
        bits: a float of given bits.
        prologue: lines in front of the body.
        whole_tiles: a line in front of the body of a kernel whose tiles all have equally many rows.
        scalars: the types by dtype.
        calls: the functions by name, or by name and dtype, such as "exp/float32".
        vectors: the templates of statements with vectors.
        accesses: the templates of accesses to several elements.
        loops: the templates of loop IR.
        shuffle_loops: those for threads that exchange values without memory, if others do not.
        quotients: the templates of quotients by shared divisors.
        product: multiplies the matrices ``{a}`` (m, k) and ``{b}`` (k, n) into ``{c}``, each a
            pointer and the strides of rows and columns.
        parts: the templates of packed kernels.
        phases: the templates of kernels of several phases.
        prefetch: prefetches an element.
        fence: ends a kernel that bypasses the caches.
        preamble: stands in front of the kernels of a translation unit.
        compiled_here: whether kernels are C++ for passkit's prelude, with the arguments of the
            CPU's launcher.
        language: the name by which operators with own kernels know the language, if it is not the
            dialect's.
    """

    name: str
    kernel: str = ""
    buffer: str
    aliased: str = ""
    size: str = "const int64_t {name}"
    unpack: str = ""
    unpack_size: str = ""
    scratch: str = ""
    grid: str = ""
    lane: str = ""
    thread: str = "for (int64_t {var} = {start}; {var} < {stop}; ++{var})"
    thread_reversed: str = "for (int64_t {var} = {stop}; {var}-- > {start};)"
    fold: str = ""
    first: str = ""
    wait: str = ""
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
    vectors: VectorTemplates | None = None
    accesses: AccessTemplates | None = None
    loops: LoopTemplates | None = None
    shuffle_loops: LoopTemplates | None = None
    quotients: QuotientTemplates | None = None
    product: str = ""
    parts: PartTemplates | None = None
    phases: PhaseTemplates | None = None
    prefetch: str = ""
    fence: str = ""
    preamble: str = ""
    compiled_here: bool = False
    language: str = ""

    def for_threads(self, threads: ThreadFeatures) -> Dialect:
        """Return the dialect for a device whose threads have certain features."""
        accesses, loops = self.accesses, self.loops
        if threads.has_shuffles and self.shuffle_loops is not None:
            loops = self.shuffle_loops
        if accesses is None and loops is self.loops:
            return self
        if accesses is not None:
            has_arithmetic = threads.has_vector_arithmetic and accesses.vectors is not None
            accesses = evolve(accesses, nbytes=threads.access_nbytes, has_arithmetic=has_arithmetic)
        return evolve(self, accesses=accesses if threads.access_nbytes else None, loops=loops)

    @property
    def features(self) -> Features:
        """The features of the language by which passes choose the final form of stages."""
        vectors, accesses = self.vectors, self.accesses
        return Features(
            name=self.name,
            vectors=None if vectors is None else vectors.features,
            accesses=None if accesses is None else accesses.features,
            has_products=bool(self.product),
            counts_rows=bool(self.counter),
            has_parts=self.parts is not None,
            has_phases=self.phases is not None,
            has_warps=self.loops is not None and bool(self.loops.shuffle),
            has_quotients=self.quotients is not None,
            aliased=self.aliased,
        )

    @property
    def loop_templates(self) -> LoopTemplates:
        """The templates of loop IR. Raises: CodeGenError if the language has none."""
        if self.loops is None:
            raise CodeGenError(f"dialect {self.name} has no templates of loop IR")
        return self.loops

    def type_of(self, dtype: DType) -> str:
        """Return the scalar type of a dtype. Raises: RegistryError if the language has none."""
        if dtype.name not in self.scalars:
            raise RegistryError(
                f"dialect {self.name} has no type for {dtype}; cast to "
                f"{nearest(dtype.name, self.scalars)}"
            )
        return self.scalars[dtype.name]

    def cast_of(self, source: DType, target: DType, value: str) -> str:
        """Return a value of one dtype converted to another."""
        own = self.casts.get(f"{source}/{target}")
        if own is not None:
            return own.format(type=self.type_of(target), value=value)
        if target.name == "bool" and self.truth:
            return self.truth.format(value=value)
        saturates = self.saturate and source.is_float and target.is_integer
        template = self.saturate if saturates else self.cast
        return template.format(type=self.type_of(target), source=self.type_of(source), value=value)

    def rounded_of(self, dtype: DType, value: str) -> str:
        """Return a float32 rounded to a float of 16 bits."""
        return self.rounded.format(type=self.type_of(dtype), short=dtype.short, value=value)

    def call_of(self, name: str, dtype: DType) -> str:
        """Return the name of a function for arguments of ``dtype`` in the language."""
        own = self.calls.get(f"{name}/{dtype.name}", self.calls.get(name))
        if own is None and name in VARIANTS:
            return self.call_of(VARIANTS[name], dtype)
        return name if own is None else own


BUILT_IN = ("cuda", "cxx", "opencl")
"""The names of the dialects that passkit has, and of the modules of their tables."""
_dialects: NamedRegistry[Dialect] = NamedRegistry(
    "dialect", RegistryError, {name: f"passkit.dialects.{name}" for name in BUILT_IN}
)


def register_dialect(dialect: Dialect) -> Dialect:
    """Register a dialect by its name, in place of an earlier one, and return it.

    Raises: RegistryError if it is no Dialect.
    """
    if not isinstance(dialect, Dialect):
        raise RegistryError(f"register_dialect needs a pk.Dialect, got {dialect!r}")
    _dialects.register(dialect.name, dialect)
    return dialect


def language_of(name: str) -> str:
    """Return the language of a dialect by which operators choose their kernels.

    It is the name itself if no such dialect is registered.
    """
    return (_dialects[name].language if name in _dialects else "") or name


def dialect_of(dialect: str | Dialect) -> Dialect:
    """Return a dialect by its name. Raises: RegistryError, with the nearest name, for another."""
    return dialect if isinstance(dialect, Dialect) else _dialects[dialect]
