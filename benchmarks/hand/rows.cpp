// Softmax and layer norm over the last axis, and sums.
//
// Rows are taken several at a time, so that the folds of one row hide behind those of the others.
// Lanes past a row's end hold 0, whose exponential is 1: at -inf, scalef would underflow in them,
// which takes a microcode assist of some 150 cycles on Intel's cores.
#include "vector.h"

namespace {

// Rows of n elements, a multiple of 16, in one loop a row: exponentials of row r into t, the
// results of row r - 1 out of t, the maximum of row r + 1, and row r + 2 on its way from memory.
template <bool STREAM>
void softmax_wide(const float *x, float *y, int64_t begin, int64_t end, int64_t n, float *t) {
  if (begin == end) return;
  v16 m = all(-INFINITY), q = all(0);
  for (int64_t j = 0; j < n; j += 16) m = maximum(m, load(x + begin * n + j));
  for (int64_t r = begin; r <= end; ++r) {
    const float *now = x + r * n, *next = r + 1 < end ? now + n : x + begin * n;
    float *in = t + (r & 1) * n, *out = t + (~r & 1) * n, *done = y + (r - 1) * n;
    v16 top = all(hmax(m)), s = all(0);
    m = all(-INFINITY);
    if (r == begin)
      for (int64_t j = 0; j < n; j += 16) {
        v16 e = exp_nonpositive(load(now + j) - top);
        store(in + j, e);
        s += e;
        m = maximum(m, load(next + j));
      }
    else if (r == end)
      for (int64_t j = 0; j < n; j += 16) put<STREAM>(done + j, load(out + j) * q);
    else
      for (int64_t j = 0; j < n; j += 16) {
        v16 e = exp_nonpositive(load(now + j) - top);
        store(in + j, e);
        put<STREAM>(done + j, load(out + j) * q);
        s += e;
        m = maximum(m, load(next + j));
        __builtin_prefetch(next + n + j);
      }
    q = all(1.0f / hsum(s));
  }
}

// Rows of V vectors, the last one cut off at n: a row lives in registers.
template <int V> void softmax_narrow(const float *x, float *y, int64_t begin, int64_t end,
                                     int64_t n) {
  uint16_t tail = first(n - 16 * (V - 1));
  for (int64_t r = begin; r < end; ++r) {
    const float *xr = x + r * n;
    float *yr = y + r * n;
    pack<V> e;
#pragma GCC unroll 8
    for (int k = 0; k < V - 1; ++k) e.v[k] = load(xr + 16 * k);
    e.v[V - 1] = load(xr + 16 * (V - 1), tail);
    v16 m = e.v[0], s = all(0);
#pragma GCC unroll 8
    for (int k = 1; k < V - 1; ++k) m = maximum(m, e.v[k]);
    m = maximum(m, e.v[V - 1], tail, m);
    v16 top = all(hmax(m));
#pragma GCC unroll 8
    for (int k = 0; k < V - 1; ++k) e.v[k] = e.v[k] - top;
    e.v[V - 1] = subtract(e.v[V - 1], top, tail, all(0));
    e = exp_nonpositive(e);
#pragma GCC unroll 8
    for (int k = 0; k < V - 1; ++k) s += e.v[k];
    v16 q = all(1.0f / hsum(add(s, e.v[V - 1], tail, s)));
#pragma GCC unroll 8
    for (int k = 0; k < V - 1; ++k) store(yr + 16 * k, e.v[k] * q);
    store(yr + 16 * (V - 1), e.v[V - 1] * q, tail);
  }
}

INLINE pack<5> over_40(const float *two) {
  v16 a = all(two[0]), b = all(two[1]);
  pack<5> d;
  d.v[0] = a, d.v[1] = a, d.v[2] = select(0xff00, b, a), d.v[3] = b, d.v[4] = b;
  return d;
}

// Sixteen rows of 40: two rows are five vectors, of which the middle one holds the end of the first
// row and the beginning of the second. No lane is wasted and no access is masked.
template <bool STREAM> INLINE void softmax_40(const float *x, float *y, float *t) {
  const uint16_t LOW = 0x00ff, HIGH = 0xff00;
  alignas(64) float top[16], q[16];
  alignas(64) v16 m[16];
#pragma GCC unroll 8
  for (int p = 0; p < 8; ++p) {
    const float *xp = x + 80 * p;
    v16 a = maximum(load(xp), load(xp + 16)), b = maximum(load(xp + 48), load(xp + 64));
    v16 both = load(xp + 32);
    m[2 * p] = maximum(a, both, LOW, a), m[2 * p + 1] = maximum(b, both, HIGH, b);
  }
  store(top, fold16(m, Max()));
#pragma GCC unroll 1
  for (int p = 0; p < 8; ++p) {
    pack<5> e = exp_nonpositive(load_pack<5>(x + 80 * p) - over_40(top + 2 * p));
#pragma GCC unroll 5
    for (int k = 0; k < 5; ++k) __builtin_prefetch(x + 640 + 80 * p + 16 * k);
    put<false>(t + 80 * p, e);
    v16 a = e.v[0] + e.v[1], b = e.v[3] + e.v[4];
    m[2 * p] = add(a, e.v[2], LOW, a), m[2 * p + 1] = add(b, e.v[2], HIGH, b);
  }
  store(q, 1.0f / fold16(m, Sum()));
#pragma GCC unroll 8
  for (int p = 0; p < 8; ++p)
    put<STREAM>(y + 80 * p, load_pack<5>(t + 80 * p) * over_40(q + 2 * p));
}

template <bool STREAM>
void softmax_40_rows(const float *x, float *y, int64_t begin, int64_t end) {
  alignas(64) float t[640];
  int64_t r = begin;
  for (; r + 16 <= end; r += 16) softmax_40<STREAM>(x + r * 40, y + r * 40, t);
  softmax_narrow<3>(x, y, r, end, 40);
}

struct Norm {
  v16 mean, scale;
  INLINE v16 operator()(v16 x, v16 g, v16 b) const { return (x - mean) * scale * g + b; }
};

// Rows of n elements, a multiple of 16, in one loop a row: squares of row r, results of row r - 1,
// the sum of row r + 1, and row r + 2 on its way from memory.
template <bool STREAM>
void norm_wide(const float *x, const float *g, const float *b, float *y, int64_t begin,
               int64_t end, int64_t n) {
  if (begin == end) return;
  v16 s = all(0);
  Norm norm{s, s};
  for (int64_t j = 0; j < n; j += 16) s += load(x + begin * n + j);
  for (int64_t r = begin; r <= end; ++r) {
    const float *now = x + r * n, *next = r + 1 < end ? now + n : x + begin * n;
    const float *old = now - n;
    float *done = y + (r - 1) * n;
    v16 mean = all(hsum(s) / (float)n), c = all(0);
    s = all(0);
    if (r == begin)
      for (int64_t j = 0; j < n; j += 16) {
        v16 d = load(now + j) - mean;
        c += d * d;
        s += load(next + j);
      }
    else if (r == end)
      for (int64_t j = 0; j < n; j += 16)
        put<STREAM>(done + j, norm(load(old + j), load(g + j), load(b + j)));
    else
      for (int64_t j = 0; j < n; j += 16) {
        v16 d = load(now + j) - mean;
        put<STREAM>(done + j, norm(load(old + j), load(g + j), load(b + j)));
        c += d * d;
        s += load(next + j);
        __builtin_prefetch(next + n + j);
      }
    norm = Norm{mean, all(1.0f / std::sqrt(hsum(c) / (float)n + 1e-5f))};
  }
}

// Sixteen rows of 64: the folds and the roots of all rows together.
template <bool STREAM>
INLINE void norm_64(const float *x, const pack<4> &g, const pack<4> &b, float *y) {
  alignas(64) float mean[16], scale[16];
  v16 s[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    pack<4> a = load_pack<4>(x + 64 * r);
    s[r] = (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]);
  }
  store(mean, fold16(s, Sum()) * (1.0f / 64));
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    pack<4> d = load_pack<4>(x + 64 * r) - mean[r];
    d = d * d;
    s[r] = (d.v[0] + d.v[1]) + (d.v[2] + d.v[3]);
  }
  v16 v = fold16(s, Sum()) * (1.0f / 64) + 1e-5f;
  store(scale, 1.0f / __builtin_ia32_sqrtps512_mask(v, v, -1, 4));
