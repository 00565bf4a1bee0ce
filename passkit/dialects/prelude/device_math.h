// Arithmetic of CUDA kernels without slow paths: divisions by one number, reciprocals and erf. All
// quotients have the bits of the division.
#ifdef __CUDACC__
PK_FN float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PK_FN float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// x < limit ? a : b of two numbers that are both there: a compiler would make branches of it.
PK_FN float select_below(float x, float limit, float a, float b) {
  float y;
  asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.f32 %0, %3, %4, p; }"
      : "=f"(y) : "f"(x), "f"(limit), "f"(a), "f"(b));
  return y;
}
#else
PK_FN float exp2_approx(float x) { return exp2f(x); }
PK_FN float reciprocal_approx(float x) {
  const float y = 1 / x;
  return fabsf(y) < 0x1p-126f ? copysignf(0, y) : y;
}
PK_FN float select_below(float x, float limit, float a, float b) { return x < limit ? a : b; }
#endif

// A divisor s that is known when the kernel is written, with 1 / s = high + low, high rounded
// towards 0 and low of the same sign. x high + x low rounds to x / s for every x whose x low is a
// normal number, and for zeros and infinities; who writes the kernel has made sure of that.
struct known_divisor {
  float s, high, low;
  PK_FN known_divisor(float s, float high, float low) : s(s), high(high), low(low) {}
  PK_FN float near(float x) const { return fmaf(x, high, x * low); }
  PK_FN float least() const { return 0x1.0001p-126f * (high / low); }
  PK_FN bool fits() const { return true; }
};
// Any divisor. From the rounded reciprocal, q = x high and q - (s q - x) high is x / s rounded: for
// each s, all x whose quotients lie next to the middle of two floats have been tried. That holds
// while quotient and rest stay clear of denormal numbers; where x or q is infinite the result is
// NaN. A divisor for which that leaves nothing has a least quotient of NaN.
struct divisor {
  float s, high, bound;
  PK_FN divisor(float s) : s(s), high(1 / s) {
    bound = s >= 0x1p-32f && s <= 0x1p32f ? fmaxf(high, 1.0f) * 0x1p-100f : __uint_as_float(0x7fffffffu);
  }
  PK_FN float near(float x) const {
    const float q = x * high;
    return fmaf(-fmaf(s, q, -x), high, q);
  }
  PK_FN float least() const { return bound; }
  PK_FN bool fits() const { return bound == bound; }
};
// Whether a quotient has to be divided after all, if it is not that of 0.
template <class D> PK_FN bool is_near_0(float y, const D &d) { return !(fabsf(y) > d.least()); }
template <class D> PK_FN float divided(float y, float x, const D &d) {
  return x != 0 || !d.fits() ? x / d.s : y;
}
template <class D> PK_FN float over(float x, const D &d) {
  const float y = d.near(x);
  return __builtin_expect(is_near_0(y, d), 0) ? divided(y, x, d) : y;
}
// Of several numbers: one branch for all of them.
template <int N, class D> PK_FN void over(float (&y)[N], const float (&x)[N], const D &d) {
  bool near = false;
  #pragma unroll
  for (int k = 0; k < N; ++k) near |= is_near_0(y[k] = d.near(x[k]), d);
  if (__builtin_expect(near, 0)) {
    #pragma unroll
    for (int k = 0; k < N; ++k) y[k] = divided(y[k], x[k], d);
  }
}
// The same where the last bits of a quotient next to 0 make no difference.
PK_FN float near_over(float x, const known_divisor &d) { return d.near(x); }

// 1 / x of x >= 1, infinity or NaN: what is denormal becomes 0. These are the instructions by which
// compilers take reciprocals of normal numbers.
PK_FN float near_reciprocal(float x) {
  const float y = reciprocal_approx(x), rest = fmaf(-x, y, 1.0f);
  return fmaf(fminf(rest, 1.0f), y, y);
}
PK_FN float reciprocal(float x) {
  return __builtin_expect(x > 0x1p126f, 0) ? 1 / x : near_reciprocal(x);
}

// Of a number below 0 by a power that does not overflow. The quotient is as in `divisor`.
PK_FN float sigmoid(float x) {
  const float power = expf(-fabsf(x)), s = 1.0f + power, r = near_reciprocal(s);
  const float a = x < 0 ? power : 1.0f, q = a * r;
  return fmaf(-fmaf(s, q, -a), r, q);
}

// Both ranges are computed and one is taken: to choose each coefficient takes seven instructions
// of the slower pipe. Up to 0.97 a polynomial of x^2, beyond it 1 - 2^q. At most 2.5 ulp.
PK_FN float erf_near(float x) {
  const float t = fabsf(x), u = x * x;
  float p = fmaf(-0x1.2e8428p-11f, u, 0x1.4448e2p-8f);
  p = fmaf(p, u, -0x1.b605eap-6f);
  p = fmaf(p, u, 0x1.ce10e4p-4f);
  p = fmaf(p, u, -0x1.8126aap-2f);
  p = fmaf(p, u, 0x1.20dd74p+0f);
  float q = fmaf(-0x1.c14168p-10f, t, 0x1.6466e4p-6f);
  q = fmaf(q, t, -0x1.08a6e8p-3f);
  q = fmaf(q, t, -0x1.e26324p-1f);
  q = fmaf(q, t, -0x1.9d192cp+0f);
  q = fmaf(q, t, -0x1.be12f6p-9f);
  return select_below(t, 0.97f, p * x, copysignf(1.0f - exp2_approx(q), x));
}
