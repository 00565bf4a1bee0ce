// Attention, and the subgraph of FusionStitching's first figure: two products with a softmax between
// them, head by head, so that a head's scores never leave the first cache.
//
// Rows go by eights: blocks of 8 x 3 vectors of their scores are summed in registers, scaled, masked
// and put into the first cache; there they become weights; those times the values are 8 x 2 vectors.
// The last eight rows reach back, so some are found twice.
#include "vector.h"

namespace {

template <bool UPPER> INLINE v16 zip(v16 a, v16 b) {
  constexpr int k = UPPER ? 8 : 0;
  return __builtin_shufflevector(a, b, k, k + 16, k + 1, k + 17, k + 2, k + 18, k + 3, k + 19,
                                 k + 4, k + 20, k + 5, k + 21, k + 6, k + 22, k + 7, k + 23);
}

// Keys (T, K) to (K, stride), by squares of 16; T >= 16, K is a multiple of 16.
void turn(const float *k, float *kt, int64_t T, int64_t K, int64_t stride) {
  for (int64_t j = 0, at = 0; j < T; j += 16, at = j + 16 < T ? j : T - 16)
    for (int64_t l = 0; l < K; l += 16) {
      v16 v[16], w[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) v[i] = load(k + (at + i) * K + l);
#pragma GCC unroll 4
      for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
          w[2 * i] = zip<false>(v[i], v[i + 8]);
          w[2 * i + 1] = zip<true>(v[i], v[i + 8]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) v[i] = w[i];
      }
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) store(kt + (l + i) * stride + at, v[i]);
    }
}

struct Scores {
  const float *kt;  // (K, stride), of which T columns count
  const float *mask;
  int64_t T, K, stride, mask_down;
  float scale;
};

// Scores of eight rows, V vectors of them, and the largest ones so far: the last vector is cut off
// by `tail`.
template <int V>
INLINE void scores(const float *q, const Scores &w, int64_t i, int64_t column, float *p,
                   int64_t down, uint16_t tail, v16 *m) {
  v16 s[8][V];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r)
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) s[r][c] = all(0);
  const float *kt = w.kt + column;
  q += i * w.K;
  for (int64_t k = 0; k < w.K; ++k, kt += w.stride) {
    v16 row[V];
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) row[c] = c + 1 < V ? load(kt + 16 * c) : load(kt + 16 * c, tail);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      v16 x = all(q[r * w.K + k]);
#pragma GCC unroll 3
      for (int c = 0; c < V; ++c) s[r][c] = fma(x, row[c], s[r][c]);
    }
  }
  const float *mask = w.mask + i * w.mask_down + column;
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r)
#pragma GCC unroll 3
    for (int c = 0; c < V; ++c) {
      uint16_t on = c + 1 < V ? 0xffff : tail;
      v16 x = fma(s[r][c], all(w.scale), load(mask + r * w.mask_down + 16 * c, on));
      store(p + r * down + column + 16 * c, x);
      m[r] = maximum(m[r], x, on, m[r]);
    }
}

// The exponentials of V vectors, less their maximum, and their sum. Lanes past a row's end hold 1,
// which nothing reads.
template <int V> INLINE v16 exponentials(float *p, v16 top, uint16_t tail) {
  pack<V> e = load_pack<V>(p);
#pragma GCC unroll 6
  for (int c = 0; c < V - 1; ++c) e.v[c] = e.v[c] - top;
  e.v[V - 1] = subtract(e.v[V - 1], top, tail, all(0));
  e = exp_nonpositive(e);
  put<false>(p, e);
  v16 t = all(0);
#pragma GCC unroll 6
  for (int c = 0; c < V - 1; ++c) t += e.v[c];
  return add(t, e.v[V - 1], tail, t);
}

// Weights of eight rows from i on, not divided by their sums. Rows of up to six vectors are V.
template <int V>
INLINE void weights(const float *q, const Scores &w, int64_t i, float *p, int64_t down, float *top,
                    float *sum) {
  v16 m[8];
  for (int r = 0; r < 8; ++r) m[r] = all(-INFINITY);
  int64_t j = 0;
  for (int64_t left = down / 16; left; ) {
    int64_t some = left % 3 == 0 || left > 4 ? 3 : left > 1 ? 2 : 1;
    uint16_t tail = first(w.T - j - 16 * (some - 1));
    if (some == 3) scores<3>(q, w, i, j, p, down, tail, m);
    else if (some == 2) scores<2>(q, w, i, j, p, down, tail, m);
    else scores<1>(q, w, i, j, p, down, tail, m);
    left -= some, j += 16 * some;
  }
  for (int r = 0; r < 8; ++r) top[r] = hmax(m[r]);
  for (int r = 0; r < 8; ++r) {
    v16 t = all(0);
    if constexpr (V > 0) t = exponentials<V>(p + r * down, all(top[r]), first(w.T - 16 * (V - 1)));
    else
      for (int64_t c = 0; c < w.T; c += 64)
        t += exponentials<4>(p + r * down + c, all(top[r]), 0xffff);
    sum[r] = hsum(t);
  }
}

// Eight rows of weights times one or two vectors of the values' columns.
template <int C, class F>
INLINE void values(const float *p, int64_t down, const float *v, int64_t T, int64_t N,
                   uint16_t tail, F result) {
  v16 z[8][C];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r)
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) z[r][c] = all(0);
  for (int64_t t = 0; t < T; ++t, v += N) {
    v16 row[C];
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) row[c] = c + 1 < C ? load(v + 16 * c) : load(v + 16 * c, tail);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      v16 x = all(p[r * down + t]);
#pragma GCC unroll 2
      for (int c = 0; c < C; ++c) z[r][c] = fma(x, row[c], z[r][c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r)
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) result(r, c, z[r][c]);
}

