"""Stages of a kernel for a CPU become statements of loop IR in vector form."""

from __future__ import annotations

from passkit.ast import (
    Binary,
    Expr,
    Load,
    Var,
)
from passkit.ast.stage import (
    Fold,
    Let,
    Level,
    Loop,
    Running,
    Stage,
    Store,
)
from passkit.ast.walk import walk
from passkit.ir.loop import LetStmt, StoreStmt
from passkit.ir.rewrite import combined
from passkit.ir.vector import (
    Finish,
    Scope,
    SerialFor,
    VectorAssign,
    VectorDeclare,
    VectorStmt,
    When,
)
from passkit.transforms.fuse_stages import FusedStages
from passkit.transforms.interchange import may_interchange
from passkit.transforms.partial_results import partial_name
from passkit.transforms.partition_loops import partition_stage
from passkit.transforms.vector_blocks import interchanged_loop, transposed_blocks
from passkit.transforms.vector_loop import LoopVectorizer, scalar_statement, vector_statement
from passkit.transforms.vector_rows import rows_of_stage
from passkit.transforms.vector_shape import (
    LoopShape,
    is_in_registers,
    is_short,
    loop_shape,
    vector_variables,
)
from passkit.transforms.vector_values import Divisors, VectorValues
from passkit.values import dtype as dt


class StageVectorizer(LoopVectorizer):
    """Turns the stages of a kernel into statements, one stage after the other."""

    def statements(self, stage: Stage) -> list[VectorStmt]:
        """Return the statements of a stage.

        Raises: CodeGenError for a store that does not step along the inner loop.
        """
        if any(x.level is Level.WARP for x in stage.loops):
            return rows_of_stage(self, stage)
        out: list[VectorStmt] = [LetStmt(s.var, s.value) for s in stage.before]
        lane = next((x for x in stage.loops if x.level is Level.CTA), None)
        if lane is None:
            return [*out, *map(scalar_statement, stage.body)]
        is_unrolled = is_short(lane) or is_in_registers(stage, self.registers)
        if len(stage.loops) == 1 and not is_unrolled:
            cuts, pieces = partition_stage(stage, lane.var.name)
            if cuts:
                out += [LetStmt(s.var, s.value) for s in cuts]
                for piece in pieces:
                    out += self._piece(piece)
                return out
        return [*out, *self._loops(stage, lane)]

    def fused(self, fused: FusedStages) -> list[VectorStmt]:
        """Return several stages as one vector loop."""
        out: list[VectorStmt] = [LetStmt(s.var, s.value) for x in fused.stages for s in x.before]
        vectors, divisors = fused.vectors(), Divisors(self.num_divisors)
        inner = frozenset(fused.inner_variables()) - vectors
        values = VectorValues(fused.lane.var, vectors, divisors, inner=inner)
        body: list[VectorStmt] = []
        declared: set[Var] = set()

        def assign(total: Var, value: Expr) -> VectorStmt:
            if total in declared:
                return VectorAssign(total, values.splat(value))
            declared.add(total)
            return VectorDeclare(total, values.splat(value))

        for stage in fused.stages:
            for s in stage.body:
                if isinstance(s, Fold):
                    body.append(assign(fused.totals[str(s.buffer)], s.identity))
            statements: list[VectorStmt] = []
            for s in fused.body_of(stage):
                if isinstance(s, Fold):
                    total = fused.totals[str(s.buffer)]
                    statements.append(assign(total, combined(s.combine, total, s.value)))
                elif isinstance(s, Store) and s.buffer in fused.totals:
                    statements.append(assign(fused.totals[s.buffer], s.value))
                elif isinstance(s, Let) and s.var not in vectors:
                    statements.append(LetStmt(s.var, s.value))
                else:
                    statements += vector_statement(s, values, is_once=False)
            for x in reversed(stage.loops[:-1]):
                statements = [SerialFor(x.var, x.start, x.stop, tuple(statements))]
            body += statements
        loop = self.vector_for(fused.lane, tuple(body), LoopShape(self.features.width), None)
        return [*out, *self.prepare(divisors), loop]

    def _piece(self, stage: Stage) -> list[VectorStmt]:
        """Return one of the loops that a stage was partitioned into.

        What its points share has a scope of its own. What that loads is only there if the loop has
        points.
        """
        lane = next(x for x in stage.loops if x.level is Level.CTA)
        vectors = vector_variables(stage.body, lane.var)
        shared = [s.value for s in stage.body if isinstance(s, Let) and s.var not in vectors]
        statements = tuple(self._loops(stage, lane))
        if any(isinstance(x, Load) for value in shared for x in walk(value)):
            has_points = Binary("<", lane.start, lane.stop, dt.bool_)
            return [When(has_points, statements)]
        return [Scope(statements)] if shared else list(statements)

    def _loops(self, stage: Stage, lane: Loop) -> list[VectorStmt]:
        """Return the loops of a stage, with the beginnings and results of its reductions."""
        shape = loop_shape(stage, lane, self.features, self.registers)
        reductions = [s for s in stage.body if isinstance(s, Fold)]
        serial = [x for x in stage.loops if x.level is Level.THREAD]
        out: list[VectorStmt] = []
        for f in reductions:
            out += self.beginning(f, stage, lane, shape)
        for s in stage.body:
            if isinstance(s, Running):
                out += self.scan_beginning(s, stage, lane, shape)
        vectors = vector_variables(stage.body, lane.var)
        stride = VectorValues(lane.var, vectors, None).stride
        if serial and may_interchange(stage, lane, serial[-1], vectors, stride):
            inner = interchanged_loop(self, stage, lane, serial.pop(), shape)
        else:
            inner = transposed_blocks(self, stage, lane, serial, stride) if serial else []
            serial = serial[:-1] if inner else serial
            inner = inner or self.vector_loop(stage.body, stage, lane, shape)
        for x in reversed(serial):
            inner = [SerialFor(x.var, x.start, x.stop, tuple(inner), x.down)]
        out += inner
        out += [Finish(f.var, partial_name(f)) for f in reductions if f.buffer is None]
        return [*out, *(StoreStmt(s.buffer, s.index, s.value) for s in stage.after)]
