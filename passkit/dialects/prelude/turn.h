// Blocks of 16 × 16 elements turned: what lies along memory in the lanes' place, row by row.
#ifndef PK_TURN_H
#define PK_TURN_H
#ifndef PK_MEMORY_H
#include "memory.h"
#endif

namespace pk {
// The lower, or upper, halves of two vectors, element by element in turn.
template <bool upper, class T, int L> PK_FN simd<T, L> zip(simd<T, L> a, simd<T, L> b) {
    typedef simd<T, L> R;
    constexpr int k = upper ? L / 2 : 0;
    if constexpr (L == 16)
        return R::of(__builtin_shufflevector(a.s, b.s, k, k + 16, k + 1, k + 17, k + 2, k + 18,
                                             k + 3, k + 19, k + 4, k + 20, k + 5, k + 21, k + 6,
                                             k + 22, k + 7, k + 23));
    else if constexpr (L == 8)
        return R::of(__builtin_shufflevector(a.s, b.s, k, k + 8, k + 1, k + 9, k + 2, k + 10, k + 3,
                                             k + 11));
    else if constexpr (L == 4)
        return R::of(__builtin_shufflevector(a.s, b.s, k, k + 4, k + 1, k + 5));
    else return R::of(__builtin_shufflevector(a.s, b.s, k, k + 2));
}
// L vectors of L elements, turned: each of log2(L) rounds zips vectors that are half of all apart.
template <int L, class T> PK_FN void turn_square(simd<T, L> *v) {
#pragma GCC unroll 4
    for (int n = 1; n < L; n *= 2) {
        simd<T, L> w[L];
#pragma GCC unroll 16
        for (int i = 0; i < L / 2; i++) {
            w[2 * i] = zip<false>(v[i], v[i + L / 2]);
            w[2 * i + 1] = zip<true>(v[i], v[i + L / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < L; i++) v[i] = w[i];
    }
}
template <int L, int P, class T> PK_FN void turn_part(T *to, const T *from, int64_t stride) {
    if constexpr (!whole<T, L>)
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++)
                turn_part<L / 2, P>(to + P * (L / 2) * a + L / 2 * b,
                                    from + L / 2 * a + L / 2 * b * stride, stride);
    else {
        simd<T, L> v[L];
#pragma GCC unroll 16
        for (int i = 0; i < L; i++) {
            v[i] = load_whole<T, L>(from + i * stride);
            __builtin_prefetch(from + i * stride + 64 / sizeof(T));
        }
        turn_square<L>(v);
#pragma GCC unroll 16
        for (int i = 0; i < L; i++) store_whole(to + P * i, v[i]);
    }
}

// How many lanes are on: the first ones.
template <int L> PK_FN int64_t num_on(all_of<L>) { return L; }
template <int L> PK_FN int64_t num_on(mask_t<L> m) {
#if PK_AVX512
    if constexpr (L > 16) return num_on(lower(m)) + num_on(upper(m));
    else return __builtin_popcount(m.k);
#else
    int64_t n = 0;
    for (int i = 0; i < L; i++) n += m[i];
    return n;
#endif
}
#if PK_AVX512
// The same where some rows and lanes are missing: what is off is not touched.
template <int L, int P, class T>
PK_FN void turn_edge(T *to, const T *from, int64_t stride, int64_t rows, int64_t count) {
    if constexpr (!whole<T, L>)
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++)
                turn_edge<L / 2, P>(to + P * (L / 2) * a + L / 2 * b,
                                    from + L / 2 * a + L / 2 * b * stride, stride,
                                    rows - L / 2 * a, count - L / 2 * b);
    else {
        simd<T, L> v[L];
        const mask_t<L> on = first_of<L>(rows), off = false;
#pragma GCC unroll 16
        for (int i = 0; i < L; i++) v[i] = load_masked(from + i * stride, i < count ? on : off);
        turn_square<L>(v);
#pragma GCC unroll 16
        for (int i = 0; i < L; i++) store_whole(to + P * i, v[i]);
    }
}
#else
template <int, int P, class T>
PK_FN void turn_edge(T *to, const T *from, int64_t stride, int64_t rows, int64_t count) {
    for (int64_t lane = 0; lane < count; lane++)
        for (int64_t r = 0; r < rows; r++) to[P * r + lane] = from[r + lane * stride];
}
#endif

// Blocks of any number of rows and up to P lanes: row r begins at to + P * r, and has lane by lane
// from[r + lane * stride].
template <int P, class T>
static __attribute__((noinline, unused)) void turn_rows(T *to, const T *from, int64_t stride,
                                                        int64_t rows, int64_t lanes) {
    typedef uint_of<T> U;
    for (int64_t i = 0; i < lanes; i += 16) {
        const int64_t count = lanes - i < 16 ? lanes - i : 16;
        for (int64_t r = 0; r < rows; r += 16) {
            const int64_t high = rows - r < 16 ? rows - r : 16;
            U *block = (U *)to + P * r + i;
            const U *first = (const U *)from + r + i * stride;
            if (high == 16 && count == 16) turn_part<16, P>(block, first, stride);
            else turn_edge<16, P>(block, first, stride, high, count);
        }
    }
}

// Row r of the block is lane by lane from[r + lane * stride]; only lanes that are on are touched,
// which are the first ones. It is called, not pasted: a kernel that turns the 64 inputs of a window
// is compiled in a fortieth of the time, and runs as fast or faster.
PK_FN constexpr bool all_on(all_lanes) { return true; }
PK_FN constexpr bool all_on(mask) { return false; }
template <class T, class M>
static __attribute__((noinline, unused)) void turn(T *to, const T *from, int64_t stride,
                                                   int64_t rows, M m) {
    typedef uint_of<T> U;
    if constexpr (PK_LANES > 16) turn_rows<PK_LANES>(to, from, stride, rows, num_on(m));
    else if (all_on(m) && rows == 16) turn_part<16, 16>((U *)to, (const U *)from, stride);
    else turn_edge<16, 16>((U *)to, (const U *)from, stride, rows, num_on(m));
}
}  // namespace pk
#endif
