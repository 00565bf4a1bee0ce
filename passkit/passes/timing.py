"""Timing: the seconds that passes take, as a tree of passes and what they call."""

from __future__ import annotations

from attrs import define, field


@define(eq=False)
class Timing:
    """The seconds of a pass, and of the passes that it ran."""

    name: str
    seconds: float = 0.0
    children: list[Timing] = field(factory=list)
    start: float = 0.0
    """When it began, by `perf_counter`."""

    @property
    def self_seconds(self) -> float:
        """Return the seconds of the pass that were not spent in ``children``."""
        return self.seconds - sum(c.seconds for c in self.children)

    def __str__(self) -> str:
        """Return the tree as a table: a line for each pass, indented, with its times and share.

        The times are in milliseconds, with and without those of its children, and the share is that
        of the root's time.
        """
        rows: list[tuple[str, Timing]] = []
        stack = [("", self)]
        while stack:
            indent, timing = stack.pop()
            rows.append((indent + timing.name, timing))
            stack += [(indent + "  ", c) for c in reversed(timing.children)]
        width = max(len(name) for name, _ in rows)
        total = self.seconds or 1.0
        return "\n".join(
            f"{name:<{width}}  {t.seconds * 1e3:10.3f} ms  self {t.self_seconds * 1e3:10.3f} ms  "
            f"{100 * t.seconds / total:5.1f} %"
            for name, t in rows
        )
