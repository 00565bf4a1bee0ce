"""The performance library on disk: no record is lost, and damaged lines are skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from passkit.errors import CacheError
from passkit.library import record_lines, store
from passkit.library.device import device_key
from passkit.library.evaluator import MAX_SAMPLES, Record
from passkit.runtime.native.compiler import find_compiler
from passkit.schedule.schedule import Source
from tests.raised import ROOT

KEY = "0123456789abcdef" * 4
TIMES = (1e-6, 2e-6)
SIZES = (("n", 8),)
ONE = Record(KEY, "exp_1[GRID,CTA];", SIZES, Source.MEASURED, TIMES, 3e-6, "", "exp", TIMES)


def file_of(folder: Path) -> Path:
    """This device's file."""
    return folder / "tuned" / f"{device_key()}.jsonl"


def test_records_are_read_as_written(fresh_cache: Path) -> None:
    """Records are read as they were written, from a folder that only this user reads."""
    other = Record(KEY, "exp_1[GRID];", model=5e-6, fault="other bits")
    assert store.snapshot() == store.EMPTY
    store.add([])
    assert not file_of(fresh_cache).exists()
    store.add([ONE, other])
    result = store.snapshot()

    assert result.records() == [ONE, other]
    assert result.evaluator is store.snapshot().evaluator and result.digest
    assert store.content().records == 2 and store.content().nbytes > 100
    assert file_of(fresh_cache).stat().st_mode & 0o077 == 0
    store.add([ONE])
    assert store.snapshot().digest != result.digest
    assert store.clear() > 100 and store.content() == (0, 0)


def test_damaged_lines_are_skipped(fresh_cache: Path) -> None:
    """Damaged, foreign and stale lines are skipped, and affect no other line."""
    compiler = find_compiler()
    good = json.loads(
        record_lines.record_line(ONE, device_key(), compiler.fingerprint if compiler else "")
    )
    bad = [
        {"device": "another"},
        {"version": "0:0"},
        {"compiler": "another"},
        {"group": "../x"},
        {"template": 7},
        {"source": "guessed"},
        {"samples": ["1"]},
        {"samples": [-1.0]},
        {"samples": [float("nan")]},
        {"model": None},
        {"sizes": {"n": "8"}},
        {"sizes": [8]},
        {"fault": 1},
        {"operators": []},
        {"beside": [None]},
    ]
    texts = [json.dumps(good | change) for change in bad]
    texts += ["7", "null", "[" * 9999, "", "{", "\0\xff", json.dumps(good)[:-9], "x" * (1 << 17)]
    path = file_of(fresh_cache)
    path.parent.mkdir(mode=0o700)
    path.write_bytes("\n".join(texts).encode("latin-1"))  # the last line has no end
    store.add([ONE])

    assert store.snapshot().records() == [ONE]
    assert len(store.snapshot().evaluator) == 1


def test_without_a_compiler_records_of_any_are_read(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warm start needs no compiler, and has the same plan."""
    store.add([ONE])
    digest = store.snapshot().digest
    monkeypatch.setenv("PASSKIT_CXX", "/nonexistent/c++")

    assert store.snapshot().records() == [ONE]
    assert store.snapshot().digest == digest
    monkeypatch.setenv("PASSKIT_THREADS", "1")
    assert store.snapshot() == store.EMPTY


def test_two_writers_lose_nothing(fresh_cache: Path) -> None:
    """Two processes write at once, and a damaged line of one loses no record."""
    text = (
        "import sys\n"
        "from passkit.library.evaluator import Record\n"
        "from passkit.library import store\n"
        "from passkit.schedule.schedule import Source\n"
        "for k in range(80):\n"
        "    store.add([Record(sys.argv[1] * 64, str(k), (), Source.MEASURED, (1.0,))])\n"
        "    if k == 30:\n"
        "        open(sys.argv[2], 'ab').write(b'{\"version\":')\n"
    )
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    file_of(fresh_cache).parent.mkdir(mode=0o700)
    writers = [
        subprocess.Popen([sys.executable, "-c", text, name, str(file_of(fresh_cache))], env=environ)
        for name in "ab"
    ]
    assert [w.wait() for w in writers] == [0, 0]

    result = {(r.group[0], r.template) for r in store.snapshot().records()}
    assert result == {(name, str(k)) for name in "ab" for k in range(80)}


def test_the_file_is_bounded(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has grown too large is rewritten with the newest line of each template."""
    monkeypatch.setattr(store, "MAX_FILE_BYTES", 8000)
    for k in range(60):
        store.add([Record(KEY, f"t{k % 40}", (), Source.MEASURED, (1.0,) * 20)])

    path = file_of(fresh_cache)
    assert path.stat().st_size < 8000
    result = store.snapshot().records()
    assert result[-1].template == "t19" and len(result) > 5
    assert max(len(r.samples) for r in result) <= MAX_SAMPLES
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".new")] == []


def test_a_folder_that_others_may_write_is_refused(fresh_cache: Path) -> None:
    """Records of other users would change the plans that run."""
    store.add([ONE])
    fresh_cache.chmod(0o777)
    with pytest.raises(CacheError, match="others may write"):
        store.snapshot()
    with pytest.raises(CacheError, match="others may write"):
        store.add([ONE])


def test_a_folder_that_cannot_be_written_is_an_error(fresh_cache: Path) -> None:
    """The error has the folder and the way out."""
    (fresh_cache / "tuned").write_text("")
    with pytest.raises(CacheError, match=f"what was measured to {fresh_cache} .* PASSKIT_CACHE"):
        store.add([ONE])
