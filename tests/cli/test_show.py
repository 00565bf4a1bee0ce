"""`passkit show` and `passkit explain`: plans as text, kernels, pictures and reasons."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.cli import main
from passkit.cli.model import read_templates
from passkit.frontends import tf_graphdef
from passkit.program.planning import planned

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples/models/digits.pb")
Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *arguments: str) -> str:
    """Return the text that a command prints."""
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def answer(capsys: Capture, *arguments: str) -> Any:
    """Return the JSON that a command prints."""
    return json.loads(printed(capsys, *arguments, "--json"))


def test_show_prints_the_fused_or_the_unfused_graph(capsys: Capture) -> None:
    """By default the fused graph is printed; --unfused prints the model as it was read."""
    assert "fused" in printed(capsys, "show", DIGITS)
    assert "fused" not in printed(capsys, "show", DIGITS, "--unfused")


def test_show_prints_kernels(capsys: Capture) -> None:
    """--kernels prints all kernels in C++; in JSON they are by name."""
    kernels = answer(capsys, "show", DIGITS, "--kernels")["kernels"]

    assert all(f"void {name}(" in text for name, text in kernels.items())
    assert 'extern "C" void' in printed(capsys, "show", DIGITS, "--kernels")


@pytest.mark.parametrize(("target", "word"), [("cuda", "__global__"), ("opencl", "__kernel")])
def test_kernels_of_a_target_need_no_device(target: str, word: str, capsys: Capture) -> None:
    """Kernels for CUDA and OpenCL are printed on a machine without a device."""
    assert word in printed(capsys, "show", DIGITS, "--kernels", "--target", target)


def test_show_draws_the_plan(capsys: Capture, tmp_path: Path) -> None:
    """-o draws the plan to a file."""
    path = tmp_path / "plan.svg"

    assert f"plan drawn to {path}" in printed(capsys, "show", DIGITS, "-o", str(path))
    assert "reduction" in path.read_text()


@pytest.mark.parametrize("target", ["cpu", "cuda", "interpret"])
def test_the_picture_has_the_structure_of_kernels(
    target: str, capsys: Capture, tmp_path: Path
) -> None:
    """The picture has stages and tiles for each target; with --unfused it has none."""
    path = tmp_path / "plan.dot"
    printed(capsys, "show", DIGITS, "-o", str(path), "--target", target)
    assert re.search(r"thread, 1 stage\\l.* tiles?", path.read_text())
    printed(capsys, "show", DIGITS, "-o", str(path), "--target", target, "--unfused")
    assert "stage" not in path.read_text()


def test_models_in_text_and_json_are_read(capsys: Capture, tmp_path: Path) -> None:
    """Graphs in passkit's text form and in JSON can be read as models."""
    text = tmp_path / "m.txt"
    text.write_text("x: f32[n, 8]; e = exp(x); y = add(e, x); return y")
    data = answer(capsys, "show", str(text), "--unfused")["graph"]
    (tmp_path / "m.json").write_text(data if isinstance(data, str) else json.dumps(data))

    assert "exp" in printed(capsys, "show", str(tmp_path / "m.json"), "--unfused")


def test_explain_lists_every_edge(capsys: Capture) -> None:
    """Every edge has a reason; the last line counts fused edges."""
    rows = answer(capsys, "explain", DIGITS)
    out = printed(capsys, "explain", DIGITS)
    apart = answer(capsys, "explain", DIGITS, "--apart")

    assert all(row["reason"] for row in rows)
    fused = sum(row["fused"] for row in rows)
    assert out.splitlines()[-1] == f"{fused} of {len(rows)} edges are fused"
    assert len(apart) == len(rows) - fused > 0


def test_explain_filters_edges(capsys: Capture) -> None:
    """`--why U V` and `--node N` print a part of the table."""
    rows = answer(capsys, "explain", DIGITS)
    first = rows[0]
    (why,) = answer(capsys, "explain", DIGITS, "--why", first["producer"], first["consumer"])
    near = answer(capsys, "explain", DIGITS, "--node", first["consumer"])

    assert why == first
    assert first in near
    assert all(first["consumer"] in (r["producer"], r["consumer"]) for r in near)


