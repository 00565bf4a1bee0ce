"""The examples inside docstrings are true.

Modules are asked for by import name: read by path, a file of ops/ would register its ops twice.
"""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.raised import ROOT, source_files
from tests.test_floors import module_of

MODULES = [module_of(p) for p in source_files() if ">>> " in p.read_text()]


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples in docstrings have the results that they show, in the checkout's root."""
    monkeypatch.chdir(ROOT)
    if module.startswith("passkit.frontends.torch"):
        pytest.importorskip("torch")
    outcome = doctest.testmod(
        importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE
    )

    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_there_are_docstrings_to_test() -> None:
    """The search finds modules with examples."""
    assert {"passkit.values.size", "passkit.graph.op", "passkit.errors"} <= set(MODULES)
