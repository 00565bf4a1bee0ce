"""What the README shows is what happens, and its map shows what is there."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The code blocks in one language."""
    return [text for name, text in BLOCKS if name == language]


def test_python_blocks_print_what_follows_them() -> None:
    """Each Python block runs, and prints the block of another language that stands after it."""
    names: dict[str, object] = {}
    shown = 0
    for (language, code), (after, text) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, "README.md", "exec"), names)
            if out.getvalue():
                assert after in ("cpp", "text")
                assert out.getvalue().strip() == text.strip()
                shown += 1

    assert shown >= 1


def test_the_first_block_is_short() -> None:
    """Ten lines are enough to fuse and to print the kernel."""
    assert len([line for line in blocks("python")[0].splitlines() if line]) <= 10


def test_ci_runs_the_two_commands() -> None:
    """There are two shell commands, and .ci/run takes both from here."""
    first, second = blocks("sh")

    assert "passkit run examples/models/digits.pb" in first
    assert "pytest" in second
    script = (ROOT / ".ci/run").read_text()
    assert "$(readme 1)" in script
    assert "$(readme 2)" in script


def test_ci_finds_the_commands() -> None:
    """The search in .ci/run yields the README's commands and nothing else."""
    script = (ROOT / ".ci/run").read_text()
    function = script[script.index("readme() {") : script.index("\n}\n") + 3]
    for k, command in enumerate(blocks("sh"), 1):
        found = subprocess.run(
            ["bash", "-c", f"{function}readme {k}"], cwd=ROOT, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert found.stdout == command


def entries(folder: Path) -> set[str]:
    """What a reader sees in a folder: folders with a slash, files, nothing hidden or generated."""
    return {
        p.name + ("/" if p.is_dir() else "")
        for p in folder.iterdir()
        if not p.name.startswith((".", "__"))
        and p.suffix in ("", ".py", ".md", ".cfg", ".toml")
        and p.name not in ("build", "dist", "report")
        and not p.name.endswith(".egg-info")
    }


def mapped() -> dict[str, set[str]]:
    """The map's lines: what stands at the root, and what stands below each folder."""
    found: dict[str, set[str]] = {"": set()}
    top = ""
    for line in blocks("text")[-1].splitlines():
        if line.strip():
            indent, name = len(line) - len(line.lstrip()), line.split()[0]
            if indent == 0:
                top = name
                found[""].add(name)
            else:
                found.setdefault(top, set()).add(name)
    return found


def test_the_map_is_complete() -> None:
    """One line for every file and folder at the root and inside those that the map opens."""
    lines = mapped()
    skipped = {"CHANGELOG.md", "LICENSE", "README.md", "MANIFEST.in"}

    assert lines.pop("") == entries(ROOT) - skipped
    for folder, names in lines.items():
        assert names == entries(ROOT / folder), folder


def test_links_lead_somewhere() -> None:
    """Every relative link names a file."""
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (ROOT / link).exists(), link
