"""The definitions in front of a statement of loop IR, while it is verified."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from passkit.ast.expr import Binary, Expr
from passkit.ir.loop import IsAligned
from passkit.ir.uniformity import Varies
from passkit.values.dtype import DType


@frozen
class VerifierScope:
    """The definitions in front of a statement.

    Attributes:
        dtypes: the dtypes of the variables that are defined.
        changing: the variables of `Declare`.
        divisors: the names of `PrepareDivisor`.
        values: the values of `LetStmt` variables; for loops, a number that has their common
            divisors.
        varies: among which threads a variable differs.
        unrolled: the values of unrolled variables.
        control: among which threads it differs whether they come here.
        aligned: the bytes that the addresses of parameters are multiples of.
    """

    dtypes: dict[str, DType] = field(factory=dict)
    changing: set[str] = field(factory=set)
    divisors: set[str] = field(factory=set)
    values: dict[str, Expr] = field(factory=dict)
    varies: dict[str, Varies] = field(factory=dict)
    unrolled: dict[str, range] = field(factory=dict)
    control: Varies = Varies.BLOCKS
    aligned: Mapping[str, int] = field(factory=dict)

    def inner(self, control: Varies, aligned: Mapping[str, int] | None = None) -> VerifierScope:
        """Return the scope of a body inside, whose definitions end with it."""
        return VerifierScope(
            dict(self.dtypes),
            set(self.changing),
            set(self.divisors),
            dict(self.values),
            dict(self.varies),
            dict(self.unrolled),
            max(self.control, control),
            {**self.aligned, **(aligned or {})},
        )


def alignment_of(condition: Expr) -> dict[str, int]:
    """Return the bytes that addresses are multiples of where a condition holds."""
    match condition:
        case Binary("&", a, b):
            return {**alignment_of(a), **alignment_of(b)}
        case IsAligned(names, nbytes):
            return dict.fromkeys(names, nbytes)
    return {}
