"""`passkit show` and `passkit explain`: plans as text, kernels, pictures and reasons."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.frontends import tf_graphdef
from tests.command import json_of, passkit, raise_error_of, text_of
from tests.planned import plan
from tests.schedule.nests import rule

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples/models/digits.pb")
Capture = pytest.CaptureFixture[str]


def test_show_prints_the_fused_or_the_unfused_graph() -> None:
    """By default the fused graph is printed; --unfused prints the model as it was read."""
    assert "fused" in text_of("show", DIGITS)
    assert "fused" not in text_of("show", DIGITS, "--unfused")


def test_show_prints_kernels() -> None:
    """--kernels prints all kernels in C++; in JSON they are by name."""
    kernels = json_of("show", DIGITS, "--kernels")["kernels"]

    assert all(f"void {name}(" in text for name, text in kernels.items())
    assert 'extern "C" void' in text_of("show", DIGITS, "--kernels")


@pytest.mark.parametrize(("target", "word"), [("cuda", "__global__"), ("opencl", "__kernel")])
def test_kernels_of_a_target_need_no_device(target: str, word: str) -> None:
    """Kernels for CUDA and OpenCL are printed on a machine without a device."""
    assert word in text_of("show", DIGITS, "--kernels", "--target", target)


def test_show_draws_the_plan(tmp_path: Path) -> None:
    """-o draws the plan to a file."""
    path = tmp_path / "plan.svg"

    assert f"plan drawn to {path}" in text_of("show", DIGITS, "-o", str(path))
    assert "reduction" in path.read_text()


STRUCTURES = {
    "cpu": r"thread, 1 stage\\l.* tiles?",
    "cuda": r"loop nest by rule elementwise, 1 stage\\l.* blocks? of \d+ threads",
    "interpret": r"thread, 1 stage\\l.* tiles?",
}


@pytest.mark.parametrize("target", STRUCTURES)
def test_the_picture_has_the_structure_of_kernels(target: str, tmp_path: Path) -> None:
    """The picture has the launch of each kernel of each target; with --unfused it has none."""
    path = tmp_path / "plan.dot"
    text_of("show", DIGITS, "-o", str(path), "--target", target)
    assert re.search(STRUCTURES[target], path.read_text())
    text_of("show", DIGITS, "-o", str(path), "--target", target, "--unfused")
    assert "stage" not in path.read_text()


def test_models_in_text_and_json_are_read(tmp_path: Path) -> None:
    """Graphs in passkit's text form and in JSON can be read as models."""
    text = tmp_path / "m.txt"
    text.write_text("x: f32[n, 8]; e = exp(x); y = add(e, x); return y")
    data = json_of("show", str(text), "--unfused")["graph"]
    (tmp_path / "m.json").write_text(data if isinstance(data, str) else json.dumps(data))

    assert "exp" in text_of("show", str(tmp_path / "m.json"), "--unfused")


def test_explain_lists_every_edge() -> None:
    """Every edge has a reason; the last line counts fused edges."""
    rows = json_of("explain", DIGITS)
    out = text_of("explain", DIGITS)
    apart = json_of("explain", DIGITS, "--apart")

    assert all(row["reason"] for row in rows)
    fused = sum(row["fused"] for row in rows)
    assert out.splitlines()[-1] == f"{fused} of {len(rows)} edges are fused"
    assert len(apart) == len(rows) - fused > 0


def test_explain_filters_edges() -> None:
    """`--why U V` and `--node N` print a part of the table."""
    rows = json_of("explain", DIGITS)
    first = rows[0]
    (why,) = json_of("explain", DIGITS, "--why", first["producer"], first["consumer"])
    near = json_of("explain", DIGITS, "--node", first["consumer"])

    assert why == first
    assert first in near
    assert all(first["consumer"] in (r["producer"], r["consumer"]) for r in near)


def test_explain_gives_the_savings_of_selected_kernels(tmp_path: Path) -> None:
    """Large matrix products are fused, with the time saved; small ones are not."""
    path = tmp_path / "m.txt"
    body = "s = matmul(q, k, transpose_b=true); e = exp(s); return matmul(e, k)"
    path.write_text(f"q: f32[256, 94, 32]; k: f32[256, 94, 32]; {body}")
    large = text_of("explain", str(path), "--why", "s", "e")
    path.write_text(f"q: f32[4, 17, 32]; k: f32[4, 17, 32]; {body}")
    (small,) = json_of("explain", str(path), "--why", "s", "e")

    assert re.search(r"one kernel saves \d.* (µ|m)s", large)
    assert re.search(r"3 operators in 3 units: \d+ patterns looked at.* by the model", large)
    assert small["code"] in ("op.library", "cost.slower") and not small["fused"]


