"""The last pass over kernels that are lowered stage by stage: all that printers have to know.

Stages become vector loops in languages that have vectors of a CPU, else loops over threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from passkit.ast import Const, Load
from passkit.ast.stage import Dot, KernelAST, Loop, Part, Phase, Place, Stage
from passkit.ast.tidy import expressions
from passkit.ast.walk import walk
from passkit.errors import CodeGenError
from passkit.ir.features import Features, VectorFeatures
from passkit.ir.final import (
    FinalForm,
    FinalKernel,
    FinalPart,
    FinalPhase,
    FinalStage,
    PackedKernel,
    PartCall,
    PhasedKernel,
    RowDigit,
)
from passkit.ir.vector import VectorStmt
from passkit.transforms.access_agreement import agreements_of
from passkit.transforms.fuse_stages import fused_stages
from passkit.transforms.reroll_chains import has_long_chains
from passkit.transforms.row_coordinates import row_digits
from passkit.transforms.separate_parts import is_packed, separated
from passkit.transforms.separate_phases import separate_phases
from passkit.transforms.thread_accesses import Agreement
from passkit.transforms.thread_stages import StageThreads, product_statements
from passkit.transforms.vector_rows import rows_of_part
from passkit.transforms.vector_shape import literal_count
from passkit.transforms.vector_stages import StageVectorizer
from passkit.values.dtype import DType
from passkit.values.size import Extent


def final_form(
    ast: KernelAST,
    features: Features,
    aliased: Set[str] = frozenset(),
    sizes: Sequence[Extent] = (),
) -> FinalForm:
    """Return a kernel with all stages as statements, and its functions where it consists of such.

    Args:
        ast: the kernel.
        features: what the language offers.
        aliased: the names of buffers that share memory with another.
        sizes: the values of size arguments, as far as they are known.

    Raises: CodeGenError for a kernel of several phases in a language without them, for aliased
    buffers in a language that marks them and has vectors, whose loads would have to stay with the
    points that store there, for a scan in a language without vectors, and for a store that does not
    step along the inner loop in one with vectors.
    """
    if len(ast.phases) < 2:
        return _of_one_phase(ast, features, aliased, sizes)
    if not features.has_phases:
        raise CodeGenError(
            f"dialect {features.name} has no spelling for a kernel of {len(ast.phases)} phases; "
            f"give it PhaseTemplates, or take its operators out of keep_together"
        )
    phases = tuple(_of_one_phase(own, features, sizes=sizes) for own in separate_phases(ast))
    return PhasedKernel(ast.sizes, phases)


def _of_one_phase(
    ast: KernelAST,
    features: Features,
    aliased: Set[str] = frozenset(),
    sizes: Sequence[Extent] = (),
) -> FinalKernel | PackedKernel:
    """Return a kernel of one phase in final form.

    Args:
        ast: the kernel.
        features: what the language offers.
        aliased: the names of buffers that share memory with another.
        sizes: the values of size arguments, as far as they are known.

    Raises: CodeGenError for aliased buffers in a language that marks them and has vectors, for a
    scan in a language without vectors, and for a store that does not step along the inner loop in
    one with vectors.
    """
    if not features.has_parts or not is_packed(ast):
        return _final_kernel(ast, features, aliased, sizes)
    functions: dict[tuple[KernelAST, tuple[Extent, ...]], FinalKernel] = {}
    depends_on_sizes: dict[KernelAST, bool] = {}
    calls = []
    for part in separated(ast):
        if part.ast not in depends_on_sizes:
            depends_on_sizes[part.ast] = bool(sizes) and has_long_chains(part.ast)
        own = tuple(sizes[k] for k in part.sizes) if depends_on_sizes[part.ast] else ()
        if (part.ast, own) not in functions:
            function = _final_kernel(part.ast, features, sizes=own)
            equal = next((f for f in functions.values() if own and f == function), function)
            functions[part.ast, own] = equal
        calls.append(PartCall(functions[part.ast, own], part.span, part.buffers, part.sizes))
    return PackedKernel(ast.sizes, tuple(calls))


def _final_kernel(
    ast: KernelAST,
    features: Features,
    aliased: Set[str] = frozenset(),
    sizes: Sequence[Extent] = (),
) -> FinalKernel:
    """Return a kernel, or a function of one, with all stages as statements.

    Args:
        ast: the kernel.
        features: what the language offers.
        aliased: the names of buffers that share memory with another.
        sizes: the values of size arguments, as far as they are known.

    Raises: CodeGenError for aliased buffers in a language that marks them and has vectors, for a
    scan in a language without vectors, and for a store that does not step along the inner loop in
    one with vectors.
    """
    marked = aliased if features.aliased else frozenset[str]()
    dtypes = {b.name: b.dtype for b in (*ast.params, *ast.scratch)}
    lowering: _Threads | _Vectors
    if features.vectors is None:
        lowering = _Threads(ast, features, marked, dtypes)
    elif marked:
        raise CodeGenError(
            f"dialect {features.name} has both vectors and a spelling of aliased buffers, "
            f"{features.aliased!r}; leave out one of the two"
        )
    else:
        named = dict(zip(ast.sizes, sizes, strict=bool(sizes)))
        lowering = _Vectors(ast, features, features.vectors, dtypes, named)
    return FinalKernel(
        ast.params,
        ast.sizes,
        ast.scratch,
        lowering.phase(ast.phases[0]),
        frozenset(marked),
        _rereads(ast),
        any(map(_is_whole, _loops(ast))),
    )


class _Threads:
    """Turns the phases of a kernel into final form, in a language whose threads have elements."""

    def __init__(
        self, ast: KernelAST, features: Features, aliased: Set[str], dtypes: dict[str, DType]
    ) -> None:
        self.ast, self.features, self.aliased = ast, features, aliased
        self.stages = StageThreads(features, ast.sizes, aliased, dtypes)

    def phase(self, phase: Phase) -> FinalPhase:
        """Return a phase in final form. Raises: CodeGenError for a scan, which needs vectors."""
        agreements: Sequence[Agreement | None] = [None] * len(phase.stages)
        if self.features.accesses is not None:
            agreements = agreements_of(phase, self.ast, self.aliased, self.features.accesses)
        remaining = iter(agreements)
        return FinalPhase(phase.tile, tuple(self._part(p, remaining) for p in phase.parts))

    def _part(self, part: Part, agreements: Iterator[Agreement | None]) -> FinalPart:
        """Return a part in final form. Raises: CodeGenError for a scan, which needs vectors."""
        return final_part(
            part, self.features, [self._stage(s, next(agreements)) for s in part.stages]
        )

    def _stage(self, stage: Stage | Dot, agreement: Agreement | None) -> FinalStage:
        """Return a stage in final form. Raises: CodeGenError for a scan, which needs vectors."""
        if isinstance(stage, Dot):
            return FinalStage(self.stages.product(stage), False, (), stage.barrier_before)
        statements = self.stages.statements(stage, agreement)
        return FinalStage(statements, False, _variables(stage), stage.barrier_before)


class _Vectors:
    """Turns the phases of a kernel into final form, in a language of a CPU's vectors."""

    def __init__(
        self,
        ast: KernelAST,
        features: Features,
        vectors: VectorFeatures,
        dtypes: dict[str, DType],
        sizes: dict[str, Extent],
    ) -> None:
        self.features, self.dtypes = features, dtypes
        self.scratch = {b.name: b.extent for b in ast.scratch if b.place is Place.SHARED}
        registers = frozenset(b.name for b in ast.scratch if b.place is Place.LANES)
        self.stages = StageVectorizer(vectors, registers, self.scratch, sizes)

    def phase(self, phase: Phase) -> FinalPhase:
        """Return a phase in final form.

        Raises: CodeGenError for a store that does not step along the inner loop.
        """
        parts = tuple(
            self._part(p, [q for q in phase.parts if q.span == p.span]) for p in phase.parts
        )
        return FinalPhase(phase.tile, parts)

    def _part(self, part: Part, beside: Sequence[Part]) -> FinalPart:
        """Return a part in final form; ``beside`` are all parts of its tile.

        Raises: CodeGenError for a store that does not step along the inner loop.
        """
        rows = rows_of_part(self.stages, part)
        if rows is not None:
            return final_part(part, self.features, [FinalStage(tuple(rows), True)], True)
        fused = fused_stages(part, beside, {b: self.dtypes[b] for b in self.scratch})
        if fused is not None:
            statements = tuple(self.stages.fused(fused))
            return final_part(part, self.features, [FinalStage(statements, True)])
        return final_part(part, self.features, [self._stage(s) for s in part.stages])

    def _stage(self, stage: Stage | Dot) -> FinalStage:
        """Return a stage in final form.

        Raises: CodeGenError for a store that does not step along the inner loop.
        """
        if isinstance(stage, Dot):
            statements = product_statements(stage, self.features, self.dtypes)
            return FinalStage(statements, False, (), stage.barrier_before)
        vectors: tuple[VectorStmt, ...] = tuple(self.stages.statements(stage))
        return FinalStage(vectors, True, _variables(stage), stage.barrier_before)


