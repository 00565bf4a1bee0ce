"""The standard operators. Written by docs/stubs.py."""

import builtins
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from passkit.graph.argtypes import DTypeLike, Numbers, OperandLike, Padding, ShapeLike
from passkit.graph.node import Entry, Node
from passkit.values.size import Size

from passkit.ops.assigning import assign_index as assign_index
from passkit.ops.movement_composites import array_split as array_split
from passkit.ops.movement_composites import broadcast_arrays as broadcast_arrays
from passkit.ops.movement_composites import meshgrid as meshgrid
from passkit.ops.movement_composites import unstack as unstack
from passkit.ops.slicing import split as split

def Phi(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the distribution function of the normal distribution"""

def Phi_approx(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Phi to three digits, by a sigmoid"""

def abs(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the magnitude of x"""

def absolute(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the magnitude of x (another name of abs)"""

def absolute_difference(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""abs(predictions - labels) (another name of mean_absolute_error)

    Args:
        reduction: how the losses of elements are combined
    """

def acos(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle whose cosine is x"""

def acosh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of cosh"""

def add(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x + y"""

def add_along_axis(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = -1,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for each element of indices that of x at this position of the axis, plus updates

    Args:
        axis: the axis; negative ones count from the end
        mode: outside: clip, or read 0 and drop writes
    """

def alibi_bias(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for scores (…, heads, queries, keys): minus the distance of key and query, times the slope of the head"""

def angle(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle of x in the complex plane"""

def arange(
    start: float,
    stop: float | Size | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""start, start + step, … before stop, computed in double; arange(n) begins at 0

    Args:
        start: first number; the end, if stop is None (required)
        stop: end, which is excluded
        step: distance of the numbers
        dtype: dtype of the result; None: int64 or float64 by the numbers
    """

def arccos(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle whose cosine is x (another name of acos)"""

def arccosh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of cosh (another name of acosh)"""

def arcsin(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle whose sine is x (another name of asin)"""

def arcsinh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of sinh (another name of asinh)"""

def arctan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle whose tangent is x (another name of atan)"""

def arctan2(
    y: OperandLike,
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle of the point (x, y); NaN keeps, zeros keep their signs (another name of atan2)"""

def arctanh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of tanh (another name of atanh)"""

def arg_max(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""where the largest element is, the first of equal ones, or the first NaN; int64 (another name of argmax)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def arg_min(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""where the smallest element is, the first of equal ones, or the first NaN; int64 (another name of argmin)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def argmax(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""where the largest element is, the first of equal ones, or the first NaN; int64

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def argmin(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""where the smallest element is, the first of equal ones, or the first NaN; int64

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def argsort(
    x: OperandLike,
    axis: int = -1,
    descending: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the positions of the elements along axis in their order; equal ones stay in theirs

    Args:
        axis: the axis; negative ones count from the end
        descending: largest first
    """

def argwhere(
    x: OperandLike,
    /,
    size: int,
    fill_value: builtins.complex = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the coordinates of the first size elements that are not 0, in row-major order; fill_value behind them

    Args:
        size: number of results, which must be known (required)
        fill_value: value of the elements that are filled
    """

def asin(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle whose sine is x"""

def asinh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of sinh"""

def assign(
    old: OperandLike,
    new: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""write a value into a state variable; the result is the new value"""

def astype(
    x: OperandLike,
    /,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x converted to dtype: float to integer saturates and NaN gives 0; integers wrap (another name of cast)

    Args:
        dtype: dtype of the result
    """

def atan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle whose tangent is x"""

def atan2(
    y: OperandLike,
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle of the point (x, y); NaN keeps, zeros keep their signs"""

def atanh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of tanh"""

def atleast_1d(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with axes put in up to rank 1"""

def atleast_2d(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with axes put in up to rank 2"""

def atleast_3d(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with axes put in up to rank 3"""

def average(
    x: OperandLike,
    weights: OperandLike = ...,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of x by weights, which broadcast to it

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def avg_pool(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    count_include_pad: bool = False,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of each window; padding counts only if count_include_pad says so (another name of avg_pool2d)

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def avg_pool1d(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    count_include_pad: bool = False,
    data_format: str = 'NWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of each window; padding counts only if count_include_pad says so

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def avg_pool2d(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    count_include_pad: bool = False,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of each window; padding counts only if count_include_pad says so

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def avg_pool3d(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    count_include_pad: bool = False,
    data_format: str = 'NDHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of each window; padding counts only if count_include_pad says so

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def band_part(
    x: OperandLike,
    num_lower: int = -1,
    num_upper: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with zeros outside of num_lower diagonals below and num_upper above; a negative number keeps all on its side

    Args:
        num_lower: diagonals kept below the main one; negative: all
        num_upper: diagonals kept above the main one; negative: all
    """

def batch_norm(
    input: OperandLike,
    scale: OperandLike = ...,
    offset: OperandLike = ...,
    mean: OperandLike = ...,
    variance: OperandLike = ...,
    epsilon: float = 0.001,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(input - mean) / sqrt(variance + epsilon) * scale + offset, for each channel

    Args:
        epsilon: small number that keeps the division or logarithm finite
        axis: the axis; negative ones count from the end
    """

def batch_norm_training(
    input: OperandLike,
    scale: OperandLike = ...,
    offset: OperandLike = ...,
    running_mean: OperandLike = ...,
    running_variance: OperandLike = ...,
    epsilon: float = 0.001,
    axis: int = -1,
    momentum: float = 0.99,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry, Entry]:
    r"""batch_norm with the statistics of the batch; results: y, and the running statistics moved

    Args:
        epsilon: small number that keeps the division or logarithm finite
        axis: the axis; negative ones count from the end
        momentum: weight of the old running statistics
    """

def batch_normalization_inference(
    input: OperandLike,
    scale: OperandLike = ...,
    offset: OperandLike = ...,
    mean: OperandLike = ...,
    variance: OperandLike = ...,
    epsilon: float = 0.001,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(input - mean) / sqrt(variance + epsilon) * scale + offset, for each channel (another name of batch_norm)

    Args:
        epsilon: small number that keeps the division or logarithm finite
        axis: the axis; negative ones count from the end
    """

def batch_to_space(
    x: OperandLike,
    block_shape: int | Sequence[int],
    crops: int | Sequence[Sequence[int]] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images become the points of blocks of the axes after the first, which are cropped

    Args:
        block_shape: lengths of a block along the axes after the first (required)
        crops: (before, after) cut from each axis of the blocks
    """

def batch_to_space_nd(
    x: OperandLike,
    block_shape: int | Sequence[int],
    crops: int | Sequence[Sequence[int]] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images become the points of blocks of the axes after the first, which are cropped (another name of batch_to_space)

    Args:
        block_shape: lengths of a block along the axes after the first (required)
        crops: (before, after) cut from each axis of the blocks
    """

def bernoulli(
    p: OperandLike,
    key: OperandLike = ...,
    shape: ShapeLike | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""True with probability p, which is broadcast to shape; None is p's own (another name of random_bernoulli)

    Args:
        shape: shape of the result; None: that of p
    """

def bessel_i0(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the modified Bessel function of order 0"""

def bessel_i0e(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(-|x|) bessel_i0(x)"""

def bessel_i1(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the modified Bessel function of order 1"""

def bessel_i1e(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(-|x|) bessel_i1(x)"""

def beta(
    a: OperandLike,
    b: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the beta function"""

def betainc(
    a: OperandLike,
    b: OperandLike = ...,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the incomplete beta function over beta(a, b); NaN but for a, b > 0, x from 0 to 1"""

def betaln(
    a: OperandLike,
    b: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the logarithm of the beta function (another name of lbeta)"""

def bilinear(
    a: OperandLike,
    b: OperandLike = ...,
    weight: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(…, i), (…, j), (k, i, j) -> (…, k): a form of a and b for each k"""

def binary_cross_entropy(
    labels: OperandLike,
    predictions: OperandLike = ...,
    epsilon: float = 1e-07,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""-labels * log(p) - (1 - labels) * log(1 - p) of probabilities, kept off 0 and 1 by epsilon

    Args:
        epsilon: small number that keeps the division or logarithm finite
        reduction: how the losses of elements are combined
    """

def bincount(
    x: OperandLike,
    /,
    length: int = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""how often 0 … length-1 occur; others do not count

    Args:
        length: length of the result
    """

def binomial_coefficient_log(
    n: OperandLike,
    k: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log of n! / (k! (n - k)!), by gamma functions"""

def bitcast(
    x: OperandLike,
    /,
    dtype: DTypeLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits of x taken as a number of another type

    Args:
        dtype: dtype of the result (required)
    """

def bitcast_convert_type(
    x: OperandLike,
    /,
    dtype: DTypeLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits of x taken as a number of another type (another name of bitcast)

    Args:
        dtype: dtype of the result (required)
    """

def bitwise_and(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""both bits"""

def bitwise_count(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""how many bits of the magnitude of x are 1, as uint8"""

def bitwise_invert(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""bits inverted (another name of bitwise_not)"""

def bitwise_left_shift(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x 2^n, wrapped; 0 where n is negative or at least the width (another name of left_shift)"""

def bitwise_not(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""bits inverted"""

def bitwise_or(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""either bit"""

def bitwise_right_shift(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / 2^n rounded down; copies of the sign where n is negative or at least the width (another name of right_shift)"""

def bitwise_xor(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""bits that differ"""

def broadcast_to(
    x: OperandLike,
    /,
    shape: ShapeLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x stretched to a shape, as NumPy broadcasts

    Args:
        shape: shape of the result (required)
    """

def bucketize(
    x: OperandLike,
    bins: OperandLike = ...,
    right: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bin of each element: how many of the rising bins are at most it, or below it with right (another name of digitize)

    Args:
        right: bins include their right end instead of the left one
    """

def cast(
    x: OperandLike,
    /,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x converted to dtype: float to integer saturates and NaN gives 0; integers wrap

    Args:
        dtype: dtype of the result
    """

def categorical(
    logits: OperandLike,
    key: OperandLike = ...,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""classes along axis, drawn with the probabilities softmax(logits), as int64 (another name of random_categorical)

    Args:
        axis: the axis; negative ones count from the end
    """

def causal_mask(
    x: OperandLike,
    /,
    value: float = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""scores (…, queries, keys) with value where a key is later than the query; the last of both are at one time

    Args:
        value: value that is put in
    """

def cbrt(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the cube root of x"""

def ceil(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x rounded up"""

def celu(
    x: OperandLike,
    /,
    alpha: float = 1.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x if positive, else alpha (exp(x / alpha) - 1)

    Args:
        alpha: slope or scale of the negative side
    """

def cholesky(
    x: OperandLike,
    /,
    upper: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the lower triangle L with L @ L.T = x, or its transpose

    Args:
        upper: the upper triangle instead of the lower one
    """

def clip(
    x: OperandLike,
    low: OperandLike,
    high: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""minimum(maximum(x, low), high)"""

def clip_by_norm(
    x: OperandLike,
    /,
    clip_norm: float = 1.0,
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x, shortened to length clip_norm along axis where it is longer

    Args:
        clip_norm: largest length of the result
        axis: the axis or axes; negative ones count from the end, None is all
    """

def clip_by_value(
    x: OperandLike,
    low: OperandLike,
    high: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""minimum(maximum(x, low), high) (another name of clip)"""

def complex(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the complex number of a real and an imaginary part"""

def concat(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs one after the other along axis

    Args:
        axis: the axis; negative ones count from the end
    """

def concatenate(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs one after the other along axis (another name of concat)

    Args:
        axis: the axis; negative ones count from the end
    """

def conj(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the opposite imaginary part"""

def conjugate(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the opposite imaginary part (another name of conj)"""

def conv1d(
    input: OperandLike,
    filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = 'NWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the convolution over 1 spatial axes

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def conv1d_transpose(
    input: OperandLike,
    filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = 'NWC',
    output_shape: Sequence[int] | None = None,
    output_padding: int | Sequence[int] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the transpose of conv1d: (batch, *result, filters) and its filter -> (batch, *size, channels); output_shape or output_padding chooses among the sizes that fit

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
        output_shape: sizes of the result; None: the smallest that fit
        output_padding: added to one side of the result, to choose among sizes that fit
    """

def conv2d(
    input: OperandLike,
    filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the convolution over 2 spatial axes

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def conv2d_transpose(
    input: OperandLike,
    filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = 'NHWC',
    output_shape: Sequence[int] | None = None,
    output_padding: int | Sequence[int] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the transpose of conv2d: (batch, *result, filters) and its filter -> (batch, *size, channels); output_shape or output_padding chooses among the sizes that fit

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
        output_shape: sizes of the result; None: the smallest that fit
        output_padding: added to one side of the result, to choose among sizes that fit
    """

def conv3d(
    input: OperandLike,
    filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = 'NDHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the convolution over 3 spatial axes

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def conv3d_transpose(
    input: OperandLike,
    filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = 'NDHWC',
    output_shape: Sequence[int] | None = None,
    output_padding: int | Sequence[int] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the transpose of conv3d: (batch, *result, filters) and its filter -> (batch, *size, channels); output_shape or output_padding chooses among the sizes that fit

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
        output_shape: sizes of the result; None: the smallest that fit
        output_padding: added to one side of the result, to choose among sizes that fit
    """

def convolution(
    x: OperandLike,
    filters: OperandLike,
    /,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *size, channels), (*window, channels / groups, filters) -> (batch, *result, filters): sums of products under each window

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
    """

def convolution_backprop_filter(
    input: OperandLike,
    dy: OperandLike,
    window: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *size, channels), (batch, *result, filters) -> (*window, channels / groups, filters): what goes back to the filter of a convolution

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
    """

def convolution_backprop_input(
    filter: OperandLike,
    dy: OperandLike,
    size: Sequence[int | Size],
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(*window, channels / groups, filters), (batch, *result, filters) -> (batch, *size, channels): what goes back to the input of a convolution

    Args:
        size: length along each axis (required)
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
    """

def copysign(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""|x| with the sign of y"""

def cos(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the cosine of x in radians"""

def cosh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(exp(x) + exp(-x)) / 2"""

def cosine_similarity(
    a: OperandLike,
    b: OperandLike,
    /,
    axis: int | Sequence[int] | None = -1,
    epsilon: float = 1e-08,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the cosine of the angle between vectors along axis, their lengths taken as epsilon at least

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        epsilon: small number that keeps the division or logarithm finite
    """

def count_nonzero(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""how many elements are not 0; int64

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def crop(
    x: OperandLike,
    offsets: Sequence[int],
    size: Sequence[int | Size],
    channels_last: bool = True,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the part of x of a size from offsets on, along the axes in front of the channels, or the last ones without channels_last

    Args:
        offsets: first position along each axis that is cut (required)
        size: length along each axis (required)
        channels_last: whether the channels are the last axis
    """

def cross(
    a: OperandLike,
    b: OperandLike,
    /,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the vector at right angles to both

    Args:
        axis: the axis; negative ones count from the end
    """

def cummax(
    x: OperandLike,
    /,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest so far; NaN from the first on

    Args:
        axis: the axis; None: all elements in row-major order
        exclusive: leave each element out of its own result
        reverse: accumulate from the end
    """

def cummin(
    x: OperandLike,
    /,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smallest so far; NaN from the first on

    Args:
        axis: the axis; None: all elements in row-major order
        exclusive: leave each element out of its own result
        reverse: accumulate from the end
    """

def cumprod(
    x: OperandLike,
    /,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the products so far

    Args:
        axis: the axis; None: all elements in row-major order
        exclusive: leave each element out of its own result
        reverse: accumulate from the end
    """

def cumsum(
    x: OperandLike,
    /,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sums so far

    Args:
        axis: the axis; None: all elements in row-major order
        exclusive: leave each element out of its own result
        reverse: accumulate from the end
    """

def cumulative_logsumexp(
    x: OperandLike,
    /,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(cumsum(exp(x))) (another name of logcumsumexp)

    Args:
        axis: the axis; None: all elements in row-major order
        exclusive: leave each element out of its own result
        reverse: accumulate from the end
    """

def cumulative_prod(
    x: OperandLike,
    /,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the products so far, in dtype; with include_initial behind that of nothing

    Args:
        axis: the axis; None: all elements in row-major order
        dtype: dtype of the result; None: see above
        include_initial: begin with the result of no elements
    """

def cumulative_sum(
    x: OperandLike,
    /,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sums so far, in dtype; with include_initial behind that of nothing

    Args:
        axis: the axis; None: all elements in row-major order
        dtype: dtype of the result; None: see above
        include_initial: begin with the result of no elements
    """

def deg2rad(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""degrees as radians"""

def degrees(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""radians as degrees (another name of rad2deg)"""

def depth_to_space(
    x: OperandLike,
    block_size: int,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""channels become blocks of block_size × block_size points

    Args:
        block_size: edge length of a block (required)
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def depthwise_conv2d(
    input: OperandLike,
    filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""a convolution of each channel by itself; the filter is (height, width, channels, multiplier)

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def det(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the determinant of each matrix"""

def diag(
    x: OperandLike,
    k: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the k-th diagonal of a matrix, or a matrix with x as its diagonal

    Args:
        k: number of the diagonal; 0 is the main one, positive ones are above it
    """

def diag_embed(
    x: OperandLike,
    /,
    offset: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""square matrices with the last axis of x on a diagonal and zeros elsewhere

    Args:
        offset: number of the diagonal; 0 is the main one, positive ones are above it
    """

def diagonal(
    x: OperandLike,
    /,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the diagonal of each matrix, as the last axis; above the main one if offset is positive

    Args:
        offset: number of the diagonal; 0 is the main one, positive ones are above it
        axis1: the first of the two axes
        axis2: the second of the two axes
    """

def diff(
    x: OperandLike,
    /,
    n: int = 1,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""each element along axis less the one before, n times

    Args:
        n: how many times
        axis: the axis; negative ones count from the end
    """

def digamma(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the derivative of lgamma; -inf at 0, NaN at -1, -2, ..."""

def digitize(
    x: OperandLike,
    bins: OperandLike = ...,
    right: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bin of each element: how many of the rising bins are at most it, or below it with right

    Args:
        right: bins include their right end instead of the left one
    """

def dilate(
    x: OperandLike,
    /,
    factors: Sequence[int],
    padding: Sequence[Sequence[Any]],
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with its elements factors[k] apart along axis k, and zeros between, in front and behind; negative padding cuts off

    Args:
        factors: distance of the elements along each axis (required)
        padding: (before, after) for each axis (required)
    """

def div(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y"""

def div_by_size(
    x: OperandLike,
    /,
    size: int | Size,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x divided by an extent, such as x.shape[0]

    Args:
        size: the divisor (required)
    """

def div_no_nan(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y, and 0 where y is 0"""

def divide(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y (another name of div)"""

def divide_no_nan(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y, and 0 where y is 0 (another name of div_no_nan)"""

def dot(
    a: OperandLike,
    b: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""sums of products over the last axis of a and the last but one of b"""

def dropout(
    x: OperandLike,
    key: OperandLike = ...,
    rate: float = 0.5,
    noise_shape: ShapeLike | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with each element 0 with probability rate, the others divided by 1 - rate; axes of length 1 in noise_shape live or die together

    Args:
        rate: probability with which an element becomes 0
        noise_shape: shape of the random mask, which broadcasts to x
    """

def eigh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""eigenvalues of symmetric matrices, rising, and eigenvectors as columns"""

def eigvalsh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the eigenvalues of symmetric matrices, rising"""

def einsum(
    equation: str,
    *x: OperandLike,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sums of products that an equation such as 'ij,jk->ik' describes

    Args:
        equation: subscripts of the inputs and the result, such as 'ij,jk->ik' (required)
    """

def elu(
    x: OperandLike,
    /,
    alpha: float = 1.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x if positive, else alpha (exp(x) - 1)

    Args:
        alpha: slope or scale of the negative side
    """

def embedding_lookup(
    x: OperandLike,
    indices: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'clip',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name; the first batch_dims axes go together (another name of gather)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def equal(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x == y, as bool"""

def erf(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the error function"""

def erfc(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 - erf(x), exact in the tail"""

def erfcinv(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of erfc: from 0 to 2"""

def erfinv(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of erf: from -1 to 1"""

def exp(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""e to the power x"""

def exp10(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""10 to the power x"""

def exp2(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""2 to the power x"""

def expand_dims(
    x: OperandLike,
    /,
    axis: int | Sequence[int] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with new axes of length 1

    Args:
        axis: where the new axes stand in the result
    """

def expit(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 / (1 + exp(-x)) (another name of sigmoid)"""

def expm(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the exponential of each matrix"""

def expm1(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(x) - 1, exact near 0"""

def extract_image_patches(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *size, channels) -> (batch, *result, window * channels): each window as one row (another name of extract_patches)

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
    """

def extract_patches(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *size, channels) -> (batch, *result, window * channels): each window as one row

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
    """

def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""a matrix with ones on its k-th diagonal

    Args:
        n_rows: number of rows (required)
        n_cols: number of columns; None: as many as rows
        k: number of the diagonal; 0 is the main one, positive ones are above it
        dtype: dtype of the result
    """

def fdim(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - y where that is positive, else 0; NaN stays"""

def fill(
    shape: ShapeLike,
    fill_value: builtins.complex,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""an array of a shape with one value everywhere (another name of full)

    Args:
        shape: shape of the result (required)
        fill_value: the value of all elements (required)
        dtype: dtype of the result
    """

def filter_turned(
    x: OperandLike,
    /,
    groups: int = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(*window, channels / groups, filters) -> (*window, filters / groups, channels), the window reversed: the filter of the convolution that goes back

    Args:
        groups: number of groups of channels that are computed apart
    """

def first_positions(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for each of a vector of integers the position of the first one that equals it"""

def flatnonzero(
    x: OperandLike,
    /,
    size: int,
    fill_value: builtins.complex = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the row-major places of the first size elements that are not 0; fill_value behind them

    Args:
        size: number of results, which must be known (required)
        fill_value: value of the elements that are filled
    """

def flatten(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements of x in row-major order"""

def flip(
    x: OperandLike,
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the elements along axis, or all axes, in reverse order

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def floor(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x rounded down"""

def floor_div(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y rounded down; for integers x // 0 = 0"""

def floor_divide(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y rounded down; for integers x // 0 = 0 (another name of floor_div)"""

def fma(
    x: OperandLike,
    y: OperandLike,
    z: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x y + z, rounded once"""

def fmax(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the larger; where one is NaN the other; of zeros of both signs y, in float16 x (NumPy's choice depends on the position)"""

def fmin(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smaller; where one is NaN the other; of zeros of both signs y, in float16 x (NumPy's choice depends on the position)"""

def fmod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - trunc_div(x, y) * y, with the sign of x; for integers x % 0 = 0"""

def fold_in(
    key: OperandLike,
    data: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""keys made of a key and whole numbers, such as the number of a step or a layer"""

def full(
    shape: ShapeLike,
    fill_value: builtins.complex,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""an array of a shape with one value everywhere

    Args:
        shape: shape of the result (required)
        fill_value: the value of all elements (required)
        dtype: dtype of the result
    """

def full_like(
    x: OperandLike,
    /,
    fill_value: builtins.complex,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with one value everywhere

    Args:
        fill_value: value of the elements that are filled (required)
    """

def fused_batch_norm(
    x: OperandLike,
    scale: OperandLike = ...,
    offset: OperandLike = ...,
    mean: OperandLike = ...,
    variance: OperandLike = ...,
    epsilon: float = 0.001,
    data_format: str = 'NHWC',
    is_training: bool = True,
    exponential_avg_factor: float = 1.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry, Entry]:
    r"""batch_norm with the parameters of TensorFlow; results: y, mean, variance

    Args:
        epsilon: small number that keeps the division or logarithm finite
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
        is_training: use the statistics of the batch
        exponential_avg_factor: weight of the batch in the running statistics
    """

def gamma(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the gamma function; NaN at -1, -2, ... (another name of tgamma)"""

def gammainc(
    a: OperandLike,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the lower incomplete gamma function over gamma(a); NaN but for a > 0, x > 0, or x = 0 (another name of igamma)"""

def gammaincc(
    a: OperandLike,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the upper incomplete gamma function over gamma(a); NaN but for a > 0, x >= 0 (another name of igammac)"""

def gammaln(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the logarithm of the magnitude of the gamma function (another name of lgamma)"""

def gather(
    x: OperandLike,
    indices: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'clip',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name; the first batch_dims axes go together

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def gather_nd(
    x: OperandLike,
    indices: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'clip',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x whose coordinates are the last axis of indices

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def gcd(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the greatest common divisor"""

def geglu(
    x: OperandLike,
    /,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""gelu(a) * b of the halves a and b of x along axis

    Args:
        axis: the axis; negative ones count from the end
    """

def gelu(
    x: OperandLike,
    /,
    approximate: Literal['none', 'tanh', 'sigmoid'] = 'none',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x times the normal distribution function

    Args:
        approximate: exact, or by that function
    """

def global_avg_pool(
    x: OperandLike,
    /,
    data_format: str = 'channels_last',
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of each channel

    Args:
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
        keepdims: keep reduced axes with length 1
    """

def global_max_pool(
    x: OperandLike,
    /,
    data_format: str = 'channels_last',
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest element of each channel

    Args:
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
        keepdims: keep reduced axes with length 1
    """

def global_norm(
    *x: OperandLike,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the length of all inputs as one vector"""

def glu(
    x: OperandLike,
    /,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""a * sigmoid(b) of the halves a and b of x along axis

    Args:
        axis: the axis; negative ones count from the end
    """

def greater(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x > y, as bool"""

def greater_equal(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x >= y, as bool"""

def group_norm(
    data: OperandLike,
    gamma: OperandLike = ...,
    beta: OperandLike = ...,
    *,
    groups: int = 32,
    channel_axis: int = -1,
    epsilon: float = 1e-05,
    scale: bool = True,
    center: bool = True,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""each group of channels of each example with mean 0 and variance 1, times gamma, plus beta

    Args:
        groups: number of groups that the channels are split into
        channel_axis: the axis of the channels
        epsilon: small number that keeps the division or logarithm finite
        scale: multiply by the input gamma
        center: add the input beta
    """

def gru_cell(
    x: OperandLike,
    h: OperandLike = ...,
    kernel: OperandLike = ...,
    recurrent: OperandLike = ...,
    bias: OperandLike = ...,
    reset_after: bool = True,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the next state of a gated recurrent unit; gates lie in the order z, r, h; the bias is (2, 3 * units) with reset_after, else (3 * units,)

    Args:
        reset_after: apply the reset gate after the matrix product
    """

def gumbel_softmax(
    logits: OperandLike,
    key: OperandLike = ...,
    temperature: float = 1.0,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""softmax of logits with Gumbel noise, divided by a temperature: a soft draw of a class

    Args:
        temperature: divides the logits; small ones give nearly one-hot draws
        axis: the axis; negative ones count from the end
    """

def hard_shrink(
    x: OperandLike,
    /,
    threshold: float = 0.5,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x, and 0 where it is no larger than threshold

    Args:
        threshold: where the function changes
    """

def hard_sigmoid(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""relu6(x + 3) / 6"""

def hard_silu(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x relu6(x + 3) / 6 (another name of hard_swish)"""

def hard_swish(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x relu6(x + 3) / 6"""

def hard_tanh(
    x: OperandLike,
    /,
    low: float = -1.0,
    high: float = 1.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x cut off at both ends

    Args:
        low: lower end
        high: upper end, excluded from draws
    """

def heaviside(
    x: OperandLike,
    middle: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""0 where x < 0, 1 where x > 0, middle at 0; NaN stays"""

def hinge_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 - labels * predictions if positive; labels are -1 and 1

    Args:
        reduction: how the losses of elements are combined
    """

def histogram(
    x: OperandLike,
    /,
    bins: int = 10,
    range: Sequence[float] = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""how many elements lie in each of equal bins over range; others do not count

    Args:
        bins: number of equal bins
        range: lower and upper end of the bins
    """

def huber_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    delta: float = 1.0,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""d**2 / 2 up to delta, from there a straight line

    Args:
        delta: difference at which the square becomes a straight line
        reduction: how the losses of elements are combined
    """

def hypot(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""sqrt(x^2 + y^2) without overflow"""

def i0(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the modified Bessel function of order 0 (another name of bessel_i0)"""

def i0e(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(-|x|) bessel_i0(x) (another name of bessel_i0e)"""

def i1(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the modified Bessel function of order 1 (another name of bessel_i1)"""

def i1e(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(-|x|) bessel_i1(x) (another name of bessel_i1e)"""

def identity(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x"""

def igamma(
    a: OperandLike,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the lower incomplete gamma function over gamma(a); NaN but for a > 0, x > 0, or x = 0"""

def igammac(
    a: OperandLike,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the upper incomplete gamma function over gamma(a); NaN but for a > 0, x >= 0"""

def imag(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the imaginary part of x"""

def index_add(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, plus updates

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def index_max(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, at least updates

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def index_min(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, at most updates

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def index_mul(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, times updates

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def index_sub(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, minus updates

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def index_update(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, replaced by updates

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def inner(
    a: OperandLike,
    b: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""sums of products over the last axes"""

def instance_norm(
    data: OperandLike,
    gamma: OperandLike = ...,
    beta: OperandLike = ...,
    *,
    channel_axis: int = -1,
    epsilon: float = 1e-05,
    scale: bool = True,
    center: bool = True,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""each channel of each example with mean 0 and variance 1, times gamma, plus beta

    Args:
        channel_axis: the axis of the channels
        epsilon: small number that keeps the division or logarithm finite
        scale: multiply by the input gamma
        center: add the input beta
    """

def inv(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of each matrix"""

def inv_Phi(
    p: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of Phi: from 0 to 1"""

def inv_logit(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 / (1 + exp(-x)) (another name of sigmoid)"""

def inv_square(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 / x^2"""

def invert(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""bits inverted (another name of bitwise_not)"""

def invert_permutation(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the permutation that undoes x, which tells where each number stands"""

def is_finite(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is no NaN and no infinity (another name of isfinite)"""

def is_inf(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is infinite (another name of isinf)"""

def is_nan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is NaN (another name of isnan)"""

def isclose(
    x: OperandLike,
    y: OperandLike,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether |x - y| <= atol + rtol |y|, as bool

    Args:
        rtol: relative tolerance
        atol: absolute tolerance
        equal_nan: whether NaN is close to NaN
    """

def isfinite(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is no NaN and no infinity"""

def isin(
    x: OperandLike,
    test: OperandLike = ...,
    invert: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether each element of x is among those of test, or is not with invert

    Args:
        invert: negate the result
    """

def isinf(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is infinite"""

def isnan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is NaN"""

def kl_divergence(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""labels * log(labels / predictions), 0 where the label is 0

    Args:
        reduction: how the losses of elements are combined
    """

def kron(
    x: OperandLike,
    y: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the Kronecker product: every element of x times all of y"""

def l1_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""abs(predictions - labels) (another name of mean_absolute_error)

    Args:
        reduction: how the losses of elements are combined
    """

def l2_normalize(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = -1,
    epsilon: float = 1e-12,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x divided by its length along axis; a sum of squares below epsilon counts as epsilon

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        epsilon: small number that keeps the division or logarithm finite
    """

def label_smoothing(
    labels: OperandLike,
    /,
    smoothing: float = 0.1,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""labels mixed with the even distribution over the classes along axis

    Args:
        smoothing: weight of the even distribution
        axis: the axis; negative ones count from the end
    """

def layer_norm(
    data: OperandLike,
    gamma: OperandLike = ...,
    beta: OperandLike = ...,
    *,
    axis: int = -1,
    epsilon: float = 1e-05,
    scale: bool = True,
    center: bool = True,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with mean 0 and variance 1 along axis, times gamma, plus beta

    Args:
        axis: the axis; negative ones count from the end
        epsilon: small number that keeps the division or logarithm finite
        scale: multiply by the input gamma
        center: add the input beta
    """

def lbeta(
    a: OperandLike,
    b: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the logarithm of the beta function"""

def lcm(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the least common multiple, wrapped; 0 if either is"""

def ldexp(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x 2^n for integers n, rounded once"""

def leaky_relu(
    x: OperandLike,
    /,
    alpha: float = 0.2,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x if positive, else alpha x

    Args:
        alpha: slope or scale of the negative side
    """

def left_shift(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x 2^n, wrapped; 0 where n is negative or at least the width"""

def lerp(
    x: OperandLike,
    y: OperandLike,
    t: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x + t (y - x): x at 0, y at 1"""

def less(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x < y, as bool"""

def less_equal(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x <= y, as bool"""

def lgamma(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the logarithm of the magnitude of the gamma function"""

def lin_space(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""num numbers from start to stop at equal distances, computed in double (another name of linspace)

    Args:
        start: first number (required)
        stop: end of the range (required)
        num: how many
        endpoint: whether stop is the last number
        dtype: dtype of the result
    """

def linear(
    data: OperandLike,
    weight: OperandLike = ...,
    bias: OperandLike = ...,
    *,
    num_hidden: int | None = None,
    no_bias: bool = False,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""data times the transpose of weight, plus bias: a fully connected layer

    Args:
        num_hidden: number of outputs; None: the rows of weight
        no_bias: there is no input bias
    """

def linspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""num numbers from start to stop at equal distances, computed in double

    Args:
        start: first number (required)
        stop: end of the range (required)
        num: how many
        endpoint: whether stop is the last number
        dtype: dtype of the result
    """

def lmultiply(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x log(y), and 0 where both are 0"""

def local_response_normalization(
    x: OperandLike,
    /,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    data_format: str = 'channels_last',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / (bias + alpha * sum of squares of the channels within depth_radius) ** beta

    Args:
        depth_radius: number of channels summed on each side
        bias: added to the scaled sum of squares
        alpha: factor of the sum of squares
        beta: exponent
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def log(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the natural logarithm of x"""

def log10(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the logarithm of x to base 10"""

def log1m(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(1 - x), exact near 0"""

def log1m_exp(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(1 - exp(x)); NaN where x > 0"""

def log1m_inv_logit(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(1 - sigmoid(x))"""

def log1mexp(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(1 - exp(x)); NaN where x > 0 (another name of log1m_exp)"""

def log1p(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(1 + x), exact near 0"""

def log1p_exp(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(1 + exp(x))"""

def log2(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the logarithm of x to base 2"""

def log_choose(
    n: OperandLike,
    k: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log of n! / (k! (n - k)!), by gamma functions (another name of binomial_coefficient_log)"""

def log_cosh_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(cosh(predictions - labels))

    Args:
        reduction: how the losses of elements are combined
    """

def log_diff_exp(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(exp(x) - exp(y)); NaN where x < y"""

def log_expit(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(sigmoid(x)) (another name of log_inv_logit)"""

def log_inv_logit(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(sigmoid(x))"""

def log_inv_logit_diff(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(sigmoid(x) - sigmoid(y))"""

def log_sigmoid(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(sigmoid(x)) (another name of log_inv_logit)"""

def log_softmax(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the logarithm of softmax

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def log_sum_exp(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(exp(x) + exp(y)) (another name of logaddexp)"""

def logaddexp(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(exp(x) + exp(y))"""

def logaddexp2(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log2(2^x + 2^y)"""

def logcumsumexp(
    x: OperandLike,
    /,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(cumsum(exp(x)))

    Args:
        axis: the axis; None: all elements in row-major order
        exclusive: leave each element out of its own result
        reverse: accumulate from the end
    """

def logical_and(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""both hold"""

def logical_not(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""it does not hold"""

def logical_or(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""either holds"""

def logical_xor(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exactly one holds"""

def logit(
    p: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(p / (1 - p))"""

def logsumexp(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(reduce_sum(exp(x)))

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def lrn(
    x: OperandLike,
    /,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    data_format: str = 'channels_last',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / (bias + alpha * sum of squares of the channels within depth_radius) ** beta (another name of local_response_normalization)

    Args:
        depth_radius: number of channels summed on each side
        bias: added to the scaled sum of squares
        alpha: factor of the sum of squares
        beta: exponent
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def lstm_block_cell(
    x: OperandLike,
    cs_prev: OperandLike = ...,
    h_prev: OperandLike = ...,
    w: OperandLike = ...,
    b: OperandLike = ...,
    forget_bias: float = 1.0,
    cell_clip: float = -1.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry, Entry, Entry, Entry, Entry, Entry]:
    r"""TensorFlow's LSTMBlockCell: i, cs, f, o, ci, co, h; w is (inputs + units, 4 * units) in the order i, c, f, o; cs is clipped where cell_clip is above 0

    Args:
        forget_bias: added to the forget gate
        cell_clip: bound of the cell state; not positive: no bound
    """

def lstm_cell(
    x: OperandLike,
    h: OperandLike = ...,
    c: OperandLike = ...,
    kernel: OperandLike = ...,
    recurrent: OperandLike = ...,
    bias: OperandLike = ...,
    forget_bias: float = 0.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""the next h and c of a long short-term memory; gates lie in the order i, f, c, o

    Args:
        forget_bias: added to the forget gate
    """

def lstsq(
    a: OperandLike,
    b: OperandLike = ...,
    rtol: float | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the shortest x for which a @ x is nearest to b

    Args:
        rtol: smallest singular value kept, relative to the largest
    """

def masked_softmax(
    x: OperandLike,
    mask: OperandLike = ...,
    axis: int | Sequence[int] | None = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""softmax along axis of the elements where mask is True; the others are 0, all of them too

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def matmul(
    a: OperandLike,
    b: OperandLike,
    /,
    transpose_a: bool = False,
    transpose_b: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product of matrices in the last two dimensions; those before broadcast

    Args:
        transpose_a: transpose the last two axes of the first operand
        transpose_b: transpose the last two axes of the second operand
    """

def matmul_sum(
    *x: OperandLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of products of matrices, of pairs of operands: a1 @ b1 + a2 @ b2 + …

    Args:
        transpose_a: transpose the last two axes of the first operand
        transpose_b: transpose the last two axes of the second operand
    """

def matrix_band_part(
    x: OperandLike,
    num_lower: int = -1,
    num_upper: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with zeros outside of num_lower diagonals below and num_upper above; a negative number keeps all on its side (another name of band_part)

    Args:
        num_lower: diagonals kept below the main one; negative: all
        num_upper: diagonals kept above the main one; negative: all
    """

def matrix_exponential(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the exponential of each matrix (another name of expm)"""

def matrix_norm(
    x: OperandLike,
    /,
    ord: float | Literal['fro', 'nuc'] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the norm of each matrix, by default that of Frobenius

    Args:
        ord: as in numpy.linalg; None: 'fro'
        keepdims: keep reduced axes with length 1
    """

def matrix_power(
    x: OperandLike,
    /,
    n: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x times itself, n times; its inverse where n < 0

    Args:
        n: how many times (required)
    """

def matrix_rank(
    x: OperandLike,
    /,
    rtol: float | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""how many singular values are above rtol times the largest

    Args:
        rtol: smallest singular value kept, relative to the largest
    """

def matrix_solve(
    x: OperandLike,
    y: OperandLike,
    /,
    adjoint: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""X with A @ X = B, or A.T @ X = B, for matrices B

    Args:
        adjoint: solve with the conjugate transpose of the matrix
    """

def matrix_transpose(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with its last two axes swapped"""

def matrix_triangular_solve(
    x: OperandLike,
    y: OperandLike,
    /,
    lower: bool = True,
    adjoint: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""X with A @ X = B, or A.T @ X = B, of a triangle of A; the rest of it is not read

    Args:
        lower: which triangle is read
        adjoint: solve with the conjugate transpose of the matrix
    """

def matvec(
    a: OperandLike,
    v: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""matrices times vectors"""

def max_pool(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest element under each window; NaN if there is one (another name of max_pool2d)

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def max_pool1d(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    data_format: str = 'NWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest element under each window; NaN if there is one

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def max_pool2d(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest element under each window; NaN if there is one

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def max_pool3d(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    data_format: str = 'NDHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest element under each window; NaN if there is one

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def maximum(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the larger; NaN if either is; of zeros of both signs y, in float16 x, as NumPy on x86-64"""

def mean(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum divided by the count; of x in dtype, of whole numbers in float64

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        dtype: dtype of the result; None: see above
        keepdims: keep reduced axes with length 1
    """

def mean_absolute_error(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""abs(predictions - labels)

    Args:
        reduction: how the losses of elements are combined
    """

def mean_squared_error(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(predictions - labels)**2

    Args:
        reduction: how the losses of elements are combined
    """

def median(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the middle element, or the mean of the two; NaN if any is

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def minimum(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smaller; NaN if either is; of zeros of both signs y, in float16 x, as NumPy on x86-64"""

def mirror_pad(
    x: OperandLike,
    pad_width: int | Sequence[Any],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_values: builtins.complex = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with more around it: (before, after) for each axis; mode constant, edge, reflect, symmetric or wrap. Negative widths cut, in mode constant. As in TensorFlow, reflect takes up to n - 1 elements, symmetric and wrap up to n (another name of pad)

    Args:
        pad_width: (before, after) for each axis, one pair or one number (required)
        mode: what stands around x
        constant_values: what mode 'constant' pads with
    """

def mish(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x tanh(softplus(x))"""

def mod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - (x // y) * y, with the sign of y; for integers x % 0 = 0"""

def moments(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""the mean, and the mean squared distance to it

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def moveaxis(
    x: OperandLike,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the axes source at the places destination

    Args:
        source: axes that are moved (required)
        destination: where these axes go (required)
    """

def mse_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(predictions - labels)**2 (another name of mean_squared_error)

    Args:
        reduction: how the losses of elements are combined
    """

def mul(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * y"""

def mul_no_nan(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * y, and 0 where y is 0, even for x infinite or NaN"""

def multi_dot(
    *x: OperandLike,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product of all inputs, in the cheapest order"""

def multiply(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * y (another name of mul)"""

def multiply_log(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x log(y), and 0 where both are 0 (another name of lmultiply)"""

def multiply_no_nan(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * y, and 0 where y is 0, even for x infinite or NaN (another name of mul_no_nan)"""

def nan_to_num(
    x: OperandLike,
    /,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with NaN and infinities replaced: by 0 and the largest finite floats, or as told

    Args:
        nan: replaces NaN
        posinf: replaces inf; None: the largest finite number
        neginf: replaces -inf; None: the lowest finite number
    """

def nanmax(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest that is not NaN; NaN if all are

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def nanmean(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of what is not NaN

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def nanmin(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smallest that is not NaN; NaN if all are

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def nanprod(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product of what is not NaN

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def nanstd(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: float = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the root of nanvar

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the count that divides; 1 for an unbiased estimate
    """

def nansum(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of what is not NaN

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def nanvar(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: float = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the variance of what is not NaN

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the count that divides; 1 for an unbiased estimate
    """

def ndtr(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the distribution function of the normal distribution (another name of Phi)"""

def ndtri(
    p: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of Phi: from 0 to 1 (another name of inv_Phi)"""

def neg(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""-x"""

def negative(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""-x (another name of neg)"""

def nextafter(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the float next to x on the way to y"""

def nll_loss(
    labels: OperandLike,
    log_probabilities: OperandLike = ...,
    axis: int = -1,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""minus the log probability of whole-number labels along axis

    Args:
        axis: the axis; negative ones count from the end
        reduction: how the losses of elements are combined
    """

def normal_cdf(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the distribution function of the normal distribution (another name of Phi)"""

def not_equal(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x != y, as bool"""

def one_hot(
    indices: OperandLike,
    depth: int,
    on_value: builtins.complex = 1,
    off_value: builtins.complex = 0,
    axis: int = -1,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""on_value at the positions that indices name along a new axis, off_value elsewhere

    Args:
        depth: length of the new axis (required)
        on_value: value at the index
        off_value: value elsewhere
        axis: the axis; negative ones count from the end
        dtype: dtype of the result
    """

def ones(
    shape: ShapeLike,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""ones of a shape

    Args:
        shape: shape of the result (required)
        dtype: dtype of the result
    """

def ones_like(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""ones like x"""

def outer(
    x: OperandLike,
    y: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""every element of x times every one of y"""

def pack(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs side by side along a new axis (another name of stack)

    Args:
        axis: the axis; negative ones count from the end
    """

def pad(
    x: OperandLike,
    pad_width: int | Sequence[Any],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_values: builtins.complex = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with more around it: (before, after) for each axis; mode constant, edge, reflect, symmetric or wrap. Negative widths cut, in mode constant. As in TensorFlow, reflect takes up to n - 1 elements, symmetric and wrap up to n

    Args:
        pad_width: (before, after) for each axis, one pair or one number (required)
        mode: what stands around x
        constant_values: what mode 'constant' pads with
    """

def pad_with(
    x: OperandLike,
    /,
    pad_width: int | Sequence[Any],
    value: float = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with a value around it: (before, after) for each axis, negative numbers cut

    Args:
        pad_width: (before, after) for each axis, one pair or one number (required)
        value: value that is put in
    """

def permutation(
    key: OperandLike,
    num: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the numbers from 0 to below num in random order, as int64 (another name of random_permutation)

    Args:
        num: how many (required)
    """

def philox(
    x: OperandLike,
    y: OperandLike,
    z: OperandLike,
    /,
    half: Literal[0, 1] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""half of the block of Philox4x32-10 for (counter, stream, key): an int64 of two words

    Args:
        half: which 64 of the 128 random bits
    """

def pick_label(
    x: OperandLike,
    labels: OperandLike = ...,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x where its position along axis is the label, else 0: a label outside picks nothing

    Args:
        axis: the axis; negative ones count from the end
    """

def pinv(
    x: OperandLike,
    /,
    rtol: float | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the pseudo-inverse of each matrix; singular values below rtol times the largest are zero

    Args:
        rtol: smallest singular value kept, relative to the largest
    """

def poisson_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(x) - labels * x: of counts, by the logarithm of their rate

    Args:
        reduction: how the losses of elements are combined
    """

def polygamma(
    x: OperandLike,
    /,
    n: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the n-th derivative of digamma

    Args:
        n: order of the derivative
    """

def polyval(
    p: OperandLike,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the polynomial with coefficients p, that of the highest power first, at x"""

def population_count(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""how many bits of x are 1, as uint8: the sign too"""

def positive(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x"""

def pow(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x to the power y, as C's pow for constant and computed y alike (pow(-inf, 0.5) is inf); for integers 1 / x^n is cut to a whole number"""

def power(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x to the power y, as C's pow for constant and computed y alike (pow(-inf, 0.5) is inf); for integers 1 / x^n is cut to a whole number (another name of pow)"""

def prelu(
    x: OperandLike,
    alpha: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x if positive, else alpha x; alpha broadcasts"""

def prod(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product; 1 of nothing; of x in dtype, if that is given

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        dtype: dtype of the result; None: see above
        keepdims: keep reduced axes with length 1
    """

def prod_others(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for each element the product of all others along axis

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def psi(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the derivative of lgamma; -inf at 0, NaN at -1, -2, ... (another name of digamma)"""

def ptp(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest less the smallest

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def put_along_axis(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = -1,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for each element of indices that of x at this position of the axis, replaced by updates

    Args:
        axis: the axis; negative ones count from the end
        mode: outside: clip, or read 0 and drop writes
    """

def qr(
    x: OperandLike,
    /,
    mode: Literal['reduced', 'complete'] = 'reduced',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""Q with orthonormal columns and the upper triangle R: Q @ R = x

    Args:
        mode: the shapes of Q and R
    """

def quantile(
    x: OperandLike,
    /,
    q: float = 0.5,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the element that a part q lies below, between two on a line

    Args:
        q: part of the elements that lies below, from 0 to 1
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def quick_gelu(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x sigmoid(1.702 x)"""

def rad2deg(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""radians as degrees"""

def radians(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""degrees as radians (another name of deg2rad)"""

def randint(
    key: OperandLike,
    shape: ShapeLike = ...,
    low: int = 0,
    *,
    high: int,
    dtype: DTypeLike = 'int32',
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whole numbers from low to below high; by a remainder of 63 bits, whose bias is below 2**-31 for ranges of 32 bits (another name of random_integers)

    Args:
        shape: shape of the result
        low: smallest number
        high: end, which is excluded (required)
        dtype: dtype of the result
    """

def random_bernoulli(
    p: OperandLike,
    key: OperandLike = ...,
    shape: ShapeLike | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""True with probability p, which is broadcast to shape; None is p's own

    Args:
        shape: shape of the result; None: that of p
    """

def random_bits(
    key: OperandLike,
    shape: ShapeLike = ...,
    dtype: DTypeLike = 'int32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whole numbers of random bits

    Args:
        shape: shape of the result
        dtype: dtype of the result
    """

def random_categorical(
    logits: OperandLike,
    key: OperandLike = ...,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""classes along axis, drawn with the probabilities softmax(logits), as int64

    Args:
        axis: the axis; negative ones count from the end
    """

def random_exponential(
    key: OperandLike,
    shape: ShapeLike = ...,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exponential draws of rate 1

    Args:
        shape: shape of the result
        dtype: dtype of the result
    """

def random_gumbel(
    key: OperandLike,
    shape: ShapeLike = ...,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Gumbel draws of location 0 and scale 1

    Args:
        shape: shape of the result
        dtype: dtype of the result
    """

def random_integers(
    key: OperandLike,
    shape: ShapeLike = ...,
    low: int = 0,
    *,
    high: int,
    dtype: DTypeLike = 'int32',
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whole numbers from low to below high; by a remainder of 63 bits, whose bias is below 2**-31 for ranges of 32 bits

    Args:
        shape: shape of the result
        low: smallest number
        high: end, which is excluded (required)
        dtype: dtype of the result
    """

def random_key(
    seed: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""a key made of a whole number; near numbers give unrelated keys"""

def random_laplace(
    key: OperandLike,
    shape: ShapeLike = ...,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Laplace draws of location 0 and scale 1

    Args:
        shape: shape of the result
        dtype: dtype of the result
    """

def random_logistic(
    key: OperandLike,
    shape: ShapeLike = ...,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""logistic draws of location 0 and scale 1

    Args:
        shape: shape of the result
        dtype: dtype of the result
    """

def random_normal(
    key: OperandLike,
    shape: ShapeLike = ...,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""normal draws of this mean and standard deviation, by Box and Muller; at most 6.7 of them off

    Args:
        shape: shape of the result
        mean: mean of the distribution
        stddev: standard deviation of the distribution
        dtype: dtype of the result
    """

def random_permutation(
    key: OperandLike,
    num: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the numbers from 0 to below num in random order, as int64

    Args:
        num: how many (required)
    """

def random_shuffle(
    x: OperandLike,
    key: OperandLike = ...,
    axis: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the slices along axis in random order (another name of shuffle)

    Args:
        axis: the axis; negative ones count from the end
    """

def random_truncated_normal(
    key: OperandLike,
    shape: ShapeLike = ...,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""normal draws of this mean and standard deviation, none beyond two deviations

    Args:
        shape: shape of the result
        mean: mean of the distribution
        stddev: standard deviation of the distribution
        dtype: dtype of the result
    """

def random_uniform(
    key: OperandLike,
    shape: ShapeLike = ...,
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""evenly spread over low to below high

    Args:
        shape: shape of the result
        low: lower end
        high: upper end, excluded from draws
        dtype: dtype of the result
    """

def random_words(
    x: OperandLike,
    /,
    shape: ShapeLike = ...,
    stream: int = 0,
    half: Literal[0, 1] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""64 random bits for each element, as int64, and 64 others as the other half: what draws are made of

    Args:
        shape: shape of the result
        stream: number of an independent stream of the same key
        half: which 64 of the 128 random bits
    """

def range(
    start: float,
    stop: float | Size | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""start, start + step, … before stop, computed in double; arange(n) begins at 0 (another name of arange)

    Args:
        start: first number; the end, if stop is None (required)
        stop: end, which is excluded
        step: distance of the numbers
        dtype: dtype of the result; None: int64 or float64 by the numbers
    """

def ravel(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements of x in row-major order (another name of flatten)"""

def real(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the real part of x"""

def reciprocal(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 / x"""

def reciprocal_no_nan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 / x, and 0 where x is 0"""

def reduce_all(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether all hold

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_and(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that all have (another name of reduce_bitwise_and)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_any(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether any holds

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_bitwise_and(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that all have

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_bitwise_or(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that any has

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_bitwise_xor(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that an odd number have

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_euclidean_norm(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the l2 norm along axis (another name of reduce_l2)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_l1(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the l1 norm along axis

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_l2(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the l2 norm along axis

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_linf(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the linf norm along axis

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_logsumexp(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(reduce_sum(exp(x))) (another name of logsumexp)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_max(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest; NaN if any is; of zeros of both signs either

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_mean(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum divided by the count; NaN of nothing

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_min(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smallest; NaN if any is; of zeros of both signs either

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_or(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that any has (another name of reduce_bitwise_or)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_prod(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product; 1 of nothing

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_std(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: float = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the root of var; its gradient is 0 where that is 0 (another name of std)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the count that divides; 1 for an unbiased estimate
    """

def reduce_sum(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum; 0 of nothing

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_variance(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean squared distance to the mean

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reduce_xor(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that an odd number have (another name of reduce_bitwise_xor)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def reglu(
    x: OperandLike,
    /,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""relu(a) * b of the halves a and b of x along axis

    Args:
        axis: the axis; negative ones count from the end
    """

def relu(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x if positive, else 0, also of -0.0; NaN stays"""

def relu6(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x cut off at 0 and 6"""

def remainder(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - (x // y) * y, with the sign of y; for integers x % 0 = 0 (another name of mod)"""

def repeat(
    x: OperandLike,
    repeats: int | Sequence[int],
    axis: int | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""each element along axis, or of x in order, repeats times: an int, or one for each

    Args:
        repeats: how often each element is repeated (required)
        axis: the axis; None: all elements in row-major order
    """

def reshape(
    x: OperandLike,
    /,
    shape: ShapeLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with another shape; -1 is filled in

    Args:
        shape: the new shape; one length may be -1, which is filled in (required)
    """

def resize_area(
    x: OperandLike,
    size: Sequence[int | Size],
    align_corners: bool = False,
    axes: Sequence[int] = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images, NHWC, of another size: the mean of what lies under each new pixel

    Args:
        size: length along each axis (required)
        align_corners: map the centres of corner pixels to each other, as in TensorFlow
        axes: the axes, in order
    """

def resize_bicubic(
    x: OperandLike,
    size: Sequence[int | Size],
    align_corners: bool = False,
    half_pixel_centers: bool = True,
    axes: Sequence[int] = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images, NHWC, of another size: between the sixteen nearest pixels; flags as in TensorFlow

    Args:
        size: length along each axis (required)
        align_corners: map the centres of corner pixels to each other, as in TensorFlow
        half_pixel_centers: pixels have their centres at halves, as in TensorFlow 2
        axes: the axes, in order
    """

def resize_bilinear(
    x: OperandLike,
    size: Sequence[int | Size],
    align_corners: bool = False,
    half_pixel_centers: bool = True,
    axes: Sequence[int] = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images, NHWC, of another size: between the four nearest pixels; flags as in TensorFlow

    Args:
        size: length along each axis (required)
        align_corners: map the centres of corner pixels to each other, as in TensorFlow
        half_pixel_centers: pixels have their centres at halves, as in TensorFlow 2
        axes: the axes, in order
    """

def resize_nearest(
    x: OperandLike,
    size: Sequence[int | Size],
    align_corners: bool = False,
    half_pixel_centers: bool = True,
    axes: Sequence[int] = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images, NHWC, of another size: the nearest pixel; the two flags as in TensorFlow

    Args:
        size: length along each axis (required)
        align_corners: map the centres of corner pixels to each other, as in TensorFlow
        half_pixel_centers: pixels have their centres at halves, as in TensorFlow 2
        axes: the axes, in order
    """

def resize_nearest_neighbor(
    x: OperandLike,
    size: Sequence[int | Size],
    align_corners: bool = False,
    half_pixel_centers: bool = True,
    axes: Sequence[int] = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images, NHWC, of another size: the nearest pixel; the two flags as in TensorFlow (another name of resize_nearest)

    Args:
        size: length along each axis (required)
        align_corners: map the centres of corner pixels to each other, as in TensorFlow
        half_pixel_centers: pixels have their centres at halves, as in TensorFlow 2
        axes: the axes, in order
    """

def reverse(
    x: OperandLike,
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the elements along axis, or all axes, in reverse order (another name of flip)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def reverse_sequence(
    x: OperandLike,
    lengths: OperandLike = ...,
    axis: int = 1,
    batch_axis: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the first lengths[b] elements of axis reversed, for each b of batch_axis

    Args:
        axis: the axis; negative ones count from the end
        batch_axis: the axis along which `lengths` runs
    """

def right_shift(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / 2^n rounded down; copies of the sign where n is negative or at least the width"""

def rint(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the nearest integer, ties to even"""

def rms_norm(
    data: OperandLike,
    gamma: OperandLike = ...,
    *,
    axis: int = -1,
    epsilon: float = 1e-06,
    scale: bool = True,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x divided by the root of its mean square along axis, times gamma

    Args:
        axis: the axis; negative ones count from the end
        epsilon: small number that keeps the division or logarithm finite
        scale: multiply by the input gamma
    """

def roll(
    x: OperandLike,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x shifted along axis, or in its row-major order, around the end

    Args:
        shift: number of positions; negative ones shift to the front (required)
        axis: the axes; None: all elements in row-major order
    """

def rope(
    x: OperandLike,
    /,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x of (…, positions, length) with pairs turned by their position: query @ key.T then depends on distances (another name of rotary_embedding)

    Args:
        base: wavelengths grow up to 2 pi times this number
        offset: position of the first element
        interleaved: pairs are neighbours instead of half an axis apart
    """

def rot90(
    x: OperandLike,
    k: int = 1,
    axes: Sequence[int] = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x turned k times by 90 degrees, from the first axis to the second

    Args:
        k: number of quarter turns
        axes: the axes, in order
    """

def rotary_embedding(
    x: OperandLike,
    /,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x of (…, positions, length) with pairs turned by their position: query @ key.T then depends on distances

    Args:
        base: wavelengths grow up to 2 pi times this number
        offset: position of the first element
        interleaved: pairs are neighbours instead of half an axis apart
    """

def rotary_wave(
    x: OperandLike,
    /,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    sine: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for x of (…, positions, length): the cosine or sine of the angle by which each pair of the last axis is turned

    Args:
        base: wavelengths grow up to 2 pi times this number
        offset: position of the first element
        interleaved: pairs are neighbours instead of half an axis apart
        sine: the sine instead of the cosine
    """

def rotate_half(
    x: OperandLike,
    /,
    interleaved: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""pairs (a, b) of the last axis as (-b, a); a pair is half the axis apart, or interleaved

    Args:
        interleaved: pairs are neighbours instead of half an axis apart
    """

def round(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the nearest integer, ties to even (another name of rint)"""

def round_half_away(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the nearest integer, ties away from 0"""

def rows_along_axis(
    x: OperandLike,
    /,
    shape: ShapeLike,
    updates: int,
    axis: int = -1,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the row-major numbers of the elements of a shape that indices name along axis, for each of the updates; -1 for none

    Args:
        shape: shape of the result (required)
        updates: number of updates (required)
        axis: the axis; negative ones count from the end
        mode: outside: clip, or read 0 and drop writes
    """

def rows_of_points(
    x: OperandLike,
    /,
    shape: ShapeLike,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the row-major numbers of the points of a shape whose coordinates are the last axis; -1 for none

    Args:
        shape: shape of the result (required)
        mode: outside: clip, or read 0 and drop writes
    """

def rsqrt(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 / sqrt(x)"""

def running_sum(
    x: OperandLike,
    /,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sums so far (another name of cumsum)

    Args:
        axis: the axis; None: all elements in row-major order
        exclusive: leave each element out of its own result
        reverse: accumulate from the end
    """

def scale_by_global_norm(
    norm: OperandLike,
    x: OperandLike = ...,
    clip_norm: float = 1.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x times clip_norm / norm where that is below 1; global_norm gives the norm of all gradients

    Args:
        clip_norm: largest length of the result
    """

def scaled_dot_product_attention(
    query: OperandLike,
    key: OperandLike = ...,
    value: OperandLike = ...,
    mask: OperandLike = ...,
    *,
    masked: bool = False,
    causal: bool = False,
    scale: float | None = None,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""softmax(scale * query @ key.T + mask) @ value over the last two axes; a bool mask is True where a key is seen; scale is 1/sqrt(length of a query)

    Args:
        masked: there is a fourth input, the mask
        causal: hide keys that come after the query
        scale: factor of the scores; None: 1 / sqrt(length of a query)
    """

def scatter_add(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, plus updates (another name of index_add)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def scatter_max(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, at least updates (another name of index_max)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def scatter_min(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, at most updates (another name of index_min)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def scatter_mul(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, times updates (another name of index_mul)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def scatter_nd(
    indices: OperandLike,
    updates: OperandLike,
    shape: ShapeLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""zeros of a shape, plus updates at the coordinates in indices

    Args:
        shape: shape of the result (required)
    """

def scatter_rows(
    x: OperandLike,
    rows: OperandLike = ...,
    updates: OperandLike = ...,
    kind: Literal['update', 'add', 'sub', 'mul', 'min', 'max'] = 'add',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(a, b, n, c), (a, m), (a, b, m, c): the m updates joined to those of n rows that are named, in their order; a row that there is not drops them

    Args:
        kind: how updates join
    """

def scatter_sub(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, minus updates (another name of index_sub)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def scatter_update(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    axis: int = 0,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name, replaced by updates (another name of index_update)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def searchsorted(
    sorted_sequence: OperandLike,
    values: OperandLike = ...,
    side: Literal['left', 'right'] = 'left',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""where each value would be put into the sorted numbers: before equal ones, or after them with side 'right'

    Args:
        side: before or after equal numbers
    """

def segment_max(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest of the rows of x with each id below num_segments; negative ids take no part; of none the lowest

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def segment_mean(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of the rows of x with each id below num_segments; negative ids take no part; of none 0

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def segment_min(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smallest of the rows of x with each id below num_segments; negative ids take no part; of none the highest

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def segment_prod(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product of the rows of x with each id below num_segments; negative ids take no part; of none 1

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def segment_sqrt_n(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of the rows of x with each id below num_segments; negative ids take no part, over the root of their number; of none 0

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def segment_sum(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of the rows of x with each id below num_segments; negative ids take no part

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def select(
    condition: OperandLike,
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x where the condition holds, else y (another name of where)"""

def selu(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""elu that keeps mean 0 and variance 1"""

def separable_conv2d(
    input: OperandLike,
    depthwise_filter: OperandLike = ...,
    pointwise_filter: OperandLike = ...,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""depthwise_conv2d, then a convolution of 1 x 1

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def sequence_mask(
    x: OperandLike,
    /,
    maxlen: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether a position below maxlen comes before each of the lengths, in a new last axis

    Args:
        maxlen: length of the new axis (required)
    """

def shift(
    x: OperandLike,
    shift: int | Sequence[int],
    axis: int = -1,
    fill_value: builtins.complex = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x moved along axis by a number of elements; fill_value comes in where there is nothing

    Args:
        shift: number of positions; negative ones shift to the front (required)
        axis: the axis; negative ones count from the end
        fill_value: value of the elements that are filled
    """

def shuffle(
    x: OperandLike,
    key: OperandLike = ...,
    axis: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the slices along axis in random order

    Args:
        axis: the axis; negative ones count from the end
    """

def sigmoid(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""1 / (1 + exp(-x))"""

def sigmoid_cross_entropy_with_logits(
    labels: OperandLike,
    logits: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the cross entropy of labels and sigmoid(logits), element by element"""

def sign(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""-1, 0 or 1; NaN stays"""

def signbit(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x has a minus: -0 too"""

def silu(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * sigmoid(x)"""

def simple_rnn_cell(
    x: OperandLike,
    h: OperandLike = ...,
    kernel: OperandLike = ...,
    recurrent: OperandLike = ...,
    bias: OperandLike = ...,
    activation: Literal['tanh', 'relu', 'sigmoid'] = 'tanh',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the next state: activation(x @ kernel + h @ recurrent + bias)

    Args:
        activation: function of the new state
    """

def sin(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sine of x in radians"""

def sinc(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""sin(pi x) / (pi x), and 1 at 0"""

def sinh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(exp(x) - exp(-x)) / 2"""

def sized_by(
    *x: OperandLike,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the first input; the others only tell a call what sizes there are"""

def slice(
    x: OperandLike,
    /,
    begin: Sequence[int | Size],
    size: Sequence[int | Size],
    step: Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""size[k] elements of axis k from begin[k], step[k] apart; a size of -1 is the rest

    Args:
        begin: first position along each axis (required)
        size: number of elements along each axis; -1: the rest (required)
        step: distance along each axis; None: 1
    """

def slice_assign(
    x: OperandLike,
    value: OperandLike,
    begin: Sequence[int | Size],
    size: Sequence[int | Size],
    step: Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the slice of these begin, size and step replaced by a value of its shape

    Args:
        begin: first position along each axis (required)
        size: number of elements along each axis; -1: the rest (required)
        step: distance along each axis; None: 1
    """

def slogdet(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""the sign of the determinant, and the logarithm of its magnitude"""

def smooth_l1_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    beta: float = 1.0,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Huber's loss of delta=beta, divided by beta

    Args:
        beta: a positive number of the formula
        reduction: how the losses of elements are combined
    """

def soft_shrink(
    x: OperandLike,
    /,
    threshold: float = 0.5,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x moved towards 0 by threshold

    Args:
        threshold: where the function changes
    """

def softmax(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(x) divided by its sum along axis

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def softmax_cross_entropy_with_logits(
    labels: OperandLike,
    logits: OperandLike = ...,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the cross entropy of label distributions and softmax(logits) along axis; 0 * -inf is 0

    Args:
        axis: the axis; negative ones count from the end
    """

def softmin(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""softmax(-x): the smallest weighs most

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def softplus(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""log(1 + exp(x)) (another name of log1p_exp)"""

def softsign(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / (1 + |x|)"""

def solve(
    a: OperandLike,
    b: OperandLike = ...,
    adjoint: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with a @ x = b; b may be a vector

    Args:
        adjoint: solve with the conjugate transpose of the matrix
    """

def sort(
    x: OperandLike,
    axis: int = -1,
    descending: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements along axis in order; NaN counts as the largest; equal ones, such as -0.0 and 0.0, stay in theirs, as in numpy.sort(kind='stable')

    Args:
        axis: the axis; negative ones count from the end
        descending: largest first
    """

def space_to_batch(
    x: OperandLike,
    block_shape: int | Sequence[int],
    paddings: int | Sequence[Sequence[int]] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the axes after the first are padded, and the points of their blocks become images of their own

    Args:
        block_shape: lengths of a block along the axes after the first (required)
        paddings: (before, after) added to each axis of blocks
    """

def space_to_batch_nd(
    x: OperandLike,
    block_shape: int | Sequence[int],
    paddings: int | Sequence[Sequence[int]] = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the axes after the first are padded, and the points of their blocks become images of their own (another name of space_to_batch)

    Args:
        block_shape: lengths of a block along the axes after the first (required)
        paddings: (before, after) added to each axis of blocks
    """

def space_to_depth(
    x: OperandLike,
    block_size: int,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""blocks of block_size × block_size points become channels

    Args:
        block_size: edge length of a block (required)
        data_format: order of the axes: channels last (NHWC) or first (NCHW)
    """

def sparse_softmax_cross_entropy_with_logits(
    labels: OperandLike,
    logits: OperandLike = ...,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the cross entropy of whole-number labels and softmax(logits) along axis; 0 for a label that is no class

    Args:
        axis: the axis; negative ones count from the end
    """

def split_key(
    key: OperandLike,
    num: int = 2,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""num new keys made of one

    Args:
        num: how many
    """

def sqrt(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the square root of x"""

def square(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * x"""

def squared_difference(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(x - y)^2"""

def squared_hinge_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the square of the hinge loss

    Args:
        reduction: how the losses of elements are combined
    """

def squeeze(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x without axes of length 1

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def stack(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs side by side along a new axis

    Args:
        axis: the axis; negative ones count from the end
    """

def std(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: float = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the root of var; its gradient is 0 where that is 0

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the count that divides; 1 for an unbiased estimate
    """

def step(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""0 where x < 0, else 1"""

def stop_gradient(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x, through which no gradient flows"""

def strided_slice(
    x: OperandLike,
    begin: Sequence[int | Size],
    end: Sequence[int | Size],
    strides: Sequence[int] | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x from begin to end by strides; bit k of a mask says what entry k means: begin_mask, end_mask from or to the end, ellipsis_mask all missing axes, new_axis_mask a new axis, shrink_axis_mask one element whose axis goes

    Args:
        begin: first position along each axis (required)
        end: position after the last along each axis (required)
        strides: distance along each axis; None: 1
        begin_mask: bit k set: ignore begin[k] and start at the first element
        end_mask: bit k set: ignore end[k] and go to the last element
        ellipsis_mask: bit k set: entry k stands for all axes that are not given
        new_axis_mask: bit k set: entry k is a new axis
        shrink_axis_mask: bit k set: take begin[k] only, and drop the axis
    """

def sub(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - y"""

def subtract(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - y (another name of sub)"""

def sum(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum; 0 of nothing; of x in dtype, if that is given

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        dtype: dtype of the result; None: see above
        keepdims: keep reduced axes with length 1
    """

def sum_like(
    x: OperandLike,
    like: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x summed to the shape of like, which broadcasts to that of x"""

def svd(
    x: OperandLike,
    /,
    full_matrices: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry, Entry]:
    r"""U, S and Vh with U @ diag(S) @ Vh = x; S falls

    Args:
        full_matrices: square U and Vh instead of the reduced ones
    """

def svdvals(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the singular values of each matrix, falling"""

def swapaxes(
    x: OperandLike,
    axis1: int,
    axis2: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with two axes swapped

    Args:
        axis1: the first of the two axes (required)
        axis2: the second of the two axes (required)
    """

def swiglu(
    x: OperandLike,
    /,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""silu(a) * b of the halves a and b of x along axis

    Args:
        axis: the axis; negative ones count from the end
    """

def take(
    x: OperandLike,
    indices: OperandLike = ...,
    axis: int | None = None,
    mode: Literal['clip', 'zero'] = 'clip',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the slices of x along axis that indices name; without an axis, elements of x in order

    Args:
        axis: the axis; None: all elements in row-major order
        mode: outside: clip, or read 0 and drop writes
    """

def take_along_axis(
    x: OperandLike,
    indices: OperandLike = ...,
    axis: int = -1,
    mode: Literal['clip', 'zero'] = 'clip',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for each element of indices that of x at this position of the axis

    Args:
        axis: the axis; negative ones count from the end
        mode: outside: clip, or read 0 and drop writes
    """

def tan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the tangent of x in radians"""

def tanh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the hyperbolic tangent of x"""

def tanh_shrink(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - tanh(x), exact near 0"""

def tensor_scatter_add(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, plus updates (another name of tensor_scatter_nd_add)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_max(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, at least updates (another name of tensor_scatter_nd_max)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_min(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, at most updates (another name of tensor_scatter_nd_min)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_mul(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, times updates (another name of tensor_scatter_nd_mul)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_nd_add(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, plus updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_nd_max(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, at least updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_nd_min(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, at most updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_nd_mul(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, times updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_nd_sub(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, minus updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_nd_update(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, replaced by updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_sub(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, minus updates (another name of tensor_scatter_nd_sub)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensor_scatter_update(
    x: OperandLike,
    indices: OperandLike = ...,
    updates: OperandLike = ...,
    batch_dims: int = 0,
    mode: Literal['clip', 'zero'] = 'zero',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements, or slices, of x at the coordinates in indices, replaced by updates (another name of tensor_scatter_nd_update)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: outside: clip, or read 0 and drop writes
    """

def tensordot(
    a: OperandLike,
    b: OperandLike,
    /,
    axes: int | Sequence[Any] = 2,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""sums of products over the last axes of a and the first of b, or over the axes given for each

    Args:
        axes: number of axes, or the axes of a and those of b
    """

def tgamma(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the gamma function; NaN at -1, -2, ..."""

def threshold(
    x: OperandLike,
    /,
    threshold: float = 0.0,
    value: float = 0.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x if it exceeds threshold, else value

    Args:
        threshold: where the function changes
        value: value where x does not exceed the threshold
    """

def tile(
    x: OperandLike,
    repetitions: int | Sequence[int],
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x repeated as a whole along each axis, aligned at the last

    Args:
        repetitions: how often x is repeated along each axis (required)
    """

def top_k(
    x: OperandLike,
    k: int = 1,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""the k largest elements along axis, largest first, and their positions as int32; of equal ones the first

    Args:
        k: how many
        axis: the axis; negative ones count from the end
    """

def trace(
    x: OperandLike,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of the diagonal of each matrix

    Args:
        offset: number of the diagonal; 0 is the main one, positive ones are above it
        axis1: the first of the two axes
        axis2: the second of the two axes
    """

def transpose(
    x: OperandLike,
    /,
    axes: Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with its axes in another order

    Args:
        axes: order of the axes; None: reversed
    """

def triangular_solve(
    a: OperandLike,
    b: OperandLike = ...,
    lower: bool = True,
    adjoint: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with a @ x = b, of a triangle of a; b may be a vector

    Args:
        lower: which triangle is read
        adjoint: solve with the conjugate transpose of the matrix
    """

def trigamma(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the derivative of digamma; inf at 0, -1, -2, ..."""

def tril(
    x: OperandLike,
    /,
    k: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with zeros above its k-th diagonal

    Args:
        k: number of the diagonal; 0 is the main one, positive ones are above it
    """

def triu(
    x: OperandLike,
    /,
    k: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with zeros below its k-th diagonal

    Args:
        k: number of the diagonal; 0 is the main one, positive ones are above it
    """

def true_divide(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y (another name of div)"""

def trunc(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x rounded toward 0"""

def trunc_div(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y rounded toward 0; for integers x / 0 = 0"""

def trunc_mod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - trunc_div(x, y) * y, with the sign of x; for integers x % 0 = 0 (another name of fmod)"""

def truncate_div(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y rounded toward 0; for integers x / 0 = 0 (another name of trunc_div)"""

def truncate_mod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - trunc_div(x, y) * y, with the sign of x; for integers x % 0 = 0 (another name of fmod)"""

def truncated_normal(
    key: OperandLike,
    shape: ShapeLike = ...,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""normal draws of this mean and standard deviation, none beyond two deviations (another name of random_truncated_normal)

    Args:
        shape: shape of the result
        mean: mean of the distribution
        stddev: standard deviation of the distribution
        dtype: dtype of the result
    """

def unique(
    x: OperandLike,
    size: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""the first size different elements in order, and how often each occurs; zeros behind them

    Args:
        size: number of results, which must be known (required)
    """

def unslice(
    x: OperandLike,
    /,
    shape: ShapeLike,
    begin: Sequence[int | Size],
    step: Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""zeros of a shape with x in them, from begin[k] of axis k on, step[k] apart

    Args:
        shape: shape of the result (required)
        begin: first position along each axis (required)
        step: distance along each axis; None: 1
    """

def unsorted_segment_max(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the largest of the rows of x with each id below num_segments; negative ids take no part; of none the lowest (another name of segment_max)

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def unsorted_segment_mean(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of the rows of x with each id below num_segments; negative ids take no part; of none 0 (another name of segment_mean)

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def unsorted_segment_min(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smallest of the rows of x with each id below num_segments; negative ids take no part; of none the highest (another name of segment_min)

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def unsorted_segment_prod(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product of the rows of x with each id below num_segments; negative ids take no part; of none 1 (another name of segment_prod)

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def unsorted_segment_sqrt_n(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of the rows of x with each id below num_segments; negative ids take no part, over the root of their number; of none 0 (another name of segment_sqrt_n)

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def unsorted_segment_sum(
    x: OperandLike,
    segment_ids: OperandLike,
    num_segments: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of the rows of x with each id below num_segments; negative ids take no part (another name of segment_sum)

    Args:
        num_segments: number of segments, the length of the first axis of the result (required)
    """

def var(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    correction: float = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the squared distances to the mean, summed, over count - correction

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the count that divides; 1 for an unbiased estimate
    """

def variance(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean squared distance to the mean (another name of reduce_variance)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
    """

def vecdot(
    a: OperandLike,
    b: OperandLike,
    /,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sum of products along axis, counted from the end

    Args:
        axis: the axis; negative ones count from the end
    """

def vecmat(
    v: OperandLike,
    a: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""vectors times matrices"""

def vector_norm(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: float = 2,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the length of vectors along axis: ord 1, 2, inf or any other; its gradient at 0 is 0

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        ord: order of the norm; inf for the largest magnitude
    """

def where(
    condition: OperandLike,
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x where the condition holds, else y"""

def window_products(
    x: OperandLike,
    y: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *size, channels), (batch, *result, filters) -> (*window, channels, filters): what windows cover times what belongs to each, summed over them

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
    """

def windows(
    x: OperandLike,
    /,
    window: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    fill: builtins.complex = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *size, channels) -> (batch, *result, *window, channels): what each window covers

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        fill: what padding is filled with
    """

def windows_back(
    x: OperandLike,
    /,
    size: Sequence[int | Size],
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *result, *window, channels) -> (batch, *size, *window, channels): what each element gets from each place of a window, to be summed over the window

    Args:
        size: length along each axis (required)
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
    """

def windows_taken(
    x: OperandLike,
    /,
    strides: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilations: int | Sequence[int] = 1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""(batch, *size, *window, channels) -> (batch, *result, *window, channels): what windows_back has put at a size, at its windows again

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
    """

def xdivy(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y, and 0 where x is 0"""

def xlog1py(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x log(1 + y), and 0 where x is 0"""

def xlogy(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x log(y), and 0 where x is 0"""

def zeros(
    shape: ShapeLike,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""zeros of a shape

    Args:
        shape: shape of the result (required)
        dtype: dtype of the result
    """

def zeros_like(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""zeros like x"""

def zeta(
    x: OperandLike,
    q: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Hurwitz' zeta function: the sum of (q + k)^-x for k from 0; NaN for x < 1"""

