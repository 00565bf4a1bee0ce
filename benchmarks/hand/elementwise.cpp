// GELU in two forms, bias + GELU, the tanh chain and a program of twenty operations.
//
// The user's arithmetic rounds after every operation (no contraction); only our functions use fma.
#include "vector.h"

namespace {

const int AHEAD = 1024;  // elements between what is read and what is fetched

template <class V> INLINE V gelu(V x) { return x * 0.5f * (erf(x * 0.70710678f) + 1.0f); }

// Abramowitz and Stegun 7.1.26; odd in z, so the sign is put back at the end.
template <class V> INLINE V custom_gelu(V x) {
  V z = x * 0.70710678f, t = 1.0f / (1.0f + 0.3275911f * abs(z));
  V p = (((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t;
  p = (p + 0.254829592f) * t;
  V e = with_sign(1.0f - p * exp_nonpositive(z * z * -1.0f), z);
  return x * 0.5f * (e + 1.0f);
}

template <class V> INLINE V twenty(V x, V y) {
  V s = x + y, d = x - y, q = s * d * 0.5f;
  V r = q + x, f = exp(abs(r) * -1.0f) + 1.0f;
  V h = r / f * y;
  V k = h - s, m = maximum(k, d) * 0.25f;
  V o = minimum(full<V>(2.0f), m + f);
  V w = (o * o - q) * 0.125f;
  return w + x;
}

template <bool STREAM, int K, class F>
INLINE void span(const float *x, float *y, int64_t i, int64_t end, F f) {
  for (; i + 16 * K <= end; i += 16 * K) {
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) __builtin_prefetch(x + i + 16 * k + AHEAD);
    put<STREAM>(y + i, f(load_pack<K>(x + i)));
  }
  for (; i < end; i += 16) {
    uint16_t lanes = first(end - i);
    store(y + i, f(pack<1>(load(x + i, lanes))).v[0], lanes);
  }
}

template <int K, class F> INLINE void unary(void *const *buf, const int64_t *size, F f) {
  const float *x = (const float *)buf[0];
  float *y = (float *)buf[1];
  int64_t n = size[0];
  if (streams(y, n))
    share(n, 16, true, [=](int64_t b, int64_t e) { span<true, K>(x, y, b, e, f); });
  else
    share(n, 16, n >= SERIAL, [=](int64_t b, int64_t e) { span<false, K>(x, y, b, e, f); });
}

template <bool STREAM, int K>
void bias_gelu_rows(const float *x, const float *b, float *y, int64_t rows, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += 16 * K) {
      const float *p = x + r * n + j;
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) __builtin_prefetch(p + 16 * k + AHEAD);
      put<STREAM>(y + r * n + j, gelu(load_pack<K>(p) + load_pack<K>(b + j)));
    }
}

template <bool STREAM, int K>
void chain_rows(const float *a, const float *b, const float *c, float *y, int64_t rows,
                int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    float cr = c[r], low = std::fabs(cr) * 0.1f;
    for (int64_t j = 0; j < n; j += 16 * K) {
      const float *p = a + r * n + j;
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) __builtin_prefetch(p + 16 * k + AHEAD);
      pack<K> x = load_pack<K>(p) * load_pack<K>(b + j) + cr;
      for (int k = 0; k < 3; ++k)
        x = tanh(x * 0.5f + load_pack<K>(b + j)) * load_pack<K>(p) - low;
      put<STREAM>(y + r * n + j, x);
    }
  }
}

}  // namespace

extern "C" {

void gelu_erf(void *const *buf, const int64_t *size) {
  unary<1>(buf, size, [](auto x) INLINE_LAMBDA { return gelu(x); });
}

void gelu_custom_erf(void *const *buf, const int64_t *size) {
  unary<1>(buf, size, [](auto x) INLINE_LAMBDA { return custom_gelu(x); });
}

// x (rows, columns), b (columns,); columns are a multiple of 16.
void bias_gelu(void *const *buf, const int64_t *size) {
  const float *x = (const float *)buf[0], *b = (const float *)buf[1];
  float *y = (float *)buf[2];
  if (streams(y, size[0] * size[1])) bias_gelu_rows<true, 1>(x, b, y, size[0], size[1]);
  else bias_gelu_rows<false, 1>(x, b, y, size[0], size[1]);
}

// a (rows, columns), b (columns,), c (rows, 1); columns are a multiple of 64. Four vectors at a
// time: one formula is 200 cycles long, and with one vector at a time the kernel took 1.5x as long.
void chain(void *const *buf, const int64_t *size) {
  const float *a = (const float *)buf[0], *b = (const float *)buf[1], *c = (const float *)buf[2];
  float *y = (float *)buf[3];
  if (streams(y, size[0] * size[1])) chain_rows<true, 4>(a, b, c, y, size[0], size[1]);
  else chain_rows<false, 4>(a, b, c, y, size[0], size[1]);
}

void small20(void *const *buf, const int64_t *size) {
  const float *x = (const float *)buf[0], *y = (const float *)buf[1];
  float *out = (float *)buf[2];
  const int K = 2;
  int64_t n = size[0], i = 0;
  for (; i + 16 * K <= n; i += 16 * K)
    put<false>(out + i, twenty(load_pack<K>(x + i), load_pack<K>(y + i)));
  for (; i < n; i += 16) {
    uint16_t m = first(n - i);
    store(out + i, twenty(pack<1>(load(x + i, m)), pack<1>(load(y + i, m))).v[0], m);
  }
}

}  // extern "C"
