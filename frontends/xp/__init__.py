"""The array API standard on operation streams: NumPy-like code that runs as fused kernels.

Operations on arrays are queued and run when a result is needed: as a Python number, as a NumPy
array, or by `eval`. What was queued then runs as a few compiled kernels, which are kept for later
runs of the same sequence of operations, at any sizes.

>>> from passkit import xp
>>> x = xp.asarray([1.0, 2.0, 3.0])
>>> float(xp.sum(x * 2))
12.0
"""

from __future__ import annotations

from passkit.frontends.xp.array import (
    Array,
)
from passkit.frontends.xp.constants import (
    bfloat16,
    bool,
    complex64,
    complex128,
    e,
    float16,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)
from passkit.frontends.xp.control import (
    config,
    eager,
    eval,
    forget_plans,
    inspect,
    pending_operations,
    reset_stats,
    stats,
    stream,
)
from passkit.frontends.xp.conversion import (
    asarray,
    astype,
    from_dlpack,
)
from passkit.frontends.xp.creation import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from passkit.frontends.xp.dtypes import (
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from passkit.frontends.xp.indexing import (
    take,
    take_along_axis,
)
from passkit.frontends.xp.manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from passkit.frontends.xp.namespace_info import (
    __array_namespace_info__,
)

__array_api_version__ = "2024.12"
__all__ = [
    "Array",
    "__array_api_version__",
    "__array_namespace_info__",
    "arange",
    "asarray",
    "astype",
    "bfloat16",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "complex64",
    "complex128",
    "concat",
    "config",
    "e",
    "eager",
    "empty",
    "empty_like",
    "eval",
    "expand_dims",
    "eye",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float64",
    "forget_plans",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "inf",
    "inspect",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "linspace",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "nan",
    "newaxis",
    "ones",
    "ones_like",
    "pending_operations",
    "permute_dims",
    "pi",
    "repeat",
    "reset_stats",
    "reshape",
    "result_type",
    "roll",
    "squeeze",
    "stack",
    "stats",
    "stream",
    "take",
    "take_along_axis",
    "tile",
    "tril",
    "triu",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unstack",
    "zeros",
    "zeros_like",
]
