"""Records as lines of JSON, and back: what is torn, foreign or stale is no record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

from passkit.plan.evaluator import MOST_SAMPLES, Record, Sizes
from passkit.plan.schedule import Source
from passkit.values.lazy import Lazy

FORMAT = 1
"""Of what a line means. Lines of another one, or of another version of passkit, are stale."""
LONGEST = 1 << 16
"""Characters of a line."""
_root: Any = Lazy("passkit")
"""The package's root stands above all files; it knows the version."""
_KEY = re.compile(r"[0-9a-f]{64}")


def version() -> str:
    """What kernels a record speaks of, and how."""
    return f"{FORMAT}:{_root.__version__}"


def written(record: Record, device: str, compiler: str) -> str:
    """A record as one line, without its end."""
    data: dict[str, Any] = {
        "version": version(), "device": device, "compiler": compiler, "group": record.group,
        "template": record.template, "source": record.source.value,
        "samples": [float(f"{s:.4g}") for s in record.samples], "model": record.model,
    }  # fmt: skip
    if record.beside:
        data["beside"] = [float(f"{s:.4g}") for s in record.beside]
    if record.sizes:
        data["sizes"] = dict(record.sizes)
    if record.fault:
        data["fault"] = record.fault
    if record.operators:
        data["operators"] = record.operators
    return json.dumps(data, separators=(",", ":"))


def read(lines: Iterable[bytes], device: str, compiler: str | None) -> list[Record]:
    """The records of a device, made with kernels of a compiler, or, with None, of any."""
    found = (_record(line, device, compiler) for line in lines)
    return [record for record in found if record is not None]


def _record(line: bytes, device: str, compiler: str | None) -> Record | None:
    if not line or len(line) > LONGEST:
        return None
    try:
        data = json.loads(line)
        if data["version"] != version() or data["device"] != device:
            return None
        if compiler is not None and data["compiler"] != compiler:
            return None
        return Record(
            _text(data["group"], _KEY), _text(data["template"]), _sizes(data.get("sizes", {})),
            Source(data["source"]), tuple(map(_seconds, data["samples"][-MOST_SAMPLES:])),
            _seconds(data["model"]), _text(data.get("fault", "")),
            _text(data.get("operators", "")),
            tuple(map(_seconds, data.get("beside", [])[-MOST_SAMPLES:])),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _text(value: Any, pattern: re.Pattern[str] | None = None) -> str:
    if not isinstance(value, str) or (pattern is not None and not pattern.fullmatch(value)):
        raise ValueError(value)
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise ValueError(value)
    return float(value)


def _sizes(value: Any) -> Sizes:
    if any(type(n) is not int or n < 0 for n in value.values()):
        raise ValueError(value)
    return tuple(sorted(value.items()))
