"""Entire programs compute the numbers that TensorFlow computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.programs import PROGRAMS

EXPECTED = np.load(Path(__file__).with_name("fixtures") / "programs.npz")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program_results_equal_tensorflow(program, monkeypatch):
    """Values, trained variables and gradients equal TensorFlow's, in shape and dtype, too."""
    interpreted = tf.Session
    monkeypatch.setattr(tf, "Session", lambda: interpreted(target="interpret"))
    with tf.Graph().as_default():
        results = program(tf)

    expected = {
        key.split("|")[1]: EXPECTED[key]
        for key in EXPECTED.files
        if key.startswith(f"{program.__name__}|")
    }
    assert results.keys() == expected.keys()
    for name, value in expected.items():
        result = np.asarray(results[name])
        assert (result.shape, result.dtype) == (value.shape, value.dtype), name
        np.testing.assert_allclose(result, value, rtol=2e-5, atol=2e-6, err_msg=name)
