"""Bytes, seconds and shares as readable text, and tables of text."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Iterable, Sequence

from passkit.values.terminal import is_terminal


def bytes_text(count: float) -> str:
    """Return a number of bytes with a unit, at most TiB; negative numbers are in bytes.

    The number has at most three significant digits; from 1000 on it has an exponent, as in
    "2e+03 TiB".

    >>> bytes_text(0), bytes_text(1536), bytes_text(3 << 30)
    ('0 B', '1.5 KiB', '3 GiB')
    >>> bytes_text(999), bytes_text(1000), bytes_text(10**6), bytes_text(1 << 51)
    ('999 B', '0.977 KiB', '977 KiB', '2.05e+03 TiB')
    """
    unit = 0
    while count >= 1000 and unit < 4:
        count, unit = count / 1024, unit + 1
    return f"{count:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


def seconds_text(seconds: float) -> str:
    """Return a time with a unit, from s to ns; 0 and negative times are in nanoseconds.

    The number has at most three significant digits; from 1000 on it has an exponent, as in
    "2e+03 s".

    >>> seconds_text(1.5), seconds_text(0.0123), seconds_text(4.2e-6), seconds_text(3e-8)
    ('1.5 s', '12.3 ms', '4.2 µs', '30 ns')
    >>> seconds_text(60), seconds_text(1e-3), seconds_text(1e-6), seconds_text(0.9999e-6)
    ('60 s', '1 ms', '1 µs', '1e+03 ns')
    """
    for limit, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= limit:
            return f"{seconds / limit:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def percent_text(share: float) -> str:
    """Return a share, from 0 to 1, as a percentage with two digits.

    >>> percent_text(1.0), percent_text(0.257), percent_text(0.00412)
    ('100 %', '26 %', '0.41 %')
    """
    return f"{float(f'{100 * share:.2g}'):g} %"


def is_quantity(text: str) -> bool:
    """Return whether a text is a number, with or without a unit or a factor's x.

    Units are those of bytes and seconds, and %. A number consists of digits, points and commas,
    and may have a sign and an exponent. "inf" and "nan" are no numbers.

    >>> [is_quantity(t) for t in ("1.77 MiB", "36.1 %", "6.00x", "12", "1e-05", "add_1", "f32[4]")]
    [True, True, True, True, True, False, False]
    """
    number, unit = r"[-+]?[\d,.]+(e[-+]?\d+)?", r"(x| ?%| ?[KMGT]?i?B| ?[mµn]?s)?"
    return re.fullmatch(number + unit, text) is not None


def table(header: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None) -> str:
    """Return rows under a header, in aligned columns.

    Columns of numbers, with or without units, are aligned at the right; the first column and other
    columns at the left.

    Args:
        header: The title of each column. It is left out if all are empty.
        rows: The cells of each row, as many as there are titles (IndexError where there are fewer);
            None is an empty cell.
        width: Characters of a line, to which long cells are wrapped. By default those of the
            terminal, and 160 where there is none.

    >>> rows = [("add_1", "12.5 µs"), ("[b]", "5 µs"), ("z" * 14, None)]
    >>> print(table(("kernel", "time"), rows, width=20))
    kernel          time
    add_1        12.5 µs
    [b]             5 µs
    zzzzzzzzzzz
    zzz
    """
    from rich.console import Console  # importing it takes 50 ms
    from rich.table import Table

    if width is None:
        width = shutil.get_terminal_size((160, 24)).columns if is_terminal(sys.stdout) else 160
    text_table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(header))
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for k, name in enumerate(header):
        column = [row[k] for row in cells if row[k]]
        numeric = k > 0 and bool(column) and all(map(is_quantity, column))
        text_table.add_column(name, overflow="fold", justify="right" if numeric else "left")
    for row in cells:
        text_table.add_row(*row)
    text = io.StringIO()
    # Without these rich would show the table itself in a notebook and write nothing to the file,
    # or write escape codes where FORCE_COLOR is set.
    plain = Console(
        file=text,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        color_system=None,
        force_terminal=False,
        force_jupyter=False,
    )
    plain.print(text_table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