// One head: `rows` gets the eights' largest scores and sums, `result` the sums over values, whose
// columns are N, by vectors. V = 0 for rows longer than six vectors.
template <int V, class Rows, class Result>
void head(const float *q, const float *v, const Scores &w, int64_t N, float *p, Rows rows,
          Result result) {
  int64_t down = V ? 16 * V : w.T;
  float top[8], sum[8];
  for (int64_t b = 0; b < w.T; b += 8) {
    int64_t i = b + 8 <= w.T ? b : w.T - 8;
    weights<V>(q, w, i, p, down, top, sum);
    rows(i, top, sum);
    int64_t n = 0;
    for (; n + 32 <= N; n += 32)
      values<2>(p, down, v + n, w.T, N, 0xffff,
                [&](int r, int c, v16 z) { result(i + r, n + 16 * c, sum[r], z); });
    for (; n < N; n += 16)
      values<1>(p, down, v + n, w.T, N, first(N - n),
                [&](int r, int, v16 z) { result(i + r, n, sum[r], z); });
  }
}

template <class Rows, class Result>
void head(const float *q, const float *v, const Scores &w, int64_t N, float *p, Rows rows,
          Result result) {
  switch (w.T > 96 ? 0 : (w.T + 15) / 16) {
    case 1: return head<1>(q, v, w, N, p, rows, result);
    case 2: return head<2>(q, v, w, N, p, rows, result);
    case 3: return head<3>(q, v, w, N, p, rows, result);
    case 4: return head<4>(q, v, w, N, p, rows, result);
    case 5: return head<5>(q, v, w, N, p, rows, result);
    case 6: return head<6>(q, v, w, N, p, rows, result);
    default: return head<0>(q, v, w, N, p, rows, result);
  }
}

// log of x >= 1: 2 atanh((m - 1) / (m + 1)) of the fraction, which is from 3/4 to 3/2.
INLINE v16 log(v16 x) {
  i16 bits = (i16)x, power = (bits - 0x3f400000) >> 23;
  v16 m = (v16)(bits - (power << 23)), s = (m - 1.0f) / (m + 1.0f), z = s * s;
  v16 odd = fma(fma(fma(z, all(2 / 9.0f), all(2 / 7.0f)), z, all(2 / 5.0f)), z, all(2 / 3.0f));
  v16 e = __builtin_convertvector(power, v16);
  return fma(e, all(0.693359375f), fma(s * z, odd, fma(e, all(-2.12194440e-4f), s + s)));
}

INLINE int64_t wide(int64_t T) { return (T + 15) / 16 * 16; }

}  // namespace

extern "C" {

// q, k, v (heads, T, K), mask (T, T), out (heads, T, K); scratch of (K + 8) * wide(T) a thread. T is
// from 16 to 96 or a multiple of 64, K a multiple of 16.
void attention(void *const *buf, const int64_t *size) {
  const float *q = (const float *)buf[0], *k = (const float *)buf[1], *v = (const float *)buf[2];
  const float *mask = (const float *)buf[3];
  float *out = (float *)buf[4], *scratch = (float *)buf[5];
  int64_t heads = size[0], T = size[1], K = size[2], stride = wide(T);
  share(heads, 1, heads * T * T >= SERIAL, [=](int64_t begin, int64_t end) {
    float *kt = scratch + omp_get_thread_num() * (K + 8) * stride, *p = kt + K * stride;
    for (int64_t h = begin; h < end; ++h) {
      turn(k + h * T * K, kt, T, K, stride);
      Scores w{kt, mask, T, K, stride, T, 1 / std::sqrt((float)K)};
      float *y = out + h * T * K;
      head(q + h * T * K, v + h * T * K, w, K, p, [](int64_t, float *, float *) {},
           [=](int64_t i, int64_t n, float s, v16 z) { store(y + i * K + n, z * (1 / s)); });
    }
  });
}

// q (B, 94, K), k (B, K, 94), v (B, 94, N), m (94,), g (N,). out has four parts: the results
// (B, 94, N), then of each row the reciprocal of the sum, its logarithm, and that plus the maximum;
// scratch of 1024 a thread.
void figure1(void *const *buf, const int64_t *size) {
  const int64_t T = 94;
  const float *q = (const float *)buf[0], *k = (const float *)buf[1], *v = (const float *)buf[2];
  const float *m = (const float *)buf[3], *g = (const float *)buf[4];
  float *out = (float *)buf[5], *scratch = (float *)buf[6];
  int64_t B = size[0], K = size[1], N = size[2];
  share(B, 1, B * T * T >= SERIAL, [=](int64_t begin, int64_t end) {
    float *p = scratch + omp_get_thread_num() * 1024, *tops = p + 768, *sums = tops + 96;
    for (int64_t h = begin; h < end; ++h) {
      Scores w{k + h * K * T, m, T, K, T, 0, 0.125f};
      float *y = out + h * T * N, *divide = out + B * T * N + h * T;
      head<6>(q + h * T * K, v + h * T * N, w, N, p,
              [=](int64_t i, float *top, float *sum) {
                for (int r = 0; r < 8; ++r) tops[i + r] = top[r], sums[i + r] = sum[r];
              },
              [=](int64_t i, int64_t n, float s, v16 z) {
                uint16_t on = first(N - n);
                store(y + i * N + n, z * (1 / s) * load(g + n, on), on);
              });
      for (int64_t i = 0; i < T; i += 16) {
        uint16_t on = first(T - i);
        v16 s = load(sums + i, on, all(1)), l = log(s);
        store(divide + i, 1.0f / s, on);
        store(divide + B * T + i, l, on);
        store(divide + 2 * B * T + i, load(tops + i, on) + l, on);
      }
    }
  });
}

}  // extern "C"