#pragma GCC unroll 2
  for (int r = 0; r < 16; ++r) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) __builtin_prefetch(x + 1024 + 64 * r + 16 * k);
    put<STREAM>(y + 64 * r, (load_pack<4>(x + 64 * r) - mean[r]) * scale[r] * g + b);
  }
}

template <bool STREAM>
void norm_64_rows(const float *x, const float *g, const float *b, float *y, int64_t begin,
                  int64_t end) {
  pack<4> pg = load_pack<4>(g), pb = load_pack<4>(b);
  int64_t r = begin;
  for (; r + 16 <= end; r += 16) norm_64<STREAM>(x + r * 64, pg, pb, y + r * 64);
  norm_wide<STREAM>(x, g, b, y, r, end, 64);
}

// Running sums of a thread's share: 128 of them, which read ahead of what is taken of each array.
template <class Term>
float summed(int64_t n, Term term) {
  float part[256] = {};
  share(n, 128, n >= 2 * SERIAL, [=, &part](int64_t begin, int64_t end) {
    pack<8> s = 0.0f;
    for (int64_t i = begin; i < end; i += 128) s = s + term(i);
    float total = 0;
    for (int k = 0; k < 8; ++k) total += hsum(s.v[k]);
    part[omp_get_thread_num()] = total;
  });
  float total = 0;
  for (float p : part) total += p;
  return total;
}

