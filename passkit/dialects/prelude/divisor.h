// Division of many numbers by one: bit-equal to the division, at the price of a few
// multiplications.
#ifndef PK_DIVISOR_H
#define PK_DIVISOR_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
// 1 / s = high + low to twice the precision makes q = x high + x low faithful, the remainder x - s
// q exact, and q + (x - s q) high correctly rounded (Markstein 1990, theorem on faithful
// quotients), as long as no step leaves the normal numbers. Vectors with a lane that could, and
// other divisors, are divided.
template <class T> struct divisor {
    T s, high, low;
    bool fast;

    PK_MEMBER divisor(T s) : s(s), high(1 / s), low(0), fast(s >= least() && s <= 1 / least()) {
        if constexpr (sizeof(T) == 4) low = __builtin_fmaf(-s, high, 1.0f) * high;
        else low = __builtin_fma(-s, high, 1.0) * high;
    }
    static PK_MEMBER constexpr T least() { return sizeof(T) == 4 ? T(0x1p-32f) : T(0x1p-256); }

    template <int L> PK_MEMBER simd<T, L> of(simd<T, L> x) const {
        typedef simd<T, L> V;
        if constexpr (!whole<T, L>) return V::of(of(x.s.lo), of(x.s.hi));
        else {
            typedef simd<sint_of<T>, L> I;
            V q = fused(x, V(high), x * V(low));
            q = sign_from(fused(fused(V(-s), q, x), V(high), q), x);
            // 0 and the normal numbers with room for 2^+-32 (2^+-256) and a remainder below them
            constexpr sint_of<T> unit = sint_of<T>(1) << (sizeof(T) == 4 ? 23 : 52);
            constexpr sint_of<T> bias = sizeof(T) == 4 ? 127 : 1023,
                                 low_end = sizeof(T) == 4 ? 60 : 600,
                                 high_end = sizeof(T) == 4 ? 90 : 700;
            auto a = bits<sint_of<T>>(x) & I(traits<sint_of<T>>::highest);
            auto big = compare<GE>(a, I((bias + high_end) * unit));
            auto small = compare<LT>(a, I((bias - low_end) * unit)) & compare<NE>(a, I(0));
            if (__builtin_expect(any_of(big, small), 0)) return choose(big | small, x / V(s), q);
            return q;
        }
    }
    friend PK_MEMBER simd<T, 16> operator/(simd<T, 16> x, const divisor &d) {
#if PK_AVX512
        return __builtin_expect(d.fast, 1) ? d.of(x) : x / simd<T, 16>(d.s);
#else  // a division of 8 or 4 lanes costs no more than the detour
        return x / simd<T, 16>(d.s);
#endif
    }
    friend PK_MEMBER T operator/(T x, const divisor &d) { return x / d.s; }
};
}  // namespace pk
#endif
