"""The README's code prints what it shows, and its map lists every file."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from tests.test_floors import FLOORS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """Return the code blocks in one language."""
    return [text for name, text in BLOCKS if name == language]


def printed(code: str, names: dict[str, object]) -> str:
    """Execute a block of Python and return its output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), names)
    return out.getvalue()


def test_python_blocks_print_what_follows_them(golden: Callable[[Path, str], None]) -> None:
    """Each Python block runs, and prints the block of another language below it."""
    names: dict[str, object] = {}
    expected = README
    for (language, code), (after, text) in pairwise([*BLOCKS, ("", "")]):
        if language == "python" and (out := printed(code, names).strip()):
            assert after in ("cpp", "text")
            expected = expected.replace(f"```{after}\n{text}```", f"```{after}\n{out}\n```")

    assert names
    golden(ROOT / "README.md", expected)


def test_the_first_block_is_short() -> None:
    """Ten lines are enough to fuse and to print the kernel."""
    assert len([line for line in blocks("python")[0].splitlines() if line]) <= 10


def test_ci_runs_the_two_commands() -> None:
    """There are two shell commands, and .ci/run takes both from the README."""
    first, second = blocks("sh")

    assert "passkit run examples/models/digits.pb" in first
    assert "pytest" in second
    script = (ROOT / ".ci/run").read_text()
    assert "$(readme 1)" in script
    assert "$(readme 2)" in script


def test_ci_extracts_the_commands() -> None:
    """The search in .ci/run yields the README's commands and nothing else."""
    script = (ROOT / ".ci/run").read_text()
    function = script[script.index("readme() {") : script.index("\n}\n") + 3]
    for k, command in enumerate(blocks("sh"), 1):
        process = subprocess.run(
            ["bash", "-c", f"{function}readme {k}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert process.stdout == command


def entries(folder: Path) -> set[str]:
    """Return the names in a folder, folders with a slash, without hidden and generated ones."""
    return {
        p.name + ("/" if p.is_dir() else "")
        for p in folder.iterdir()
        if not p.name.startswith((".", "__"))
        and p.suffix in ("", ".py", ".md", ".cfg", ".toml")
        and p.name not in ("build", "dist", "report")
        and not p.name.endswith(".egg-info")
    }


def tree() -> Iterator[tuple[str, str, str]]:
    """Yield the lines of the map as folder, name in it, and description."""
    top = ""
    for line in blocks("text")[-1].splitlines():
        name, _, says = line.strip().partition(" ")
        top = top if line.startswith(" ") else name
        yield ("", name, says.strip()) if name == top else (top, name, says.strip())


def test_the_map_is_complete() -> None:
    """The map lists every file and folder of the root and of the folders it opens."""
    lines: dict[str, list[str]] = {}
    for folder, name, _ in tree():
        lines.setdefault(folder, []).append(name)
    skipped = {"CHANGELOG.md", "LICENSE", "README.md", "MANIFEST.in"}

    assert sorted(lines.pop("")) == sorted(entries(ROOT) - skipped)
    for folder, names in lines.items():
        assert sorted(names) == sorted(entries(ROOT / folder)), folder


def test_the_map_follows_the_layers() -> None:
    """The core is listed from the lowest layer to the highest."""
    folders = [name.removesuffix(".py").rstrip("/") for top, name, _ in tree() if top == "passkit/"]
    order = [r for layer in FLOORS.values() for r in layer.split() if r in folders]

    assert folders == order


def test_the_map_says_what_the_files_say() -> None:
    """A line of the map is the first sentence of the module's docstring."""
    for folder, name, says in tree():
        if folder:
            path = ROOT / folder / (name if name.endswith(".py") else f"{name}/__init__.py")
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert says == " ".join(text.partition("\n\n")[0].split()).rstrip("."), name


def test_links_lead_somewhere() -> None:
    """Every relative link names a file."""
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (ROOT / link).exists(), link
