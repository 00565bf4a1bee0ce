"""Kernels beside another version's: what is timed, what counts as slower, what is recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def times(call: float, *kernels: float) -> dict[str, Any]:
    """Return the times of a version, which are a little longer in each repetition."""
    repetitions = (1.0, 1.02, 1.04)
    return {
        "names": [f"k_{n}" for n in range(len(kernels))],
        "call": [call * r for r in repetitions],
        "kernels": [[seconds * r for r in repetitions] for seconds in kernels],
    }


def test_only_what_is_slower_each_time_counts() -> None:
    """A ratio above the limit counts in all repetitions, and again in those of new processes."""
    from kernels_against import ratios, slower

    row = {"graph": "g", "times": {"old": times(3.0, 1.0, 2.0), "new": times(3.0, 1.2, 2.0)}}
    assert slower(row) == {"0 k_0": pytest.approx([1.2] * 3)}
    row["times"]["new"]["kernels"][0][1] = 1.02
    assert slower(row) == {}
    row["times"]["new"] = times(4.5, 1.0, 2.2)
    assert sorted(slower(row)) == ["1 k_1", "call"]
    again: dict[str, Any] = {"old": times(3.0, 1.0, 2.0), "new": times(3.0, 1.0, 2.4)}
    assert slower({**row, "again": again}) == {"1 k_1": pytest.approx([1.2] * 3)}

    row["times"]["new"] = times(3.1, 3.0)  # other kernels: only calls are compared
    assert ratios(row["times"]) == {"call": pytest.approx([3.1 / 3] * 3)}


def test_the_summary_has_means_and_the_slowest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Kernels and calls have geometric means; what is slower has its name, graph and ratios."""
    from kernels_against import main, summary
    from shows import middle

    stamp = {"old": "a1", "new": "b2", "date": "2026-01-02"}
    rows = [
        {"graph": "one", **stamp, "times": {"old": times(1.0, 1.0), "new": times(1.0, 0.5)}},
        {"graph": "two", **stamp, "times": {"old": times(1.0, 1.0), "new": times(1.0, 2.0)}},
    ]
    record: dict[str, Any] = {**stamp, "threads": 2, "cpu": "C", "left_out": {}, "rows": rows}
    text = (
        "2 kernels of 2 graphs, mean ratio 1.000, of calls 1.000; 1 above 1.05, at most 2.00: "
        "two, 0 k_0; a1 and b2, 2026-01-02"
    )
    assert summary(record) == (text, False)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    assert main(["--report", "--json", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == ["two: 0 k_0: 2.00 2.00 2.00", text]
    figure = middle.recorded_kernels(path)
    assert not figure.met and figure.text.startswith(text)
    assert "; 120 are required: python benchmarks/kernels_ag" in figure.text

    record["rows"] = rows[:1]
    path.write_text(json.dumps(record))
    assert main(["--report", "--json", str(path)]) == 0
    assert not middle.recorded_kernels(path).met
    monkeypatch.setattr(middle, "KERNELS", 1)
    assert middle.recorded_kernels(path).met
    missing = middle.recorded_kernels(tmp_path / "nowhere.json")
    assert not missing.met and "python benchmarks/kernels_against.py" in missing.text


def test_a_checkout_is_timed_beside_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Both versions compile and run a graph; the record goes on, and names what cannot run."""
    import corpus_graphs
    import kernels_against

    monkeypatch.setattr(corpus_graphs, "PARTS", (corpus_graphs.variants,))
    path, folder = tmp_path / "record.json", tmp_path / "work"
    folder.mkdir()
    for version in kernels_against.VERSIONS:  # the launcher need not be compiled again
        (folder / f"{version}-cache").symlink_to(os.environ["PASSKIT_CACHE_DIR"])
    write_graphs = kernels_against.write_graphs

    def with_a_broken_one(graphs: Path, only: str, random: bool) -> dict[str, Any]:
        together = write_graphs(graphs, only, random)
        (graphs / "broken.json").write_text("{}")
        return {**together, "broken": None, "large": kernels_against.TOO_LARGE}

    monkeypatch.setattr(kernels_against, "write_graphs", with_a_broken_one)
    options = [str(ROOT), "--work", str(folder), "--json", str(path), "--sample", "0.0005"]
    options += ["--only", "gelu_odd"]
    assert kernels_against.main([*options, "--compile"]) == 0
    assert "3 graphs, 2 left out" in capsys.readouterr().out and not path.exists()
    monkeypatch.setattr(kernels_against, "LIMIT", 1e9)
    assert kernels_against.main(options) == 0
    record = json.loads(path.read_text())
    (row,) = record["rows"]
    assert row["graph"] == "gelu_odd_f32" and row["new"] == kernels_against.commit()
    for version in kernels_against.VERSIONS:
        of_version = row["times"][version]
        assert len(of_version["names"]) == 1 and len(of_version["call"]) == 3
        assert min(of_version["call"]) > 0 and min(of_version["kernels"][0]) > 0
    assert record["left_out"]["large"] == "too large"
    assert record["left_out"]["broken"].startswith("ParseError: the document lacks the key")

    monkeypatch.setattr(kernels_against, "LIMIT", 0.0)
    assert kernels_against.main(options) == 1  # only suspects are measured, again
    (again,) = json.loads(path.read_text())["rows"]
    assert again["times"] == row["times"] and again["again"]["new"]["names"]


def test_a_commit_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit becomes a folder that is named by it, once; an unknown one raises."""
    import kernels_against

    if shutil.which("git") is None or shutil.which("tar") is None:
        pytest.skip("git or tar is not installed")
    user = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
    repository = tmp_path / "repository"
    (repository / "benchmarks").mkdir(parents=True)
    (repository / "benchmarks" / "a.py").write_text("a = 1\n")
    for command in (["init", "-q"], ["add", "."], [*user, "commit", "-q", "-m", "A: add"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    monkeypatch.setattr(kernels_against, "HERE", repository / "benchmarks")
    for _ in range(2):
        with kernels_against.checkout("HEAD", tmp_path / "work") as (name, tree):
            assert tree == tmp_path / "work" / name and len(name) == 8
            assert (tree / "benchmarks" / "a.py").read_text() == "a = 1\n"
    with (
        pytest.raises(subprocess.CalledProcessError),
        kernels_against.checkout("nowhere", tmp_path / "work"),
    ):
        pass


def test_arguments_name_the_other_version(capsys: Any) -> None:
    """Without a version the command says what is needed."""
    import kernels_against

    with pytest.raises(SystemExit):
        kernels_against.main([])
    assert (
        "name the other version: a commit, or the folder of a checkout" in capsys.readouterr().err
    )
