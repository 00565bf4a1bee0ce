"""The dtypes of the standard, which are NumPy's, and its constants."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

bool = np.dtype("bool")
int8 = np.dtype("int8")
int16 = np.dtype("int16")
int32 = np.dtype("int32")
int64 = np.dtype("int64")
uint8 = np.dtype("uint8")
uint16 = np.dtype("uint16")
uint32 = np.dtype("uint32")
uint64 = np.dtype("uint64")
float16 = np.dtype("float16")
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float32 = np.dtype("float32")
float64 = np.dtype("float64")
complex64 = np.dtype("complex64")
complex128 = np.dtype("complex128")

e = math.e
"""Euler's number."""
inf = math.inf
"""Positive infinity."""
nan = math.nan
"""Not a number."""
newaxis = None
"""In an index, a new axis of length 1."""
pi = math.pi
"""The ratio of a circle's circumference to its diameter."""
