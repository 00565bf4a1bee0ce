"""The emulator: correct kernels run as on a device, and each fault of a kernel is reported."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.emulator.compiling import PREAMBLE, compiled
from tests.emulator.device import EmulatedError, ThreadOrder, launch

HEAD = 'extern "C" __global__ void {}(const float *x, float *y, const int64_t n)'
SHARED = "extern __shared__ __align__(64) unsigned char scratch[]; float *s = (float *)scratch; "
LANE = "const int i = threadIdx.x; "
SOUND = {
    "turned": SHARED + LANE + "s[i] = x[i]; __syncthreads(); y[i] = s[blockDim.x - 1 - i];",
    "turned_in_a_warp": SHARED + LANE + "s[i] = x[i]; __syncwarp(); y[i] = s[i ^ 31];",
    "turned_in_a_part": SHARED + LANE + "s[i] = x[i]; wait_of_group(i / 32, 32); y[i] = s[i ^ 31];",
    "first_of_warp": LANE + "y[i] = __shfl_sync(0xffffffffu, x[i], 0);",
    "shifted_up": LANE + "y[i] = __shfl_up_sync(0xffffffffu, x[i], 3);",
    "shifted_down": LANE + "y[i] = __shfl_down_sync(0xffffffffu, x[i], 3, 16);",
    "halves_of_warps": LANE
    + """float v = x[i];
if (i & 1) v = __shfl_xor_sync(0xaaaaaaaau, v, 2); else v = __shfl_xor_sync(0x55555555u, v, 4);
y[i] = v;""",
    "of_four": LANE + "if (i < n / 4) ((float4 *)y)[i] = ((const float4 *)x)[i];",
    "all_of_a_block": """__shared__ float all[32]; float v = x[threadIdx.x];
for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = v;
__syncthreads();
v = 0; for (unsigned w = 0; w < blockDim.x / 32; ++w) v += all[w];
y[threadIdx.x] = v;""",
}
GATE = "__device__ uint32_t {}_gate;\n"
WRONG = {
    "no_wait": (
        SOUND["turned"].replace("__syncthreads();", ""),
        r"of shared memory, which nothing has stored|no wait stands between",
    ),
    "no_wait_in_a_warp": (
        SOUND["turned_in_a_warp"].replace("__syncwarp();", ""),
        "nothing has stored|no wait stands between",
    ),
    "part_for_a_block": (
        SOUND["turned"].replace("__syncthreads()", "wait_of_group(i / 32, 32)"),
        "nothing has stored|no wait stands between",
    ),
    "wait_for_another_part": (
        LANE + "y[i] = x[i];\nwait_of_group(0, 32);",
        "waits in line 2 for part 0 of 32 threads",
    ),
    "some_of_a_part": (
        LANE + "y[i] = x[i];\nif (i < 16) wait_of_group(0, 32);",
        "diverges: .* and 15 more of 64 waits for its block in line 2, .* ended",
    ),
    "parts_of_two_sizes": (
        LANE + "y[i] = x[i];\nwait_of_group(i / 32, 32); wait_of_group(0, 64);",
        "waits in line 2 for parts of 32 and of 64 threads",
    ),
    "shuffle_for_a_wait": (
        SOUND["turned_in_a_warp"].replace("__syncwarp();", "__shfl_xor_sync(0xffffffffu, i, 1);"),
        "of shared memory, which thread .* stores: no wait stands between",
    ),
    "two_to_one": (
        LANE + "y[i / 2] = x[i];",
        r"stores element \d+ of y, which thread .* of block 0 stores: no wait",
    ),
    "blocks_to_one": ("y[threadIdx.x] = x[threadIdx.x] + blockIdx.x;", "no wait stands between"),
    "overwritten_too_early": (
        SHARED
        + LANE
        + """s[i] = x[i]; __syncthreads(); y[i] = s[i ^ 33];
s[i] = 0;""",
        "of shared memory, which thread .*: no wait stands between",
    ),
    "load_past_the_end": (
        LANE + "y[i] = x[i + 1];",
        r"loads 4 bytes outside .* at element 64 of x, which has 64",
    ),
    "load_in_front": (LANE + "y[i] = x[i - 1];", "at element -1 of x, which has 64"),
    "store_past_the_end": (
        LANE + "y[i] = 0; if (i == 5) y[n + 2] = 1;",
        r"thread \(5, 0\): stores 4 bytes outside .* element 66 of y",
    ),
    "shared_overrun": (
        SHARED + "s[threadIdx.x + 1] = 0; y[threadIdx.x] = 0;",
        "outside .* at element 256 of shared memory, which has 256",
    ),
    "fixed_overrun": (
        "__shared__ float a[32]; a[threadIdx.x] = 1; y[threadIdx.x] = 0;",
        r"line 1: index \d+ of a variable",
    ),
    "never_stored": (
        SHARED + "y[threadIdx.x] = s[threadIdx.x];",
        "loads element .* of shared memory, which nothing has stored",
    ),
    "result_not_stored": (LANE + "if (i) y[i] = x[i];", "leaves element 0 of y as it was"),
    "result_before_it_is": (LANE + "y[i] = y[i] + x[i];", "of y, which nothing has stored"),
    "input_stored": (LANE + "((float *)x)[i] = 1; y[i] = 0;", "of x, which it is to read"),
    "not_aligned": (
        LANE + "if (i < 9) ((float2 *)(y + 1))[i] = ((float2 *)x)[i];",
        "stores .* that are not aligned",
    ),
    "shuffle_of_some": (
        LANE
        + """float v = x[i];
