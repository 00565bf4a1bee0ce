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
    """What a command prints."""
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def answer(capsys: Capture, *arguments: str) -> Any:
    """What a command prints as JSON."""
    return json.loads(printed(capsys, *arguments, "--json"))


def test_the_fused_graph_as_text(capsys: Capture) -> None:
    """By default the plan is printed; the model as it was read on request."""
    assert "fused" in printed(capsys, "show", DIGITS)
    assert "fused" not in printed(capsys, "show", DIGITS, "--unfused")


def test_the_kernels(capsys: Capture) -> None:
    """All kernels in C++; in JSON by name."""
    kernels = answer(capsys, "show", DIGITS, "--kernels")["kernels"]

    assert all(f"void {name}(" in text for name, text in kernels.items())
    assert 'extern "C" void' in printed(capsys, "show", DIGITS, "--kernels")


@pytest.mark.parametrize(("target", "word"), [("cuda", "__global__"), ("opencl", "__kernel")])
def test_kernels_of_targets_that_are_not_here(target: str, word: str, capsys: Capture) -> None:
    """Printing needs no device."""
    assert word in printed(capsys, "show", DIGITS, "--kernels", "--target", target)


def test_the_picture(capsys: Capture, tmp_path: Path) -> None:
    """The plan goes to the named file."""
    path = tmp_path / "plan.svg"

    assert f"plan drawn to {path}" in printed(capsys, "show", DIGITS, "-o", str(path))
    assert "reduction" in path.read_text()


@pytest.mark.parametrize("target", ["cpu", "cuda", "interpret"])
def test_the_picture_tells_how_kernels_are_made(
    target: str, capsys: Capture, tmp_path: Path
) -> None:
    """As the target would run them, whether or not it is here; not of a model as it was read."""
    path = tmp_path / "plan.dot"
    printed(capsys, "show", DIGITS, "-o", str(path), "--target", target)
    assert re.search(r"thread, 1 stage\\l.* tiles?", path.read_text())
    printed(capsys, "show", DIGITS, "-o", str(path), "--target", target, "--unfused")
    assert "stage" not in path.read_text()


def test_models_in_text_and_json(capsys: Capture, tmp_path: Path) -> None:
    """A graph of passkit's own is a model too."""
    text = tmp_path / "m.txt"
    text.write_text("x: f32[n, 8]; e = exp(x); y = add(e, x); return y")
    data = answer(capsys, "show", str(text), "--unfused")["graph"]
    (tmp_path / "m.json").write_text(data if isinstance(data, str) else json.dumps(data))

    assert "exp" in printed(capsys, "show", str(tmp_path / "m.json"), "--unfused")


def test_explain_lists_every_edge(capsys: Capture) -> None:
    """Each row has its reason; the last line counts."""
    rows = answer(capsys, "explain", DIGITS)
    out = printed(capsys, "explain", DIGITS)
    apart = answer(capsys, "explain", DIGITS, "--apart")

    assert all(row["reason"] for row in rows)
    fused = sum(row["fused"] for row in rows)
    assert out.splitlines()[-1] == f"{fused} of {len(rows)} edges are fused"
    assert len(apart) == len(rows) - fused > 0


def test_explain_one_edge(capsys: Capture) -> None:
    """`--why U V` and `--node N` ask for a part of the table."""
    rows = answer(capsys, "explain", DIGITS)
    first = rows[0]
    (why,) = answer(capsys, "explain", DIGITS, "--why", first["producer"], first["consumer"])
    near = answer(capsys, "explain", DIGITS, "--node", first["consumer"])

    assert why == first
    assert first in near
    assert all(first["consumer"] in (r["producer"], r["consumer"]) for r in near)


def test_explain_what_was_selected(capsys: Capture, tmp_path: Path) -> None:
    """Large products are taken in, small ones are not worth it: what that is about, in seconds."""
    path = tmp_path / "m.txt"
    body = "s = matmul(q, k, transpose_b=true); e = exp(s); return matmul(e, k)"
    path.write_text(f"q: f32[256, 94, 32]; k: f32[256, 94, 32]; {body}")
    large = printed(capsys, "explain", str(path), "--why", "s", "e")
    path.write_text(f"q: f32[4, 17, 32]; k: f32[4, 17, 32]; {body}")
    (small,) = answer(capsys, "explain", str(path), "--why", "s", "e")

    assert re.search(r"one kernel saves \d.* (µ|m)s", large)
    assert re.search(r"3 operators in 3 units: \d+ patterns looked at.* by the model", large)
    assert small["code"] in ("opaque", "negative_score") and not small["fused"]