def test_statistics_count_kernels_by_strategy(tmp_path: Path) -> None:
    """Statistics of attention: kernels by strategy, sizes, kinds, and scratch per tile."""
    path = tmp_path / "m.txt"
    path.write_text(
        "q: f32[256, 94, 32]; s = matmul(q, q, transpose_b=true); e = exp(mul(s, 0.5))\n"
        "t = reduce_sum(e, axis=-1, keepdims=true); return matmul(div(e, t), q), neg(t)"
    )
    rows = json_of("explain", str(path), "--statistics")
    text = text_of("explain", str(path), "--statistics")

    assert rows["kernels"] == {"none": 7, "xla": 6, "stitch": 1}
    assert rows["compression"]["none"] == 7.0 and rows["library_calls"] == 0
    assert rows["operators_of_kernels"]["5-16"] == 1 and rows["kinds"] == {"gemm": 1}
    assert rows["memory_bound"] == 1.0 and rows["scratch_kernels"] == 1.0
    assert 0 < rows["scratch_shared"] <= 1 and rows["scratch_most"] > 94 * 4
    assert "7 with none, 6 with xla, 1 with stitch" in text
    assert rows["unsized"] == 0 and "unknown" not in text


def test_statistics_of_unknown_sizes_say_what_to_do() -> None:
    """Numbers that depend on unknown sizes are "unknown", with the option that gives sizes."""
    assert text_of("explain", DIGITS, "--statistics").count("--shape gives them") == 4
    sized = text_of("explain", DIGITS, "--statistics", "--shape", "x=32,8,8")
    assert "unknown" not in sized and "0 ns" not in sized


def test_explaining_an_unknown_node_is_an_error() -> None:
    """The error has the unknown name."""
    with pytest.raises(pk.PasskitError, match="begins or ends at 'no such'"):
        raise_error_of("explain", DIGITS, "--node", "no such")


def test_planning_stops_after_the_given_pass() -> None:
    """Passes that a graph has been through are not repeated; an unknown pass is an error."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", ("n",))) + 1.0])
    fused = plan(graph, "Fusion")
    printed = plan(fused, "CodeGen", target="cpu")

    assert "subgraph" in fused.attrs
    assert "kernel" not in fused.attrs
    assert printed.nodes == fused.nodes
    assert "rtc" not in printed.attrs
    assert len(pk.explain(printed)) == len(pk.explain(graph)) == 1
    with pytest.raises(pk.PassError, match="'Codegen' is not a pass of .*; did you mean"):
        plan(graph, "Codegen")


def test_without_a_renderer_the_picture_has_the_simple_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The picture is laid out simply, and the output has the reason."""
    monkeypatch.setattr("passkit.viz.renderers.renderers", lambda: iter(()))
    output = text_of("show", DIGITS, "-o", str(tmp_path / "p.svg"))

    assert "laid out simply: no renderer here can draw svg" in output
    assert "laid out simply" in (tmp_path / "p.svg").read_text()


SUMS = "x: f32[64, 300]; e = exp(x); t = reduce_sum(e, axis=1); return t"


def test_templates_are_printed_and_can_be_given(tmp_path: Path) -> None:
    """--schedule prints template, reason and alternatives; --template sets another."""
    model = tmp_path / "sums.txt"
    model.write_text(SUMS)
    text = text_of("show", str(model), "--schedule")
    (group,) = json_of("show", str(model), "--schedule")["schedule"]
    with_template = text_of(
        "show", model, "--schedule", "--template", "t=reduce_sum_1[GRID_32-WARP_2,CTA];"
    )

    assert text.startswith("t: e, t\n  reduce_sum_1[GRID_/27-WARP_27,CTA];\n  row, 3 tiles, 75")
    assert group["template"] == "reduce_sum_1[GRID_/27-WARP_27,CTA];" and group["others"]
    assert group["others"][0]["template"] in text
    assert "row, 32 tiles" in with_template
    assert "it was specified in the option templates" in with_template


