"""The report page: its data, safety against hostile names, and use in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.reporting import write_report
from passkit.reporting.step_facts import step_facts
from tests.browser import Browser, browser, find_browser

HOSTILE = (
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "line\nend\u2028 'quoted' \\ & <b>bold</b>",
    "javascript:alert(1)",
    "<!--\x00\x1b[31m\ud800",
)


class Page(HTMLParser):
    """A page read as a browser reads it: its elements, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in ("meta", "input", "img"):
            self._open.append(attributes.get("id") or tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Note a text by the element it is in."""
        if self._open:
            self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data

    @property
    def data(self) -> Any:
        """The data of the page's script."""
        return json.loads(self.texts["data"])


def model(names: tuple[str, ...] = ()) -> pk.Graph:
    """A product between two kernels, and an operator that NumPy runs."""
    x, w = pk.var("x", ("n", 64)), pk.constant(np.full((64, 64), 0.01, "float32"), name="w")
    a, b, c, d, e = names or ("act", "dot", "norm", "sorted", "scaled")
    h = pk.ops.exp(pk.ops.mul(x, np.float32(0.5), name=e), name=a)
    h = pk.ops.softmax(pk.ops.matmul(h, w, name=b), name=c)
    return pk.Graph([pk.ops.sort(h, name=d)])


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[pk.Executable, Any, Path]:
    """An executable, its profile, and the folder of its report."""
    run = pk.compile(model())
    feeds = {"x": np.ones((128, 64), np.float32)}
    run(feeds)
    profile = run.profile(feeds, runs=3)
    folder = tmp_path_factory.mktemp("report")
    write_report(folder, run, profile, {"model": "digits.pb", "operators": 5})
    return run, profile, folder


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A page in headless Chromium."""
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_each_step_has_kernel_times_and_operators(
    reported: tuple[pk.Executable, Any, Path],
) -> None:
    """Steps have kernel, schedule, bytes, times and operators; library calls have a routine."""
    run, profile, _ = reported
    steps = {f["name"]: f for f in step_facts(run, profile, run.sizes)}
    norm = steps["norm"]

    assert [steps[n]["kind"] for n in ("act", "dot", "norm", "sorted")] == [
        "elementwise",
        "library",
        "reduction",
        "NumPy",
    ]
    assert norm["kernel"]["key"] in {k.key for k in run.kernels}
    assert norm["bytes"] == 2 * 128 * 64 * 4
    assert norm["seconds"] > 0 and 0 < norm["share"] < 1
    assert norm["of_copy"] > 0
    assert norm["schedule"][0].startswith("row[") or "short[" in norm["schedule"][0]
    assert any("reduces" in line for line in norm["schedule"])
    assert norm["reads"] == [{"name": "dot", "type": "f32[128, 64], 32 KiB"}]
    assert [o["name"] for o in steps["act"]["operators"]] == ["scaled", "act"]
    assert "openblas" in steps["dot"]["routine"]


def test_refused_fusions_are_listed_at_both_steps(
    reported: tuple[pk.Executable, Any, Path],
) -> None:
    """Each refused edge between two steps is listed at both, with its reason and the other step."""
    run, profile, _ = reported
    steps = {f["name"]: f for f in step_facts(run, profile, run.sizes)}
    (refused,) = [d for d in steps["act"]["refused"] if d["consumer"] == "dot"]

    assert refused["reason"].startswith("a library call computes matmul, and the call takes in no")
    assert refused["other"] == steps["dot"]["id"]
    assert {d["producer"] for d in steps["dot"]["refused"]} == {"act", "dot"}


def stitched() -> pk.Executable:
    """A product, a softmax and a product as one kernel."""
    x = pk.var("x", (6, 40, 16))
    h = pk.ops.softmax(pk.ops.matmul(x, x, transpose_b=True, name="scores"), name="weights")
    y = pk.ops.matmul(h, x, name="mixed")
    return pk.compile(pk.Graph([y]), keep_together=[["scores", "weights", "mixed"]])


def test_a_stitched_kernel_lists_its_parts() -> None:
    """Each part has its kind and stages; the kernel itself lists no stages then."""
    run = stitched()
    (kernel,) = run.kernels
    (step,) = step_facts(run, None, run.sizes)

    assert [p["kind"] for p in step["parts"]] == ["gemm", "reduction", "gemm"]
    assert step["schedule"] == [] and step["parts"][1]["stages"]
    assert dict(step["properties"])["composition"] == "stitched, 3 parts"
    assert dict(step["properties"])["tiles"] == str(kernel.grid)
    assert dict(step["properties"])["scratch"].endswith("KiB per tile")


def test_unknown_times_and_bytes_are_none() -> None:
    """Without a profile and sizes, times and bytes are None and types have symbols."""
    run = pk.compile(model())
    steps = step_facts(run, None, {})

    assert {f["seconds"] for f in steps} == {None}
    assert steps[0]["bytes"] is None
    assert steps[0]["reads"][0]["type"] == "f32[n, 64]"


def test_a_report_has_page_kernels_and_figures(reported: tuple[pk.Executable, Any, Path]) -> None:
    """The folder has the page, the sources of all kernels, and the figures."""
    run, _, folder = reported
    page = Page((folder / "report.html").read_text())

    assert json.loads((folder / "report.json").read_text())["operators"] == 5
    assert run.kernels[0].source in (folder / "kernels.cpp").read_text()
    assert len(page.data["steps"]) == 4
    assert set(page.data["sources"]) == {k.key for k in run.kernels}
    assert page.texts["h1"] == "passkit report: digits.pb"


def test_a_page_refers_to_no_other_resource(reported: tuple[pk.Executable, Any, Path]) -> None:
    """No element has a link or a handler, and selectable boxes are those in the data."""
    page = Page((reported[2] / "report.html").read_text())
    refers = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "style"}
    boxes = [a["data-box"] for _, a in page.elements if "data-box" in a]

    assert not [a for _, a in page.elements if refers & set(a)]
    assert not [k for _, a in page.elements for k in a if k.startswith("on")]
    assert "default-src 'none'" in next(
        a["content"] or "" for t, a in page.elements if t == "meta" and "http-equiv" in a
    )
    assert boxes and set(boxes) == set(page.data["boxes"])
    assert {k for ids in page.data["boxes"].values() for k in ids} == {
        s["id"] for s in page.data["steps"]
    }


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """Hostile names open no element and end no script, and are unchanged in the data."""
    run = pk.compile(model(HOSTILE), target="interpret")
    write_report(tmp_path, pk.compile(model(HOSTILE)), None, {"model": HOSTILE[0]})
    assert write_report(tmp_path / "plain", run).exists()
    page = Page((tmp_path / "report.html").read_text())
    names = {s["name"] for s in page.data["steps"]}

    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert [tag for tag, _ in page.elements if tag in ("img", "b")] == ["b"]  # the count of steps
    assert set(HOSTILE[:4]) <= names
    assert HOSTILE[0] in page.texts["h1"]


def test_a_click_on_a_box_shows_its_kernel(
    reported: tuple[pk.Executable, Any, Path], chromium: Browser
) -> None:
    """The details have the kernel, its speed and refused fusions; nothing is loaded."""
    run, _, folder = reported
    chromium.complaints.clear()
    chromium.open(folder / "report.html")
    boxes = Page((folder / "report.html").read_text()).data["boxes"]
    key = next(k for k, ids in boxes.items() if ids == [0])
    chromium.click(f'[data-box="{key}"]')
    detail = chromium.run("document.getElementById('detail').innerText")

    assert run.kernels[0].name in detail
    assert "GB/s" in detail and "of the speed of copying as many bytes" in detail
    assert "a library call computes matmul" in detail
    assert 'extern "C" void' in detail
    assert chromium.run("location.hash") == "#step-0"
    assert chromium.run("document.querySelectorAll('.chosen').length") >= 2
    assert chromium.complaints == []


def test_a_browser_shows_the_parts_of_a_kernel(tmp_path: Path, chromium: Browser) -> None:
    """The table has a row for each part, with the regions of its outputs; no column is empty."""
    run = stitched()
    write_report(tmp_path, run, None, {"model": "attention"})
    chromium.complaints.clear()
    chromium.open(tmp_path / "report.html")
    chromium.click("#steps tbody button")
    head = chromium.run("[...document.querySelectorAll('.parts th')].map(h => h.innerText)")
    cells = chromium.run("[...document.querySelectorAll('.parts td.part')].map(c => c.innerText)")
    (step,) = step_facts(run, None, {})
    (scores,) = step["parts"][0]["outputs"]

    assert head[:3] == ["part", "operators", "outputs"] and "tiles" not in head
    assert [c.split("\n")[0] for c in cells] == ["0 gemm", "1 reduction", "2 gemm"]
    detail = chromium.run("document.getElementById('detail').innerText")
    assert f"per tile: {scores['region']}, {scores['nbytes']}, in scratch" in detail
    assert "stitched, 3 parts" in detail and step["parts"][1]["stages"][0] in detail
    wide = "(d => d.scrollWidth <= d.clientWidth)(document.getElementById('detail'))"
    assert chromium.run(wide) and chromium.complaints == []


def test_a_page_can_be_used_with_the_keyboard(
    reported: tuple[pk.Executable, Any, Path], chromium: Browser
) -> None:
    """Tab reaches boxes and steps, Enter selects them, and typing filters the steps."""
    chromium.open(reported[2] / "report.html")
    for _ in range(12):
        chromium.press("Tab")
        if chromium.run("document.activeElement.hasAttribute('data-box')"):
            break
    chromium.press("Enter")

    assert "kind" in chromium.run("document.getElementById('detail').innerText")
    chromium.run("document.getElementById('search').focus()")
    for key in "norm":
        chromium.press(key)
    assert chromium.run(
        "[...document.querySelectorAll('#steps tbody button')].map(b => b.innerText)"
    ) == ["norm"]
    chromium.press("Tab")
    chromium.press("Tab")
    chromium.press("Enter")
    assert chromium.run("document.querySelector('#detail h2').innerText") == "norm"


@pytest.mark.parametrize("dark", [False, True])
def test_a_page_fits_a_laptop_screen(
    reported: tuple[pk.Executable, Any, Path], chromium: Browser, dark: bool
) -> None:
    """Nothing is wider than the window, in light and dark mode, and text has another colour."""
    chromium.open(reported[2] / "report.html", dark=dark)
    chromium.click("#steps tbody tr:nth-child(1) button")
    wide = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    paper = chromium.run("getComputedStyle(document.body).backgroundColor")

    assert chromium.run(wide) == [1366, 768]
    assert (paper == "rgb(255, 255, 255)") is not dark
    assert chromium.run("getComputedStyle(document.body).color") != paper


def test_hostile_names_are_shown_in_a_browser(tmp_path: Path, chromium: Browser) -> None:
    """No script in a name runs, and names are shown unchanged."""
    write_report(tmp_path, pk.compile(model(HOSTILE)), None, {"model": "m"})
    chromium.complaints.clear()
    chromium.open(tmp_path / "report.html")
    for k in range(1, 5):
        chromium.click(f"#steps tbody tr:nth-child({k}) button")

    assert chromium.run("document.title") == "passkit report: m"
    assert chromium.complaints == []
    assert HOSTILE[3] in chromium.run("document.getElementById('detail').innerText")


def test_a_box_of_copies_filters_the_steps(tmp_path: Path, chromium: Browser) -> None:
    """A box for repeated steps lists only these; a button shows all steps again."""
    h, w = pk.var("x", ("n", 8)), pk.var("w", (8, 8))
    for k in range(60):
        h = pk.ops.tanh(pk.ops.matmul(h, w, name=f"net/l{k}/dot"), name=f"net/l{k}/act")
    write_report(tmp_path, pk.compile(pk.Graph([h])), None, {"model": "deep"})
    chromium.open(tmp_path / "report.html")
    count = "document.querySelectorAll('#steps tbody tr').length"
    chromium.click("[data-box]")

    assert chromium.run(count) == 60
    assert "steps" in chromium.run("document.querySelector('#detail h2').innerText")
    chromium.click("#all")
    assert chromium.run(count) == 120


def test_the_plan_of_a_page_has_numbers_for_known_sizes(
    reported: tuple[pk.Executable, Any, Path],
) -> None:
    """Shapes and bytes in the picture are those of the run, as in the tables."""
    page = Page((reported[2] / "report.html").read_text())

    assert "f32[128, 64]" in page.texts["text"] and "32 KiB" in page.texts["text"]
    assert "n KiB" not in page.texts["text"] and "[n, " not in page.texts["text"]


@pytest.mark.parametrize("width", [390, 1300])
def test_bars_of_shares_are_below_their_numbers(
    reported: tuple[pk.Executable, Any, Path], chromium: Browser, width: int
) -> None:
    """No bar covers a number, and on a phone nothing is wider than the window."""
    chromium.open(reported[2] / "report.html", width, 844)
    chromium.click("#steps tbody tr:nth-child(1) button")
    gaps = """[...document.querySelectorAll('#steps td.share')].map(cell => {
      const number = document.createRange();
      number.selectNode(cell.firstChild);
      return cell.querySelector('i').getBoundingClientRect().top
        - number.getBoundingClientRect().bottom;
    })"""
    names = """[...document.querySelectorAll('#steps td:first-child')]
      .map(cell => cell.getBoundingClientRect().width)"""

    assert len(chromium.run(gaps)) == 4 and min(chromium.run(gaps)) >= 0
    assert min(chromium.run(names)) > (300 if width == 390 else 60)
    assert chromium.run("document.documentElement.scrollWidth") <= width
