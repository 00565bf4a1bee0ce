"""The result of tuning: the groups of a plan with their templates, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from passkit.values.lazy import Lazy
from passkit.values.units import seconds_text, table

notebook: Any = Lazy("passkit.reporting.notebook")
"""The displays of notebooks, a higher layer."""


@frozen
class Tuned:
    """A group after tuning.

    Attributes:
        name: The name of its node.
        operators: The labels of its operators.
        usual: The template that it has without measurements.
        template: The template that it has now.
        before: The seconds of the usual template, 0 if it was not measured.
        after: The seconds of the template, 0 if it was not measured.
        measured: The number of its templates that were measured.
        faults: The reason for each template that must not be used, by template.
    """

    name: str
    operators: str
    usual: str
    template: str
    before: float
    after: float
    measured: int
    faults: Mapping[str, str]

    @property
    def gain(self) -> float:
        """The seconds of the usual template divided by those of the template; 1 if unknown."""
        return self.before / self.after if self.before and self.after else 1.0


HEADER = ("kernel", "operators", "usual", "tuned", "gain", "template")


@frozen(repr=False)
class Tuning:
    """The groups of a plan after tuning; its text is a table.

    Attributes:
        groups: The groups, in order.
        measured: The number of measurements of this run: templates of groups at some sizes.
        rounds: The number of times that the graph was compiled anew.
        remarks: Failures of measurements, as sentences.
    """

    groups: tuple[Tuned, ...]
    measured: int
    rounds: int
    remarks: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """The number of groups that have another template than the usual one."""
        return sum(g.template != g.usual for g in self.groups)

    @property
    def summary(self) -> str:
        """A sentence with the numbers of measurements and of changed kernels."""
        return (
            f"{self.measured} templates measured; {self.changed} of {len(self.groups)} kernels "
            f"have another"
        )

    @property
    def _notes(self) -> list[str]:
        """Return the remarks as lines of text."""
        return [f"remark: {r}" for r in self.remarks]

    def rows(self) -> list[tuple[str, ...]]:
        """Return the groups as rows of texts under HEADER.

        Unknown times are "?". A group that keeps its template has "" as its gain, and "as before".
        """
        return [
            (
                g.name,
                g.operators,
                seconds_text(g.before) if g.before else "?",
                seconds_text(g.after) if g.after else "?",
                f"{g.gain:.2f}" if g.template != g.usual else "",
                g.template if g.template != g.usual else "as before",
            )
            for g in self.groups
        ]

    def __str__(self) -> str:
        """Return the table of groups, the remarks and the summary as lines of text."""
        rows = self.rows()
        lines = [table(HEADER, rows)] if rows else []
        return "\n".join([*lines, *self._notes, self.summary])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the MIME types and texts that a notebook displays.

        ``include`` and ``exclude`` belong to IPython's display protocol and have no effect.
        """
        lines = [*self._notes, self.summary]
        return notebook.listing(str(self), HEADER, self.rows(), lines)  # type: ignore[no-any-return]
