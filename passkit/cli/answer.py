"""What a command answers: data for programs, the same as text for people, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen


@frozen
class Answer:
    """The result of a command. ``data`` must be JSON; ``code`` is 0 or 1."""

    data: Mapping[str, object] | Sequence[object]
    text: str
    code: int = 0
