// Loads backwards, and of every second element: whole vectors and one shuffle.
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
}  // namespace pk
#endif
