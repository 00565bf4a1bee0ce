"""Pipelines: which passes a compilation runs, and where a user's join them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.frontends import tf_graphdef, tinyflow
from tests.command import passkit, raise_error_of
from tests.planned import PIPELINE, plan

RAN: list[str] = []


@pk.register_pass("TestPipelineSwap", changes_graph=True)
def swap(graph: pk.Graph) -> pk.Graph:
    """exp -> tanh."""
    RAN.append("TestPipelineSwap")
    return graph.rewrite(pk.ops.exp, pk.ops.tanh)


@pk.register_pass("TestPipelineLook", depends="subgraph", provides="test_pipeline_look")
def look(graph: pk.Graph) -> pk.Graph:
    """How many groups there are."""
    return graph.with_attrs(test_pipeline_look=len(graph.attrs["subgraph"]))


LOOSE = pk.Pass("TestPipelineLoose", lambda graph: graph)


def graph() -> pk.Graph:
    """y = relu(exp(x))."""
    return pk.Graph([pk.ops.relu(pk.ops.exp(pk.var("x", (4, 8))), name="y")])


@pytest.mark.parametrize(
    "passes",
    [
        {"after Simplify": ["TestPipelineSwap"]},
        {"before Fusion": swap},
        {"after Functionalize": [swap], "before SchedulePlan": "TestPipelineLook"},
        ["TestPipelineSwap", "Fusion", "CodeGen", "RTCGen"],
        [swap, *PIPELINE],
    ],
)
def test_user_passes_run_in_a_compilation(passes: Any) -> None:
    """Passes given by name or as objects, by position or as a list, run for every target."""
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    for target in ("cpu", "interpret"):
        run = pk.compile(graph(), passes=passes, target=target)
        np.testing.assert_allclose(run(x=x)[0], np.maximum(np.tanh(x), 0), rtol=1e-5)
    with pk.PassContext(passes=passes):
        assert pk.compile(graph()).kernels[0].ops == ("tanh", "relu")
    assert {d.producer for d in pk.explain(graph(), passes=passes)} == {"tanh"}
    traced = pk.jit(lambda x: pk.ops.exp(x), passes=passes)
    np.testing.assert_allclose(traced(x), np.tanh(x), rtol=1e-5)


def test_a_pass_runs_once_in_a_compilation() -> None:
    """A graph that is fused already continues after Fusion."""
    RAN.clear()
    pk.compile(graph(), passes={"after Simplify": [swap]})
    whole = ["TestPipelineSwap", "Fusion", "CodeGen", "RTCGen"]
    fused = pk.ApplyPasses(graph(), whole[1:])

    assert RAN == ["TestPipelineSwap"]
    assert pk.compile(fused, passes={"after Fusion": []}).kernels[0].ops == ("exp", "relu")
    with pytest.raises(
        pk.PassError, match="TestPipelineSwap must run before RTCGen, but Graph.* has already been"
    ):
        pk.compile(fused, passes=whole)
    looked = plan(graph(), "Fusion", passes={"after Fusion": [look]})
    assert looked.attrs["test_pipeline_look"] == 1


@pytest.mark.parametrize(
    "passes, message",
    [
        ("Fusion", r"passes must be a list of passes, .* got 'Fusion'; write \['Fusion'\]"),
        (7, "passes must be a list of passes, or a mapping such as .* got 7"),
        ([], "passes must be a list .* got an empty list"),
        (["Fuson"], "passes: pass 'Fuson' is not registered; did you mean 'Fusion'"),
        ([3], "passes: a pass must be a name or a Pass, got 3; pk.register_pass makes"),
        ({"Simplify": ["Fusion"]}, "the position of a pass is \"after NAME\" or .* got 'Simplify'"),
        ({"after Simplfy": []}, "'after Simplfy' names no pass of the default .* mean 'Simplify'"),
        (
            {"after Fusion": ["TestPipelineLok"]},
            "pass 'TestPipelineLok' is not .*'TestPipelineLook'",
        ),
        ({"after Fusion": 3}, r"passes\['after Fusion'\] must be a list of passes, got 3"),
        (
            {"after Simplify": [look]},
            "Look depends on 'subgraph', which Fusion provides later; place",
        ),
        (
            ["Fusion", "RTCGen", "CodeGen"],
            "RTCGen depends on 'kernel', which CodeGen provides later",
        ),
    ],
)
def test_passes_are_checked_before_any_runs(passes: Any, message: str) -> None:
    """Wrong values, unknown names and positions, and a wrong order are errors of the option."""
    with pytest.raises(pk.PasskitError, match=message):
        pk.PassContext(passes=passes)


def test_a_pipeline_without_a_required_pass_is_an_error() -> None:
    """A list without CodeGen can be explained, but makes no executable."""
    listed = ["Expand", "Fusion"]
    assert len(pk.explain(graph(), passes=listed)) == 1
    with pytest.raises(pk.SettingError, match="none of Expand, Fusion, .* 'kernel'; add CodeGen"):
        pk.compile(graph(), passes=listed)
    with pytest.raises(pk.PassError, match="'Fuson' is not a pass of the default .* 'Fusion'"):
        plan(graph(), "Fuson")


def test_plans_of_user_passes_are_not_cached(fresh_cache: Path) -> None:
    """Only the default pipeline has a file in the plan cache."""
    pk.register_fusion("test_pipeline_strategy")(lambda graph: [])
    for options in ({"passes": {"after Simplify": [swap]}}, {"fusion": "test_pipeline_strategy"}):
        pk.compile(graph(), **options)  # type: ignore[arg-type]
        assert not list(fresh_cache.rglob("*.plan"))
    pk.compile(graph(), fusion="stitch")

    assert len(list(fresh_cache.rglob("*.plan"))) == 1


def test_a_saved_executable_names_its_passes(tmp_path: Path) -> None:
    """A loaded executable is planned with the same passes; unregistered ones are refused."""
    run = pk.compile(graph(), passes={"after Simplify": [swap]})
    run.save(tmp_path / "a")
    pk.compile(graph(), passes=["TestPipelineSwap", "Fusion", "CodeGen", "RTCGen"]).save(tmp_path)

    assert pk.load(tmp_path / "a").kernels[0].ops == pk.load(tmp_path).kernels[0].ops
    pk.compile(graph(), passes={"before Fusion": swap}).save(tmp_path / "b")
    options = json.loads((tmp_path / "b" / "options.json").read_text())
    assert options["passes"] == {"before Fusion": ["TestPipelineSwap"]}
    with pytest.raises(pk.PassError, match="TestPipelineLoose is not registered, so a file cannot"):
        pk.compile(graph(), passes={"after Simplify": LOOSE}).save(tmp_path)


def test_frontends_take_passes() -> None:
    """Sessions of TensorFlow 1 and of tinyflow compile with passes, and check them at once."""
    tf = tinyflow
    passes = {"after Functionalize": ["TestPipelineSwap"]}
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, (3,))
        y = tf.exp(x)
        config = tf.ConfigProto(passes=passes)
        for session in (tf.Session(passes=passes), tf.Session("cpu", config=config)):
            result = session.run(y, {x: np.ones(3, np.float32)})
            np.testing.assert_allclose(result, np.tanh(np.ones(3)), rtol=1e-6)
    with pytest.raises(pk.RegistryError, match="pass 'TestPipelineSwop' is not .*TestPipelineSwap"):
        tf.Session(passes=["TestPipelineSwop"])
    model = Path(__file__).parents[2] / "examples/models/digits.pb"
    with pytest.raises(pk.SettingError, match="'after Fuson' names no pass .* 'Fusion'"):
        tf_graphdef.ModelSession(model, passes={"after Fuson": []})


def test_passes_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list or positions of passes apply, and mistakes end with exit code 1."""
    model = tmp_path / "model.txt"
    model.write_text(pk.to_text(graph()))
    for passes in ("after Simplify=TestPipelineSwap", "TestPipelineSwap,Fusion,CodeGen"):
        assert passkit("show", model, "--kernels", "--passes", passes) == 0
        assert "tanh" in capsys.readouterr().out
    assert passkit("explain", model, "--passes", "after Simplfy=TestPipelineSwap") == 1
    assert "did you mean 'Simplify'?" in capsys.readouterr().err
    several = ["--passes", "after Simplify=Simplify,TestPipelineSwap"]
    several += ["--passes", "after Simplify = TestPipelineLook"]
    assert passkit("explain", model, *several) == 1
    assert "TestPipelineLook depends on 'subgraph'" in capsys.readouterr().err
    assert (
        passkit("explain", model, "--passes", "after Simplify=Simplify", "--passes", "Fusion") == 1
    )
    message = capsys.readouterr().err
    assert "--passes is one list NAME," in message and "got 'Fusion' beside" in message


def test_a_list_of_passes_is_not_mixed_with_positions(tmp_path: Path) -> None:
    """Arguments of --passes are one list or several positions; the error quotes the other one."""
    model = tmp_path / "model.txt"
    model.write_text(pk.to_text(graph()))

    with pytest.raises(pk.SettingError, match="got 'Fusion' beside others"):
        raise_error_of(
            "explain", model, "--passes", "after Simplify=Simplify", "--passes", "Fusion"
        )
