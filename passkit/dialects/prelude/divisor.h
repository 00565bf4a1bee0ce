// Division of many numbers by one: bit-equal to the division, at the price of a few
// multiplications. Where a division of 8 or 4 lanes costs no more than that, it is a division.
#ifndef PK_DIVISOR_H
#define PK_DIVISOR_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
#if PK_AVX512
enum { ZERO = 6, INFINITE = 24, DENORMAL = 32, NOT_A_NUMBER = 129 };
template <int classes, class T, int L> PK_FN mask_t<L> is_class(simd<T, L> x) {
    if constexpr (!whole<T, L>) return join(is_class<classes>(x.s.lo), is_class<classes>(x.s.hi));
    else if constexpr (sizeof(T) == 4)
        return mask_t<L>::of((uint16_t)__builtin_ia32_fpclassps512_mask(x.s, classes, (short)-1));
    else return mask_t<L>::of((uint8_t)__builtin_ia32_fpclasspd512_mask(x.s, classes, (char)-1));
}
// x / s from its approximation q, which is right where x times the low part of 1 / s is a normal
// number. Zeros and infinities are their own quotients, if 1 / s has a low part. Lanes that m
// leaves out, which are zeros, are not looked at.
template <class T, int L, class M>
PK_FN simd<T, L> quotient(simd<T, L> q, simd<T, L> x, simd<T, L> x_low, simd<T, L> s, M m) {
    mask_t<L> odd = is_class<ZERO | DENORMAL | INFINITE | NOT_A_NUMBER>(x_low) & m;
    if (__builtin_expect(any(odd), 0)) {
        q = choose(odd, x, q);
        odd = odd & ~(is_class<ZERO | INFINITE>(x) & is_class<ZERO | INFINITE>(x_low));
        if (any(odd)) q = choose(odd, x / s, q);
    }
    return q;
}
#endif
// AMD's cores divide a vector in the time of eight multiplications, and multiply others meanwhile:
// there the divider takes every other vector of a row or a pack. Intel's would wait for it.
#if __CLZERO__
enum { QUICK_DIVIDER = 1 };
#else
enum { QUICK_DIVIDER = 0 };
#endif

// A divisor of the lanes of m only; the others become anything.
template <class D, class M> struct divisor_among {
    D by;
    M m;
    template <class V> friend PK_MEMBER V operator/(V x, const divisor_among &d) {
        return d.by.under(x, d.m);
    }
};

// 1 / s = high + low to twice the precision makes q = x high + x low faithful, the remainder s q -
// x exact, and q - (s q - x) high correctly rounded (Markstein 1990, theorem on faithful
// quotients), as long as no step leaves the normal numbers. A power of two has a low part of 0: its
// high part, which is exact, is a factor. Other divisors get a low part of NaN: they divide, one of
// all lanes without trying the multiplications.
// S is T, or a vector of divisors.
template <class T, class S = T> struct divisor {
    typedef divisor<T, vec<T>> of_lanes;
    S s, high, low;

    PK_MEMBER divisor(S s, S high, S low) : s(s), high(high), low(low) {}
    PK_MEMBER divisor(T s) : s(s), high(1 / s) {
        if constexpr (sizeof(T) == 4) low = __builtin_fmaf(-s, high, 1.0f) * high;
        else low = __builtin_fma(-s, high, 1.0) * high;
        bool fits = s >= 1 && s <= (sizeof(T) == 4 ? T(0x1p32f) : T(0x1p256));
        low = fits || low == 0 ? low : T(__builtin_nan(""));
    }
    template <int L, class M> PK_MEMBER simd<T, L> under(simd<T, L> x, [[maybe_unused]] M m) const {
        typedef simd<T, L> V;
#if PK_AVX512
        if constexpr (__is_same(S, T)) {
            if (low == 0) return x * V(high);
            if (low != low) return x / V(s);
        }
        if constexpr (QUICK_DIVIDER && L > 32)
            return V::of(under(x.s.lo, lower(m)), under(x.s.hi, upper(m)));
        else if constexpr (QUICK_DIVIDER && L == 32)
            return V::of(x.s.lo / simd<T, 16>(s), under(x.s.hi, upper(m)));
        else {
            V x_low = x * V(low), q = fused(x, V(high), x_low);
            q = fused(-fused(V(s), q, -x), V(high), q);
            return quotient(q, x, x_low, V(s), m);
        }
#else
        return x / V(s);
#endif
    }
    // Of the lanes of vector k of a row that is printed without a loop.
    template <class M, class K> PK_MEMBER auto among(M m, K) const {
        if constexpr (QUICK_DIVIDER && K::index % 2 == 0) return vec<T>(s);
        else return divisor_among<divisor, M>{*this, m};
    }
    template <int L> friend PK_MEMBER simd<T, L> operator/(simd<T, L> x, const divisor &d) {
        return d.under(x, all_of<L>{});
    }
    friend PK_MEMBER T operator/(T x, const divisor &d) { return x / d.s; }
};

// A divisor for each of up to `most` rows, a multiple of PK_LANES, prepared a vector at a time.
template <class T, int most> struct divisors_of_rows {
#if PK_AVX512
    alignas(64) T s[most], high[most], low[most];

    // Reads up to 15 elements more, where vectors have 16.
    PK_MEMBER divisors_of_rows(const T *from, int64_t rows) {
        typedef vec<T> V;
        for (int64_t r = 0; r < rows; r += PK_LANES) {
            V x;
            if constexpr (PK_LANES == 16) x = load(from + r, all_lanes{});
            else x = load(from + r, first(rows - r));
            V h = V(1) / x, l = fused(-x, h, V(1)) * h;
            auto fits = x >= V(1) & x <= V(sizeof(T) == 4 ? T(0x1p32f) : T(0x1p256));
            store(s + r, x, all_lanes{});
            store(high + r, h, all_lanes{});
            store(low + r, choose(fits, l, V(T(__builtin_nan("")))), all_lanes{});
        }
    }
    PK_MEMBER divisor<T> operator[](int64_t row) const { return {s[row], high[row], low[row]}; }
#else
    const T *s;
    PK_MEMBER divisors_of_rows(const T *from, int64_t) : s(from) {}
    PK_MEMBER divisor<T> operator[](int64_t row) const { return s[row]; }
#endif
};

// A divisor s > 0 that is known when the kernel is written. With 1 / s = high + low, high rounded
// towards 0 and low > 0, x high + x low rounds to x / s for every x whose products are normal
// numbers; who writes the kernel has made sure of that for this s.
template <class T> struct known_divisor {
    T s, high, low;

    PK_MEMBER known_divisor(T s, T high, T low) : s(s), high(high), low(low) {}
    template <int L, class M> PK_MEMBER simd<T, L> under(simd<T, L> x, [[maybe_unused]] M m) const {
        typedef simd<T, L> V;
#if PK_AVX512
        V x_low = x * V(low);
        return quotient(fused(x, V(high), x_low), x, x_low, V(s), m);
#else
        return x / V(s);
#endif
    }
    template <class M, class K> PK_MEMBER divisor_among<known_divisor, M> among(M m, K) const {
        return {*this, m};
    }
    template <int L> friend PK_MEMBER simd<T, L> operator/(simd<T, L> x, const known_divisor &d) {
        return d.under(x, all_of<L>{});
    }
    friend PK_MEMBER T operator/(T x, const known_divisor &d) { return x / d.s; }
};
}  // namespace pk
#endif
