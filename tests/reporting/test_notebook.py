"""Notebook displays: self-contained pictures and tables, in which names of any kind are text."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.diagnostics import Diagnostic

NAME = "<script>alert(1)</script>"


class Tags(HTMLParser):
    """The elements of a piece of HTML, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Note an element."""
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text += data


@pytest.fixture(scope="module")
def run() -> pk.Executable:
    """A kernel, called once."""
    x = pk.var(NAME, ("n", 8))
    executable = pk.compile(pk.Graph([pk.ops.exp(pk.ops.tanh(x), name=NAME + "y")]))
    executable({NAME: np.ones((4, 8), np.float32)})
    return executable


def bundle(shown: Any) -> dict[str, str]:
    """Return the display that a notebook requests."""
    display: dict[str, str] = shown._repr_mimebundle_()
    assert display["text/plain"]
    return display


def test_graphs_and_pictures_are_displayed_as_svg(run: pk.Executable) -> None:
    """Graphs, planned or not, and pictures are displayed as valid SVG."""
    for shown in (run.source_graph, run.graph, pk.viz.plan(run.graph)):
        root = ElementTree.fromstring(bundle(shown)["image/svg+xml"])
        texts = {t.text for t in root.iter("{http://www.w3.org/2000/svg}text")}

        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert any("tanh" in (t or "") for t in texts)
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_a_picture_needs_no_renderer(run: pk.Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a renderer, the display has the simple layout."""
    monkeypatch.setattr("passkit.viz.renderers.renderers", lambda: iter(()))

    assert "laid out simply" in bundle(run.graph)["image/svg+xml"]


def test_an_executable_shows_inputs_kernels_and_bytes(run: pk.Executable) -> None:
    """The display has inputs, sources of kernels, and bytes; names stay text."""
    shown = Tags(bundle(run)["text/html"])

    assert "script" not in shown.tags
    assert f"{NAME}: float32[n, 8]" in shown.text
    assert run.kernels[0].source in shown.text
    assert "256 B; 512 B unfused" in shown.text


def test_a_kernel_shows_its_operators_and_source(run: pk.Executable) -> None:
    """The plain text is the source; the HTML begins with the operators."""
    display = bundle(run.kernels[0])

    assert display["text/plain"] == run.kernels[0].source
    assert Tags(display["text/html"]).text.startswith(f"{run.kernels[0].name}: tanh")


def explanation_of(*decisions: pk.Decision) -> Any:
    """Return an explanation, as `pk.explain` returns one, of these decisions."""
    explanation = pk.explain(pk.parse("x: f32[4]; return exp(neg(x))"))
    return evolve(explanation, decisions=decisions, selection="")


def test_explanations_and_profiles_are_tables(run: pk.Executable) -> None:
    """Edges that are not fused come first; long tables say how many rows are left out."""
    log = [pk.Decision("a", "b", Diagnostic("fused.domain"))] * 300
    refused = pk.Decision(NAME, "d", Diagnostic("op.library", {"op": NAME}))
    shown = Tags(bundle(explanation_of(*log, refused))["text/html"])
    profile = run.profile({NAME: np.ones((4, 8), np.float32)}, runs=1, copies=False)
    (row,) = profile.rows
    row = evolve(row, step="launch k", seconds=2e-6, nbytes=2048, node="k", copying=1e-6)
    times = Tags(bundle(evolve(profile, rows=(row,)))["text/html"])

    assert {"table", "tr", "td"} <= shown.tags and "script" not in shown.tags
    assert shown.text.index(NAME) < shown.text.index("one iteration domain")
    assert "and 101 more rows" in shown.text
    assert "launch k12 µs100.0 %2 KiB50 %" in times.text


def test_rankings_and_tunings_are_tables() -> None:
    """Templates and measurements are displayed as tables; the plain text is readable, too."""
    graph = pk.parse("x: f32[n, 8]; return softmax(exp(x))")
    ranking = pk.templates(graph)
    group = ranking[0]
    with ThreadPoolExecutor(1) as executor:
        tuning = pk.tune(pk.parse("x: f32[4]; return exp(x)"), budget=1, executor=executor)
    tuned = evolve(
        tuning.groups[0],
        name=NAME,
        operators="exp, div",
        usual="old",
        template="new",
        before=4e-6,
        after=2e-6,
    )
    tuning = evolve(tuning, groups=(tuned,), measured=3, remarks=("one kernel hung",))
    ranked, measured = (Tags(bundle(shown)["text/html"]) for shown in (ranking, tuning))

    assert {"table", "tr", "td"} <= ranked.tags & measured.tags
    assert group.template in ranked.text and group.why in ranked.text
    assert all(str(v.template) in ranked.text for v in group.others[:3])
    assert "script" not in measured.tags
    assert f"{NAME}exp, div4 µs2 µs2.00new" in measured.text
    assert "remark: one kernel hung3 templates measured; 1 of 1 kernels have another" in (
        measured.text
    )
    assert repr(ranking).startswith(f"{group.name}: exp, ")
    cells = repr(tuning).splitlines()[1].split()
    assert cells == [NAME, "exp,", "div", "4", "µs", "2", "µs", "2.00", "new"]
    assert (
        repr(evolve(tuning, groups=(), measured=0, remarks=()))
        == "0 templates measured; 0 of 0 kernels have another"
    )


def test_kernels_are_highlighted(run: pk.Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keywords have a colour; without pygments the text is the same without it."""
    html = bundle(run.kernels[0])["text/html"]
    for name in ("pygments", "pygments.formatters", "pygments.lexers"):
        monkeypatch.setitem(sys.modules, name, None)
    plain = bundle(run.kernels[0])["text/html"]

    assert re.search(r'<span style="color: #\w+">const</span>', html)
    assert "<span" not in plain
    assert Tags(html).text == Tags(plain).text


def test_text_stays_text_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a Jupyter kernel, `str` of a table gives its text and displays nothing by itself."""
    shell = type("ZMQInteractiveShell", (), {})
    explanation = explanation_of(pk.Decision("a", "b", Diagnostic("fused.domain")))
    outside = str(explanation)
    monkeypatch.setattr("rich.console.get_ipython", shell, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert str(explanation) == repr(explanation) == outside
    assert "one iteration domain" in outside and "\x1b" not in outside