def final_part(
    part: Part, features: Features, stages: Sequence[FinalStage], are_rows_inside: bool = False
) -> FinalPart:
    """Return a part with stages in final form.

    Args:
        part: the part.
        features: what the language offers.
        stages: its stages.
        are_rows_inside: whether these have the loop over its rows themselves.
    """
    digits: tuple[RowDigit, ...] = ()
    if features.counts_rows and part.rows is not None and not are_rows_inside:
        digits = tuple(row_digits(part.rows, part.row_lets))
    counted = {d.let for d in digits}
    return FinalPart(
        part.lets,
        part.rows,
        tuple(let for let in part.row_lets if let not in counted),
        digits,
        tuple(stages),
        part.barrier_before,
        part.span,
        are_rows_inside,
    )


def _variables(stage: Stage) -> tuple[str, ...]:
    """Return the names of the variables of a stage's loops."""
    return tuple(x.var.name for x in stage.loops)


def _loops(ast: KernelAST) -> Iterator[Loop]:
    """Yield the loops of a kernel inside its tiles."""
    for part in (part for phase in ast.phases for part in phase.parts):
        if part.rows is not None:
            yield part.rows
        for stage in part.stages:
            yield from stage.loops


def _is_whole(loop: Loop) -> bool:
    """Return whether a loop begins at the tile's own first iteration and has a constant number."""
    return not isinstance(loop.start, Const) and literal_count(loop) is not None


def _rereads(ast: KernelAST) -> bool:
    """Return whether a kernel reads what it has written to a result."""
    results = {b.name for b in ast.params if b.written}
    stages = [s for phase in ast.phases for s in phase.stages]
    if any(isinstance(s, Dot) and {s.a.buffer, s.b.buffer} & results for s in stages):
        return True
    values = (x for s in stages if isinstance(s, Stage) for t in s.body for x in expressions(t))
    return any(isinstance(x, Load) and x.buffer in results for v in values for x in walk(v))
