"""Special functions for languages without vectors, in the C that OpenCL and CUDA share.

They use recurrences and asymptotic series, and Halley's method, in double precision. Source: NIST
Digital Library of Mathematical Functions, 5.11 and 5.15. `SERIES` is a text of the prelude without
its includes.
"""

from pathlib import Path

GAMMA = """\
{fn} double digamma_above(double x) {{
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / x;
  const double w = 1 / (x * x);
  const double tail = w * (1 / 12.0 - w * (1 / 120.0 - w * (1 / 252.0 - w * (1 / 240.0 -
      w * (1 / 132.0 - w * (691 / 32760.0 - w * (1 / 12.0 - w * (3617 / 8160.0))))))));
  return log(x) - 0.5 / x - tail - sum;
}}
{fn} double digamma_double(double x) {{
  if (!(x < 0.5)) return digamma_above(x);
  const double pi = 3.141592653589793, t = x == 0 ? x : x - rint(x);
  if (t == 0 && x != 0) return (x - x) / (x - x);
  return digamma_above(1 - x) - pi * (sin(pi * (0.5 - fabs(t))) / sin(pi * t));
}}
{fn} double trigamma_above(double x) {{
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  const double w = 1 / (x * x);
  const double tail = w * (1 / 6.0 - w * (1 / 30.0 - w * (1 / 42.0 - w * (1 / 30.0 -
      w * (5 / 66.0 - w * (691 / 2730.0 - w * (7 / 6.0 - w * (3617 / 510.0))))))));
  return sum + 1 / x + 0.5 * w + tail / x;
}}
{fn} double trigamma_double(double x) {{
  if (!(x < 0.5)) return trigamma_above(x);
  const double pi = 3.141592653589793, s = sin(pi * (x - rint(x)));
  return pi * pi / (s * s) - trigamma_above(1 - x);
}}
{fn} float digamma_float(float x) {{ return (float)digamma_double((double)x); }}
{fn} float trigamma_float(float x) {{ return (float)trigamma_double((double)x); }}
"""

INVERSE_ERF = """\
{fn} double erf_guess(double a) {{
  const double l = log1p(-a * a), h = 4.330746750799873 + l / 2;
  return sqrt(sqrt(h * h - l / 0.147) - h);
}}
{fn} double erfc_tail(double y) {{
  const double t = sqrt(-2 * log(y / 2));
  double x = 0.70711 * (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)));
  if (!(y > 0)) return y == 0 ? t : (y - y) / (y - y);
  for (int k = 0; k < 4; ++k) {{
    const double off = erfc(x) - y;
    x += off / (1.1283791670955126 * exp(-x * x) - x * off);
  }}
  return x;
}}
{fn} double erfinv_double(double y) {{
  const double a = fabs(y);
  if (!(a <= 0.5)) return copysign(erfc_tail(1 - a), y);
  double x = erf_guess(a);
  for (int k = 0; k < 3; ++k) {{
    const double off = (erf(x) - a) * 0.886226925452758 * exp(x * x);
    x -= off / (1 + x * off);
  }}
  return copysign(a < 1e-8 ? a * 0.886226925452758 : x, y);
}}
{fn} double erfcinv_double(double y) {{
  if (fabs(y - 1) <= 0.5) return erfinv_double(1 - y);
  return y > 1 ? -erfc_tail(2 - y) : erfc_tail(y);
}}
{fn} float erfinv_float(float y) {{ return (float)erfinv_double((double)y); }}
{fn} float erfcinv_float(float y) {{ return (float)erfcinv_double((double)y); }}
"""

SERIES = "".join(
    line
    for line in (Path(__file__).parent / "prelude/series.h").read_text("utf-8").splitlines(True)
    if not line.startswith("#include")
) + "".join(
    f"PK_SCALAR float {name}_float({', '.join(f'float {x}' for x in arguments)}) "
    f"{{ return (float){name}_double({', '.join(arguments)}); }}\n"
    for name, arguments in (("igamma", "ax"), ("igammac", "ax"), ("betainc", "abx"), ("zeta", "sq"))
)
"""A dialect defines PK_SCALAR, PK_TABLE, PK_INFINITY and PK_NAN in front of it."""
