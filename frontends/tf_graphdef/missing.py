"""The error that names all operators of a model that are not supported."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scope import Program
from passkit.frontends.tf_graphdef.table import TABLE


def refuse_missing(program: Program) -> None:
    """Raise a ModelError that names all operators that are not supported, if there are any."""
    found = program.missing
    if not found:
        return
    shown = []
    for op, places in sorted(found.items())[:50]:
        names = list(places.values())
        some = ", ".join(short(n) for n in names[:3]) + (", …" if len(names) > 3 else "")
        shown.append(f"{short(op)[1:-1]} × {len(names)} ({some})")
    more = f"; and {len(found) - 50} more operators" if len(found) > 50 else ""
    total = sum(map(len, found.values()))
    raise ModelError(
        f"{program.where} has {total} node(s) of {len(found)} operator(s) that are not supported: "
        f"{'; '.join(shown)}{more}. "
        f"allow_host_ops= can give NumPy functions for them, and "
        f"outputs= ask for results before them; docs/tf_ops.md lists the {len(TABLE)} that are"
    ) from None
