"""The library's operators on an OpenCL device, by the same table as on the CPU."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.opencl import BLOCKS, require_pyopencl, step_kinds, target_with_block
from tests.ops.test_values import NAMES, TOGETHER, walked
from tests.test_every_dtype import same

require_pyopencl()
pytestmark = pytest.mark.opencl
o = pk.ops

ONE_IN, LOOSE = 16, 8
"""Of so many operators one is run, unless all are asked for; a sum by one item is of many terms."""


def operators_to_run(every: bool) -> list[str]:
    """Return the operators to run: all, or some by their names."""
    return [n for n in NAMES if every or zlib.crc32(n.encode()) % ONE_IN == 0]


@pytest.mark.slow
def test_operators(request: pytest.FixtureRequest) -> None:
    """Operators equal NumPy; with ``--every-dtype`` all operators, in every dtype."""
    every = bool(request.config.getoption("--every-dtype"))
    names = operators_to_run(every)
    wrong: list[str] = []
    for k in range(0, len(names), 4 * TOGETHER):
        wrong += walked(names[k : k + 4 * TOGETHER], every, LOOSE, target="opencl")

    assert not wrong, "\n".join(wrong[:10])


INTEGERS = ("int8", "uint16", "int32", "int64")
"""C calculates in the last two, and in int for the others: too little for products of uint16."""


@pytest.mark.parametrize("block", BLOCKS[:2])
def test_integers_wrap_and_casts_saturate(block: int) -> None:
    """Overflow, division by 0, casts of values out of range and NaN, which C leaves undefined."""
    outputs: list[Any] = []
    feeds: dict[str, Any] = {}
    f, d = pk.var("f", (8,), "float32"), pk.var("d", (8,), "float64")
    odd = [np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0, 0.7, -1.5]
    for name in INTEGERS:
        info = np.iinfo(name)
        ends = np.array([info.min, info.max, 0, 1, 2, info.max // 2 + 1], name)
        a, b = (m.reshape(-1) for m in np.meshgrid(ends, ends))
        x, y = (pk.var(f"{k}_{name}", ("n",), name) for k in "xy")
        feeds |= {f"x_{name}": a, f"y_{name}": b}
        outputs += [x + y, x - y, x * y, -x, x // y, x % y, o.fdim(x, y), o.abs(x), o.square(x - y)]
        outputs += [o.cast(f, name), o.reduce_sum(x), o.reduce_prod(y)]
        outputs += [o.cast(d, name), x * y - x * 3 + (y - 1) * x]
    feeds |= {"f": np.array(odd, np.float32), "d": np.array(odd)}
    graph = pk.Graph(outputs)
    exe = pk.compile(graph, target=target_with_block(block))
    assert set(step_kinds(exe)) == {"LaunchStep"}

    expected = pk.interpret(graph, feeds)
    for k, (result, right) in enumerate(zip(exe(feeds), expected, strict=True)):
        np.testing.assert_array_equal(result, right, err_msg=str(outputs[k]))


def test_the_abs_of_an_integer_is_signed() -> None:
    """It may be compared with a number below 0, and that of the lowest number is below 0."""
    require_pyopencl()
    for name in ("int8", "int32", "int64"):
        x = pk.var("x", (5,), name)
        values = np.array([-3, 4, 0, np.iinfo(name).min, np.iinfo(name).max], name)
        graph = pk.Graph([pk.ops.less_equal(pk.ops.abs(x), x)])

        (result,) = pk.compile(graph, target=target_with_block(1))(x=values)

        np.testing.assert_array_equal(result, np.abs(values) <= values)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_16_bit_floats(dtype: str) -> None:
    """All 16-bit floats are loaded, rounded and stored without the extension for them."""
    x = pk.var("x", ("n",), dtype)
    kind = x.dtype.numpy
    graph = pk.Graph([x + 1, x * x, -x, o.sqrt(x), o.cast(x, "float32"), o.reduce_max(x), x / 3])
    feeds = {"x": np.arange(65536, dtype=np.uint16).view(kind)}
    result = pk.compile(graph, target="opencl")(feeds)

    for a, b in zip(result, pk.interpret(graph, feeds), strict=True):
        assert same(a, b)
