"""The Philox random number generator in plain C, for dialects whose prelude is a preamble.

See prelude/random.h.
"""

PHILOX = """\
{fn} {word} philox_half({word} n, {word} stream, {word} key, int high) {{
  const {word} ones = 0xffffffffu;
  {word} a = n & ones, b = n >> 32, c = stream & ones, d = stream >> 32;
  {word} k = key & ones, l = key >> 32;
  for (int round = 0; round < 10; ++round) {{
    const {word} p = a * 0xd2511f53u, q = c * 0xcd9e8d57u;
    a = (q >> 32) ^ b ^ k, b = q & ones;
    c = (p >> 32) ^ d ^ l, d = p & ones;
    k = (k + 0x9e3779b9u) & ones, l = (l + 0xbb67ae85u) & ones;
  }}
  return high ? c | d << 32 : a | b << 32;
}}
{fn} {long} philox_low({long} n, {long} stream, {long} key) {{
  return ({long})philox_half(({word})n, ({word})stream, ({word})key, 0);
}}
{fn} {long} philox_high({long} n, {long} stream, {long} key) {{
  return ({long})philox_half(({word})n, ({word})stream, ({word})key, 1);
}}
"""
