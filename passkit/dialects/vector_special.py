"""Gamma functions of vectors, in OpenCL C: `prelude/special.h` says how they are computed.

Drivers have ``lgamma`` of doubles, but some compute it a hundred times slower than a logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence

SINE = (
    "0x1.07192db714f81p-22",
    "-0x1.d3e3c296a65cfp-18",
    "0x1.37469730d3391p-13",
    "-0x1.3381697088111p-9",
    "0x1.ac6805cbe14f0p-6",
    "-0x1.86a8e472088a4p-3",
    "0x1.9f9cb402bc3ebp-1",
    "-0x1.a51a6625307d3p+0",
    "1.0",
)
NEAR_TWO = (
    "0x1.11fa5e7c86f7bp-24",
    "-0x1.2009c1a550d0dp-23",
    "0x1.b40adb09a1e12p-23",
    "-0x1.ce17528bcf460p-22",
    "0x1.012012be3900ap-20",
    "-0x1.1276ebd557fb0p-19",
    "0x1.258f3057730fap-18",
    "-0x1.3cb3be36ad88bp-17",
    "0x1.580e0afa55850p-16",
    "-0x1.78de9ab752b81p-15",
    "0x1.a127afee53e7dp-14",
    "-0x1.d3fd4b679c1c4p-13",
    "0x1.0b36af8779ca0p-11",
    "-0x1.38ac5c2d48207p-10",
    "0x1.7add6eadb5317p-9",
    "-0x1.e404fc218dbaep-8",
    "0x1.51322ac7d848ap-6",
    "-0x1.13e001a55760ap-4",
    "0x1.4a34cc4a60fa6p-2",
    "0x1.b0ee6072093cep-2",
)
STIRLING = (
    "-0x1.55b3a71b66a2ep-6",
    "0x1.96db40614b193p-8",
    "-0x1.f5ff2fdcdf048p-10",
    "0x1.b94f6d6592192p-11",
    "-0x1.38137ec070147p-11",
    "0x1.a01a019ee0dbep-11",
    "-0x1.6c16c16c16b29p-9",
    "0x1.5555555555555p-4",
)
TEXT = """\
static inline {t} sin_of_turn_{t}({t} x) {{
  const {t} w = x * x;
  return x * ({sine});
}}
static inline {t} lgamma_above_{t}({t} a) {{
  const {mask} far = a >= 8.0, less = a < 1.5;
  {t} z = far ? ({t})(8.0) : a, p = less ? a : ({t})(1.0);
  for (int k = 0; k < 6; ++k) {{
    const {mask} more = z >= 2.5;
    z = more ? z - 1.0 : z;
    p = more ? p * z : p;
  }}
  const {t} t = less ? z - 1.0 : z - 2.0, w = 1.0 / (a * a), e = log(far ? a : p);
  const {t} q = {near_two};
  const {t} s = {stirling};
  const {t} series = (a - 0.5) * (e - 1.0) + (s / a + 0.41893853320467274178);
  return far ? series : t * q + (less ? -e : e);
}}
static inline {t} lgamma_{t}({t} x) {{
  const {mask} low = x < 0.5;
  const {t} y = lgamma_above_{t}(low ? 1.0 - x : x);
  if (!{any}) return y;
  const {t} s = absolute_{t}(sin_of_turn_{t}(x - rint(x)));
  return isinf(x) | (low & (s == 0.0)) ? ({t})(INFINITY) : (low ? -log(s) - y : y);
}}
"""
OF_FLOATS = "static inline float{n} lgamma_float{n}(float{n} x) {{ return lgamma(x); }}\n"


def _horner(x: str, coefficients: Sequence[str]) -> str:
    """Return a polynomial of ``x``; the coefficient of the highest power comes first."""
    text = coefficients[0]
    for c in coefficients[1:]:
        text = f"({text}) * {x} + {c}" if " " in text else f"{text} * {x} + {c}"
    return text


def gamma_functions(counts: Sequence[int]) -> str:
    """Return lgamma of a double, and of vectors of so many elements."""
    polynomials = {
        "sine": _horner("w", SINE),
        "near_two": _horner("t", NEAR_TWO),
        "stirling": _horner("w", STIRLING),
    }
    texts = [TEXT.format(t="double", mask="int", any="low", **polynomials)]
    for n in counts:
        values = {"t": f"double{n}", "n": n, "mask": f"long{n}", "any": "any(low)"}
        texts.append((TEXT + OF_FLOATS).format(**values, **polynomials))
    return "".join(texts)
