"""Functions of complex arrays with the special values of the standard, where NumPy has others.

NumPy computes real arrays, and complex ones but for limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def expm1(x: Any) -> Any:
    """Return exp(x) - 1 of a NumPy array of floats or complex numbers, in its dtype.

    For infinite complex numbers, it is the limit exp(x) with its real part less 1; NumPy multiplies
    infinite and finite parts, and so returns NaN where the limit is a number.
    """
    result = np.expm1(x)
    if x.dtype.kind != "c":
        return result
    limits = np.asarray(np.exp(x))
    limits.real -= 1
    result = np.where(np.isfinite(x), result, limits)
    result.real += 0.0  # no -0.0
    return result


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent of a NumPy array of floats or complex numbers, in its dtype.

    At infinite real parts the imaginary part is zero, with the sign of x's; NumPy alternates.
    """
    result = np.tanh(x)
    if x.dtype.kind != "c":
        return result
    result = np.array(result)
    is_limit = np.isinf(x.real) & np.isfinite(x.imag)
    np.copysign(0.0, x.imag, out=result.imag, where=is_limit)
    return result
