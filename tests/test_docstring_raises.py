"""Docstrings are exact: they name the exceptions that a function raises, and its parameters.

`tests/docstrings.py` lists the faults of a folder.
"""

from __future__ import annotations

from pathlib import Path

from tests.docstrings import checked_files, faults

EXAMPLE = '''
class Reader:
    def read(self, path, limit=None, **options):
        """Read.

        Args:
            path: the path.
            size: the size.

        Raises: OSError.
        """
        try:
            raise ValueError(f"{path}")
        except (TypeError, ValueError):
            raise FileNotFoundError(path)
        match path:
            case "":
                raise ShapeError("a")

    @staticmethod
    def check(value, least):
        """Check.

        Args:
            value, least: numbers.
            value: a number.
            most: a number.

        Returns: PasskitErrors are not raised.
        """
        def inner():
            raise KeyError(value)

        raise ShapeError("a")
'''


def test_docstrings_name_errors_and_parameters() -> None:
    """A docstring names each class that its function raises, or a base; Args has all parameters."""
    assert [line for path in checked_files() for line in faults(path)] == []


def test_the_check_finds_each_fault(tmp_path: Path) -> None:
    """Handled errors, those of inner functions, and named bases are no faults; the others are."""
    path = tmp_path / "example.py"
    path.write_text(EXAMPLE)

    assert list(faults(path, tmp_path)) == [
        "example.py:3: read raises ShapeError, which its docstring does not name",
        "example.py:3: read has no entry for limit among its arguments",
        "example.py:21: check has no parameter most, but an entry for it",
        "example.py:21: check has two entries for one parameter",
    ]
