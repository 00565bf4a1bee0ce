"""JSON for people and tools: values of any class as JSON can hold them, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def json_value(value: object) -> object:
    """Return a value as JSON can hold it.

    Python's numbers but complex ones, bools, strings and None stay, NaN and infinities too.
    Mappings become dicts with their keys as text, tuples and lists become lists. All else becomes
    its ``str``: sets, arrays, and NumPy's numbers other than float64.

    >>> json_value({1: (2, None), "x": {3}})
    {'1': [2, None], 'x': '{3}'}
    """
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [json_value(v) for v in value]
    return str(value)


def json_text(data: object) -> str:
    """Return data that JSON can hold as text, each level indented by two spaces.

    NaN and infinities are written as NaN and Infinity, which JSON proper does not have.

    Raises: TypeError for data that JSON cannot hold; `json_value` converts it.
    """
    return json.dumps(data, indent=2)


def write_json(path: Path, data: object, indent: int | None = 2) -> None:
    """Write data that JSON can hold into a file, with a line end.

    Args:
        path: The path of the file.
        data: The data.
        indent: The indentation of each level; None writes one line.

    Raises: TypeError for data that JSON cannot hold, OSError where the file cannot be written.
    """
    path.write_text(json.dumps(data, indent=indent) + "\n", encoding="utf-8")
