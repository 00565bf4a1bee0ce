"""`passkit bisect` finds the decision and the kernel that make results wrong, and saves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from tests.command import json_of, passkit, text_of

TEXT = (
    "x: f32[n, 16]; w: f32[16, 16]; a = exp(mul(x, 0.1)); h = matmul(a, w); "
    "t = tanh(h); e = exp(t); s = add(e, x); return reduce_sum(s, axis=1)"
)
FAULTS: list[tuple[str, str, str]] = []
"""Each fault: a text in the kernels that have it, a text in them, and its replacement."""


@pk.register_pass("TestBisectionFault", depends="kernel")
def change_kernels(graph: pk.Graph) -> pk.Graph:
    """Change the source of kernels as FAULTS say."""
    kernels = dict(graph.attrs["kernel"])
    for marker, old, new in FAULTS:
        for node, kernel in kernels.items():
            if marker in kernel.source and old in kernel.source:
                kernels[node] = evolve(kernel, source=kernel.source.replace(old, new))
    return graph.with_attrs(kernel=kernels)


WITH_FAULTS = "--passes=after CodeGen=TestBisectionFault"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("passkit.cli.run.TIMING_SECONDS", 0.001)
    Path("m.txt").write_text(TEXT)


@pytest.fixture
def miscompile() -> Iterator[Callable[[str, str, str], None]]:
    """Yield a function that adds a fault until the test ends."""
    yield lambda marker, old, new: FAULTS.append((marker, old, new))
    FAULTS.clear()


def bisect(*arguments: object, code: int = 1) -> Any:
    """Return the JSON that ``passkit bisect`` prints for kernels with faults."""
    return json_of("bisect", *arguments, WITH_FAULTS, code=code)


def test_correct_results_have_no_culprit() -> None:
    """If results agree with those of the interpreter, there is nothing to bisect."""
    assert bisect("m.txt", code=0) == {"model": "m.txt", "found": False}
    text = text_of("bisect", "m.txt")
    assert "those of the interpreter; nothing to bisect" in text


def test_a_wrong_fusion_is_the_decision(miscompile: Callable[[str, str, str], None]) -> None:
    """If only the fused kernel is wrong, the decision that fused its operators is named."""
    miscompile("tanh(", "exp(", "expm1(")
    data = bisect("m.txt")
    culprit = data["culprit"]

    assert data["decision"] == "fuse e"
    assert 0 < data["fuel"] <= data["decisions"]
    assert set(culprit["operators"]) == {"t", "e"}
    assert "tanh(" in culprit["kernel"]["source"]
    assert "too much" in data["error"] and "in y0 against the interpreter" in culprit["error"]


def test_a_wrong_operator_is_the_culprit_without_a_decision(
    miscompile: Callable[[str, str, str], None],
) -> None:
    """A kernel that is wrong without fusion is found by running each node by itself."""
    miscompile("tanh(", "tanh(", "sin(")
    data = bisect("m.txt")

    assert (data["fuel"], data["decision"]) == (0, "")
    assert data["culprit"]["operators"] == ["t"]


def test_a_compiler_error_counts_as_a_wrong_result(
    miscompile: Callable[[str, str, str], None],
) -> None:
    """The decision before the compiler error is named, with the compiler's message."""
    miscompile("tanh(", "exp(", "no_such_function(")
    data = bisect("m.txt")

    assert data["decision"] == "fuse e" and "culprit" not in data
    assert "CompilerError" in data["error"] and "no_such_function" in data["error"]


def test_a_culprit_with_unknown_sizes_has_feeds_for_them(
    miscompile: Callable[[str, str, str], None],
) -> None:
    """A join of a split reduction reads (n + 127) // 128 rows, which do not determine n."""
    miscompile(
        "combine_partials_1 = splat", "splat<float>(-__builtin_inff(), m)", "splat<float>(2.0f, m)"
    )
    Path("max.txt").write_text("x: f32[n, 40]; return reduce_max(x, axis=0)")
    np.save("x.npy", np.random.default_rng(0).random((500, 40), "float32"))
    data = bisect("max.txt", "--feed", "x=x.npy", "--save", "there")
    stored = np.load("there/culprit.npz")
    feeds = {name: stored[name] for name in ("x0", "size_n")}

    assert data["culprit"]["operators"] == ["combine_partials"]
    assert {k: v.shape for k, v in feeds.items()} == {"x0": (4, 40), "size_n": (500, 0)}
    (result,) = pk.interpret(pk.from_json(Path("there/culprit.json").read_text()), feeds)
    np.testing.assert_array_equal(result, stored["y0"])


def test_the_text_has_the_decision_the_kernel_and_a_workaround(
    miscompile: Callable[[str, str, str], None],
) -> None:
    """The text says how to avoid the error, and where the files that reproduce it are."""
    miscompile("tanh(", "exp(", "expm1(")
    text = text_of("bisect", "m.txt", WITH_FAULTS, code=1)

    assert "'fuse e', is the first that makes results wrong" in text
    assert 'extern "C" void' in text and "PassContext(fuel=" in text
    assert "passkit run m.culprit/culprit.json --compare" in text
    assert Path("m.culprit/kernel.cpp").exists()


def test_saved_files_reproduce_the_error(miscompile: Callable[[str, str, str], None]) -> None:
    """The isolated node is wrong with the fault, and right without it."""
    miscompile("tanh(", "exp(", "expm1(")
    data = bisect("m.txt", "--save", "there")
    compare = ("run", "there/culprit.json", "--compare", WITH_FAULTS)

    assert data["culprit"]["operators"] == ["t", "e"]
    assert data["culprit"]["saved"] == "there"
    assert "against stored results, too much" in text_of(*compare, code=1)
    FAULTS.clear()
    assert passkit(*compare) == 0
