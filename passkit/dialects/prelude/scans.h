// Scans: the reduction of all elements up to each lane, upwards or downwards.
#ifndef PK_SCANS_H
#define PK_SCANS_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
template <class T, int L, int from, int... i>
PK_FN simd<T, L> window(simd<T, L> a, simd<T, L> b, numbers<i...>) {
    return simd<T, L>::of(__builtin_shufflevector(a.s, b.s, (from + i)...));
}
// L lanes of a and b side by side, from lane `from` of a on.
template <int from, class T, int L> PK_FN simd<T, L> window(simd<T, L> a, simd<T, L> b) {
    if constexpr (from == 0) return a;
    else if constexpr (whole<T, L>)
        return window<T, L, from>(a, b, numbers_to<L>{});
    else if constexpr (from < L / 2)
        return simd<T, L>::of(window<from>(a.s.lo, a.s.hi), window<from>(a.s.hi, b.s.lo));
    else
        return simd<T, L>::of(window<from - L / 2>(a.s.hi, b.s.lo),
                              window<from - L / 2>(b.s.lo, b.s.hi));
}

// x, of which the compiler does not see how it was computed, unless it is constant. GCC 12 would try
// to simplify a choice between results of choices in all combinations of these, in each step of a
// scan twice as many.
template <class V> PK_FN V opaque(V x) { return x; }
#if PK_AVX2
template <class T, int L> PK_FN simd<T, L> opaque(simd<T, L> x) {
    if constexpr (!whole<T, L>) return simd<T, L>::of(opaque(x.s.lo), opaque(x.s.hi));
    else if (!__builtin_constant_p(x.s)) asm("" : "+x"(x.s));
    return x;
}
#endif

constexpr int doublings(int n) { return n > 1 ? 1 + doublings(n / 2) : 0; }

// A scan along lanes. take() gives each lane the reduction of all elements so far, in a tree over the
// lanes; carry is the reduction of all earlier vectors, in every lane.
template <class T, bool exclusive, bool down, class F> struct running_by {
    typedef vec<T> V;
    V carry, identity;
    F f;
    template <int n> PK_MEMBER V moved(V x) const {
        if constexpr (down) return window<n>(x, identity);
        else return window<PK_LANES - n>(identity, x);
    }
    template <int n> PK_MEMBER V step(V x) const {
        if constexpr (down) return f(x, moved<n>(x));
        else return f(moved<n>(x), x);
    }
    // A function that called itself for the next step would be compiled for all behind it, too.
    template <int... k> PK_MEMBER V steps(V x, numbers<k...>) const {
        constexpr bool chooses = !__is_same(F, adding) && !__is_same(F, multiplying);
        ((x = step<1 << k>(chooses ? opaque(x) : x)), ...);
        return chooses ? opaque(x) : x;
    }
    PK_MEMBER V take(V x, all_lanes) {
        x = steps(x, numbers_to<doublings(PK_LANES)>{});
        V before = carry, last = x[down ? 0 : PK_LANES - 1];
        carry = down ? f(last, before) : f(before, last);
        if constexpr (exclusive) x = moved<1>(x);
        return down ? f(x, before) : f(before, x);
    }
    PK_MEMBER V take(V x, mask m) { return take(choose(m, x, identity), all_lanes{}); }
};
template <class T, bool exclusive, bool down, class F>
PK_FN running_by<T, exclusive, down, F> running(T identity, F f) {
    return {identity, identity, f};
}

// As lanes(), the last lanes first: what is left over comes at the end.
template <class F> PK_FN void lanes_down(int64_t begin, int64_t end, F body) {
    int64_t i = end;
    for (; i - PK_LANES >= begin; i -= PK_LANES) body(i - PK_LANES, all_lanes{});
    if (i > begin) body(begin, first_few(i - begin));
}
}  // namespace pk
#endif
