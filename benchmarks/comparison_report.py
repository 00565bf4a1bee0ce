"""The report of `compare.py`: ratios of a row, their means, and the printed table."""

import math
import statistics
from typing import Any

import peers

MODES = ("dropped", "kept")
"""Whether results are dropped before the next call, or kept for an entire series."""
LARGE_NBYTES = 1 << 20
"""Bytes of the first input from which a row counts as large."""
SMALL_SECONDS = 50e-6
"""Calls shorter than this are timed many at a time."""


def ratios(row: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios of a row.

    These are the best peer over passkit (over the hand-written kernel where passkit did not run),
    and passkit over the hand-written kernel.
    """
    entries = row["competitors"]
    subject = "passkit" if "passkit" in entries else "hand"
    ratios_of_row: dict[str, Any] = {
        "subject": subject,
        "best_peer": {},
        "speedup": {},
        "over_hand": {},
    }
    for mode in MODES:
        times = {
            n: entries[n][mode]["median"]
            for n in peers.PEERS
            if n in entries and n not in row["failed"]
        }
        if times and subject in entries:
            best = min(times, key=lambda n: times[n])
            ratios_of_row["best_peer"][mode] = best
            ratios_of_row["speedup"][mode] = times[best] / entries[subject][mode]["median"]
        if "passkit" in entries and row.get("hand_kernel", 0.0) > SMALL_SECONDS:
            ratios_of_row["over_hand"][mode] = (
                entries["passkit"][mode]["median"] / entries["hand"][mode]["median"]
            )
    if "passkit" in entries and "hand_kernel" in row:
        ratios_of_row["over_hand_kernel"] = (
            entries["passkit"]["dropped"]["median"] / row["hand_kernel"]
        )
    return ratios_of_row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return geometric mean, least and number of the speedups, by mode and group of rows."""
    groups = {
        "core rows": [r for r in rows if r["core"]],
        "core rows of 1 MB and more": [
            r for r in rows if r["core"] and r["nbytes"] >= LARGE_NBYTES
        ],
        "all rows": rows,
        "all rows of 1 MB and more": [r for r in rows if r["nbytes"] >= LARGE_NBYTES],
    }
    groups_by_mode: dict[str, Any] = {}
    for mode in MODES:
        for title, members in groups.items():
            values = [r["speedup"][mode] for r in members if mode in r["speedup"]]
            if values:
                groups_by_mode.setdefault(mode, {})[title] = {
                    "geometric_mean": math.exp(statistics.fmean(map(math.log, values))),
                    "least": min(values),
                    "rows": len(values),
                }
    return groups_by_mode


def text(rows: list[dict[str, Any]], names: list[str], totals: dict[str, Any]) -> str:
    """Return the printed table: medians (minima) in microseconds."""
    lines = []
    for mode in MODES:
        lines.append(f"\nresults {mode}: best median (minimum) of a call, microseconds")
        head = "".join(f"{name:>21}" for name in names)
        lines.append(f"{'':31}{head}{'kernel alone':>14}{'best peer /':>13}{'passkit /':>11}")
        lines.append(f"{'':31}{'':{21 * len(names)}}{'(hand)':>14}{'passkit':>13}{'hand':>11}")
        for row in rows:
            cells = "".join(f"{cell(row, name, mode):>21}" for name in names)
            kernel_alone = f"{row['hand_kernel'] * 1e6:.2f}" if "hand_kernel" in row else ""
            speedup = row["speedup"].get(mode)
            mark = "" if row["subject"] == "passkit" else " (hand)"
            over = row["over_hand"].get(mode)
            lines.append(
                f"{'*' if row['core'] else ' '} {row['name']:29}{cells}{kernel_alone:>14}"
                + (f"{speedup:>13.2f}{mark}" if speedup else f"{'':13}")
                + (f"{over:>11.2f}" if over else "")
            )
        for title, total in totals.get(mode, {}).items():
            lines.append(
                f"  {title} ({total['rows']}): geometric mean "
                f"{total['geometric_mean']:.2f}, least {total['least']:.2f}"
            )
    for row in rows:
        for name, reason in row["failed"].items():
            lines.append(f"FAILED {row['name']}, {name}: {reason.splitlines()[0][:160]}")
    return "\n".join(lines)


def cell(row: dict[str, Any], name: str, mode: str) -> str:
    """Return one competitor's median and minimum as text."""
    entry = row["competitors"].get(name)
    if entry is None:
        return "-"
    digits = 3 if entry[mode]["median"] < 1e-5 else 1
    return f"{entry[mode]['median'] * 1e6:.{digits}f} ({entry[mode]['minimum'] * 1e6:.{digits}f})"
