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
    r"""the distribution function of the normal distribution at x"""

def Phi_approx(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Phi to three digits, computed by a sigmoid"""

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
    r"""the absolute error abs(predictions - labels); the mean over all elements, or as reduction says (another name of mean_absolute_error)

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
    r"""the angle in radians whose cosine is x, from 0 to pi"""

def acosh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse hyperbolic cosine; NaN where x < 1"""

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
    r"""x with the element at each index along axis increased by that of updates, which has the shape of indices

    Args:
        axis: the axis; negative ones count from the end
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
    """

def alibi_bias(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for scores x of shape (…, heads, queries, keys): minus the distance of key and query times the slope of the head"""

def angle(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle of x in the complex plane, in radians; of a real number 0 or pi"""

def arange(
    start: float,
    stop: float | Size | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the numbers start, start + step, … before stop, computed in float64; with one argument from 0 to below it

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
    r"""the angle in radians whose cosine is x, from 0 to pi (another name of acos)"""

def arccosh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse hyperbolic cosine; NaN where x < 1 (another name of acosh)"""

def arcsin(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle in radians whose sine is x, from -pi/2 to pi/2 (another name of asin)"""

def arcsinh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse hyperbolic sine (another name of asinh)"""

def arctan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle in radians whose tangent is x, from -pi/2 to pi/2 (another name of atan)"""

def arctan2(
    y: OperandLike,
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle of the point (x, y) in radians, from -pi to pi; signs of zeros count, NaN stays (another name of atan2)"""

def arctanh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse hyperbolic tangent; NaN outside of -1 to 1 (another name of atanh)"""

def arg_max(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the index of the largest element along axis, of the first of equal ones or the first NaN, as int64; without an axis, that in row-major order (another name of argmax)

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
    r"""the index of the smallest element along axis, of the first of equal ones or the first NaN, as int64; without an axis, that in row-major order (another name of argmin)

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
    r"""the index of the largest element along axis, of the first of equal ones or the first NaN, as int64; without an axis, that in row-major order

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
    r"""the index of the smallest element along axis, of the first of equal ones or the first NaN, as int64; without an axis, that in row-major order

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
    r"""the positions of the elements along axis in increasing order, or decreasing with descending; equal elements keep their order

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
    r"""the coordinates of the first size elements that are not 0, in row-major order: int64 of shape (size, rank); rows beyond them hold fill_value

    Args:
        size: number of elements or rows of the result (required)
        fill_value: value of the elements that are filled
    """

def asin(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle in radians whose sine is x, from -pi/2 to pi/2"""

def asinh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse hyperbolic sine"""

def assign(
    old: OperandLike,
    new: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the new value of a state variable, which a call writes; the inputs are the variable and the value"""

def astype(
    x: OperandLike,
    /,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x converted to dtype: floats are cut to integers and limited to their range, NaN becomes 0; integers keep their lowest bits (another name of cast)

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
    r"""the angle in radians whose tangent is x, from -pi/2 to pi/2"""

def atan2(
    y: OperandLike,
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the angle of the point (x, y) in radians, from -pi to pi; signs of zeros count, NaN stays"""

def atanh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse hyperbolic tangent; NaN outside of -1 to 1"""

def atleast_1d(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with new axes of length 1 up to rank 1"""

def atleast_2d(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with new axes of length 1 up to rank 2"""

def atleast_3d(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with new axes of length 1 up to rank 3"""

def average(
    x: OperandLike,
    weights: OperandLike = ...,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the mean of x over axis weighted by weights, which broadcast to x

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
    r"""the mean under each window, in the layout of x; padding counts only with count_include_pad (another name of avg_pool2d)

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the mean under each window, in the layout of x; padding counts only with count_include_pad

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the mean under each window, in the layout of x; padding counts only with count_include_pad

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the mean under each window, in the layout of x; padding counts only with count_include_pad

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        count_include_pad: count padding in the mean
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
    """

def band_part(
    x: OperandLike,
    num_lower: int = -1,
    num_upper: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with zeros outside of num_lower diagonals below the main one and num_upper above it; a negative number keeps all on that side

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
    r"""(input - mean) / sqrt(variance + epsilon) * scale + offset with a number for each channel, in the shape of input

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
    r"""batch_norm with the statistics of the batch. Three results: the normalized input, and the new running mean and variance, momentum * old + (1 - momentum) * batch

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
    r"""(input - mean) / sqrt(variance + epsilon) * scale + offset with a number for each channel, in the shape of input (another name of batch_norm)

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
    r"""the inverse of space_to_batch: examples become the points of blocks of the axes after the first, which are then cropped

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
    r"""the inverse of space_to_batch: examples become the points of blocks of the axes after the first, which are then cropped (another name of batch_to_space)

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
    r"""True with probability p, broadcast to shape; by default in the shape of p (another name of random_bernoulli)

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
    r"""the regularized incomplete beta function; NaN unless a, b > 0 and x is from 0 to 1"""

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
    r"""for each k the sum over i and j of a[i] * weight[k, i, j] * b[j]: (…, i), (…, j), (k, i, j) -> (…, k)"""

def binary_cross_entropy(
    labels: OperandLike,
    predictions: OperandLike = ...,
    epsilon: float = 1e-07,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""-labels * log(p) - (1 - labels) * log(1 - p) for probabilities p, limited to epsilon from 0 and 1; the mean over all elements, or as reduction says

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
    r"""how often each integer from 0 to below length occurs in x: int64 of shape (length,); others are ignored

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
    r"""the bits of x interpreted as dtype, which has as many bytes; the shape stays

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
    r"""the bits of x interpreted as dtype, which has as many bytes; the shape stays (another name of bitcast)

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
    r"""the bits that are 1 in x and in y"""

def bitwise_count(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the number of ones among the bits of the magnitude of x, as uint8"""

def bitwise_invert(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with all bits inverted (another name of bitwise_not)"""

def bitwise_left_shift(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * 2^n without the bits that overflow; 0 where n is negative or at least the number of bits (another name of left_shift)"""

def bitwise_not(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with all bits inverted"""

def bitwise_or(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that are 1 in x or in y"""

def bitwise_right_shift(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / 2^n rounded down; 0 or -1 by the sign of x where n is negative or at least the number of bits (another name of right_shift)"""

def bitwise_xor(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the bits that differ between x and y"""

def broadcast_to(
    x: OperandLike,
    /,
    shape: ShapeLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x broadcast to a shape, as in NumPy

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
    r"""the number of bins, an increasing vector, that are at most the element, or below it with right; in the shape of x (another name of digitize)

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
    r"""x converted to dtype: floats are cut to integers and limited to their range, NaN becomes 0; integers keep their lowest bits

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
    r"""a class along axis, drawn with the probabilities softmax(logits), as int64; in the shape of logits without axis (another name of random_categorical)

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
    r"""x, scores of shape (…, queries, keys), with value where the key comes after the query; the last query and the last key are at the same position

    Args:
        value: value of the elements that are replaced
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
    r"""x where it is positive, else alpha * (exp(x / alpha) - 1)

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
    r"""the lower triangular L with L @ transpose(L) = x of each symmetric matrix; transpose(L) with upper

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
    r"""x limited to the range from low to high, minimum(maximum(x, low), high)"""

def clip_by_norm(
    x: OperandLike,
    /,
    clip_norm: float = 1.0,
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x scaled down along axis to the L2 norm clip_norm, where its norm is larger

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
    r"""x limited to the range from low to high, minimum(maximum(x, low), high) (another name of clip)"""

def complex(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the complex numbers of real parts x and imaginary parts y"""

def concat(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs joined along axis, whose length is the sum of theirs

    Args:
        axis: the axis; negative ones count from the end
    """

def concatenate(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs joined along axis, whose length is the sum of theirs (another name of concat)

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
    r"""the complex conjugate: x with the opposite imaginary part"""

def conjugate(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the complex conjugate: x with the opposite imaginary part (another name of conj)"""

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
    r"""the convolution over 1 spatial axes with a filter of shape (*window, channels / groups, filters), in the layout data_format

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the convolution over 2 spatial axes with a filter of shape (*window, channels / groups, filters), in the layout data_format

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the convolution over 3 spatial axes with a filter of shape (*window, channels / groups, filters), in the layout data_format

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        groups: number of groups of channels that are computed apart
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the sums of products of the filter and the elements under each window: (batch, *size, channels), (*window, channels / groups, filters) -> (batch, *result, filters)

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
    r"""the gradient of a convolution by its filter: (batch, *size, channels), (batch, *result, filters) -> (*window, channels / groups, filters)

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
    r"""the gradient of a convolution by its input: (*window, channels / groups, filters), (batch, *result, filters) -> (batch, *size, channels)

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
    r"""the cosine of the angle between vectors along axis, which the result does not have; lengths below epsilon count as epsilon

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
    r"""the number of elements over axis that are not 0, as int64

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
    r"""the part of x that begins at offsets and has the lengths size, along the axes before the channels; without channels_last along the last axes

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
    r"""the cross product of vectors of three elements along axis

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
    r"""the largest element so far along axis, in the shape of x; NaN from the first NaN on

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
    r"""the smallest element so far along axis, in the shape of x; NaN from the first NaN on

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
    r"""the cumulative products along axis, in the shape of x

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
    r"""the cumulative sums along axis, in the shape of x

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
    r"""log(cumsum(exp(x))) along axis, in the shape of x (another name of logcumsumexp)

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
    r"""the cumulative products along axis, in dtype; with include_initial one element longer, beginning with 1

    Args:
        axis: the axis; None: all elements in row-major order
        dtype: dtype of the result; None: that of x
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
    r"""the cumulative sums along axis, in dtype; with include_initial one element longer, beginning with 0

    Args:
        axis: the axis; None: all elements in row-major order
        dtype: dtype of the result; None: that of x
        include_initial: begin with the result of no elements
    """

def deg2rad(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x degrees in radians"""

def degrees(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x radians in degrees (another name of rad2deg)"""

def depth_to_space(
    x: OperandLike,
    block_size: int,
    data_format: str = 'NHWC',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""images in which each group of block_size^2 channels has become a block of block_size × block_size points

    Args:
        block_size: edge length of a block (required)
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the convolution of each channel with its own filters, which have the shape (height, width, channels, multiplier); there are channels * multiplier results

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
    """

def det(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the determinant of each matrix: (…, n, n) -> (…)"""

def diag(
    x: OperandLike,
    k: int = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the k-th diagonal of a matrix x; or a matrix of zeros with the vector x as its k-th diagonal

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
    r"""square matrices of zeros with the last axis of x on the diagonal offset: (…, n) -> (…, m, m) with m = n + |offset|

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
    r"""the diagonal offset of the matrices in axis1 and axis2, as the last axis of the result

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
    r"""the differences of neighbouring elements along axis, taken n times; the axis is shorter by n

    Args:
        n: number of repetitions
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
    r"""the number of bins, an increasing vector, that are at most the element, or below it with right; in the shape of x

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
    r"""x with its elements factors[k] apart along axis k, zeros between them, and padding of zeros around; negative padding cuts off

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
    r"""the sums of products over the last axis of a and the last but one of b, as numpy.dot"""

def dropout(
    x: OperandLike,
    key: OperandLike = ...,
    rate: float = 0.5,
    noise_shape: ShapeLike | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with each element set to 0 with probability rate, and the others divided by 1 - rate; one draw is shared along axes of length 1 of noise_shape

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
    r"""the eigenvalues of symmetric matrices in increasing order, (…, n), and their eigenvectors as columns, (…, n, n)"""

def eigvalsh(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the eigenvalues of symmetric matrices in increasing order: (…, n, n) -> (…, n)"""

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
    r"""x where it is positive, else alpha * (exp(x) - 1)

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
    r"""the slices of x at indices along axis; the first batch_dims axes of x and indices are shared. The axes of indices after these replace axis (another name of gather)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""1 - erf(x), accurate for large x"""

def erfcinv(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of erfc, for x from 0 to 2"""

def erfinv(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of erf, for x from -1 to 1"""

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
    r"""x with new axes of length 1 at the positions axis of the result

    Args:
        axis: positions of the new axes in the result
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
    r"""exp(x) - 1, accurate near 0"""

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
    r"""each window as one row: (batch, *size, channels) -> (batch, *result, window * channels) (another name of extract_patches)

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
    r"""each window as one row: (batch, *size, channels) -> (batch, *result, window * channels)

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
    r"""a matrix (n_rows, n_cols) with ones on its k-th diagonal, and zeros elsewhere

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
    r"""an array of a shape in which every element is fill_value (another name of full)

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
    r"""a filter with reversed window, and channels and filters of each group exchanged: (*window, channels / groups, filters) -> (*window, filters / groups, channels)

    Args:
        groups: number of groups of channels that are computed apart
    """

def first_positions(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""for each element of an integer vector the position of the first element that equals it, as int64"""

def flatnonzero(
    x: OperandLike,
    /,
    size: int,
    fill_value: builtins.complex = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the row-major indices of the first size elements that are not 0: int64 of shape (size,); fill_value beyond them

    Args:
        size: number of elements or rows of the result (required)
        fill_value: value of the elements that are filled
    """

def flatten(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the elements of x in row-major order, a vector"""

def flip(
    x: OperandLike,
    axis: int | Sequence[int] | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the elements along axis, by default along all axes, in reverse order

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
    r"""x / y rounded down; an integer divided by 0 is 0"""

def floor_divide(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y rounded down; an integer divided by 0 is 0 (another name of floor_div)"""

def fma(
    x: OperandLike,
    y: OperandLike,
    z: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * y + z, rounded once"""

def fmax(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the larger of x and y; if one is NaN, the other. Of zeros of both signs it is y, in float16 x"""

def fmin(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the smaller of x and y; if one is NaN, the other. Of zeros of both signs it is y, in float16 x"""

def fmod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - trunc_div(x, y) * y, the remainder with the sign of x; an integer modulo 0 is 0"""

def fold_in(
    key: OperandLike,
    data: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""a key made of key and each integer of data, such as the number of a step, as int64"""

def full(
    shape: ShapeLike,
    fill_value: builtins.complex,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""an array of a shape in which every element is fill_value

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
    r"""an array of the shape and dtype of x in which every element is fill_value

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
    r"""batch_norm as TensorFlow's FusedBatchNorm. Three results: the normalized input, and the mean and variance of each channel

    Args:
        epsilon: small number that keeps the division or logarithm finite
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the regularized lower incomplete gamma function; NaN unless a > 0 and x > 0, or x = 0 (another name of igamma)"""

def gammaincc(
    a: OperandLike,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the regularized upper incomplete gamma function; NaN unless a > 0 and x >= 0 (another name of igammac)"""

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
    r"""the slices of x at indices along axis; the first batch_dims axes of x and indices are shared. The axes of indices after these replace axis

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""the elements or slices of x at the points whose coordinates are the last axis of indices; the first batch_dims axes are shared

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""gelu(a) * b for the halves a and b of x along axis, whose length is halved

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
    r"""x times the normal distribution function of x

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
    r"""the mean of each channel over all spatial axes: (batch, …, channels) -> (batch, channels)

    Args:
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the largest element of each channel over all spatial axes: (batch, …, channels) -> (batch, channels)

    Args:
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
        keepdims: keep reduced axes with length 1
    """

def global_norm(
    *x: OperandLike,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the square root of the sum of squares of all elements of all inputs, a scalar"""

def glu(
    x: OperandLike,
    /,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""a * sigmoid(b) for the halves a and b of x along axis, whose length is halved

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
    r"""data normalized to mean 0 and variance 1 in each group of channels of each example, times gamma, plus beta

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
    r"""the next state of a gated recurrent unit, (examples, units). Gates are in the order z, r, h; bias is (2, 3 * units) with reset_after, else (3 * units,)

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
    r"""softmax((logits + Gumbel noise) / temperature) along axis: an approximately one-hot draw of a class

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
    r"""x where its magnitude exceeds threshold, else 0

    Args:
        threshold: magnitude at which the function changes
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
    r"""x * relu6(x + 3) / 6 (another name of hard_swish)"""

def hard_swish(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * relu6(x + 3) / 6"""

def hard_tanh(
    x: OperandLike,
    /,
    low: float = -1.0,
    high: float = 1.0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x limited to the range from low to high

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
    r"""0 where x < 0, 1 where x > 0, middle where x is 0; NaN stays"""

def hinge_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""max(0, 1 - labels * predictions) for labels -1 and 1; the mean over all elements, or as reduction says

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
    r"""the number of elements in each of bins equal intervals of range: int64 of shape (bins,); others are ignored

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
    r"""for errors d the square d**2 / 2 up to delta, and a straight line beyond; the mean over all elements, or as reduction says

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
    r"""the regularized lower incomplete gamma function; NaN unless a > 0 and x > 0, or x = 0"""

def igammac(
    a: OperandLike,
    x: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the regularized upper incomplete gamma function; NaN unless a > 0 and x >= 0"""

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
    r"""x with the slices at indices along axis increased by the updates, which have the shape of gather(x, indices)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis limited to at least the updates, which have the shape of gather(x, indices)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis limited to at most the updates, which have the shape of gather(x, indices)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis multiplied by the updates, which have the shape of gather(x, indices)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis decreased by the updates, which have the shape of gather(x, indices)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis replaced by the updates, which have the shape of gather(x, indices)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
    """

def inner(
    a: OperandLike,
    b: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the sums of products over the last axes of a and b: (…, k), (…, k) -> the other axes of a, then those of b"""

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
    r"""data normalized to mean 0 and variance 1 in each channel of each example, times gamma, plus beta

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
    r"""the inverse of Phi, for p from 0 to 1"""

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
    r"""x with all bits inverted (another name of bitwise_not)"""

def invert_permutation(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse permutation of the vector x: element x[k] of the result is k, as int64"""

def is_finite(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is neither NaN nor infinite, as bool (another name of isfinite)"""

def is_inf(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is infinite, as bool (another name of isinf)"""

def is_nan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is NaN, as bool (another name of isnan)"""

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
    r"""whether |x - y| <= atol + rtol * |y|, as bool

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
    r"""whether x is neither NaN nor infinite, as bool"""

def isin(
    x: OperandLike,
    test: OperandLike = ...,
    invert: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether each element of x is among those of test, or is not with invert; bool in the shape of x

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
    r"""whether x is infinite, as bool"""

def isnan(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is NaN, as bool"""

def kl_divergence(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""labels * log(labels / predictions), 0 where the label is 0; the mean over all elements, or as reduction says

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
    r"""the Kronecker product of x and y: each element of x times all of y, of the product of their shapes"""

def l1_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the absolute error abs(predictions - labels); the mean over all elements, or as reduction says (another name of mean_absolute_error)

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
    r"""x divided by its L2 norm along axis; a sum of squares below epsilon counts as epsilon

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
    r"""labels * (1 - smoothing) + smoothing / n for the n classes along axis

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
    r"""data normalized to mean 0 and variance 1 along axis, times gamma, plus beta, in the shape of data

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
    r"""the least common multiple, without the bits that overflow; 0 where x or y is 0"""

def ldexp(
    x: OperandLike,
    n: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * 2^n for integers n, rounded once"""

def leaky_relu(
    x: OperandLike,
    /,
    alpha: float = 0.2,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x where it is positive, else alpha * x

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
    r"""x * 2^n without the bits that overflow; 0 where n is negative or at least the number of bits"""

def lerp(
    x: OperandLike,
    y: OperandLike,
    t: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x + t * (y - x): x at t = 0, y at t = 1"""

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
    r"""num numbers from start to stop at equal distances, computed in float64 (another name of linspace)

    Args:
        start: first number (required)
        stop: end of the range (required)
        num: number of elements of the result
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
    r"""data @ transpose(weight) + bias, a fully connected layer: (…, inputs), (outputs, inputs), (outputs,) -> (…, outputs)

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
    r"""num numbers from start to stop at equal distances, computed in float64

    Args:
        start: first number (required)
        stop: end of the range (required)
        num: number of elements of the result
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
    r"""x * log(y), and 0 where both are 0"""

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
    r"""x / (bias + alpha * s) ** beta, where s is the sum of squares over channels up to depth_radius away

    Args:
        depth_radius: number of channels summed on each side
        bias: number that is added to the scaled sum of squares
        alpha: factor of the sum of squares
        beta: exponent
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""log(1 - x), accurate near 0"""

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
    r"""log(1 + x), accurate near 0"""

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
    r"""log(cosh(predictions - labels)); the mean over all elements, or as reduction says

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
    r"""the logarithm of softmax along axis, in the shape of x

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
    r"""log(cumsum(exp(x))) along axis, in the shape of x

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
    r"""whether x and y are both true"""

def logical_not(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x is false"""

def logical_or(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether x or y or both are true"""

def logical_xor(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether exactly one of x and y is true"""

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
    r"""log(sum(exp(x))) over axis

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
    r"""x / (bias + alpha * s) ** beta, where s is the sum of squares over channels up to depth_radius away (another name of local_response_normalization)

    Args:
        depth_radius: number of channels summed on each side
        bias: number that is added to the scaled sum of squares
        alpha: factor of the sum of squares
        beta: exponent
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""one step of TensorFlow's LSTMBlockCell: seven results i, cs, f, o, ci, co, h of shape (examples, units). w is (inputs + units, 4 * units) in the order i, c, f, o

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
    r"""the next h and c of a long short-term memory, each (examples, units). Gates are in the order i, f, c, o

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
    r"""the shortest x that minimizes the length of a @ x - b: (…, m, n), (…, m, k) -> (…, n, k)

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
    r"""softmax along axis over the elements where mask is True, and 0 elsewhere; all 0 where the mask is False everywhere

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
    r"""the matrix products over the last two axes, leading axes broadcast: (…, m, k), (…, k, n) -> (…, m, n)

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
    r"""the sum of matrix products of consecutive pairs of inputs, a1 @ b1 + a2 @ b2 + …, of shape (m, n)

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
    r"""x with zeros outside of num_lower diagonals below the main one and num_upper above it; a negative number keeps all on that side (another name of band_part)

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
    r"""the norm of each matrix, by default the Frobenius norm: (…, m, n) -> (…)

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
    r"""the product of n copies of square matrices x; for negative n of their inverses

    Args:
        n: number of repetitions (required)
    """

def matrix_rank(
    x: OperandLike,
    /,
    rtol: float | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the number of singular values of each matrix that exceed rtol times the largest, as int64

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
    r"""X with A @ X = B for square matrices A = x and matrices B = y: (…, n, n), (…, n, k) -> (…, n, k)

    Args:
        adjoint: solve with the conjugate transpose of the matrix
    """

def matrix_transpose(
    x: OperandLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with its last two axes exchanged"""

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
    r"""X with A @ X = B for triangular A = x, of which only one triangle is read, and matrices B = y: (…, n, n), (…, n, k) -> (…, n, k)

    Args:
        lower: read the lower triangle, not the upper one
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
    r"""the products of matrices and vectors: (…, m, k), (…, k) -> (…, m)"""

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
    r"""the largest element under each window, in the layout of x; NaN if there is one (another name of max_pool2d)

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the largest element under each window, in the layout of x; NaN if there is one

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the largest element under each window, in the layout of x; NaN if there is one

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
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
    r"""the largest element under each window, in the layout of x; NaN if there is one

    Args:
        window: lengths of a window, one or for each axis (required)
        strides: distance between windows; None: the lengths of a window
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
    """

def maximum(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the larger of x and y; NaN if either is NaN. Of zeros of both signs it is y, in float16 x, as in NumPy on x86-64"""

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
    r"""the mean over axis, computed in dtype; by default float64 for integers

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        dtype: dtype of the result; None: that of x, float64 for integers
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
    r"""the absolute error abs(predictions - labels); the mean over all elements, or as reduction says

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
    r"""the squared error (predictions - labels)**2; the mean over all elements, or as reduction says

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
    r"""the middle element over axis, or the mean of the two middle ones; NaN if any is NaN

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
    r"""the smaller of x and y; NaN if either is NaN. Of zeros of both signs it is y, in float16 x, as in NumPy on x86-64"""

def mirror_pad(
    x: OperandLike,
    pad_width: int | Sequence[Any],
    mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant',
    constant_values: builtins.complex = 0,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with padding around it: pad_width is (before, after) for each axis. In mode constant negative widths cut off; reflect takes up to n - 1 elements of an axis of n, symmetric and wrap up to n (another name of pad)

    Args:
        pad_width: (before, after) for each axis, one pair or one number (required)
        mode: values of the padding, as numpy.pad defines them
        constant_values: value that mode 'constant' pads with
    """

def mish(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * tanh(log(1 + exp(x)))"""

def mod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - (x // y) * y, the remainder with the sign of y; an integer modulo 0 is 0"""

def moments(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""the mean over axis, and the mean squared distance to it: two results

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
    r"""x with the axes source moved to the positions destination

    Args:
        source: axes that are moved (required)
        destination: positions of these axes in the result (required)
    """

def mse_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the squared error (predictions - labels)**2; the mean over all elements, or as reduction says (another name of mean_squared_error)

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
    r"""x * y, and 0 where y is 0, even where x is infinite or NaN"""

def multi_dot(
    *x: OperandLike,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the product of all inputs, matrices, in the order of the fewest multiplications; the first and last may be vectors"""

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
    r"""x * log(y), and 0 where both are 0 (another name of lmultiply)"""

def multiply_no_nan(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * y, and 0 where y is 0, even where x is infinite or NaN (another name of mul_no_nan)"""

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
    r"""x with NaN replaced by nan, and infinities by posinf and neginf, by default the largest finite numbers

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
    r"""the largest element over axis that is not NaN; NaN if all are

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
    r"""the mean over axis of the elements that are not NaN

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
    r"""the smallest element over axis that is not NaN; NaN if all are

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
    r"""the product over axis of the elements that are not NaN

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
    r"""the square root of nanvar

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the number of elements; 1 for an unbiased estimate
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
    r"""the sum over axis of the elements that are not NaN

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
    r"""the variance over axis of the elements that are not NaN

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the number of elements; 1 for an unbiased estimate
    """

def ndtr(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the distribution function of the normal distribution at x (another name of Phi)"""

def ndtri(
    p: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inverse of Phi, for p from 0 to 1 (another name of inv_Phi)"""

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
    r"""the float next to x in the direction of y"""

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
    r"""the distribution function of the normal distribution at x (another name of Phi)"""

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
    r"""on_value at the position indices along a new axis of length depth, off_value elsewhere

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
    r"""ones in an array of a shape

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
    r"""ones in the shape and dtype of x"""

def outer(
    x: OperandLike,
    y: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the products of each element of x and each element of y, both flattened, as a matrix"""

def pack(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs, of one shape, joined along a new axis (another name of stack)

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
    r"""x with padding around it: pad_width is (before, after) for each axis. In mode constant negative widths cut off; reflect takes up to n - 1 elements of an axis of n, symmetric and wrap up to n

    Args:
        pad_width: (before, after) for each axis, one pair or one number (required)
        mode: values of the padding, as numpy.pad defines them
        constant_values: value that mode 'constant' pads with
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
    r"""x with a constant around it: pad_width is (before, after) for each axis; negative widths cut off

    Args:
        pad_width: (before, after) for each axis, one pair or one number (required)
        value: value of the elements that are replaced
    """

def permutation(
    key: OperandLike,
    num: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the integers from 0 to below num in random order, as int64 (another name of random_permutation)

    Args:
        num: number of elements of the result (required)
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
    r"""64 of the 128 bits of the Philox4x32-10 block for counter x, stream y and key z, as int64

    Args:
        half: selects the first or second 64 of the 128 random bits
    """

def pick_label(
    x: OperandLike,
    labels: OperandLike = ...,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x where its position along axis is the label, else 0, in the shape of x; labels has that shape without axis

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
    r"""the pseudo-inverse of each matrix; singular values below rtol times the largest count as 0: (…, m, n) -> (…, n, m)

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
    r"""exp(predictions) - labels * predictions, for counts and the logarithms of their rates; the mean over all elements, or as reduction says

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
    r"""the polynomial with coefficients p, highest power first, at each element of x"""

def population_count(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the number of ones among the bits of x, the sign included, as uint8"""

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
    r"""x to the power y, as C's pow: pow(-inf, 0.5) is inf; negative powers of integers are cut to integers"""

def power(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x to the power y, as C's pow: pow(-inf, 0.5) is inf; negative powers of integers are cut to integers (another name of pow)"""

def prelu(
    x: OperandLike,
    alpha: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x where it is positive, else alpha * x; alpha is an input that broadcasts"""

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
    r"""the product over axis, computed in dtype; 1 of no elements

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        dtype: dtype of the result; None: that of x
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
    r"""for each element the product of all other elements along axis, in the shape of x

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
    r"""the largest minus the smallest element over axis

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
    r"""x with the element at each index along axis replaced by that of updates, which has the shape of indices

    Args:
        axis: the axis; negative ones count from the end
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
    """

def qr(
    x: OperandLike,
    /,
    mode: Literal['reduced', 'complete'] = 'reduced',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""Q with orthonormal columns and the upper triangular R with Q @ R = x, for each matrix

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
    r"""the value below which a part q of the elements over axis lies, interpolated linearly between two elements

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
    r"""x * sigmoid(1.702 * x), an approximation of gelu"""

def rad2deg(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x radians in degrees"""

def radians(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x degrees in radians (another name of deg2rad)"""

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
    r"""integers from low to below high, an array of a shape; each is 63 random bits modulo high - low, whose bias is below 2**-31 for ranges of 32 bits (another name of random_integers)

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
    r"""True with probability p, broadcast to shape; by default in the shape of p

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
    r"""independent random bits in an array of a shape, integers of dtype

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
    r"""a class along axis, drawn with the probabilities softmax(logits), as int64; in the shape of logits without axis

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
    r"""exponentially distributed numbers of rate 1, an array of a shape

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
    r"""Gumbel-distributed numbers of location 0 and scale 1, an array of a shape

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
    r"""integers from low to below high, an array of a shape; each is 63 random bits modulo high - low, whose bias is below 2**-31 for ranges of 32 bits

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
    r"""a key for each integer seed, as int64; neighbouring seeds give unrelated keys"""

def random_laplace(
    key: OperandLike,
    shape: ShapeLike = ...,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Laplace-distributed numbers of location 0 and scale 1, an array of a shape

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
    r"""logistically distributed numbers of location 0 and scale 1, an array of a shape

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
    r"""normally distributed numbers of this mean and standard deviation by Box and Muller, an array of a shape; none is more than 6.7 deviations from the mean

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
    r"""the integers from 0 to below num in random order, as int64

    Args:
        num: number of elements of the result (required)
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
    r"""normally distributed numbers of this mean and standard deviation, none beyond two deviations, an array of a shape

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
    r"""uniformly distributed numbers from low to below high, an array of a shape

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
    r"""64 random bits for each element of an array of a shape, as int64; half selects one of two independent words

    Args:
        shape: shape of the result
        stream: number of an independent stream of the same key
        half: selects the first or second 64 of the 128 random bits
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
    r"""the numbers start, start + step, … before stop, computed in float64; with one argument from 0 to below it (another name of arange)

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
    r"""the elements of x in row-major order, a vector (another name of flatten)"""

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
    r"""whether all elements over axis are true

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
    r"""the bits that are 1 in all elements over axis (another name of reduce_bitwise_and)

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
    r"""whether any element over axis is true

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
    r"""the bits that are 1 in all elements over axis

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
    r"""the bits that are 1 in any element over axis

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
    r"""the bits that are 1 in an odd number of elements over axis

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
    r"""log(sum(exp(x))) over axis (another name of logsumexp)

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
    r"""the largest element over axis; NaN if any is NaN. Of zeros of both signs it may be either

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
    r"""the mean over axis; NaN of no elements

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
    r"""the smallest element over axis; NaN if any is NaN. Of zeros of both signs it may be either

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
    r"""the bits that are 1 in any element over axis (another name of reduce_bitwise_or)

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
    r"""the product over axis; 1 of no elements

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
    r"""the square root of var; its gradient is 0 where it is 0 (another name of std)

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the number of elements; 1 for an unbiased estimate
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
    r"""the sum over axis; 0 of no elements

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
    r"""the mean squared distance to the mean over axis

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
    r"""the bits that are 1 in an odd number of elements over axis (another name of reduce_bitwise_xor)

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
    r"""relu(a) * b for the halves a and b of x along axis, whose length is halved

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
    r"""x where it is positive, else 0, which is positive for -0.0 too; NaN stays"""

def relu6(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x limited to the range from 0 to 6"""

def remainder(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - (x // y) * y, the remainder with the sign of y; an integer modulo 0 is 0 (another name of mod)"""

def repeat(
    x: OperandLike,
    repeats: int | Sequence[int],
    axis: int | None = None,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with each element along axis repeated, by default each element of the flattened x; repeats is one number or one for each element

    Args:
        repeats: number of copies of each element, one or for each element (required)
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
    r"""the elements of x, in row-major order, in another shape

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
    r"""images of the new size along axes: each pixel is the mean of the area that it covers

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
    r"""images of the new size along axes: each pixel is interpolated between the 16 nearest

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
    r"""images of the new size along axes: each pixel is interpolated between the 4 nearest

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
    r"""images of the new size along axes: each pixel is the nearest one

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
    r"""images of the new size along axes: each pixel is the nearest one (another name of resize_nearest)

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
    r"""x with the elements along axis, by default along all axes, in reverse order (another name of flip)

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
    r"""x with the first lengths[b] elements along axis reversed, for each index b of batch_axis

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
    r"""x / 2^n rounded down; 0 or -1 by the sign of x where n is negative or at least the number of bits"""

def rint(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x rounded to the nearest integer, ties to even, in the dtype of x"""

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
    r"""data divided by the root of its mean square along axis, times gamma

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
    r"""x rotated along axis by shift positions, by default in row-major order; elements that leave one end enter at the other

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
    r"""x of shape (…, positions, length) with each pair of elements of the last axis rotated by an angle that grows with the position (another name of rotary_embedding)

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
    r"""x rotated k times by 90 degrees in the plane of two axes, from the first to the second

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
    r"""x of shape (…, positions, length) with each pair of elements of the last axis rotated by an angle that grows with the position

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
    r"""the cosine or sine of the angle by which rotary_embedding rotates each pair of x, in the shape of x

    Args:
        base: wavelengths grow up to 2 pi times this number
        offset: position of the first element
        interleaved: pairs are neighbours instead of half an axis apart
        sine: the sine instead of the cosine
    """

def rotate(
    x: OperandLike,
    /,
    shift: int,
    axis: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x rolled along one axis of a known extent by shift positions; elements that leave one end enter at the other

    Args:
        shift: number of positions (required)
        axis: the axis (required)
    """

def rotate_half(
    x: OperandLike,
    /,
    interleaved: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with each pair (a, b) of the last axis replaced by (-b, a); the elements of a pair are half the axis apart, or neighbours if interleaved

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
    r"""x rounded to the nearest integer, ties to even, in the dtype of x (another name of rint)"""

def round_half_away(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x rounded to the nearest integer, ties away from 0, in the dtype of x"""

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
    r"""the row-major numbers, in an array of a shape, of the elements that indices x refer to along axis, one for each of updates; -1 for an index out of range

    Args:
        shape: shape of the result (required)
        updates: number of updates (required)
        axis: the axis; negative ones count from the end
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""the row-major numbers, in an array of a shape, of the points whose coordinates are the last axis of x; -1 for a point out of range

    Args:
        shape: shape of the result (required)
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""the cumulative sums along axis, in the shape of x (another name of cumsum)

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
    r"""x * min(1, clip_norm / norm), where norm is the result of global_norm

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
    r"""softmax(scale * query @ transpose(key) + mask) @ value over the last two axes, of shape (…, queries, length of a value); where mask is bool, keys are attended to where it is True

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
    r"""x with the slices at indices along axis increased by the updates, which have the shape of gather(x, indices) (another name of index_add)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis limited to at least the updates, which have the shape of gather(x, indices) (another name of index_max)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis limited to at most the updates, which have the shape of gather(x, indices) (another name of index_min)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis multiplied by the updates, which have the shape of gather(x, indices) (another name of index_mul)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
    """

def scatter_nd(
    indices: OperandLike,
    updates: OperandLike,
    shape: ShapeLike,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""an array of a shape: zeros, plus the updates at the coordinates in the last axis of indices; updates of one point add up

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
    r"""x with updates combined into the rows that are named, in order: (a, b, n, c), (a, m), (a, b, m, c) -> (a, b, n, c); updates of rows out of range are dropped

    Args:
        kind: how an update is combined with the element
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
    r"""x with the slices at indices along axis decreased by the updates, which have the shape of gather(x, indices) (another name of index_sub)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the slices at indices along axis replaced by the updates, which have the shape of gather(x, indices) (another name of index_update)

    Args:
        axis: the axis; negative ones count from the end
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
    """

def searchsorted(
    sorted_sequence: OperandLike,
    values: OperandLike = ...,
    side: Literal['left', 'right'] = 'left',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the index at which each value would be inserted into the increasing sorted_sequence, before equal elements, or after them with side 'right'; in the shape of values

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
    r"""the largest of the rows of x of each id from 0 to below num_segments; other ids are ignored; the lowest number without rows

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
    r"""the mean of the rows of x of each id from 0 to below num_segments; other ids are ignored; 0 without rows

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
    r"""the smallest of the rows of x of each id from 0 to below num_segments; other ids are ignored; the highest number without rows

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
    r"""the product of the rows of x of each id from 0 to below num_segments; other ids are ignored; 1 without rows

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
    r"""the sum of the rows of x of each id from 0 to below num_segments; other ids are ignored, divided by the square root of their number; 0 without rows

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
    r"""the sum of the rows of x of each id from 0 to below num_segments; other ids are ignored

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
    r"""x where the condition is true, else y; all three broadcast (another name of where)"""

def selu(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""elu with a scale and an alpha that keep mean 0 and variance 1 from layer to layer"""

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
    r"""depthwise_conv2d, then a 1 × 1 convolution with the filter (1, 1, channels * multiplier, filters)

    Args:
        strides: distance between windows, one or for each axis
        padding: 'SAME', 'VALID', a number, or (before, after) for each axis
        dilations: distance between the elements of a window, one or for each axis
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
    """

def sequence_mask(
    x: OperandLike,
    /,
    maxlen: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether each position from 0 to below maxlen, in a new last axis, is below the length in x, as bool

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
    r"""x shifted along axis towards the end, or the front for negative numbers; vacated positions get fill_value

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
    r"""the cross entropy of labels and sigmoid(logits) for each element"""

def sign(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""-1, 0 or 1 by the sign of x; NaN stays"""

def signbit(
    x: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""whether the sign bit of x is set, as of -0.0, as bool"""

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
    r"""the next state activation(x @ kernel + h @ recurrent + bias), of shape (examples, units)

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
    r"""the first input; the others only determine symbolic sizes of a call"""

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
    r"""size[k] elements of each axis k from begin[k] on, step[k] apart; a size of -1 is the rest of the axis

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
    r"""x with the slice of begin, size and step replaced by value, which has the slice's shape

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
    r"""the sign of the determinant of each matrix, and the logarithm of its magnitude"""

def smooth_l1_loss(
    labels: OperandLike,
    predictions: OperandLike = ...,
    beta: float = 1.0,
    reduction: Literal['mean', 'sum', 'none'] = 'mean',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""huber_loss with delta = beta, divided by beta; the mean over all elements, or as reduction says

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
    r"""x moved towards 0 by threshold; 0 where its magnitude is smaller

    Args:
        threshold: magnitude at which the function changes
    """

def softmax(
    x: OperandLike,
    /,
    axis: int | Sequence[int] | None = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""exp(x) divided by its sum along axis, in the shape of x

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
    r"""the cross entropy of label distributions and softmax(logits) along axis, which the result does not have; 0 * -inf is 0

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
    r"""softmax(-x) along axis: the smallest element has the largest weight

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
    r"""x with a @ x = b for square matrices a and matrices or vectors b, whose leading axes broadcast

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
    r"""the elements along axis in increasing order, or decreasing with descending; NaN counts as the largest, and equal elements keep their order

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
    r"""x with the axes after the first padded, and each point of their blocks moved to an example of its own

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
    r"""x with the axes after the first padded, and each point of their blocks moved to an example of its own (another name of space_to_batch)

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
    r"""images in which each block of block_size × block_size points has become block_size^2 times the channels

    Args:
        block_size: edge length of a block (required)
        data_format: order of the axes: channels last, as NHWC, or first, as NCHW
    """

def sparse_softmax_cross_entropy_with_logits(
    labels: OperandLike,
    logits: OperandLike = ...,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the cross entropy of integer labels and softmax(logits) along axis, in the shape of labels; 0 for a label that is no class

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
    r"""num new keys made of a key, an int64 vector

    Args:
        num: number of elements of the result
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
    r"""the square of hinge_loss for each element; the mean over all elements, or as reduction says

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
    r"""x without the axes of length 1 that axis names; by default without all of them

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
    """

def stack(
    *x: OperandLike,
    axis: int = 0,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""the inputs, of one shape, joined along a new axis

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
    r"""the square root of var; its gradient is 0 where it is 0

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the number of elements; 1 for an unbiased estimate
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
    r"""the elements of x from begin to end in steps of strides along each axis, as TensorFlow's StridedSlice; bit k of each mask changes the meaning of entry k of these

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
    r"""the sum over axis, computed in dtype; 0 of no elements

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        dtype: dtype of the result; None: that of x
        keepdims: keep reduced axes with length 1
    """

def sum_like(
    x: OperandLike,
    like: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x summed to the shape of like, over the axes along which like is broadcast to x"""

def svd(
    x: OperandLike,
    /,
    full_matrices: bool = False,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry, Entry]:
    r"""U, the singular values S in decreasing order, and Vh with U @ diag(S) @ Vh = x, for each matrix

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
    r"""the singular values of each matrix in decreasing order: (…, m, n) -> (…, min(m, n))"""

def swapaxes(
    x: OperandLike,
    axis1: int,
    axis2: int,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x with the axes axis1 and axis2 exchanged

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
    r"""silu(a) * b for the halves a and b of x along axis, whose length is halved

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
    r"""the slices of x at indices along axis, in place of that axis; without an axis, the elements of x in row-major order at indices

    Args:
        axis: the axis; None: all elements in row-major order
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""for each element of indices the element of x at that position along axis, in the shape of indices; other axes broadcast

    Args:
        axis: the axis; negative ones count from the end
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x - tanh(x), accurate near 0"""

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
    r"""x with the elements or slices at the points in the last axis of indices increased by the updates (another name of tensor_scatter_nd_add)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices limited to at least the updates (another name of tensor_scatter_nd_max)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices limited to at most the updates (another name of tensor_scatter_nd_min)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices multiplied by the updates (another name of tensor_scatter_nd_mul)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices increased by the updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices limited to at least the updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices limited to at most the updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices multiplied by the updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices decreased by the updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices replaced by the updates

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices decreased by the updates (another name of tensor_scatter_nd_sub)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""x with the elements or slices at the points in the last axis of indices replaced by the updates (another name of tensor_scatter_nd_update)

    Args:
        batch_dims: number of leading axes that the inputs share
        mode: for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes
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
    r"""the sums of products over axes last axes of a and first axes of b, or over the axes listed for each; the other axes of a, then those of b remain

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
    r"""x where it exceeds threshold, else value

    Args:
        threshold: magnitude at which the function changes
        value: value where x does not exceed the threshold
    """

def tile(
    x: OperandLike,
    repetitions: int | Sequence[int],
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x repeated repetitions[k] times along axis k, aligned at the last axis

    Args:
        repetitions: number of copies of x along each axis (required)
    """

def top_k(
    x: OperandLike,
    k: int = 1,
    axis: int = -1,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> tuple[Entry, Entry]:
    r"""the k largest elements along axis in decreasing order, and their positions as int32; of equal elements the first

    Args:
        k: number of elements of the result along axis
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
    r"""the sum of the diagonal offset of the matrices in axis1 and axis2

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
    r"""x with its axes in the order axes: axis k of the result is axis axes[k] of x

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
    r"""x with a @ x = b for triangular matrices a, of which only one triangle is read, and matrices or vectors b

    Args:
        lower: read the lower triangle, not the upper one
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
    r"""x with zeros above the k-th diagonal of each matrix

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
    r"""x with zeros below the k-th diagonal of each matrix

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
    r"""x / y rounded toward 0; an integer divided by 0 is 0"""

def trunc_mod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - trunc_div(x, y) * y, the remainder with the sign of x; an integer modulo 0 is 0 (another name of fmod)"""

def truncate_div(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x / y rounded toward 0; an integer divided by 0 is 0 (another name of trunc_div)"""

def truncate_mod(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x - trunc_div(x, y) * y, the remainder with the sign of x; an integer modulo 0 is 0 (another name of fmod)"""

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
    r"""normally distributed numbers of this mean and standard deviation, none beyond two deviations, an array of a shape (another name of random_truncated_normal)

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
    r"""the first size distinct elements in increasing order, and how often each occurs; zeros beyond them

    Args:
        size: number of elements or rows of the result (required)
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
    r"""zeros of a shape, with x written from begin[k] of axis k on, its elements step[k] apart

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
    r"""the largest of the rows of x of each id from 0 to below num_segments; other ids are ignored; the lowest number without rows (another name of segment_max)

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
    r"""the mean of the rows of x of each id from 0 to below num_segments; other ids are ignored; 0 without rows (another name of segment_mean)

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
    r"""the smallest of the rows of x of each id from 0 to below num_segments; other ids are ignored; the highest number without rows (another name of segment_min)

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
    r"""the product of the rows of x of each id from 0 to below num_segments; other ids are ignored; 1 without rows (another name of segment_prod)

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
    r"""the sum of the rows of x of each id from 0 to below num_segments; other ids are ignored, divided by the square root of their number; 0 without rows (another name of segment_sqrt_n)

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
    r"""the sum of the rows of x of each id from 0 to below num_segments; other ids are ignored (another name of segment_sum)

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
    r"""the sum of squared distances to the mean over axis, divided by their number minus correction

    Args:
        axis: the axis or axes; negative ones count from the end, None is all
        keepdims: keep reduced axes with length 1
        correction: subtracted from the number of elements; 1 for an unbiased estimate
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
    r"""the mean squared distance to the mean over axis (another name of reduce_variance)

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
    r"""the sums of products along axis, which is counted from the end; other axes broadcast

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
    r"""the products of vectors and matrices: (…, k), (…, k, n) -> (…, n)"""

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
    r"""the norm of vectors along axis, of the order ord; its gradient is 0 where it is 0

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
    r"""x where the condition is true, else y; all three broadcast"""

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
    r"""the sums over all windows of the elements under a window times the result at the window: (batch, *size, channels), (batch, *result, filters) -> (*window, channels, filters)

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
    r"""the elements under each window: (batch, *size, channels) -> (batch, *result, *window, channels)

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
    r"""the elements of windows at the positions that they cover, to be summed over the window: (batch, *result, *window, channels) -> (batch, *size, *window, channels)

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
    r"""the inverse of windows_back, the windows at their positions: (batch, *size, *window, channels) -> (batch, *result, *window, channels)

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
    r"""x * log(1 + y), and 0 where x is 0"""

def xlogy(
    x: OperandLike,
    y: OperandLike,
    /,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""x * log(y), and 0 where x is 0"""

def zeros(
    shape: ShapeLike,
    dtype: DTypeLike = 'float32',
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""zeros in an array of a shape

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
    r"""zeros in the shape and dtype of x"""

def zeta(
    x: OperandLike,
    q: OperandLike = ...,
    *,
    name: str = '',
    control: Sequence[Node] = ...,
) -> Entry:
    r"""Hurwitz' zeta function: the sum of (q + k)^-x for k from 0; NaN for x < 1"""