if (i < 40) v = __shfl_xor_sync(~0u, v, 1);
y[i] = v;""",
        "diverges: .* waits for its warp in line 2, thread .* ended",
    ),
    "shuffle_elsewhere": (
        LANE
        + """float v = x[i];
if (i & 1) v = __shfl_xor_sync(0xffffffffu, v, 1);
else v = __shfl_xor_sync(0xffffffffu, v, 1);
y[i] = v;""",
        "diverges: .* waits for its warp in line [23], .* waits for its warp in line [23]",
    ),
    "not_in_its_mask": (
        LANE + "y[i] = __shfl_sync(0xffffu, x[i], 0);",
        "not in its own mask 0xffff",
    ),
    "lane_not_in_mask": (
        LANE + "if (i < 16) y[i] = __shfl_sync(0xffffu, x[i], 20); else y[i] = 0;",
        "value of lane 20, which is not in mask 0xffff",
    ),
    "wait_of_some": (
        LANE + "y[i] = x[i];\nif (i < 32) __syncthreads();",
        "diverges: .* and 31 more of 64 waits for its block in line 2, .* ended",
    ),
    "wait_elsewhere": (
        LANE + "if (i < 32)\n  __syncthreads();\nelse\n  __syncthreads();",
        r"waits in line \d, thread .* in line \d",
    ),
    "wait_and_shuffle": (
        LANE + "y[i] = 0;\nif (i < 16) __syncthreads();\nelse __syncwarp();",
        "diverges: .* for its block in line 2, .* for its warp in line 3",
    ),
    "too_large": (LANE + "y[i] = (i + 1) * int(n) * 100000000;", "line 1: a product overflows: "),
    "by_nothing": (LANE + "y[i] = int(x[i]) / (int(n) - 64);", "line 1: a quotient .*of 0"),
    "shifted_too_far": (LANE + "y[i] = 1 << int(n);", "line 1: a shift .* than there are bits: 1"),
    "without_end": ("for (int64_t k = 0; k >= 0; ++k) y[threadIdx.x] = 0;", "runs for too long"),
}


def text(name: str, body: str) -> str:
    """Return a kernel with a body."""
    return f"{HEAD.format(name)} {{ {body} }}\n"


@cache
def libraries() -> dict[str, Any]:
    """Return all kernels, compiled together."""
    bodies = SOUND | {k: body for k, (body, _) in WRONG.items()}
    return compiled({k: text(k, body) for k, body in bodies.items()})


def run(
    name: str, library: Any = None, order: int = 0, grid: int = 1, size: int = 64, **more: Any
) -> Any:
    """Return what a kernel stores."""
    x, y = np.arange(size, dtype=np.float32), np.empty(size, np.float32)
    launch(
        library or libraries()[name],
        name,
        ["x", "y"],
        [x, y],
        1,
        [size],
        **{"grid": grid, "block": (64, 1), "shared": 256, "order": order, **more},
    )
    return y


@pytest.mark.parametrize("order", [ThreadOrder.FORWARDS, ThreadOrder.BACKWARDS, 7])
def test_correct_kernels_run(order: int) -> None:
    """Shuffles, shared memory and vector accesses work."""
    i = np.arange(64)
    low = i % 32
    expected = {
        "turned": 63 - i,
        "turned_in_a_warp": i ^ 31,
        "turned_in_a_part": i ^ 31,
        "first_of_warp": i - low,
        "shifted_up": np.where(low < 3, i, i - 3),
        "shifted_down": np.where(i % 16 > 12, i, i + 3),
        "halves_of_warps": np.where(i & 1, i ^ 2, i ^ 4),
        "of_four": i,
        "all_of_a_block": np.full(64, 63 * 32),
    }

    assert {k: run(k, order=order).tolist() for k in SOUND} == {
        k: v.tolist() for k, v in expected.items()
    }


@pytest.mark.parametrize("order", [ThreadOrder.FORWARDS, ThreadOrder.BACKWARDS, 7])
@pytest.mark.parametrize("name", WRONG)
def test_faults_are_reported(name: str, order: int) -> None:
    """In any order of threads the message says which thread, which line, which fault."""
    if name == "without_end" and order:
        return
    with pytest.raises(EmulatedError, match=f"^kernel {name}.*({WRONG[name][1]})"):
        run(name, order=order, grid=2 if name == "blocks_to_one" else 1)


def test_invalid_launches_raise() -> None:
    """Incomplete warps, too many threads and too much shared memory raise."""
    for block, shared, message in (
        ((48, 1), 0, "48 threads"),
        ((1024, 2), 0, "2048 threads"),
        ((64, 1), 1 << 20, "1048576 bytes"),
    ):
        with pytest.raises(EmulatedError, match=message):
            run("turned", block=block, shared=shared)


BARRIER = """\
{head}void wait_{name}(uint32_t *gate) {{
  __syncthreads();
  if (threadIdx.x + threadIdx.y == 0) {{
    __threadfence();
    const uint32_t own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
    const uint32_t before = atomicAdd(gate, own);
    while ((before ^ *(volatile uint32_t *)gate) >> 31 == 0) {{}}
    __threadfence();
  }}
  __syncthreads();
}}
"""
LEFT_OUT = (
    "  __syncthreads();\n  if",
    "    __threadfence();\n    const",
    "    while",
    "    __threadfence();\n  }",
    "  }\n  __syncthreads();",
)
"""The lines of the barrier of a grid, with what tells two of a kind apart."""


def over_the_grid(name: str, barrier: str) -> str:
    """Return a kernel with a grid barrier, whose blocks read what others stored."""
    body = f"""\
