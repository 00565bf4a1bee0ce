"""The result of a command: data for programs, the same as text for people, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen


@frozen
class CommandResult:
    """The result of a command.

    Attributes:
        data: The result for programs, printed as JSON.
        text: The result for people.
        code: The exit code, 0 or 1.
        language: The language of a text that is source code, such as "c++", for highlighting on
            terminals; "" for other text.
    """

    data: Mapping[str, object] | Sequence[object]
    text: str
    code: int = 0
    language: str = ""
