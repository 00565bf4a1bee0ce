"""The tables of demands: how `benchmarks/show.py` measures and prints them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the modules of benchmarks/ importable, and forget them afterwards."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in (
        "show",
        "shows",
        "shows.core",
        "shows.faults",
        "shows.operators",
        "shows.plans",
        "shows.records",
        "shows.stitch",
        "shows.tensorflow",
        "shows.training",
        "scaling",
        "selections",
        "planning",
        "startup",
        "workloads",
        "networks",
        "networks.torch_process",
        "compare",
        "peers",
        "layers",
        "operator_workloads",
        "best_template",
    ):
        sys.modules.pop(name, None)


def test_rows_are_met_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    """Exceptions are not met; slow demands are skipped unless they are named."""
    from shows import Demand, Figure, show

    demands = [
        Demand("fast", lambda: Figure("2.0", True, 2.0)),
        Demand("small", lambda: Figure("7 us", False)),
        Demand("broken", lambda: Figure(str(1 // 0), True)),
        Demand("slow one", lambda: Figure("0.1", True), slow=True),
    ]
    rows = show(demands, quick=True)
    assert [r.met for r in rows] == [True, False, False, None]
    assert "ZeroDivisionError: integer division" in rows[2].text
    assert capsys.readouterr().out.endswith("1 of 3 demands met, 1 not measured\n")
    assert [r.met for r in show(demands, only="SLOW", quick=True)] == [True]


def test_tests_as_a_figure(tmp_path: Path) -> None:
    """A run of tests is one figure; a missing file is not met."""
    from shows import tests

    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): assert 1 == 2\n")
    figure = tests(str(tmp_path / "test_two.py"))
    assert not figure.met and figure.text.startswith("1 failed, 1 passed")
    assert tests(str(tmp_path / "test_two.py"), only="test_a").met
    assert tests("tests/nothing.py").text == "not there: tests/nothing.py"


def test_every_demand_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line measures the chosen rows, writes JSON and returns 0."""
    from show import main
    from shows.core import DEMANDS

    texts = [d.text for d in DEMANDS]
    assert len(set(texts)) == len(texts) > 35
    file = tmp_path / "rows.json"
    assert main(["core", "--only", "tanh <=", "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert row["met"] is True and 0.4 < row["data"] <= 4
    assert "1 of 1 demands met" in capsys.readouterr().out


def test_operators_have_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios are read from a report by row names; the worst row of a name counts."""
    from shows import operators

    texts = [d.text for d in operators.DEMANDS]
    assert len(set(texts)) == len(texts) > 20
    assert operators.how_many().met
    rows = [
        {
            "name": name,
            "speedup": {"dropped": ratio, "kept": 2.0},
            "failed": {},
            "nbytes": nbytes,
            "competitors": {"passkit": {m: {"median": s} for m in ("dropped", "kept")}},
        }
        for name, ratio, nbytes, s in [
            ("colsum (4, 5)", 1.6, 1, 1.0),
            ("colsum (9, 9)", 1.4, 1, 1.0),
            ("scale (9,)", 1.0, 9, 2.0),
            ("fullsum (9,)", 1.0, 9, 1.1),
        ]
    ]
    report = {"settings": dict.fromkeys(operators.PEERS), "rows": rows}
    monkeypatch.setattr(operators, "comparison", lambda name: report)
    assert operators.faster("reductions", "colsum", 1.4).met
    assert operators.faster("reductions", "colsum", 1.5).text.startswith("1.40: colsum (9, 9), ")
    assert operators.fullsum().text.startswith("1.10 of copying's time a byte")
    with pytest.raises(RuntimeError, match="has no row cumsum"):
        operators.faster("reductions", "cumsum", 1.0)
    report["settings"].pop("jax")
    with pytest.raises(RuntimeError, match="without jax; --peers"):
        operators.faster("reductions", "colsum", 1.0)


def test_records_of_campaigns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A record is met if it names its commit, has no failure, and is long enough."""
    from shows import records

    monkeypatch.setattr(records, "RESULTS", tmp_path)
    file = tmp_path / "fuzz.txt"
    assert "fuzz.txt is missing: python" in records.recorded("fuzz.txt", 20).text
    file.write_text("")
    assert "fuzz.txt holds no report: " in records.recorded("fuzz.txt", 20).text
    file.write_text("2026-11-23, passkit 0.1.0 at 85456d0, a CPU\n\n20 graphs, 0 failed, 9 s\n")
    assert records.recorded("fuzz.txt", 20).met
    assert records.recorded("fuzz.txt", 20).text == "20 of 2026-11-23 at 85456d0, 0 failed"
    assert not records.recorded("fuzz.txt", 21).met
    file.write_text(file.read_text().replace("0 failed", "1 failed"))
    assert not records.recorded("fuzz.txt", 20).met


def test_records_of_suites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The table of a foreign suite is met if no library passes more tests than passkit.xp."""
    from shows import records

    monkeypatch.setattr(records, "RESULTS", tmp_path)
    assert "python benchmarks/suites.py scipy --json" in records.recorded_suite("scipy").text
    counts = {"stats": {"passed": 7, "failed": 1}, "all": {"passed": 7, "failed": 1}}
    tables = {"passkit.xp": counts, "torch": {"stats": {}, "all": {}}}
    report = {"date": "2026-11-29", "tables": tables, "ahead": []}
    (tmp_path / "scipy.json").write_text(json.dumps(report))
    figure = records.recorded_suite("scipy")
    assert figure.met
    assert figure.text.startswith("passkit.xp 7 (failed 1) in 1 subpackages, torch 0 (failed 0) ")
    (tmp_path / "scipy.json").write_text(json.dumps({**report, "ahead": ["torch"]}))
    assert not records.recorded_suite("scipy").met


def test_the_record_of_the_ocean_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is met if xp has the least mean and is not slower than NumPy at any size."""
    from shows import records

    monkeypatch.setattr(records, "RESULTS", tmp_path)
    missing = records.recorded_ocean_model()
    assert not missing.met
    assert "python benchmarks/pyhpc.py --json" in missing.text
    means = {"passkit": 0.25, "numpy": 1.0, "jax": 0.5}
    times = {"4096": {"passkit": 1.0, "numpy": 2.0}, "65536": {"passkit": 1.5, "numpy": 6.0}}
    report = {
        "date": "2026-11-29",
        "geometric_mean_of_ratios_to_numpy": means,
        "seconds": {"mixing": times},
    }
    (tmp_path / "pyhpc.json").write_text(json.dumps(report))
    figure = records.recorded_ocean_model()
    assert figure.met
    assert "jax 0.50, numpy 1.00, passkit 0.25; at worst 0.50, mixing of 4096" in figure.text
    means["jax"] = 0.2
    (tmp_path / "pyhpc.json").write_text(json.dumps(report))
    assert not records.recorded_ocean_model().met
    means["jax"], times["4096"]["passkit"] = 0.5, 3.0
    (tmp_path / "pyhpc.json").write_text(json.dumps(report))
    assert not records.recorded_ocean_model().met


def test_stitched_kernels_have_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stitched rows compare with peers, hand-written kernels, unfused, ONNX."""
    from shows import operators, stitch

    def row(name: str, speedup: float, **seconds: float) -> dict[str, Any]:
        both = ("dropped", "kept")
        times = {n: {mode: {"median": s} for mode in both} for n, s in seconds.items()}
        return {
            "name": name,
            "speedup": dict.fromkeys(both, speedup),
            "failed": {},
            "competitors": times,
        }

    rows = [
        row("figure1 512x94x1", 2.5, passkit=1.0, unfused=4.0),
        row("figure1 512x94x32", 2.1, passkit=1.0, unfused=2.9),
        row("attention 64x94x32", 1.6, passkit=1.2, unfused=9.0, hand=1.0),
    ]
    report: dict[str, Any] = {"settings": dict.fromkeys([*operators.PEERS, "hand"]), "rows": rows}
    parts: list[dict[str, str]] = []
    monkeypatch.setattr(operators, "comparison", lambda name, **part: parts.append(part) or report)

    assert len({d.text for d in stitch.DEMANDS}) == len(stitch.DEMANDS)
    assert stitch.figure1("peer", 2.0).text == "2.10: figure1 512x94x32, the worst of 2 rows"
    assert stitch.figure1("peer", 2.0).met and not stitch.figure1("unfused", 3.0).met
    assert stitch.by_hand().text == "1.20" and stitch.by_hand().met
    report["settings"]["passkit"] = None
    report["rows"] = [row("colsum 4096x1024", 1.5, passkit=4e-4, hand=3.2e-4)]
    figure = stitch.core_row("colsum 4096x1024", "hand", 1.25)
    assert figure.met and figure.text == "1.25: 400 us, hand 320 us"
    assert parts[-1] == {"rows": "colsum 4096x1024", "only": "passkit,hand", "python": ""}
    with pytest.raises(RuntimeError, match="without onnx; --onnx names a Python with it"):
        stitch.core_row("colsum 4096x1024", "onnx", 1.0)
    report["rows"][0]["failed"]["hand"] = "error 1.0 > 1e-5"
    with pytest.raises(RuntimeError, match="colsum 4096x1024: error 1.0 > 1e-5"):
        stitch.core_row("colsum 4096x1024", "hand", 1.25)


def test_rows_of_several_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """All results of a row count, in one kernel and unfused."""
    import peers
    from attrs import evolve
    from operator_workloads import SETS

    row = next(w for w in SETS["stitched"] if w.name == "figure1")
    sizes = {"x": (2, 94, 3), "y": (2, 3, 94), "z": (2, 94, 5), "w": (94,), "v": (5,)}
    small = evolve(row, inputs=tuple(sizes.items()))
    arrays = small.arrays(0)
    expected = small.reference(arrays)
    assert expected.shape == (2 * 94 * (5 + 3),)
    for name, kernels in (("passkit", 1), ("unfused", 10)):
        entrant = peers.BUILDERS[name](small, 1)
        assert entrant is not None
        result = entrant.numpy(entrant.function(**dict(zip(sizes, arrays, strict=True))))
        assert small.error(result, expected) < small.tolerance
        count = entrant.function.stats["kernels"]  # type: ignore[attr-defined]
        assert count == 1 if kernels == 1 else count >= kernels
    assert peers.BUILDERS["unfused"](SETS["reductions"][0], 1) is None
    assert peers.BUILDERS["onnx"](small, 1) is None


def test_growth_is_per_operator() -> None:
    """Twice the operators in four times the seconds is a growth of two."""
    from scaling import growth, measure

    rows: list[dict[str, Any]] = [
        {"cpu_seconds": 1.0, "operators": 10},
        {"cpu_seconds": 4.0, "operators": 20},
    ]
    assert growth(rows) == 2
    small = measure("transformer", 54)
    assert 50 <= small["operators"] <= 60 and small["kernels"] > 5


def test_processes_start() -> None:
    """A new process has its own caches, and its last line is parsed as JSON."""
    from startup import FreshProcesses, least, median

    with FreshProcesses() as processes:
        answer = processes.run(
            "import json, os; print(json.dumps(os.environ['PASSKIT_CACHE_DIR']))"
        )
        assert str(answer) == str(processes.folder / "cache")
        with pytest.raises(RuntimeError, match="SystemExit|no good"):
            processes.run("raise SystemError('no good')")
    assert not processes.folder.exists()
    samples = [{"wall": w} for w in (3.0, 1.0, 2.0)]
    assert (median(samples, "wall"), least(samples, "wall")) == (2.0, 1.0)


def test_networks_draw_inputs_of_their_shape() -> None:
    """Inputs depend on a seed, words are below their bound, a batch may be given."""
    from networks import TEN

    assert len(TEN) == 10
    for name, written in TEN.items():
        x = written.inputs(3)
        assert (name, x.shape) == (written.name, (3, *written.example))
        assert np.array_equal(x, written.inputs(3))
        assert x.dtype == (np.int32 if written.words else np.float32)
        assert written.inputs().shape[0] == written.batch
    assert 0 <= TEN["encoder"].inputs().min() <= TEN["encoder"].inputs().max() < 1000


def test_entire_models_have_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means are taken by what bounds a model; the slowest start counts."""
    from shows import tensorflow

    texts = [d.text for d in tensorflow.DEMANDS]
    assert len(set(texts)) == len(texts) >= 15
    rows = [
        {
            "name": name,
            "library_share": share,
            "speedup": ratio,
            "cold": cold,
            "warm": 0.2,
            "none": {"kernels": 9, "bytes": 80},
            "stitch": {"kernels": 3, "bytes": 20},
        }
        for name, share, ratio, cold in [
            ("lenet", 0.9, 0.5, 1.0),
            ("unet", 0.6, 2.0, 4.0),
            ("norm", 0.1, 3.0, 6.0),
            ("odd", 0.2, None, 1.0),
        ]
    ]
    monkeypatch.setattr(tensorflow, "models", lambda: rows)

    assert tensorflow.faster(True, 1.0).text == "1.00 over 2, least 0.50: lenet"
    assert tensorflow.faster(False, 3.1).text == "3.00 over 1, least 3.00: norm"
    assert not tensorflow.faster(False, 3.1).met
    assert not tensorflow.faster(False, 1.4).met  # of fewer than four networks
    rows += [row | {"name": f"norm{k}"} for k in range(3) for row in rows[2:3]]
    assert tensorflow.faster(False, 1.4).met
    assert tensorflow.start_up("cold", 5).text == "6.00 s: norm"
    assert not tensorflow.fewer().met  # fewer than ten
    assert "bytes 4.0 times fewer" in tensorflow.fewer().text


def test_commands_whose_last_line_is_a_figure() -> None:
    """A command's last line is the figure, met by its status."""
    from shows import ended

    good = ended(["-c", "print('one'); print('2 of 2 ran')"])
    bad = ended(["-c", "raise SystemExit('1 of 2 ran')"])
    assert (good.text, good.met, good.data) == ("2 of 2 ran", True, ["one", "2 of 2 ran"])
    assert (bad.text, bad.met) == ("1 of 2 ran", False)
    assert ended(["-c", ""], "--scripts").met is None


def test_the_speed_of_plans_is_that_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of plans measures the six programs."""
    from shows import plans, training

    monkeypatch.setattr(training, "speed", lambda *names: names)
    (row,) = (d for d in plans.DEMANDS if d.text.startswith("best of PyTorch and JAX"))
    assert len(row.measure()) == 6  # type: ignore[arg-type]


def test_speed_of_training_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best round counts, unfused passkit is no peer, each batch has to be met."""
    from shows import training
    from training import programs
    from training.timing import ProgramTimes, RoundTimes

    def row(passkit: float, unfused: float, **peers: float) -> ProgramTimes:
        times = {n: RoundTimes([2 * s, s]) for n, s in {**peers, "unfused": unfused}.items()}
        return ProgramTimes(
            {"passkit": RoundTimes([passkit, 9.0]), **times}, {"compile": "not there"}
        )

    rows = {programs.label(p): row(2.0, 3.0, graph=6.0, jax=4.0) for p in programs.rows([], [])}
    assert list(rows)[6:9] == ["transformer", "lenet/1", "lenet/8"] and "resnet-1" in rows
    monkeypatch.setattr(training, "table", lambda: rows)
    assert training.micro().met and training.micro().data["bi-rnn"] == 2.0
    ratios = training.by_batch("lenet", 1.4, ["unfused"]).data
    assert ratios == dict.fromkeys((1, 8, 16, 32, 64), 1.5)

    rows["lenet/64"] = row(2.0, 2.0, graph=1.0)
    assert not training.by_batch("lenet").met and training.by_batch("resnet-1").met
    assert training.by_batch("lenet", 1.4, ["unfused"]).data[64] == 1.0


def test_another_python_that_ends_raises() -> None:
    """A Python that ends raises PipeError; the others are timed without it."""
    from networks.torch_process import torch_in
    from pipe import PipeError
    from training.programs import named
    from training.tensorflow_process import tensorflow_in
    from training.timing import measured, ready

    for begin in (torch_in, tensorflow_in):
        with pytest.raises(PipeError, match="the process ended"):
            begin("false", 1)
    program = named("logistic", {"batch": 3})
    entrants, failed = ready(program, ["passkit", "graph"])
    (times,) = measured(entrants, rounds=2, seconds=0.0).values()
    assert not failed and len(times.wall) == 2 and 0 < times.best <= min(times.wall)


def test_demands_name_existing_files() -> None:
    """Every file of tests that a module of `shows` names exists."""
    sources = {p: p.read_text() for p in (ROOT / "benchmarks" / "shows").glob("*.py")}
    paths = {
        (source.name, path)
        for source, text in sources.items()
        for path in re.findall(r"tests/[\w/]+\.py", text)
    }

    assert len(paths) > 30
    assert [path for path in sorted(paths) if not (ROOT / path[1]).exists()] == []


def test_demands_on_faults_name_existing_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file and test that the table of faults runs exists."""
    from shows import Figure, faults

    paths: list[str] = []
    monkeypatch.setattr(faults, "tests", lambda *p, only="": paths.extend(p) or Figure("", True))
    for demand in faults.DEMANDS:
        if not demand.slow:
            demand.measure()

    assert len(paths) > 50
    for path in paths:
        file, _, name = path.partition("::")
        assert (ROOT / file).exists(), path
        assert not name or f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), path


def test_every_subject_has_demands(capsys: pytest.CaptureFixture[str]) -> None:
    """The command line offers the modules of `shows` that have demands, and no others."""
    import show

    with pytest.raises(SystemExit):
        show.main(["--help"])
    subjects = re.search(r"\{([\w,]+)\}", capsys.readouterr().out)

    assert subjects is not None
    offered = subjects[1].split(",")
    assert "faults" in offered and "records" not in offered
