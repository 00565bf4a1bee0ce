"""The table of CUDA functions: its instructions are NVRTC's, and the documentation has it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the script; skip the test without NVRTC or nvdisasm."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = importlib.import_module("cuda_functions")
    try:
        module.sass.nvdisasm()
    except module.sass.NoDisassemblerError as error:
        pytest.skip(str(error))
    return module


def test_the_documentation_has_the_recorded_table(functions: Any) -> None:
    """Every row stands in docs/lowering.md."""
    _, *lines = functions.TABLE.read_text().splitlines()
    text = (ROOT / "docs" / "lowering.md").read_text()

    assert [row for row in functions.markdown(lines) if row not in text] == []
    assert len(lines) == len(functions.ROWS)


def test_quotients_without_division_are_short(functions: Any) -> None:
    """Four together take less than half the instructions of four divisions, and call nothing."""
    text = {r.name: functions.instructions(r.body, r.before) for r in functions.ROWS[:3]}
    divided, over, absorbed = map(functions.shortest_way, text.values())
    copied = functions.shortest_way(functions.instructions(functions.each("x[k]"), ""))

    assert over - copied < (divided - copied) / 2
    assert absorbed - copied == 8
    assert "CALL" not in list(text.values())[2] and "CALL" in list(text.values())[1]


def test_a_line_that_differs_is_reported(functions: Any) -> None:
    """One with another error differs whatever the compiler is."""
    _, first, second, *_ = functions.TABLE.read_text().splitlines()

    assert functions.differing_lines([first, second]) == []
    wrong = second.replace("same bits", "7 of 9 wrong")
    assert functions.differing_lines([first, wrong]) == [wrong]


def test_machine_code_without_an_end_is_an_error(functions: Any) -> None:
    """The shortest way is that to an EXIT."""
    with pytest.raises(RuntimeError, match="machine code without an end"):
        functions.shortest_way(".L_1:\n /*0000*/ BRA `(.L_1) ;\n")
