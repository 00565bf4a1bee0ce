// Loads at indices that are data: a lane that is off is not touched, and loads as 0.
#ifndef PK_GATHER_H
#define PK_GATHER_H
#ifndef PK_MEMORY_H
#include "memory.h"
#endif

namespace pk {
template <class T, int L, class M> PK_FN vec<T, L> gather_each(const T *p, simd<int64_t, L> at, M m) {
    int64_t index[L];
    store(index, at, all_of<L>{});
    return gather<T>([&](int i) PK_INLINE { return p[index[i]]; }, m);
}
template <class T, int L, class M> PK_FN vec<T, L> gather_at(const T *p, simd<int64_t, L> at, M m) {
#if PK_AVX512
    if constexpr (L > 16 && sizeof(T) >= 4)
        return join(gather_at<T, L / 2>(p, at.s.lo, lower(m)), gather_at<T, L / 2>(p, at.s.hi, upper(m)));
    else if constexpr (L == 16 && sizeof(T) >= 4) {
        mask on = m;
        auto lo = (isa::di8)at.s.lo.s, hi = (isa::di8)at.s.hi.s;
        auto first_half = (char)lower(on).k, last_half = (char)upper(on).k;
        if constexpr (sizeof(T) == 8)
            return bits<T>(f64x16::of(
                simd<double, 8>::of(__builtin_ia32_gatherdiv8df(isa::df8{}, p, lo, first_half, 8)),
                simd<double, 8>::of(__builtin_ia32_gatherdiv8df(isa::df8{}, p, hi, last_half, 8))));
        else {
            typedef native_t<float, 8> F;
            return bits<T>(
                join(simd<float, 8>::of(__builtin_ia32_gatherdiv16sf(F{}, p, lo, first_half, 4)),
                     simd<float, 8>::of(__builtin_ia32_gatherdiv16sf(F{}, p, hi, last_half, 4))));
        }
    } else
#endif
        return gather_each(p, at, m);
}
}  // namespace pk
#endif