def test_schedules_of_nests_are_printed_for_cuda(tmp_path: Path) -> None:
    """For CUDA --schedule has the schedule of a kernel, its rule and resources, or why not."""
    model = tmp_path / "sums.txt"
    model.write_text(
        "x: f32[4096, 1024]; t = reduce_sum(exp(x), axis=1); w: f32[n, 64, m];"
        "u = reduce_sum(w, axis=1); return t, u"
    )

    def none(nest: Any, target: Any) -> Any:
        return Diagnostic("domain.axes")

    with rule(none, "elementwise"), rule(none, "single_elements"):
        text = text_of("show", str(model), "--schedule", "--target", "cuda", "--fusion", "xla")
        rows = json_of("show", str(model), "--schedule", "--target", "cuda", "--fusion", "xla")
    by_name = {row["name"]: row["nest"] for row in rows["schedule"]}

    assert (
        "  schedule rule rows: 128 threads, 8 blocks per multiprocessor (up to 64 registers), "
        "128 B in flight per thread, 128 KiB per multiprocessor, 1024 blocks in 0.97 waves\n"
        "  schedule reduce_sum_1 for cuda threads 4x32 blocks 8 {\n"
    ) in text
    assert "\n    tile n0[i0/4 row] {\n" in text
    assert "s; each nest has the first legal schedule of the rules\n" in text
    assert by_name["t"]["rule"] == "rows" and by_name["t"]["resources"]["threads"] == 128
    assert by_name["t"]["text"].splitlines()[0].strip() in text
    assert f"  no schedule of a nest: {by_name['u']['reason']}\n  thread[i0<n, i1<m" in text
    assert by_name["u"]["code"] == "domain.axes"


def test_schedules_of_chunks_and_join_are_printed_together(tmp_path: Path) -> None:
    """A sum in one launch has the schedules of its chunks and of the join, and one of resources."""
    model = tmp_path / "sum.txt"
    model.write_text("x: f32[9000, 40]; return reduce_sum(x, axis=0)")
    text = text_of("show", str(model), "--schedule", "--target", "cuda")

    assert "  schedule rule last_block: 256 threads, " in text
    heads = [line.strip() for line in text.splitlines() if " for cuda threads " in line]
    assert [h.split()[1] for h in heads] == ["partial_reduce_1", "combine_partials_1"]
    assert "\n    nest n0 (i0:71 reduce, i1:40): combine_partials_1\n" in text


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

    assert passkit("show", str(model), "--schedule", "--template", setting) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "show"])
@pytest.mark.parametrize(
    "settings, message",
    [
        (["=a[CTA];"], "--template needs NAME=TEXT, got '=a"),
        (["t=a[CTA];", "t=b[CTA];"], "--template names 't' twice; a group has one template"),
        (["t=a[CTA];", "t=a[CTA];"], "--template names 't' twice; a group has one template"),
    ],
)
def test_settings_of_templates_are_checked(command: str, settings: list[str], message: str) -> None:
    """A setting needs a name and a text, and no name occurs twice."""
    options = [x for setting in settings for x in ("--template", setting)]

    with pytest.raises(pk.SettingError, match=message):
        raise_error_of(command, DIGITS, *options)


def test_constants_are_elided() -> None:
    """Weights are shown by their size; `--constants` prints their elements, and can be parsed."""
    short = text_of("show", DIGITS)
    whole = text_of("show", DIGITS, "--constants")

    assert 'f32[64, 128] = elided("32 KiB")' in short
    assert len(short) < 8000 < len(whole)
    assert len(pk.parse(whole).inputs) == 1
    with pytest.raises(pk.ParseError, match="elements of this constant were left out"):
        pk.parse(short)


@pytest.mark.parametrize("form", ["text", "json", "pb", "pbtxt"])
def test_models_are_read_from_standard_input(
    form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
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

    assert "exp(x)" in text_of("show", "-", "--unfused")


def test_empty_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank standard input is refused as empty."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" ")))

    with pytest.raises(pk.ModelError, match="standard input needs to hold a model, and is empty"):
        raise_error_of("show", "-")


def test_unknown_targets_and_strategies_are_wrong_usage(capsys: Capture) -> None:
    """The exit code is 2, and the message has the nearest name."""
    for option, value, near in (("--fusion", "stich", "stitch"), ("--target", "cpuu", "cpu")):
        with pytest.raises(SystemExit, match="^2$"):
            passkit("show", DIGITS, option, value)
        assert near in capsys.readouterr().err


def test_a_missing_model_offers_a_near_name_only(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message does not list a whole folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("model.txt", "other.dat"):
        (tmp_path / name).write_text("")

    assert passkit("show", "modle.txt") == 1
    assert capsys.readouterr().err == (
        "passkit: there is no model at 'modle.txt'; did you mean 'model.txt'?\n"
    )
    assert passkit("show", "zzz") == 1
    assert capsys.readouterr().err == "passkit: there is no model at 'zzz'\n"