def test_statistics_of_a_plan(capsys: Capture, tmp_path: Path) -> None:
    """A softmax between products: kernels by strategy, sizes, kinds, and the scratch of tiles."""
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


def test_statistics_of_unknown_sizes(capsys: Capture) -> None:
    """What nobody can know is not called none, and the way to know it is said."""
    assert printed(capsys, "explain", DIGITS, "--statistics").count("give them by --shape") == 4
    sized = printed(capsys, "explain", DIGITS, "--statistics", "--shape", "x=32,8,8")
    assert "unknown" not in sized and "0 ns" not in sized


def test_explain_an_unknown_edge(capsys: Capture) -> None:
    """A name that is not there is answered with one that is."""
    assert main(["explain", DIGITS, "--node", "no such"]) == 1
    assert "begins or ends at 'no such'" in capsys.readouterr().err


def test_planning_goes_as_far_as_asked() -> None:
    """What a graph has been through is not repeated; an unknown pass offers the nearest."""
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


def test_a_picture_without_a_renderer(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is laid out simply, and the answer says what would do better."""
    monkeypatch.setattr("passkit.viz.renderers.renderers", lambda: iter(()))
    said = printed(capsys, "show", DIGITS, "-o", str(tmp_path / "p.svg"))

    assert "laid out simply: no renderer here can draw svg" in said
    assert "laid out simply" in (tmp_path / "p.svg").read_text()


SUMS = "x: f32[64, 300]; e = exp(x); t = reduce_sum(e, axis=1); return t"


def test_templates(capsys: Capture, tmp_path: Path) -> None:
    """Each group's template, why it has that, and its runners-up; another one on request."""
    model = tmp_path / "sums.txt"
    model.write_text(SUMS)
    text = printed(capsys, "show", str(model), "--schedule")
    (group,) = answer(capsys, "show", str(model), "--schedule")["schedule"]
    given = printed(
        *(capsys, "show", str(model), "--schedule"),
        *("--template", "t=reduce_sum_1[GRID_32-WARP_2,CTA];"),
    )

    assert text.startswith("t: e, t\n  reduce_sum_1[GRID_/27-WARP_27,CTA];\n  row, 3 tiles, 75")
    assert group["template"] == "reduce_sum_1[GRID_/27-WARP_27,CTA];" and group["others"]
    assert group["others"][0]["template"] in text
    assert "row, 32 tiles" in given and "it was specified in the option templates" in given


@pytest.mark.parametrize(
    "setting, message",
    [
        ("reduce_sum_1[CTA]", "--template needs NAME=TEXT, got 'reduce_sum_1[CTA]'"),
        ("t=reduce_sum_1[CTA", "templates['t']: template, column 17: expected ',' or ']'"),
        ("t=a[CTA];", "the group has no value 'a' with loops"),
    ],
)
def test_templates_that_are_wrong(
    setting: str, message: str, capsys: Capture, tmp_path: Path
) -> None:
    """Told without a traceback."""
    model = tmp_path / "sums.txt"
    model.write_text(SUMS)

    assert main(["show", str(model), "--schedule", "--template", setting]) == 1
    assert message in capsys.readouterr().err


def test_two_templates_for_a_name(capsys: Capture) -> None:
    """A name has one."""
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
def test_settings_of_templates(settings: list[str], message: str) -> None:
    """Each is a name and a text, and a name has one."""
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
def test_models_from_standard_input(
    form: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`-` reads any of the single-file forms."""
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


def test_empty_standard_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is no model."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" ")))

    assert main(["show", "-"]) == 1
    assert "standard input has no model: it is empty" in capsys.readouterr().err


def test_wrong_choices_are_wrong_usage(capsys: Capture) -> None:
    """A target or strategy that does not exist ends with code 2 and the nearest name."""
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
