"""Pictures in docs/pictures are up to date; --update-golden draws them again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit import xp
from passkit.frontends import tf_graphdef
from tests import planned
from tests.raised import ROOT

FOLDER = ROOT / "docs/pictures"
PICTURES: dict[str, Callable[[], Any]] = {}
Draw = Callable[[], Any]


def picture(draw: Draw) -> Draw:
    """Register a function that draws a picture, by its name."""
    PICTURES[draw.__name__] = draw
    return draw


@picture
def plan() -> Any:
    """Draw GELU after a product: a library call, and a kernel with its operators."""
    x, w = pk.var("x", ("n", 512)), pk.var("w", (512, 512))
    h = x @ w
    return pk.viz.plan(planned.plan(pk.Graph([h * (pk.ops.erf(h / 2**0.5) + 1) / 2]), "Fusion"))


@picture
def time() -> Any:
    """Draw the digits model with times: darker boxes took more."""
    graph = planned.plan(tf_graphdef.load(ROOT / "examples/models/digits.pb"), "Fusion")
    seconds = {
        "mul": 1.5e-6,
        "hidden/matmul": 40e-6,
        "norm/add_1": 9.3e-6,
        "narrow/matmul": 38e-6,
        "narrow/Relu": 1.4e-6,
        "classes/matmul": 9.9e-6,
        "probabilities": 2.1e-6,
    }
    return pk.viz.plan(graph, detail=False, profile=seconds)


@picture
def folded() -> Any:
    """Draw 1,000 nodes of attention layers, each once; a slow layer is drawn by itself."""
    graph = planned.plan(attention(24), "Fusion")
    seconds = {n: 1e-6 for n in graph.names.values()}
    seconds |= {n: 9e-6 for n in seconds if "layer_7" in n and "MatMul" in n}
    return pk.viz.plan(graph, profile=seconds, boxes=26)


@picture
def diff() -> Any:
    """Draw the changes of Fusion to a softmax of a sum."""
    x, y = pk.var("x", ("n", 64)), pk.var("y", ("n", 64))
    graph = planned.plan(pk.Graph([pk.ops.softmax(pk.ops.tanh(x) + y)]), "Simplify")
    return pk.viz.diff(graph, planned.plan(graph, "Fusion"))


@picture
def streams() -> Any:
    """Draw two runs: a sum of an array that stays pending, and a quotient that needs it."""
    x = xp.asarray(np.zeros((512, 1024), np.float32))
    xp.eval()
    xp.forget_plans()  # with what earlier runs showed of results that are needed again
    with xp.config(compile_at=0), xp.inspect() as runs:
        t = xp.exp(x * 2)
        total = float(xp.sum(t))
        xp.eval(t / total)
    lines = ("model.py:5", "model.py:7")
    return xp.picture(
        [
            evolve(run, number=k, line=lines[k], path="cached", seconds=1e-3)
            for k, run in enumerate(runs)
        ]
    )


def attention(layers: int, width: int = 32) -> pk.Graph:
    """Return layers of attention and a small network, in scopes as frameworks name them."""
    rng, ops = np.random.default_rng(0), pk.ops
    h = pk.var("tokens", ("n", 16, width))

    def weight(scope: str, *shape: int) -> pk.Entry:
        return pk.constant(rng.standard_normal(shape, np.float32), name=f"{scope}/kernel")

    def dense(x: pk.Entry, scope: str, n: int, m: int) -> pk.Entry:
        product = ops.matmul(x, weight(scope, n, m), name=f"{scope}/MatMul")
        return ops.add(product, weight(f"{scope}/bias", m), name=f"{scope}/BiasAdd")

    for k in range(layers):
        at = f"encoder/layer_{k}"
        q, key, v = (dense(h, f"{at}/attention/{x}", width, width) for x in "qkv")
        scores = ops.matmul(q, ops.transpose(key, axes=(0, 2, 1)), name=f"{at}/attention/scores")
        mixed = ops.matmul(ops.softmax(scores), v, name=f"{at}/attention/context")
        h = ops.add(h, dense(mixed, f"{at}/attention/out", width, width), name=f"{at}/add")
        inner = ops.gelu(dense(h, f"{at}/mlp/fc1", width, 4 * width), name=f"{at}/mlp/Gelu")
        h = ops.add(h, dense(inner, f"{at}/mlp/fc2", 4 * width, width), name=f"{at}/add_1")
    return pk.Graph([h])


def texts(path: Path) -> set[str]:
    """Return the lines of text in a picture."""
    root = ElementTree.parse(path).getroot()
    lines = (t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text"))
    return {" ".join(text.split()) for text in lines}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_have_the_texts_of_the_drawing(name: str, request: pytest.FixtureRequest) -> None:
    """A picture has every line of boxes, frames and arrows, whichever renderer drew it."""
    drawn, path = PICTURES[name](), FOLDER / f"{name}.svg"
    if request.config.getoption("--update-golden"):
        FOLDER.mkdir(exist_ok=True)
        pk.viz.render(drawn, path)
    scene = drawn.scene
    boxes = [*scene.boxes.values(), *scene.legend]
    labels = [f.label for f in scene.frames.values()]
    lines = [*(x for b in boxes for x in b.lines), *(x for a in scene.arrows for x in a.lines)]
    expected = {*lines, *(x for label in labels for x in label.split("\n"))}

    assert {" ".join(x.split()) for x in expected} <= texts(path)
    assert path.stat().st_size < 80_000


def test_every_picture_is_drawn_here() -> None:
    """Each picture is drawn by this file, except the speed chart, which has its own command."""
    assert {p.stem for p in FOLDER.iterdir()} == {*PICTURES, "speed"}
