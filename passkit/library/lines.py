"""Records as lines of JSON, and back: what is torn, foreign or stale is no record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

from passkit.plan.evaluator import MOST_SAMPLES, Record
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
        sizes, source = data.get("sizes", {}), Source(data["source"])
        texts = data["template"], data.get("fault", ""), data.get("operators", "")
        samples, beside = (data.get(k, [])[-MOST_SAMPLES:] for k in ("samples", "beside"))
        good = (
            data["version"] == version()
            and data["device"] == device
            and compiler in (None, data["compiler"])
            and _KEY.fullmatch(data["group"]) is not None
            and all(isinstance(t, str) for t in texts)
            and all(map(_is_seconds, (*samples, *beside, data["model"])))
            and all(type(n) is int and n >= 0 for n in sizes.values())
        )
        if not good:
            return None
        template, fault, operators = texts
        return Record(
            data["group"], template, tuple(sorted(sizes.items())), source,
            tuple(map(float, samples)), float(data["model"]), fault, operators,
            tuple(map(float, beside)),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value) and value >= 0