def test_explain_gives_the_savings_of_selected_kernels(capsys: Capture, tmp_path: Path) -> None:
    """Large matrix products are fused, with the time saved; small ones are not."""
    path = tmp_path / "m.txt"
    body = "s = matmul(q, k, transpose_b=true); e = exp(s); return matmul(e, k)"
    path.write_text(f"q: f32[256, 94, 32]; k: f32[256, 94, 32]; {body}")
    large = printed(capsys, "explain", str(path), "--why", "s", "e")
    path.write_text(f"q: f32[4, 17, 32]; k: f32[4, 17, 32]; {body}")
    (small,) = answer(capsys, "explain", str(path), "--why", "s", "e")

    assert re.search(r"one kernel saves \d.* (µ|m)s", large)
    assert re.search(r"3 operators in 3 units: \d+ patterns looked at.* by the model", large)
    assert small["code"] in ("opaque", "negative_score") and not small["fused"]


def test_statistics_count_kernels_by_strategy(capsys: Capture, tmp_path: Path) -> None:
    """Statistics of attention: kernels by strategy, sizes, kinds, and scratch per tile."""
    path = tmp_path / "m.txt"
    path.write_text(
        "q: f32[256, 94, 32]; s = matmul(q, q, transpose_b=true); e = exp(mul(s, 0.5))\n"
        "t = reduce_sum(e, axis=-1, keepdims=true); return matmul(div(e, t), q), neg(t)"
    )
    rows = answer(capsys, "explain", str(path), "--statistics")
    text = printed(capsys, "explain", str(path), "--statistics")

    assert rows["kernels"] == {"none": 7, "xla": 6, "stitch": 1}
    assert rows["compression"]["none"] == 7.0 and rows["library_calls"] == 0
    assert rows["operators_of_kernels"]["5-16"] == 1 and rows["kinds"] == {"gemm": 1}
    assert rows["memory_bound"] == 1.0 and rows["scratch_kernels"] == 1.0
    assert 0 < rows["scratch_shared"] <= 1 and rows["scratch_most"] > 94 * 4
    assert "7 with none, 6 with xla, 1 with stitch" in text
    assert rows["unsized"] == 0 and "unknown" not in text


def test_statistics_of_unknown_sizes_say_what_to_do(capsys: Capture) -> None:
    """Numbers that depend on unknown sizes are "unknown", with the option that gives sizes."""
    assert printed(capsys, "explain", DIGITS, "--statistics").count("give them by --shape") == 4
    sized = printed(capsys, "explain", DIGITS, "--statistics", "--shape", "x=32,8,8")
    assert "unknown" not in sized and "0 ns" not in sized


def test_explaining_an_unknown_node_is_an_error(capsys: Capture) -> None:
    """The error has the unknown name."""
    assert main(["explain", DIGITS, "--node", "no such"]) == 1
    assert "begins or ends at 'no such'" in capsys.readouterr().err


def test_planning_stops_after_the_given_pass() -> None:
    """Passes that a graph has been through are not repeated; an unknown pass is an error."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", ("n",))) + 1.0])
    fused = planned(graph, "Fusion")
    printed = planned(fused, "CodeGen", target="cpu")

    assert "subgraph" in fused.attrs
    assert "kernel" not in fused.attrs
    assert printed.nodes == fused.nodes
    assert "rtc" not in printed.attrs
    assert len(pk.explain(printed)) == len(pk.explain(graph)) == 1
    with pytest.raises(pk.PassError, match="'Codegen' is not a pass of .*; did you mean"):
        planned(graph, "Codegen")


def test_without_a_renderer_the_picture_has_the_simple_layout(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The picture is laid out simply, and the output has the reason."""
    monkeypatch.setattr("passkit.viz.renderers.renderers", lambda: iter(()))
    output = printed(capsys, "show", DIGITS, "-o", str(tmp_path / "p.svg"))

    assert "laid out simply: no renderer here can draw svg" in output
    assert "laid out simply" in (tmp_path / "p.svg").read_text()


SUMS = "x: f32[64, 300]; e = exp(x); t = reduce_sum(e, axis=1); return t"


