"""Records of the performance library as lines of JSON.

Lines that are damaged, or of another device, compiler or version, are skipped when they are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

from passkit.library.evaluator import MAX_SAMPLES, Record
from passkit.schedule.schedule import Source
from passkit.values import version as passkit_version

FORMAT = 1
"""The version of the format. Lines of another one, or of another version of passkit, are stale."""
MAX_LINE_LENGTH = 1 << 16
"""The most characters of a line."""
_KEY = re.compile(r"[0-9a-f]{64}")


def version() -> str:
    """Return the versions of the format and of passkit, which decide what a record means."""
    return f"{FORMAT}:{passkit_version.version()}"


def record_line(record: Record, device: str, compiler: str) -> str:
    """Return a record as one line of JSON, without the line end.

    Seconds are rounded to four digits, except those of the model; empty fields are left out.

    Args:
        record: The record.
        device: The key of the device that it was measured on.
        compiler: The fingerprint of the compiler of its kernels.
    """
    data: dict[str, Any] = {
        "version": version(),
        "device": device,
        "compiler": compiler,
        "group": record.group,
        "template": record.template,
        "source": record.source.value,
        "samples": [float(f"{s:.4g}") for s in record.samples],
        "model": record.model,
    }
    if record.beside:
        data["beside"] = [float(f"{s:.4g}") for s in record.beside]
    if record.sizes:
        data["sizes"] = dict(record.sizes)
    if record.fault:
        data["fault"] = record.fault
    if record.operators:
        data["operators"] = record.operators
    return json.dumps(data, separators=(",", ":"))


def read_records(lines: Iterable[bytes], device: str, compiler: str | None) -> list[Record]:
    """Return the records in ``lines``; invalid lines, and those of other versions, are skipped.

    Args:
        lines: JSON, one record in each.
        device: the key of the device to read records of.
        compiler: the fingerprint of the compiler of their kernels; None reads those of any.
    """
    records = (_read_record(line, device, compiler) for line in lines)
    return [record for record in records if record is not None]


def _read_record(line: bytes, device: str, compiler: str | None) -> Record | None:
    """Return the record in a line.

    Returns: None if it is invalid, or of another version, device or compiler. ``compiler`` None
    accepts any.
    """
    if not line or len(line) > MAX_LINE_LENGTH:
        return None
    try:
        data = json.loads(line)
        sizes = data.get("sizes", {})
        samples = data.get("samples", [])[-MAX_SAMPLES:]
        beside = data.get("beside", [])[-MAX_SAMPLES:]
        record = Record(
            group=data["group"],
            template=data["template"],
            sizes=tuple(sorted(sizes.items())),
            source=Source(data["source"]),
            samples=tuple(map(float, samples)),
            model=float(data["model"]),
            fault=data.get("fault", ""),
            operators=data.get("operators", ""),
            beside=tuple(map(float, beside)),
        )
        texts = (record.template, record.fault, record.operators)
        is_valid = (
            data["version"] == version()
            and data["device"] == device
            and compiler in (None, data["compiler"])
            and _KEY.fullmatch(record.group) is not None
            and all(isinstance(text, str) for text in texts)
            and all(map(_is_seconds, (*samples, *beside, data["model"])))
            and all(type(n) is int and n >= 0 for n in sizes.values())
        )
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ):
        return None
    return record if is_valid else None


def _is_seconds(value: Any) -> bool:
    """Return whether a value is a finite int or float >= 0, no bool."""
    return type(value) in (int, float) and isfinite(value) and value >= 0