for (int64_t k = blockIdx.x * 64; k < blockIdx.x * 64 + 64; k += blockDim.x)
  y[k + threadIdx.x] = x[k + threadIdx.x];
wait_{name}(&{name}_gate);
const int64_t next = (blockIdx.x + 1) % gridDim.x * 64, far = gridDim.x * 64;
y[far + blockIdx.x * 64 + threadIdx.x] = y[next + 63 - threadIdx.x];"""
    return barrier.format(name=name, head=GATE.format(name)) + text(name, body)


def test_every_line_of_the_grid_barrier_is_necessary(order: int = 0) -> None:
    """It is the barrier of the preamble, and without any of its lines a fault is reported."""
    own = BARRIER.format(head="", name="of_grid").partition("{\n")[2]
    assert own.replace("{{", "{").replace("}}", "}") in PREAMBLE
    texts = {"whole": BARRIER}
    for k, line in enumerate(LEFT_OUT):
        first, *_ = line.split("\n")
        kept = line.replace("__syncthreads();", "", 1).replace("__threadfence();", "", 1)
        kept = "    if (0)" + kept if "while" in line else kept
        texts[f"without{k}"] = BARRIER.replace(*(t.replace("}", "}}") for t in (line, kept)), 1)
        assert texts[f"without{k}"] != BARRIER, first
    libraries = compiled({k: over_the_grid(k, t) for k, t in texts.items()})
    for order in (0, 1, 7):
        for _ in range(3):
            y = run("whole", libraries["whole"], order, grid=3, size=384, cooperative=True)
            assert sorted(y[:192]) == sorted(y[192:])
        for name in list(texts)[1:]:
            with pytest.raises(EmulatedError, match="no wait stands between|nothing has stored"):
                run(name, libraries[name], order, grid=3, size=384, cooperative=True)


def test_a_deadlock_is_reported() -> None:
    """A block that never arrives at the barrier is reported."""
    body = BARRIER.replace("atomicAdd(gate, own)", "blockIdx.x ? atomicAdd(gate, own) : *gate")
    libraries = compiled({"stuck": over_the_grid("stuck", body)})

    with pytest.raises(EmulatedError, match="kernel stuck: blocks wait for each other for good"):
        run("stuck", libraries["stuck"], grid=2, size=256, cooperative=True)


def test_16_bit_floats() -> None:
    """Conversions of all 16-bit floats, and of floats between two of them."""
    kernel = (
        'extern "C" __global__ void {}(const {} *x, {} *y, const int64_t n) {{ '
        "for (int64_t i = threadIdx.x; i < n; i += 32) {} }}\n"
    )
    texts = {
        "wide": kernel.format("wide", "uint16_t", "float", "y[i] = widen_f16(x[i]);"),
        "narrow": kernel.format("narrow", "float", "uint16_t", "y[i] = narrow_f16(x[i]);"),
        "at_once": kernel.format("at_once", "double", "uint16_t", "y[i] = narrow_f16(x[i]);"),
    }
    libraries = compiled(texts)

    def of(name: str, x: Any, y: Any) -> Any:
        launch(
            libraries[name], name, ["x", "y"], [x, y], 1, [x.size], grid=1, block=(32, 1), shared=0
        )
        return y

    every = np.arange(65536, dtype=np.uint16)
    not_nan = every[~np.isnan(every.view(np.float16))]
    wide = of("wide", not_nan, np.empty(not_nan.size, np.float32))
    assert np.array_equal(wide, not_nan.view(np.float16).astype(np.float32))
    assert np.array_equal(of("narrow", wide, np.empty_like(not_nan)), not_nan)
    between = np.random.default_rng(0).standard_normal(5000) * 2.0 ** np.arange(-25, 25).repeat(100)
    with np.errstate(over="ignore"):
        for name, x in (("narrow", between.astype(np.float32)), ("at_once", between)):
            result = of(name, x, np.empty(x.size, np.uint16))
            assert np.array_equal(result, x.astype(np.float16).view(np.uint16)), name
