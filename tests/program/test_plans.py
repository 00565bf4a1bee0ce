"""The plan cache: a new process runs the plan of another one if all facts are the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.kernel_cache import copy_launcher, forget_loaded_kernels
from tests.raised import ROOT

PROGRAM = """
import json, sys, hashlib, numpy as np
imported = set(sys.modules)  # an editable installation imports some itself
import passkit as pk
{before}
text = '''{graph}'''
if text.startswith("pk.Graph"):
    graph = eval(text)
elif text:
    graph = pk.parse(text)
else:
    x = pk.var("x", ("n", 40))
    graph = pk.Graph([x * (pk.ops.erf(x / 2**0.5) + 1) / 2])
exe = pk.compile(graph)
feeds = {feeds}
outs = exe(feeds)
light = "passkit.passes" not in sys.modules
heavy = [m for m in ("attrs", "pathlib", "subprocess", "tempfile", "passkit.ast.expr")
         if m in sys.modules and m not in imported]
print(json.dumps({{"light": light, "heavy": heavy, "bits": [o.tobytes().hex() for o in outs],
                  "compiled": exe.stats["compiled"], "kernels": len(exe.kernels),
                  "rows": len(exe.profile(runs=1, copies=False).rows)}}))
"""
GELU = {"graph": "", "feeds": '{"x": np.linspace(-3, 3, 120, dtype=np.float32).reshape(3, 40)}'}
MODEL = {
    "graph": """x: f32[n, 8]; w: f32[8, 8]; h = matmul(tanh(x), w); m = reduce_max(h, axis=1)
    y = exp(sub(h, expand_dims(m, axis=1))); return y, x, m""",
    "feeds": """{"x": np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8),
    "w": np.linspace(1, 2, 64, dtype=np.float32).reshape(8, 8)}""",
}

WEIGHTS = {
    "graph": """pk.Graph([pk.ops.matmul(pk.var("x", ("n", 160)),
    pk.constant(np.sin(np.arange(25600, dtype=np.float32)).reshape((160, 160), order="F")))])""",
    "feeds": """{"x": np.linspace(-1, 1, 480, dtype=np.float32).reshape(3, 160)}""",
}
"""More of them than a plan writes down."""

LIBRARY = {
    "graph": """x: f32[n, 4, 4]; y = exp(cholesky(matmul(x, x, transpose_b=true))); return y""",
    "feeds": """{"x": np.eye(4, dtype=np.float32) * np.ones((3, 1, 1), np.float32)}""",
}
"""A step that calls a library from Python."""

FOLDED = WEIGHTS | {"graph": WEIGHTS["graph"].replace("constant(", "ops.exp(")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache of its own, with nothing but the launcher, which takes a second to compile."""
    local = tmp_path / "cache"
    copy_launcher(local)
    return local


