"""Bytes, seconds and tables as text: suitable units, and cells that wrap."""

from __future__ import annotations

from passkit.values.units import bytes_text, seconds_text, table


def test_units_change_before_the_fourth_digit() -> None:
    """A number has at most three digits before its point."""
    assert [bytes_text(n) for n in (999, 1000, 1024, 10**6, 1 << 50)] == [
        "999 B",
        "0.977 KiB",
        "1 KiB",
        "977 KiB",
        "1.02e+03 TiB",
    ]
    assert [seconds_text(s) for s in (0.9999e-6, 1e-6, 1e-3, 60)] == [
        "1e+03 ns",
        "1 µs",
        "1 ms",
        "60 s",
    ]


def test_tables_align_and_wrap() -> None:
    """Columns are aligned; a cell too long for the width continues in the next line."""
    text = table(("a", "b"), [("one", "x y"), ("twenty", "[red]"), (None, "z" * 30)], width=20)
    lines = text.splitlines()

    assert lines[1] == "one     x y"
    assert lines[2] == "twenty  [red]"
    assert "".join(line.strip() for line in lines[3:]) == "z" * 30
    assert max(map(len, lines)) <= 20
