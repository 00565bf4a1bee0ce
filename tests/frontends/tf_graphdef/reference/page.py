"""Write docs/tf_ops.md: every operator of every fixture, equal to TensorFlow or refused.

python -m tests.frontends.tf_graphdef.reference.page
"""

from __future__ import annotations

import sys
from pathlib import Path

import passkit as pk
from passkit.frontends import tf_graphdef
from passkit.frontends.tf_graphdef.proto import GraphDef
from passkit.frontends.tf_graphdef.registry import OP_IMPORTERS
from tests.frontends.tf_graphdef.reference.case import (
    FIXTURES,
    NETWORKS,
    Stored,
    difference,
    stored,
)

PAGE = Path(__file__).resolve().parents[4] / "docs" / "tf_ops.md"
EQUAL = "equal"

HEAD = """# TensorFlow's operators

Made by `python -m tests.frontends.tf_graphdef.reference.page` from models and results that
TensorFlow wrote. *Equal*: floats to 1e-5 of the largest value (in the precision of their type),
integers and booleans exactly. *Refused*: loading raises a `ModelError` that says so.

What stops TensorFlow where a value is wrong is left out: `Assert` is dropped, and `CheckNumerics`
passes NaN and infinities on as they are.

Operators with a state of their own are not in the table. Variables are constants, but for those
that what is loaded assigns: these are state of the graph, and a call begins where the one before
ended. `RandomUniform`, `RandomStandardNormal`, `TruncatedNormal`, `RandomUniformInt` and
`RandomShuffle` draw anew in each call, other numbers than TensorFlow's: the graph counts its calls
in the state variable `run_number`. Strings are only passed on: an input of them is left out where
no number depends on it, and refused where one does.

{operators} operators, {cases} cases: {equal} equal, {refused} refused.

| operator | attributes | equal for | refused for |
|---|---|---|---|
"""


def verdict(case: Stored) -> str:
    """Return ``equal``, or the message of the refusal.

    Raises:
        AssertionError: If the results are wrong.
    """
    try:
        graph = tf_graphdef.load(case.model, outputs=list(case.outputs))
        results = pk.interpret(graph, dict(case.inputs))
    except pk.PasskitError as error:
        return str(error)
    for name, got, want in zip(case.outputs, results, case.outputs.values(), strict=True):
        error_part = difference(got, want)
        assert error_part <= 1, f"{case.name}: {name} is wrong, {error_part:.3g} of the tolerance"
    return EQUAL


def page() -> str:
    """Return the text of the page."""
    cells: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    equal = refused = 0
    for path in sorted(FIXTURES.glob("*.npz")):
        for case in stored(path):
            op, variant, dtype = case.parts
            is_equal = verdict(case) == EQUAL
            equal, refused = equal + is_equal, refused + (not is_equal)
            cells.setdefault((op, variant), ([], []))[0 if is_equal else 1].append(dtype)
    rows = [
        f"| {op} | {variant} | {', '.join(good)} | {', '.join(bad)} |"
        for (op, variant), (good, bad) in sorted(cells.items())
    ]
    head = HEAD.format(
        operators=len(OP_IMPORTERS), cases=equal + refused, equal=equal, refused=refused
    )
    return head + "\n".join(rows) + "\n\n" + _networks()


NETWORKS_HEAD = """## Networks

Frozen models with a free batch, of which every result is TensorFlow's to 1e-4 of its largest value,
integers exactly, interpreted and compiled.

| network | nodes | operators |
|---|---|---|
"""


def _networks() -> str:
    """Return a table row for each network with its operators."""
    rows = []
    for path in sorted(NETWORKS.glob("*.npz")):
        (case,) = stored(path)
        names = [node.op for node in GraphDef.FromString(case.model).node]
        kinds = sorted({*names} - {"Const", "Placeholder", "Identity", "NoOp"})
        rows.append(f"| {case.name} | {len(names)} | {', '.join(kinds)} |")
    return NETWORKS_HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE.read_text().split("\n\n")[4])
    sys.exit(0)
