"""Bisection finds a miscompile that was put there, its kernel, and what shows it elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.cli import main
from passkit.errors import SettingError
from passkit.passes import rtcgen
from passkit.reporting.bisection import bisect
from passkit.runtime.native.build import KernelText
from passkit.serial.json import from_json

TEXT = (
    "x: f32[n, 16]; w: f32[16, 16]; a = exp(mul(x, 0.1)); h = matmul(a, w); "
    "t = tanh(h); e = exp(t); s = add(e, x); return reduce_sum(s, axis=1)"
)


@pytest.fixture
def miscompiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], None]]:
    """Let kernels that have a text in them be compiled with another text changed."""
    right = rtcgen.kernel_text

    def plant(where: str, old: str, new: str) -> None:
        def wrong(kernel: Any) -> KernelText:
            source = kernel.source
            if where in source and old in source:
                kernel = evolve(kernel, source=source.replace(old, new))
            return right(kernel)

        monkeypatch.setattr(rtcgen, "kernel_text", wrong)

    yield plant


def feeds(graph: pk.Graph) -> dict[str, Any]:
    """Small numbers for TEXT."""
    rng = np.random.default_rng(0)
    return {"x": rng.random((8, 16), "float32"), "w": rng.random((16, 16), "float32")}


def test_correct_results_have_no_culprit() -> None:
    """Bisection returns None if results agree with the interpreter."""
    graph = pk.parse(TEXT)

    assert bisect(graph, feeds(graph)) is None


def test_a_wrong_fusion_is_the_decision(miscompiled: Callable[[str, str, str], None]) -> None:
    """If only the fused kernel is wrong, the decision that fused its operators is named."""
    miscompiled("tanh(", "exp(", "expm1(")
    graph = pk.parse(TEXT)
    bisection = bisect(graph, feeds(graph))

    assert bisection is not None and bisection.culprit is not None
    assert bisection.decision == "fuse e"
    assert 0 < bisection.fuel <= bisection.decisions
    assert set(bisection.culprit.operators) == {"t", "e"}
    assert bisection.culprit.kernel is not None
    assert "tanh(" in bisection.culprit.kernel.source
    assert (
        "too much" in bisection.error and "in y0 against the interpreter" in bisection.culprit.error
    )


def test_a_wrong_operator_is_the_culprit_without_a_decision(
    miscompiled: Callable[[str, str, str], None],
) -> None:
    """A kernel that is wrong without fusion is found by running each node by itself."""
    miscompiled("tanh(", "tanh(", "sin(")
    graph = pk.parse(TEXT)
    bisection = bisect(graph, feeds(graph))

    assert bisection is not None and bisection.culprit is not None
    assert (bisection.fuel, bisection.decision) == (0, "")
    assert bisection.culprit.operators == ("t",)


def test_a_compiler_error_counts_as_a_wrong_result(
    miscompiled: Callable[[str, str, str], None],
) -> None:
    """The decision before the compiler error is named, with the compiler's message."""
    miscompiled("tanh(", "exp(", "no_such_function(")
    graph = pk.parse(TEXT)
    bisection = bisect(graph, feeds(graph))

    assert bisection is not None and bisection.culprit is None
    assert bisection.decision == "fuse e"
    assert "CompilerError" in bisection.error and "no_such_function" in bisection.error


def test_a_culprit_with_unknown_sizes_has_feeds_for_them(
    miscompiled: Callable[[str, str, str], None], tmp_path: Path
) -> None:
    """A join of a split reduction reads (n + 127) // 128 rows, which do not determine n."""
    miscompiled("join_1 = splat", "splat<float>(-__builtin_inff(), m)", "splat<float>(2.0f, m)")
    graph = pk.parse("x: f32[n, 40]; return reduce_max(x, axis=0)")
    bisection = bisect(graph, {"x": np.random.default_rng(0).random((500, 40), "float32")})

    assert bisection is not None and bisection.culprit is not None
    assert bisection.culprit.operators == ("join",)
    assert {k: v.shape for k, v in bisection.culprit.feeds.items()} == {
        "x0": (4, 40),
        "size_n": (500, 0),
    }
    folder = bisection.culprit.save(tmp_path / "there")
    stored = np.load(folder / "culprit.npz")
    (right,) = pk.interpret(
        from_json((folder / "culprit.json").read_text()),
        {name: stored[name] for name in ("x0", "size_n")},
    )
    np.testing.assert_array_equal(right, stored["y0"])


def test_the_command_prints_and_saves_the_culprit(
    miscompiled: Callable[[str, str, str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The output has decision, kernel and workaround; the saved files reproduce the error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.txt").write_text(TEXT)
    assert main(["bisect", "m.txt"]) == 0
    assert "those of the interpreter; nothing to bisect" in capsys.readouterr().out

    miscompiled("tanh(", "exp(", "expm1(")
    assert main(["bisect", "m.txt"]) == 1
    out = capsys.readouterr().out
    assert "'fuse e', is the first that makes results wrong" in out
    assert 'extern "C" void' in out and "PassContext(fuel=" in out
    assert "passkit run m.culprit/culprit.json --compare" in out
    assert (tmp_path / "m.culprit/kernel.cpp").exists()

    assert main(["bisect", "m.txt", "--json", "--save", "there"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["culprit"]["operators"] == ["t", "e"]
    assert data["culprit"]["saved"] == "there"

    # The same fault shows in the folder, and is gone once it is mended.
    assert main(["run", "there/culprit.json", "--compare"]) == 1
    assert "against stored results, too much" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main(["run", "there/culprit.json", "--compare"]) == 0


def test_the_option_fuel_is_refused() -> None:
    """Bisection chooses the fuel itself."""
    graph = pk.parse(TEXT)

    with pytest.raises(SettingError, match=r"leave out fuel=3"):
        bisect(graph, feeds(graph), fuel=3)
