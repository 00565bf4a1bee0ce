// Loads backwards, of every second element, and of rows of a few elements as columns: whole vectors
// and shuffles.
#ifndef PK_STRIDED_H
#define PK_STRIDED_H
#ifndef PK_MEMORY_H
#include "memory.h"
#endif

namespace pk {
// Those of a, then of b, that stand at even places of a and at odd ones of b.
template <class T, int L> PK_FN simd<T, L> alternate(simd<T, L> a, simd<T, L> b) {
    typedef simd<T, L> R;
    if constexpr (L == 16)
        return R::of(__builtin_shufflevector(a.s, b.s, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25,
                                             27, 29, 31));
    else if constexpr (L == 8)
        return R::of(__builtin_shufflevector(a.s, b.s, 0, 2, 4, 6, 9, 11, 13, 15));
    else if constexpr (L == 4) return R::of(__builtin_shufflevector(a.s, b.s, 0, 2, 5, 7));
    else return R::of(__builtin_shufflevector(a.s, b.s, 0, 3));
}
template <class T, int L> PK_FN simd<T, L> backwards(simd<T, L> a) {
    typedef simd<T, L> R;
    if constexpr (L == 16)
        return R::of(__builtin_shufflevector(a.s, a.s, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3,
                                             2, 1, 0));
    else if constexpr (L == 8)
        return R::of(__builtin_shufflevector(a.s, a.s, 7, 6, 5, 4, 3, 2, 1, 0));
    else if constexpr (L == 4) return R::of(__builtin_shufflevector(a.s, a.s, 3, 2, 1, 0));
    else return R::of(__builtin_shufflevector(a.s, a.s, 1, 0));
}

// p[0], p[2], …: the second vector ends at the last element that is wanted.
template <class T, int L> PK_FN simd<T, L> load_second(const T *p, all_of<L>) {
    if constexpr (whole<T, L>) return alternate(load_whole<T, L>(p), load_whole<T, L>(p + L - 1));
    else
        return simd<T, L>::of(load_second(p, all_of<L / 2>{}), load_second(p + L, all_of<L / 2>{}));
}
template <class T, int L> PK_FN simd<T, L> load_second(const T *p, mask_t<L> m) {
    return load_strided(p, 2, m);
}
template <int L> PK_FN mask_t<L> load_second(const bool *p, all_of<L> m) {
    return load_second((const uint8_t *)p, m) != 0;
}
template <int L> PK_FN mask_t<L> load_second(const bool *p, mask_t<L> m) {
    return load_strided(p, 2, m);
}

// p[0], p[-1], …
template <class T, int L> PK_FN simd<T, L> load_back(const T *p, all_of<L>) {
    if constexpr (whole<T, L>) return backwards(load_whole<T, L>(p - L + 1));
    else
        return simd<T, L>::of(load_back(p, all_of<L / 2>{}), load_back(p - L / 2, all_of<L / 2>{}));
}
template <class T, int L> PK_FN simd<T, L> load_back(const T *p, mask_t<L> m) {
    return load_strided(p, -1, m);
}
template <int L> PK_FN mask_t<L> load_back(const bool *p, all_of<L> m) {
    return load_back((const uint8_t *)p, m) != 0;
}
template <int L> PK_FN mask_t<L> load_back(const bool *p, mask_t<L> m) {
    return load_strided(p, -1, m);
}

// Numbers as a parameter pack.
template <int... k> struct places {};
template <int n, int... k> struct places_below : places_below<n - 1, n - 1, k...> {};
template <int... k> struct places_below<0, k...> {
    typedef places<k...> type;
};
template <int n> using first_places = typename places_below<n>::type;

// Rows of C elements are taken apart within `unit` lanes: where AVX2 would have to move lanes from
// one half of a register to the other, each half has rows of its own.
#if PK_AVX512
template <class T, int L> inline constexpr int unit = L;
#else
template <class T, int L> inline constexpr int unit = 16 / int(sizeof(T)) < L ? 16 / int(sizeof(T)) : L;
#endif
// Part k of the rows that follow each other from p on: as many elements of each unit's rows.
template <int C, int k, class T, int L> PK_FN simd<T, L> part_of_rows(const T *p) {
    constexpr int U = unit<T, L>;
    if constexpr (U == L) return load_whole<T, L>(p + L * k);
    else return join(load_whole<T, U>(p + U * k), load_whole<T, U>(p + U * (k + C)));
}
// Which of C parts has in this lane an element of column c: C is odd, so that just one has.
template <int C, int U> constexpr int part_with(int c, int lane) {
    int k = 0;
    while ((k * U + lane) % C != c) k++;
    return k;
}
template <int C, int c, int k, class T, int L, int... j>
PK_FN simd<T, L> lanes_of(const simd<T, L> *v, places<j...> all) {
    constexpr int U = unit<T, L>;
    if constexpr (k == 0) return v[0];
    else
        return simd<T, L>::of(
            __builtin_shufflevector(lanes_of<C, c, k - 1>(v, all).s, v[k].s,
                                    (part_with<C, U>(c, j % U) == k ? L + j : j)...));
}
// Column c: its lanes of all parts in one, then put into their order.
template <int C, int c, class T, int L, int... j>
PK_FN simd<T, L> column_of(const simd<T, L> *v, places<j...> all) {
    constexpr int U = unit<T, L>;
    auto mixed = lanes_of<C, c, C - 1>(v, all).s;
    return simd<T, L>::of(
        __builtin_shufflevector(mixed, mixed, (j / U * U + (C * (j % U) + c) % U)...));
}
// The elements at even, or odd, places of two parts.
template <int first, class T, int L, int... j>
PK_FN simd<T, L> every_second(simd<T, L> a, simd<T, L> b, places<j...>) {
    constexpr int U = unit<T, L>;
    return simd<T, L>::of(__builtin_shufflevector(
        a.s, b.s,
        (j / U * U + (2 * (j % U) + first) % U + (2 * (j % U) + first < U ? 0 : L))...));
}
template <int C, class T, int L, int... c>
PK_FN void odd_columns(simd<T, L> *to, int step, const simd<T, L> *v, places<c...>) {
    ((to[c * step] = column_of<C, c>(v, first_places<L>{})), ...);
}
// Parts of rows of C elements as C columns, which are stored `step` apart. Where C is even, what
// stands at even places and what stands at odd ones are rows of half as many elements each.
template <int C, class T, int L>
PK_FN void take_apart(simd<T, L> *to, int step, const simd<T, L> *v) {
    if constexpr (C % 2) odd_columns<C>(to, step, v, first_places<C>{});
    else {
        simd<T, L> even[C / 2], odd[C / 2];
#pragma GCC unroll 8
        for (int k = 0; k < C / 2; k++) {
            even[k] = every_second<0>(v[2 * k], v[2 * k + 1], first_places<L>{});
            odd[k] = every_second<1>(v[2 * k], v[2 * k + 1], first_places<L>{});
        }
        take_apart<C / 2>(to, 2 * step, even);
        take_apart<C / 2>(to + step, 2 * step, odd);
    }
}
template <int C, class T, int L, int... k>
PK_FN void load_apart(simd<T, L> *to, const T *p, places<k...>) {
    const simd<T, L> v[C] = {part_of_rows<C, k, T, L>(p)...};
    take_apart<C>(to, 1, v);
}

// Column c of rows of C elements that follow each other is [c].
template <int C, class T, int L> struct columns {
    simd<T, L> v[C];
    PK_MEMBER simd<T, L> operator[](int c) const { return v[c]; }
};
template <int C, class T, int L> PK_FN columns<C, T, L> load_columns(const T *p, all_of<L>) {
    columns<C, T, L> r;
    if constexpr (whole<T, L>) {
        load_apart<C>(r.v, p, first_places<C>{});
    } else {
        auto lo = load_columns<C>(p, all_of<L / 2>{});
        auto hi = load_columns<C>(p + L / 2 * C, all_of<L / 2>{});
#pragma GCC unroll 8
        for (int c = 0; c < C; c++) r.v[c] = simd<T, L>::of(lo[c], hi[c]);
    }
    return r;
}
template <int C, class T, int L> PK_FN columns<C, T, L> load_columns(const T *p, mask_t<L> m) {
    columns<C, T, L> r;
#pragma GCC unroll 8
    for (int c = 0; c < C; c++) r.v[c] = load_strided(p + c, C, m);
    return r;
}
}  // namespace pk
#endif
