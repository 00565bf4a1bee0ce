"""The corpus: what is recorded of a graph, and which differences count."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import passkit as pk

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the script."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("corpus")


def record(corpus: Any, text: str, target: str, together: Any = None) -> dict[str, Any]:
    """Return the record of a graph in text."""
    return corpus.planned_records(pk, pk.parse(text), target, together)  # type: ignore[no-any-return]


def test_a_record_has_key_plan_text_and_sizes(corpus: Any) -> None:
    """Kernels stand in the order of their launches; what cannot be planned has its error."""
    text = "x: f32[64, 1000]; return sum(softmax(x), axis=0)".replace("sum(", "reduce_sum(")
    for target in corpus.TARGETS:
        recorded = record(corpus, text, target)
        assert recorded["seconds"] > 0 and recorded["kernels"]
        for kernel in recorded["kernels"]:
            assert kernel["name"] in kernel["text"] and kernel["key"] and int(kernel["tiles"]) > 0
            assert int(kernel["shared"]) >= 0 and ": " in kernel["plan"].splitlines()[0]
    pair = record(
        corpus,
        "x: f32[300]; y: f32[9, 300]; a = add(x, 1); b = exp(y); return a, b",
        "cuda",
        [["a", "b"]],
    )
    assert len(pair["kernels"]) == 1 and "packed" in pair["kernels"][0]["plan"]
    wrong = record(corpus, "x: f32[3]; return neg(x)", "cuda", [["nowhere"]])
    assert wrong["kernels"] == [] and "nowhere" in wrong["error"]


def test_names_do_not_count_but_functions_do(corpus: Any) -> None:
    """Texts are equal under new names of kernels and locals, and differ by a call or a number."""
    one = "void add_1(const float *x0, float *y0) { float exp_1 = exp(x0[0]); y0[0] = exp_1 * 2; }"
    two = "void k(const float *p, float *q) { float sum_3 = exp(p[0]); q[0] = sum_3 * 2; }"

    assert corpus.blanked(one, "add_1") == corpus.blanked(two, "k")
    for old, new in (
        ("exp(", "log("),
        ("* 2", "* 3"),
        ("q[0] =", "p[0] ="),
        ("float *q", "half *q"),
    ):
        assert corpus.blanked(one, "add_1") != corpus.blanked(two.replace(old, new), "k")


def test_levels_of_differences(corpus: Any) -> None:
    """Equal texts are E0, equal code E1; other plans, keys and sizes are counted by themselves."""
    text = "x: f32[64, 1000]; return exp(x)"
    old = {"a": record(corpus, text, "cpu")}
    same = json.loads(json.dumps(old).replace("x0", "input_0"))
    lines, equal = corpus.compared("cpu", old, same, False)
    assert equal and lines[0].startswith("cpu: 1 E0; 0 with other key, 0 with other plan")
    assert "x" in lines[0].rpartition("planning")[2] and len(lines) == 1

    (kernel,) = old["a"]["kernels"]
    body = kernel["text"].index("{") + 1
    longer = kernel["text"][:body] + "(void)0;" + kernel["text"][body:]
    other = {"a": {**old["a"], "kernels": [{**kernel, "text": longer, "tiles": "3"}]}}
    lines, equal = corpus.compared("cpu", old, other, False)
    assert not equal and "1 other text" in lines[0] and "1 with other tiles" in lines[0]
    assert lines[1] == "  other text: cpu/a: 1 of 1 kernels"
    if shutil.which("g++") and shutil.which("objcopy"):
        lines, equal = corpus.compared("cpu", old, other, True)
        assert equal and lines[0].startswith("cpu: 1 E1;")
        changed = {"a": record(corpus, text.replace("exp", "tanh"), "cpu")}
        lines, equal = corpus.compared("cpu", old, changed, True)
        assert not equal and "1 other code" in lines[0] and "1 with other key" in lines[0]
    lines, equal = corpus.compared("cpu", old, {"a": {"kernels": []}}, True)
    assert not equal and lines[1] == "  other kernels: cpu/a: 1 kernels, now 0"


def test_equal_code_on_gpus(corpus: Any) -> None:
    """SASS decides for CUDA; OpenCL has no compiler here."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    sass = importlib.import_module("sass")
    try:
        sass.nvdisasm()
    except sass.NoDisassemblerError as error:
        pytest.skip(str(error))
    (kernel,) = record(corpus, "x: f32[64, 1000]; return neg(x)", "cuda")["kernels"]
    body = kernel["text"].index("{") + 1
    padded = {**kernel, "text": kernel["text"][:body] + " ; " + kernel["text"][body:]}
    changed = {**kernel, "text": kernel["text"].replace("-x0", "2 * x0")}

    assert corpus.code("cuda", kernel) == corpus.code("cuda", padded)
    assert changed == kernel or corpus.code("cuda", kernel) != corpus.code("cuda", changed)
    assert corpus.code("opencl", kernel) != corpus.code("opencl", padded)


def test_every_part_has_graphs(corpus: Any) -> None:
    """Each part of the corpus yields graphs."""
    graphs = importlib.import_module("corpus_graphs")
    for part in graphs.PARTS:
        assert isinstance(next(part(pk)).graph, pk.Graph), part.__name__


def test_record_and_compare(
    corpus: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commands write graphs and records, and find a text that was changed."""
    graphs = importlib.import_module("corpus_graphs")
    monkeypatch.setattr(graphs, "PARTS", (graphs.variants,))
    folder = str(tmp_path)
    assert corpus.main(["record", folder, "--only", "gelu_unknown", "--jobs", "1"]) == 0
    assert "cpu: 3 graphs, 3 kernels" in capsys.readouterr().out
    assert corpus.main(["compare", folder, "--jobs", "1"]) == 0
    assert capsys.readouterr().out.count("3 E0; 0 with other key") == 3
    path = tmp_path / "cuda.json"
    path.write_text(path.read_text().replace("erf_near(", "erfcf("))
    assert corpus.main(["compare", folder, "--jobs", "1"]) == 1
    assert "cuda: 3 other text" in capsys.readouterr().out