inline void ahead(const float *x) {
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) __builtin_prefetch(x + 2048 + 16 * k);
}

}  // namespace

extern "C" {

// x, y (rows, n); scratch of two rows a thread. Rows are of 40, of 97 to 111 or a multiple of 16.
void softmax(void *const *buf, const int64_t *size) {
  const float *x = (const float *)buf[0];
  float *y = (float *)buf[1], *scratch = (float *)buf[2];
  int64_t rows = size[0], n = size[1];
  bool past = streams(y, rows * n);
  share(rows, 16, rows * n >= SERIAL, [=](int64_t b, int64_t e) {
    float *t = scratch + omp_get_thread_num() * 2 * n;
    if (n == 40) past ? softmax_40_rows<true>(x, y, b, e) : softmax_40_rows<false>(x, y, b, e);
    else if (n % 16) softmax_narrow<7>(x, y, b, e, n);
    else past ? softmax_wide<true>(x, y, b, e, n, t) : softmax_wide<false>(x, y, b, e, n, t);
  });
}

// x, y (rows, n), g, b (n,); n is a multiple of 16.
void layer_norm(void *const *buf, const int64_t *size) {
  const float *x = (const float *)buf[0], *g = (const float *)buf[1], *b = (const float *)buf[2];
  float *y = (float *)buf[3];
  int64_t rows = size[0], n = size[1];
  bool past = streams(y, rows * n);
  share(rows, 16, rows * n >= SERIAL, [=](int64_t begin, int64_t end) {
    if (n == 64) (past ? norm_64_rows<true> : norm_64_rows<false>)(x, g, b, y, begin, end);
    else (past ? norm_wide<true> : norm_wide<false>)(x, g, b, y, begin, end, n);
  });
}

// Sum of x * y over the rows: each thread adds four rows a pass into its own row of scratch, and
// the rows of the threads are added in their order. The number of rows is a multiple of 4.
void column_sum(void *const *buf, const int64_t *size) {
  const float *x = (const float *)buf[0], *y = (const float *)buf[1];
  float *out = (float *)buf[2], *scratch = (float *)buf[3];
  int64_t rows = size[0], n = size[1], T = 1;
#pragma omp parallel
  {
    int64_t t = omp_get_thread_num();
    if (t == 0) T = omp_get_num_threads();
    float *s = scratch + t * n;
    for (int64_t j = 0; j < n; ++j) s[j] = 0;
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows / 4; ++r) {
      const float *p = x + 4 * r * n, *q = y + 4 * r * n;
      for (int64_t j = 0; j < n; j += 16) {
        v16 a = load(p + j) * load(q + j) + load(p + n + j) * load(q + n + j);
        const float *p2 = p + 2 * n + j, *q2 = q + 2 * n + j;
        v16 b = load(p2) * load(q2) + load(p2 + n) * load(q2 + n);
#pragma GCC unroll 4
        for (int k = 4; k < 8; ++k) {
          __builtin_prefetch(p + k * n + j);
          __builtin_prefetch(q + k * n + j);
        }
        store(s + j, load(s + j) + (a + b));
      }
    }
  }
  for (int64_t j = 0; j < n; j += 16) {
    v16 s = load(scratch + j);
    for (int64_t t = 1; t < T; ++t) s += load(scratch + t * n + j);
    store(out + j, s);
  }
}

// Sum of (x - y)^2 over n elements, a multiple of 128.
void full_sum(void *const *buf, const int64_t *size) {
  const float *x = (const float *)buf[0], *y = (const float *)buf[1];
  *(float *)buf[2] = summed(size[0], [=](int64_t i) {
    pack<8> d = load_pack<8>(x + i) - load_pack<8>(y + i);
    ahead(x + i);
    ahead(y + i);
    return d * d;
  });
}

// Sum of n elements, a multiple of 128.
void plain_sum(void *const *buf, const int64_t *size) {
  const float *x = (const float *)buf[0];
  *(float *)buf[1] = summed(size[0], [=](int64_t i) {
    ahead(x + i);
    return load_pack<8>(x + i);
  });
}

}  // extern "C"
