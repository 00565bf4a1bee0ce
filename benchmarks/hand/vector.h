// Sixteen float32 lanes in an AVX-512 register, packs of such registers, and functions.
//
// GCC vector types and __builtin_ia32_*; immintrin.h is left out, it takes longer to compile than
// all the kernels. A pack carries several registers through a formula operation by operation, so
// that the next operation's inputs are ready: a scheduler of about a hundred entries sees only one
// or two long formulas at once. Minimum and maximum take the constant first: a NaN in x passes.
#pragma once

#include <omp.h>

#include <cmath>
#include <cstdint>

#include "tables.h"

#define INLINE_LAMBDA __attribute__((always_inline))
#define INLINE inline __attribute__((always_inline))

typedef float v16 __attribute__((vector_size(64)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
typedef int i16 __attribute__((vector_size(64)));
typedef float v16u __attribute__((vector_size(64), aligned(4)));

namespace {

// Results of at least this size leave past the caches: on the machine at hand (2 x 2 MB of second
// cache, a third cache no faster than memory) they cost less from there on.
const int64_t STREAM_NBYTES = 3 << 20;
const int64_t SERIAL = 8192;  // fewer elements than this are not worth a second thread

bool streams(const float *y, int64_t n) {
  return n * 4 >= STREAM_NBYTES && ((uintptr_t)y & 63) == 0;
}

INLINE v16 all(float x) { return v16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
INLINE v16 load(const float *p) { return *(const v16u *)p; }
INLINE void store(float *p, v16 x) { *(v16u *)p = x; }
INLINE void stream(float *p, v16 x) { __builtin_ia32_movntps512(p, x); }
template <bool STREAM> INLINE void put(float *p, v16 x) {
  if (STREAM) stream(p, x); else store(p, x);
}

INLINE uint16_t first(int64_t n) { return n >= 16 ? 0xffff : (uint16_t)((1u << n) - 1); }
INLINE v16 load(const float *p, uint16_t lanes, v16 other = v16{}) {
  return __builtin_ia32_loadups512_mask(p, other, lanes);
}
INLINE void store(float *p, v16 x, uint16_t lanes) {
  __builtin_ia32_storeups512_mask(p, x, lanes);
}

INLINE v16 fma(v16 a, v16 b, v16 c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4); }
INLINE v16 minimum(v16 c, v16 x) { return __builtin_ia32_minps512_mask(c, x, c, -1, 4); }
INLINE v16 maximum(v16 c, v16 x) { return __builtin_ia32_maxps512_mask(c, x, c, -1, 4); }
INLINE v16 scale2(v16 x, v16 n) { return __builtin_ia32_scalefps512_mask(x, n, x, -1, 4); }
INLINE v16 abs(v16 x) { return (v16)((i16)x & 0x7fffffff); }
INLINE v16 with_sign(v16 size, v16 sign) {  // size >= 0 or NaN
  return (v16)((i16)size | ((i16)sign & (int)0x80000000));
}
INLINE v16 minus_nearest_eighth(v16 x) { return __builtin_ia32_reduceps512_mask(x, 0x30, x, -1); }

// Lanes that are off keep what `kept` holds; one instruction each.
INLINE v16 maximum(v16 a, v16 b, uint16_t lanes, v16 kept) {
  return __builtin_ia32_maxps512_mask(a, b, kept, lanes, 4);
}
INLINE v16 add(v16 a, v16 b, uint16_t lanes, v16 kept) {
  return __builtin_ia32_addps512_mask(a, b, kept, lanes, 4);
}
INLINE v16 subtract(v16 a, v16 b, uint16_t lanes, v16 kept) {
  return __builtin_ia32_subps512_mask(a, b, kept, lanes, 4);
}
INLINE v16 select(uint16_t lanes, v16 on, v16 off) {
  return __builtin_ia32_blendmps_512_mask(off, on, lanes);
}

// Element j of a table of 32, for the low five bits of each lane of j. The permute overwrites its
// first half, which therefore is loaded anew.
INLINE v16 pick(const float *table, v16 j) {
  v16 x;
  asm("vmovaps %1, %0\n\tvpermt2ps %2, %3, %0"
      : "=&v"(x)
      : "m"(*(const v16 *)table), "v"(*(const v16 *)(table + 16)), "v"(j));
  return x;
}

template <int K> struct pack {
  v16 v[K];
  pack() = default;
  INLINE pack(v16 x) {
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) v[k] = x;
  }
  INLINE pack(float x) : pack(all(x)) {}
};

#define EACH(EXPR)                        \
  pack<K> y;                              \
  _Pragma("GCC unroll 8")                 \
  for (int k = 0; k < K; ++k) y.v[k] = EXPR; \
  return y;
#define PACK template <int K> INLINE pack<K>
#define OPERATOR(OP)                                                        \
  PACK operator OP(pack<K> a, pack<K> b) { EACH(a.v[k] OP b.v[k]) }         \
  PACK operator OP(pack<K> a, float b) { EACH(a.v[k] OP all(b)) }           \
  PACK operator OP(float a, pack<K> b) { EACH(all(a) OP b.v[k]) }
OPERATOR(+) OPERATOR(-) OPERATOR(*) OPERATOR(/)
PACK fma(pack<K> a, pack<K> b, pack<K> c) { EACH(fma(a.v[k], b.v[k], c.v[k])) }
PACK minimum(pack<K> c, pack<K> x) { EACH(minimum(c.v[k], x.v[k])) }
PACK maximum(pack<K> c, pack<K> x) { EACH(maximum(c.v[k], x.v[k])) }
PACK scale2(pack<K> x, pack<K> n) { EACH(scale2(x.v[k], n.v[k])) }
PACK abs(pack<K> x) { EACH(abs(x.v[k])) }
PACK with_sign(pack<K> a, pack<K> b) { EACH(with_sign(a.v[k], b.v[k])) }
PACK minus_nearest_eighth(pack<K> x) { EACH(minus_nearest_eighth(x.v[k])) }
PACK pick(const float *table, pack<K> j) { EACH(pick(table, j.v[k])) }
PACK load_pack(const float *p) { EACH(load(p + 16 * k)) }
#undef OPERATOR
#undef PACK
#undef EACH
template <bool STREAM, int K> INLINE void put(float *p, pack<K> x) {
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) put<STREAM>(p + 16 * k, x.v[k]);
}

template <class V> INLINE V full(float x) { return V(all(x)); }

// e^x for x <= 0: n counts 1/32 of powers of two, whose fraction is picked and whose whole part is
// the exponent (scalef takes the floor). The sum with 1.5 * 2^18 rounds to a multiple of 1/32.
template <class V> INLINE V exp_nonpositive(V x) {
  x = maximum(full<V>(-104.0f), x);
  V m = fma(x, full<V>(0x1.715476p0f), full<V>(0x1.8p18f)), n = m - 0x1.8p18f;
  V r = fma(n, full<V>(-0x1.62e4p-1f), x);
  r = fma(n, full<V>(-0x1.7f7d1cp-20f), r);
  V t = pick(EXP2_TABLE, m);
  return scale2(fma(t * r, fma(r, full<V>(EXP2), full<V>(EXP1)), t), n);
}

template <class V> INLINE V exp(V x) { return exp_nonpositive(minimum(full<V>(89.0f), x)); }

// Clamped where the table's last interval ends, at a point that gives 1 exactly.
template <class V> INLINE V erf(V x) {
  V a = minimum(full<V>(3.93749976f), abs(x)), k = fma(a, full<V>(8.0f), full<V>(0x1.8p23f));
  V u = minus_nearest_eighth(a);
  V p = fma(pick(ERF4, k), u, pick(ERF3, k));
  p = fma(p, u, pick(ERF2, k));
  p = fma(p, u, pick(ERF1, k));
  p = fma(p, u, pick(ERF0, k));
  return p * with_sign(a, x);
}

template <class V> INLINE V tanh(V x) {
  V a = minimum(full<V>(9.29999924f), abs(x));
  V k = fma(a, full<V>(1 / 0.296875f), full<V>(0x1.8p23f));
  V u = fma(k - 0x1.8p23f, full<V>(-0.296875f), a);
  V p = fma(pick(TANH5, k), u, pick(TANH4, k));
  p = fma(p, u, pick(TANH3, k));
  p = fma(p, u, pick(TANH2, k));
  p = fma(p, u, pick(TANH1, k));
  p = fma(p, u, pick(TANH0, k));
  return p * with_sign(a, x);
}

INLINE float hmax(v16 x) {
  v8 a = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
  v8 b = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  a = __builtin_ia32_maxps256(a, b);
  v4 c = __builtin_ia32_maxps(__builtin_shufflevector(a, a, 0, 1, 2, 3),
                              __builtin_shufflevector(a, a, 4, 5, 6, 7));
  c = __builtin_ia32_maxps(c, __builtin_shufflevector(c, c, 2, 3, 0, 1));
  c = __builtin_ia32_maxps(c, __builtin_shufflevector(c, c, 1, 0, 3, 2));
  return c[0];
}

INLINE float hsum(v16 x) {
  v8 a = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  v4 b = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
  b += __builtin_shufflevector(b, b, 2, 3, 0, 1);
  b += __builtin_shufflevector(b, b, 1, 0, 3, 2);
  return b[0];
}

struct Sum {
  INLINE v16 operator()(v16 a, v16 b) const { return a + b; }
};
struct Max {
  INLINE v16 operator()(v16 a, v16 b) const { return maximum(a, b); }
};

// One level of fold16: lanes with bit W belong to b, the others to a.
template <int W, class F> INLINE v16 fold_pair(v16 a, v16 b, F f) {
#define SAME(l) ((l) & W ? 16 + (l) : (l))
#define SWAP(l) ((l) & W ? 16 + ((l) ^ W) : (l) ^ W)
#define LANES(P) P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9), P(10), P(11), P(12), \
                 P(13), P(14), P(15)
  return f(__builtin_shufflevector(a, b, LANES(SAME)), __builtin_shufflevector(a, b, LANES(SWAP)));
#undef SAME
#undef SWAP
#undef LANES
}

// Folds sixteen vectors at once: lane r of the result is the fold of v[r].
template <class F> INLINE v16 fold16(v16 *v, F f) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) v[i] = fold_pair<8>(v[i], v[i + 8], f);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = fold_pair<4>(v[i], v[i + 4], f);
  v[0] = fold_pair<2>(v[0], v[2], f);
  v[1] = fold_pair<2>(v[1], v[3], f);
  return fold_pair<1>(v[0], v[1], f);
}

// Calls body(begin, end) once per thread; begins are multiples of `block`.
template <class F> void share(int64_t n, int64_t block, bool parallel, F body) {
  if (!parallel) return body((int64_t)0, n);
#pragma omp parallel
  {
    int64_t t = omp_get_thread_num(), T = omp_get_num_threads(), v = (n + block - 1) / block;
    int64_t begin = v * t / T * block, end = v * (t + 1) / T * block;
    body(begin, end < n ? end : n);
  }
}

}  // namespace
