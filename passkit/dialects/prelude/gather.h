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
    else if constexpr (L == 16 && sizeof(T) >= 4)
        return gather_lanes(p, at, m);
    else
#endif
        return gather_each(p, at, m);
}
}  // namespace pk
#endif