def test_templates_are_printed_and_can_be_given(capsys: Capture, tmp_path: Path) -> None:
    """--schedule prints template, reason and alternatives; --template sets another."""
    model = tmp_path / "sums.txt"
    model.write_text(SUMS)
    text = printed(capsys, "show", str(model), "--schedule")
    (group,) = answer(capsys, "show", str(model), "--schedule")["schedule"]
    with_template = printed(
        *(capsys, "show", str(model), "--schedule"),
        *("--template", "t=reduce_sum_1[GRID_32-WARP_2,CTA];"),
    )

    assert text.startswith("t: e, t\n  reduce_sum_1[GRID_/27-WARP_27,CTA];\n  row, 3 tiles, 75")
    assert group["template"] == "reduce_sum_1[GRID_/27-WARP_27,CTA];" and group["others"]
    assert group["others"][0]["template"] in text
    assert "row, 32 tiles" in with_template
    assert "it was specified in the option templates" in with_template


@pytest.mark.parametrize(
    "setting, message",
    [
        ("reduce_sum_1[CTA]", "--template needs NAME=TEXT, got 'reduce_sum_1[CTA]'"),
        ("t=reduce_sum_1[CTA", "templates['t']: template, column 17: expected ',' or ']'"),
        ("t=a[CTA];", "the group has no value 'a' with loops"),
    ],
)
def test_invalid_templates_are_errors(
    setting: str, message: str, capsys: Capture, tmp_path: Path
) -> None:
    """The message has the setting or the position, without a traceback."""
    model = tmp_path / "sums.txt"
    model.write_text(SUMS)

    assert main(["show", str(model), "--schedule", "--template", setting]) == 1
    assert message in capsys.readouterr().err


def test_two_templates_for_a_name_are_an_error(capsys: Capture) -> None:
    """A name can have only one template."""
    twice = ["--template", "t=a[CTA];"] * 2

    assert main(["run", DIGITS, *twice]) == 1
    assert "--template names 't' twice; a group has one template" in capsys.readouterr().err


@pytest.mark.parametrize(
    "settings, message",
    [
        (["=a[CTA];"], "--template needs NAME=TEXT, got '=a"),
        (["t=a[CTA];", "t=b[CTA];"], "--template names 't' twice; a group has one template"),
    ],
)
def test_settings_of_templates_are_checked(settings: list[str], message: str) -> None:
    """A setting needs a name and a text, and no name occurs twice."""
    with pytest.raises(pk.SettingError, match=message):
        read_templates(settings)


def test_constants_are_elided(capsys: Capture) -> None:
    """Weights are shown by their size; `--constants` prints their elements, and can be parsed."""
    short = printed(capsys, "show", DIGITS)
    whole = printed(capsys, "show", DIGITS, "--constants")

    assert 'f32[64, 128] = elided("32 KiB")' in short
    assert len(short) < 8000 < len(whole)
    assert len(pk.parse(whole).inputs) == 1
    with pytest.raises(pk.ParseError, match="elements of this constant were left out"):
        pk.parse(short)


@pytest.mark.parametrize("form", ["text", "json", "pb", "pbtxt"])
def test_models_are_read_from_standard_input(
    form: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`-` reads a model in any single-file format from standard input."""
    graph = pk.parse("x: f32[2, 3]; y = exp(x); return y")
    if form == "text":
        data = pk.to_text(graph).encode()
    elif form == "json":
        data = pk.to_json(graph).encode()
    else:
        path = tmp_path / f"model.{form}"
        tf_graphdef.save(graph, path)
        data = path.read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    assert "exp(x)" in printed(capsys, "show", "-", "--unfused")


def test_empty_standard_input_is_an_error(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank standard input is no model."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" ")))

    assert main(["show", "-"]) == 1
    assert "standard input has no model: it is empty" in capsys.readouterr().err


def test_unknown_targets_and_strategies_are_wrong_usage(capsys: Capture) -> None:
    """The exit code is 2, and the message has the nearest name."""
    for option, value, near in (("--fusion", "stich", "stitch"), ("--target", "cpuu", "cpu")):
        with pytest.raises(SystemExit, match="^2$"):
            main(["show", DIGITS, option, value])
        assert near in capsys.readouterr().err


def test_a_missing_model_offers_a_near_name_only(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message does not list a whole folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("model.txt", "other.dat"):
        (tmp_path / name).write_text("")

    assert main(["show", "modle.txt"]) == 1
    assert capsys.readouterr().err == (
        "passkit: there is no model at 'modle.txt'; did you mean 'model.txt'?\n"
    )
    assert main(["show", "zzz"]) == 1
    assert capsys.readouterr().err == "passkit: there is no model at 'zzz'\n"
