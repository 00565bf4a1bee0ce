"""Stages of a kernel become statements of threads: `passkit.ir.threads`.

Decided here is what is computed in front of the inner loop, and in which order loops are nested.
The vector accesses of threads have `thread_accesses`, their vectors `thread_vectors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from attrs import evolve

from passkit.ast import Var
from passkit.ast.stage import (
    Dot,
    Fold,
    Let,
    Level,
    Loop,
    Prefetch,
    Running,
    Stage,
    Statement,
    Store,
)
from passkit.errors import CodeGenError
from passkit.ir.features import Features
from passkit.ir.loop import Assign, Declare
from passkit.ir.rewrite import substitute
from passkit.ir.threads import (
    AccessFor,
    FinishReduction,
    MatrixProduct,
    OpenArray,
    RowFor,
    SequentialFor,
    StoreArray,
    StoreOnce,
    ThreadFor,
    ThreadStmt,
    term_of,
)
from passkit.transforms.interchange_threads import can_interchange, interchanged
from passkit.transforms.partial_results import memory_of, partial_variable
from passkit.transforms.thread_accesses import (
    Agreement,
    ThreadAccesses,
    access_for,
    element_loop,
    thread_accesses,
)
from passkit.transforms.thread_products import product_by_threads
from passkit.transforms.thread_vectors import vector_thread_loop
from passkit.transforms.vector_shape import vector_variables
from passkit.values.dtype import DType


class StageThreads:
    """Turns the stages of a kernel into statements of threads, one stage after the other.

    Attributes:
        features: what the language offers.
        sizes: the names of the kernel's size arguments.
        aliased: the buffers that share memory with another.
        dtypes: the dtypes of the kernel's buffers.
    """

    def __init__(
        self,
        features: Features,
        sizes: Sequence[str],
        aliased: Set[str],
        dtypes: Mapping[str, DType],
    ) -> None:
        self.features = features
        self.sizes = sizes
        self.aliased = aliased
        self.dtypes = dtypes

    def statements(self, stage: Stage, agreement: Agreement | None) -> tuple[ThreadStmt, ...]:
        """Return the statements of a stage.

        ``agreement`` is what its inner loop has in common with others, None for nothing.

        Raises: CodeGenError for a scan, which needs vectors.
        """
        rows = tuple(x for x in stage.loops if x.level is Level.WARP)
        inside = tuple(self._inside_rows(stage, agreement))
        return (RowFor(rows, inside),) if rows else inside

    def product(self, dot: Dot) -> tuple[ThreadStmt, ...]:
        """Return the statements of a product of matrices."""
        return product_statements(dot, self.features, self.dtypes)

    def _inside_rows(self, stage: Stage, agreement: Agreement | None) -> list[ThreadStmt]:
        """Return the statements of a stage inside its loops over rows."""
        loop = next((x for x in stage.loops if x.level is Level.CTA), None)
        if self.aliased and loop is not None:  # only the point that stores an element may load it
            stage = evolve(stage, before=(), body=(*stage.before, *stage.body))
        out: list[ThreadStmt] = [*stage.before]
        if loop is None:
            return [*out, *map(_once, stage.body)]
        return [*out, *_InnerLoop(stage, loop, self, agreement).statements()]


def product_statements(
    dot: Dot, features: Features, dtypes: Mapping[str, DType]
) -> tuple[ThreadStmt, ...]:
    """Return the statements of a product: a call, or blocks of elements for all threads.

    Args:
        dot: the product.
        features: what the language offers.
        dtypes: the dtypes of the kernel's buffers.
    """
    statement: ThreadStmt = (
        MatrixProduct(dot) if features.has_products else product_by_threads(dot, dtypes)
    )
    for x in reversed(dot.loops):
        statement = SequentialFor(x, (statement,))
    return (statement,)


def _once(s: Statement) -> ThreadStmt:
    """Return a statement outside of loops over threads: a local, or a store by one thread."""
    if isinstance(s, Let):
        return s
    assert isinstance(s, Store)
    return StoreOnce(s)


class _InnerLoop:
    """The inner loop of a stage, whose iterations are shared out over threads.

    Args:
        stage: the stage.
        loop: its inner loop.
        context: the stages of the kernel.
        agreement: what the loop has in common with others; None for nothing.
    """

    def __init__(
        self, stage: Stage, loop: Loop, context: StageThreads, agreement: Agreement | None
    ) -> None:
        self.stage, self.loop, self.context = stage, loop, context
        self.agreement = agreement
        self.features = context.features
        self.varying = vector_variables(stage.body, loop.var, context.aliased)

    def statements(self) -> list[ThreadStmt]:
        """Return the loops, between the beginnings and the ends of the reductions.

        Raises: CodeGenError for a scan, which needs vectors.
        """
        reductions = [s for s in self.stage.body if isinstance(s, Fold)]
        serial = [x for x in self.stage.loops if x.level is Level.THREAD]
        out: list[ThreadStmt] = []
        if not self.context.aliased and can_interchange(self.stage, serial, self.features):
            body = [s for s in self.stage.body if not isinstance(s, Prefetch)]
            out += interchanged(self.loop, body, serial, self._accesses)
        else:
            for f in reductions:
                out += self._beginning(f)
            inner = self._loop(self.stage.body)
            for x in reversed(serial):
                inner = [SequentialFor(x, tuple(inner))]
            out += inner
            for f in reductions:
                if f.buffer is None:
                    out.append(FinishReduction(f.var, partial_variable(f), f.combine))
        return [*out, *map(StoreOnce, self.stage.after)]

    def _accesses(self, statements: Iterable[Statement]) -> ThreadAccesses | None:
        """Return the vector accesses of the loop with some statements; None for none."""
        return thread_accesses(
            self.loop, statements, self.features.accesses, self.context.sizes, self.agreement
        )

    def _loop(self, statements: Iterable[Statement]) -> list[ThreadStmt]:
        """Return the loop, and in front of it what is the same in all iterations."""
        body = [*statements]
        is_shared = [isinstance(s, Let) and s.var not in self.varying for s in body]
        out: list[ThreadStmt] = [
            s for s, shared in zip(body, is_shared, strict=True) if isinstance(s, Let) and shared
        ]
        inside = [s for s, shared in zip(body, is_shared, strict=True) if not shared]
        vectors = vector_thread_loop(self.loop, inside, self.features.accesses, self.agreement)
        if vectors is not None:
            return [*out, vectors]
        plain = ThreadFor(self.loop, tuple(x for s in inside for x in self._statement(s)))
        accesses = self._accesses(inside)
        return [*out, plain if accesses is None else self._access_loop(accesses, plain)]

    def _access_loop(self, accesses: ThreadAccesses, plain: ThreadFor) -> AccessFor:
        """Return the loop with vector accesses; ``plain`` is the loop without."""
        body: list[ThreadStmt] = [OpenArray(a, a.is_loaded) for a in accesses.arrays]
        elements = [x for s in accesses.statements for x in self._statement(s)]
        body.append(element_loop(self.loop, elements, accesses.is_ragged))
        body += [StoreArray(a) for a in accesses.arrays if a.is_stored]
        return access_for(accesses, body, plain)

    def _statement(self, s: Statement) -> list[ThreadStmt]:
        """Return a statement of an iteration.

        Raises: CodeGenError for a scan, which needs vectors.
        """
        match s:
            case Fold():
                return self._step(s)
            case Running():
                raise CodeGenError(
                    f"dialect {self.features.name} has no scans; plan for its own target"
                )
        return [s]

    def _beginning(self, f: Fold) -> list[ThreadStmt]:
        """Return the beginning of a reduction: its identity.

        Raises: CodeGenError for a scan, which needs vectors.
        """
        if f.buffer is not None:
            assert f.index is not None
            return self._loop([Store(f.buffer, f.index, f.identity)])
        return [Declare(partial_variable(f), f.identity)]

    def _step(self, f: Fold) -> list[ThreadStmt]:
        """Return a step of a reduction."""
        if f.buffer is not None:
            old = memory_of(f)
            combined = substitute(f.combine, {"a": old, "b": f.value})
            return [Store(old.buffer, old.index, combined)]
        partial, term = partial_variable(f), f.value
        out: list[ThreadStmt] = []
        if not isinstance(term, Var):
            term = term_of(f)
            out.append(Let(term, f.value))
        step = substitute(f.combine, {"a": partial, "b": term})
        return [*out, Assign(partial, step)]