def run(folder: Path, program: dict[str, str], before: str = "", **more: str) -> dict[str, Any]:
    """The JSON that the program prints in a new process."""
    environ = os.environ | {"PASSKIT_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)} | more
    text = PROGRAM.format(before=before, **program)
    done = subprocess.run([sys.executable, "-c", text], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def run_here(folder: Path, program: dict[str, str]) -> dict[str, Any]:
    """The same of the test's process, which others follow: a first one need not be new."""
    text = PROGRAM.format(before="", **program)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.setenv("PASSKIT_CACHE_DIR", str(folder))
        forget_loaded_kernels()
        exec(text, {})
        forget_loaded_kernels()
    result: dict[str, Any] = json.loads(printed.getvalue())
    return result


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Run the program GELU with a new cache; return the cache folder and what it prints."""
    local = tmp_path_factory.mktemp("gelu") / "cache"
    copy_launcher(local)
    return local, run_here(local, GELU)


@pytest.fixture
def used(first_run: tuple[Path, dict[str, Any]], tmp_path: Path) -> tuple[Path, list[str]]:
    """Return a copy of the cache folder that GELU used, and the bits of its results."""
    source, printed = first_run
    return shutil.copytree(source, tmp_path / "used"), printed["bits"]


def plan_files(folder: Path) -> list[Path]:
    """The plans in a cache."""
    return sorted((folder / "plans").glob("*.plan"))


@pytest.mark.parametrize(
    "program",
    [GELU, MODEL, WEIGHTS, LIBRARY],
    ids=["gelu", "model", "weights", "library"],
)
def test_a_new_process_plans_nothing(folder: Path, program: dict[str, str]) -> None:
    """A second process has the same bits, plans only to show the plan, and needs no compiler."""
    first = run_here(folder, program)
    second = run(folder, program, PASSKIT_CXX="/nonexistent", PYTHONHASHSEED="7")

    assert second["light"]
    assert second["bits"] == first["bits"]
    assert second["kernels"] == first["kernels"] >= (program is not WEIGHTS)
    assert second["rows"] == first["rows"] >= 1
    assert second["compiled"] == 0
    assert program is not GELU or second["heavy"] == []


def test_constants_that_were_folded_are_computed_again(folder: Path) -> None:
    """A plan has the expressions of large folded constants, so that its file stays small."""
    first = run_here(folder, FOLDED)
    (plan,) = plan_files(folder)
    second = run(folder, FOLDED, PASSKIT_CXX="/nonexistent")

    assert plan.stat().st_size < 8 << 10 < 4 * 25600
    assert second["light"]
    assert second["bits"] == first["bits"] != run_here(folder, WEIGHTS)["bits"]


def test_expressions_of_folded_constants_reach_the_source(folder: Path) -> None:
    """An expression refers to constants of the source graph, and shares them."""
    text = """pk.Graph((lambda w, x: [pk.ops.matmul(x, pk.ops.exp(w) * w),
    pk.ops.matmul(x, pk.ops.transpose(pk.ops.exp(w)) - 1)])(pk.constant(
    np.sin(np.arange(25600, dtype=np.float32)).reshape(160, 160)), pk.var("x", ("n", 160))))"""
    first = run_here(folder, WEIGHTS | {"graph": text})
    second = run(folder, WEIGHTS | {"graph": text})

    assert second["light"]
    assert second["bits"] == first["bits"]


DAMAGES = (lambda b: b[:-20], lambda b: b[:80] + b"9" + b[81:], lambda b: b"")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_plan_is_planned_again(used: tuple[Path, list[str]], damage: Any) -> None:
    """A damaged plan file is ignored and replaced."""
    folder, bits = used
    (plan,) = plan_files(folder)
    intact = plan.read_bytes()
    plan.write_bytes(damage(intact))
    again = run(folder, GELU)
    assert (again["light"], again["bits"], again["compiled"]) == (False, bits, 0)
    assert plan.read_bytes() == intact


def test_a_plan_without_its_kernels_is_planned_again(used: tuple[Path, list[str]]) -> None:
    """Kernels that were removed from the cache are compiled again."""
    folder, bits = used
    for path in (folder / "libraries").iterdir():
        path.unlink()
    copy_launcher(folder)
    again = run(folder, GELU)
    assert (again["light"], again["bits"], again["compiled"]) == (False, bits, 1)


def test_graphs_with_user_operators_are_not_cached(used: tuple[Path, list[str]]) -> None:
    """A key cannot cover a user's function, so such graphs are planned in each process."""
    folder, bits = used
    changed = """pk.get_op("erf").set_attr("FCodeGen", lambda node, x: x * 0.0, plevel=11)"""
    other = run(folder, GELU, changed)
    assert not other["light"]
    assert other["bits"] != bits == run_here(folder, GELU)["bits"]


TUNED = """
from tests.measurements import record_for
record_for(GRAPH, str(pk.templates(GRAPH)[0].others[-1].template), 1e-9)
""".replace("GRAPH", "pk.parse('x: f32[640, 40]; return erf(x)')")


def test_measurements_are_part_of_the_key(folder: Path) -> None:
    """New measurements lead to another plan, which is found again without reading records."""
    feeds = "{'x': np.linspace(-3, 3, 25600, dtype=np.float32).reshape(640, 40)}"
    program = {"graph": "x: f32[640, 40]; return erf(x)", "feeds": feeds}
    first = run_here(folder, program)
    tuned = run(folder, program, TUNED)
    third = run(folder, program)
    assert not tuned["light"] and len(plan_files(folder)) == 2
    assert third["light"] and third["bits"] == tuned["bits"] == first["bits"]
    assert len({p.read_bytes()[64:] for p in plan_files(folder)}) == 2


def test_only_plain_graphs_and_options_are_cached(fresh_cache: Path) -> None:
    """Interpreted graphs, nodes as options and annotated graphs have no file in the plan cache."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", (3,)))])
    pk.compile(graph, target="interpret")
    pk.compile(graph, no_fuse=["exp"])
    pk.compile(pk.ApplyPasses(graph, "InferShape"))
    assert plan_files(fresh_cache) == []
    pk.compile(graph)
    pk.compile(graph, fusion=None)
    assert len(plan_files(fresh_cache)) == 1
    pk.compile(graph, fusion="none")
    assert len(plan_files(fresh_cache)) == 2


def test_sizes_are_read_as_written(folder: Path) -> None:
    """Sums, products and quotients of unknown sizes have the same values in another process."""
    program = {
        "graph": """x: f32[n, m]; y: f32[n, 3]; t = reduce_sum(x, axis=0); c = concat(x, y, axis=1)
        e = exp(c); return t, reduce_sum(e, axis=0), reshape(e, shape=(-1,))""",
        "feeds": """{"x": np.linspace(-1, 1, 4500, dtype=np.float32).reshape(900, 5),
        "y": np.linspace(1, 2, 2700, dtype=np.float32).reshape(900, 3)}""",
    }
    first, second = run_here(folder, program), run(folder, program)
    (plan,) = plan_files(folder)

    assert b'"over"' in plan.read_bytes() and b'"size"' in plan.read_bytes()
    assert second["light"]
    assert second["bits"] == first["bits"]


def test_an_attribute_of_a_dtype_cannot_be_set() -> None:
    """A DType is immutable."""
    with pytest.raises(AttributeError, match="a DType is immutable; cannot set 'name'"):
        pk.var("x", (3,)).dtype.name = "other"


def test_an_unknown_attribute_of_an_executable_is_an_error() -> None:
    """The error has the attribute's name, although some attributes are read lazily."""
    exe = pk.compile(pk.Graph([pk.ops.exp(pk.var("x", (3,)))]), target="interpret")
    with pytest.raises(AttributeError, match="'Executable' object has no attribute 'kernel'"):
        exe.kernel  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", [n for n in pk.list_ops() if not n.startswith("test_")])
def test_the_dtype_that_code_has_is_the_one_inferred(name: str) -> None:
    """The type rule of an operator gives the dtype of its code."""
    op = pk.get_op(name)
    if not op.has_attr("FCodeGen") or op.num_inputs < 1:
        return
    for dtype in ("bool", "int32", "uint8", "float32", "float64"):
        inputs = [pk.var(f"x{k}", (2,), dtype) for k in range(op.num_inputs)]
        try:
            outputs = op(*inputs)
        except pk.PasskitError:
            continue  # an operator need not take every type
        node = (outputs[0] if isinstance(outputs, tuple) else outputs).node
        assert isinstance(node, pk.Node)
        elements = [pk.ast.Var(e.node.name, e.dtype) for e in node.inputs]
        code = op.get_attr("FCodeGen")(node, *elements)
        results = code if isinstance(code, tuple) else (code,)
        for result, entry in zip(results, node.entries, strict=True):
            assert pk.ast.cast(result, entry.dtype) is result


def test_constants_and_state_are_in_a_plan(folder: Path) -> None:
    """A plan holds the values of constants, and the names of variables."""
    program = {
        "graph": """pk.Graph([pk.var("x", (2, 3)) * pk.constant(np.arange(3, dtype=np.float32))
        + pk.state("s", np.full((2, 3), 2, np.float32))])""",
        "feeds": "dict(x=np.ones((2, 3), np.float32))",
    }
    first, second = run_here(folder, program), run(folder, program)
    assert second["light"]
    assert second["bits"] == first["bits"]
    assert np.frombuffer(bytes.fromhex(first["bits"][0]), np.float32).tolist() == [2, 3, 4, 2, 3, 4]
