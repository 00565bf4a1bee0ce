"""Kernels in CUDA C compile to device code, by nvcc or NVRTC if either is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from passkit.dialects import CUDA
from tests.dialects.test_printer import GOLDEN, GOLDENS
from tests.planned import plan

MANY = """x: f32[n]; y: i64[n]; z: bool[n]; k: i32[n]; d: f64[n]; h: f16[n]; g: bf16[n];
c = logical_and(less(x, 0.5), z)
return cast(x, dtype=dtype(i32)), cast(y, dtype=dtype(i32)), where(c, x, inf), sigmoid(d),
maximum(k, 3), abs(y), floor_div(k, 3), mod(y, 5), cast(x, dtype=dtype(bool)), mul(x, nan),
add(y, -9223372036854775808), reduce_sum(cast(c, dtype=dtype(i64))), logical_not(z), abs(d),
minimum(x, erf(x)), pow(d, 2.5), rsqrt(x), cast(d, dtype=dtype(u8)), mul(d, 1e-8),
exp(h), add(g, 1), cast(h, dtype=dtype(i8)), cast(d, dtype=dtype(f16)), reduce_sum(g), less(h, 2),
cast(d, dtype=dtype(bf16)), cast(k, dtype=dtype(f16)), cast(g, dtype=dtype(f64)),
lgamma(x), tgamma(d), digamma(x), digamma(d), trigamma(x), trigamma(d), erfinv(x), erfinv(d),
erfcinv(x), erfcinv(d), cbrt(x), hypot(x, x), fmod(x, 2.0), fmod(d, 2.0), copysign(x, x),
nextafter(d, d), ldexp(x, k), ldexp(d, k), fma(x, x, x), gcd(k, 6), lcm(y, 6),
left_shift(k, 3), right_shift(y, 3), bitwise_count(k), pow(k, 3),
pow(y, 3), igamma(x, x), igamma(d, d), igammac(x, x), igammac(d, d), betainc(x, x, x),
betainc(d, d, d), zeta(x, x), zeta(d, d)""".replace("\n", " ").replace(" return", "\nreturn")


def nvcc(source: Path) -> str | None:
    """Compile a file to device code without optimization; return the errors, or None."""
    command = [
        "nvcc",
        "-std=c++17",
        "-arch=sm_90",
        "-Xcicc",
        "-O0",
        "-Xptxas",
        "-O0",
        "-cubin",
        "-o",
        str(source) + ".cubin",
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout + done.stderr


def nvrtc(source: Path) -> str | None:
    """Compile a file by the run-time compiler; return the errors, or None."""
    from cuda.bindings import nvrtc as rtc  # type: ignore[import-not-found,unused-ignore]

    _, program = rtc.nvrtcCreateProgram(source.read_bytes(), b"kernels.cu", 0, [], [])
    options = [b"--gpu-architecture=sm_90", b"--std=c++17"]
    (result,) = rtc.nvrtcCompileProgram(program, len(options), options)
    if int(result) == 0:
        return None
    _, size = rtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    rtc.nvrtcGetProgramLog(program, log)
    return log.decode()


def compiler() -> Callable[[Path], str | None] | None:
    """Return the compiler of this machine, if it has one."""
    if shutil.which("nvcc"):
        return nvcc
    try:
        import cuda.bindings.nvrtc  # type: ignore[import-not-found,unused-ignore] # noqa: F401
    except ImportError:
        return None
    return nvrtc


needs_compiler = pytest.mark.skipif(
    compiler() is None, reason="neither nvcc nor NVRTC is installed"
)


def errors_of(texts: list[str], folder: Path) -> str | None:
    """Return the errors of a translation unit of kernels behind the preamble, or None."""
    source = folder / "kernels.cu"
    source.write_text("\n".join([CUDA.preamble, *texts]))
    compile_it = compiler()
    assert compile_it is not None
    return compile_it(source)


@needs_compiler
def test_kernels_compile(tmp_path: Path) -> None:
    """The goldens, and a kernel for each dtype, cast and function, in one translation unit."""
    texts = [p.read_text() for p in sorted(GOLDEN.glob("*.cu"))]
    assert len(texts) == len(GOLDENS)
    texts += [k.source for k in plan(MANY, target="cuda").attrs["kernel"].values()]

    assert errors_of(texts, tmp_path) is None


@needs_compiler
def test_a_mistake_is_reported(tmp_path: Path) -> None:
    """The check reports a kernel that calls an undefined function."""
    text = (GOLDEN / "gelu.cu").read_text().replace("erf_near(", "erg(")

    assert "erg" in str(errors_of([text], tmp_path))


def test_functions_of_single_precision() -> None:
    """float32 functions are the single-precision ones; infinities and NaNs are bits."""
    (kernel,) = (
        plan("x: f32[n]; return tanh(where(less(x, inf), x, nan))", target="cuda")
        .attrs["kernel"]
        .values()
    )

    assert "tanhf(" in kernel.source and "__int_as_float(0x7f800000)" in kernel.source
    assert "bits_f32(0x7fc00000u)" in kernel.source


WRAPPING = {
    "x: i32[n]; return add(neg(x), mul(x, 7))": ["wrapped_add", "wrapped_sub", "wrapped_mul"],
    "x: i64[200, n]; return reduce_sum(x, axis=1)": ["wrapped_add"],
    "x: i64[9, 70]; y: i64[70, 5]; return matmul(x, y)": ["wrapped_add", "wrapped_mul"],
    "x: u16[n]; return mul(x, x)": ["wrapped_mul"],
    "x: u32[n]; y: i8[n]; return mul(x, x), add(y, y), y": [],
    "x: i32[200, n]; return transpose(x)": [],
}


@pytest.mark.parametrize("target", ["cuda", "opencl"])
@pytest.mark.parametrize("text", WRAPPING)
def test_integers_wrap(text: str, target: str) -> None:
    """Values wrap, which is undefined for operators of C; indices do not overflow."""
    kernels = plan(text, target=target).attrs["kernel"].values()
    called = {w for k in kernels for w in re.findall(r"wrapped_[a-z]{3}", k.source)}

    assert sorted(called) == sorted(WRAPPING[text])
    assert not any(re.search(r"\w\[[^]]*wrapped", k.source) for k in kernels)


CHAIN = "x: f32[n]; y = exp(x); z = log(y); return sqrt(z)"


@pytest.mark.parametrize("target, word", [("cuda", "__restrict__ "), ("opencl", "restrict ")])
def test_an_output_over_an_input_is_not_restricted(target: str, word: str) -> None:
    """Only the middle one of three kernels stores over its input, and declares no restrict."""
    kernels = plan(CHAIN, target=target, fusion="none").attrs["kernel"]

    assert [k.source.count(word) for k in kernels.values()] == [2, 0, 2]


@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_one_element_over_its_input(target: str) -> None:
    """The element is loaded by the thread that stores it, and by no other one."""
    text = CHAIN.replace("[n]", "[1]")
    (_, kernel, _) = plan(text, target=target, fusion="none").attrs["kernel"].values()
    lines = [x.strip() for x in kernel.source.splitlines()]
    loops = [k for k, x in enumerate(lines) if x.startswith("for (")]
    loop = next(k for k in loops if " i0" in lines[k] or " point" in lines[k])

    assert not any("x0[0]" in x for x in lines[:loop])
    assert any("x0[0]" in x or "x0[point]" in x for x in lines[loop:])
