"""Records in `benchmarks/results` of what takes hours: fuzzing campaigns, suites of other projects.

The first line of a campaign's file holds the date and the commit, the last one the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from shows import RESULTS, ROOT, Figure


def recorded(file: str, least: int) -> Figure:
    """Read the record of a campaign; met with ``least`` graphs or more, none of which failed."""
    path = RESULTS / file
    shown_path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if not path.exists():
        return Figure(f"{shown_path} is missing: python benchmarks/fuzz.py --count {least}", False)
    lines = path.read_text().splitlines() or [""]
    counts = re.match(r"(\d+) graphs, (\d+) failed", lines[-1])
    heading = re.match(r"(\S+), passkit \S+ at (\w+)", lines[0])
    if counts is None or heading is None:
        return Figure(f"{shown_path} holds no report: {lines[-1]}", False)
    graphs, failed = int(counts[1]), int(counts[2])
    text = f"{graphs} of {heading[1]} at {heading[2]}, {failed} failed"
    return Figure(text, graphs >= least and failed == 0, [lines[0], lines[-1]])


def recorded_suite(name: str) -> Figure:
    """Read the table of `suites.py`; met if no library passes more tests than `passkit.xp`.

    Subpackages that both ran count.
    """
    path = RESULTS / f"{name}.json"
    shown_path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if not path.exists():
        return Figure(
            f"{shown_path} is missing: python benchmarks/suites.py {name} --json {shown_path}",
            False,
        )
    report = json.loads(path.read_text())
    tables = report["tables"]
    text = ", ".join(
        f"{library} {table['all'].get('passed', 0)} (failed {table['all'].get('failed', 0)}) "
        f"in {len(table) - 1} subpackages"
        for library, table in tables.items()
    )
    is_met = len(tables) > 1 and not report["ahead"]
    return Figure(f"{text}; of {report['date']}", is_met, tables)


def recorded_ocean_model() -> Figure:
    """Read the times of `pyhpc.py`, the programs of an ocean model.

    Met if `passkit.xp` has the least geometric mean of ratios to NumPy at large sizes, and is not
    slower than NumPy at any.
    """
    path = RESULTS / "pyhpc.json"
    shown_path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if not path.exists():
        return Figure(
            f"{shown_path} is missing: python benchmarks/pyhpc.py --json {shown_path}", False
        )
    report = json.loads(path.read_text())
    means = report["geometric_mean_of_ratios_to_numpy"]
    worst, where = max(
        (times["passkit"] / times["numpy"], f"{program} of {size}")
        for program, sizes in report["seconds"].items()
        for size, times in sizes.items()
    )
    ratios = ", ".join(f"{who} {mean:.2f}" for who, mean in sorted(means.items()))
    text = f"times / NumPy's: {ratios}; at worst {worst:.2f}, {where}; of {report['date']}"
    return Figure(text, min(means, key=means.__getitem__) == "passkit" and worst <= 1, report)


def recorded_random(campaign: str, part: str, least: int, counted: str = "seeds") -> Figure:
    """Read the record of `random_campaigns.py`; met with ``least`` or more, none of them wrong.

    Args:
        campaign: the name of the campaign.
        part: the part of it, such as a target.
        least: the number that is required.
        counted: what is counted, "seeds" or another count of the rows.
    """
    path = RESULTS / f"random-{campaign}.json"
    shown_path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    command = f"python benchmarks/random_campaigns.py {campaign}"
    rows = json.loads(path.read_text()).get(part, []) if path.exists() else []
    if not rows:
        return Figure(f"{shown_path} has no {part}: {command}", False)
    number = sum(r["count"] if counted == "seeds" else r["numbers"][counted] for r in rows)
    failed = sum(len(r["failures"]) for r in rows)
    versions = len({r["commit"] for r in rows})
    last = max(rows, key=lambda r: (r["date"], r["first"]))
    version = f"{versions} versions, the last {last['commit']} of {last['date']}"
    text = f"{number}, {failed} wrong; {version}"
    is_met = number >= least and failed == 0
    return Figure(text if number >= least else f"{text}; go on: {command}", is_met, rows)


def recorded_pieces(pieces: Sequence[str], limit: float) -> Figure:
    """Read the record of `suite_pieces.py`: half of the processor's seconds of all tests.

    Args:
        pieces: the pieces of the suite.
        limit: the most seconds for each of two workers.
    """
    path = RESULTS / "suite.json"
    record = json.loads(path.read_text()) if path.exists() else {"pieces": {}, "lines": {}}
    rows = {p: record["pieces"][p] for p in pieces if p in record["pieces"]}
    share = sum(row["cpu_seconds"] for row in rows.values()) / 2
    failed = [piece for piece, row in rows.items() if not row["passed"]]
    earlier, now = (_shares(record.get(key, {})) for key in ("lines_before", "lines"))
    lines = f"lines executed: {earlier or 'unmeasured'} before, {now or 'unmeasured'} now"
    text = f"{share:.0f} s for each of two workers, {len(failed)} pieces failed; {lines}"
    if len(rows) < len(pieces):
        text = f"{len(rows)} of {len(pieces)} pieces, {text}; python benchmarks/suite_pieces.py"
    return Figure(text, len(rows) == len(pieces) and not failed and share <= limit, record)


def _shares(lines: Mapping[str, Sequence[int]]) -> str:
    """Return the shares of executed lines; ``lines`` has executed ones and all by folder."""
    shares = ((s, done / every) for s, (done, every) in lines.items() if every)
    return ", ".join(f"{s} {100 * share:.1f} %" for s, share in shares)
