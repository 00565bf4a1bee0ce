"""Whole programs give the numbers that TensorFlow gave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.programs import PROGRAMS

WANTED = np.load(Path(__file__).with_name("fixtures") / "programs.npz")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_gives_what_tensorflow_gives(program, monkeypatch):
    """Values, variables after steps of training, and gradients; shapes and dtypes, too."""
    interpreted = tf.Session
    monkeypatch.setattr(tf, "Session", lambda: interpreted(target="interpret"))
    with tf.Graph().as_default():
        found = program(tf)

    wanted = {key.split("|")[1]: WANTED[key] for key in WANTED.files
              if key.startswith(f"{program.__name__}|")}
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        own = np.asarray(found[name])
        assert (own.shape, own.dtype) == (value.shape, value.dtype), name
        np.testing.assert_allclose(own, value, rtol=2e-5, atol=2e-6, err_msg=name)
