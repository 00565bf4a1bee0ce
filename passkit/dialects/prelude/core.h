// Vectors of sixteen lanes: types, operators, masks, memory, conversion, loops.
//
// vec<T> has 16 lanes for every element type: one zmm, two ymm, four xmm or NEON registers for
// 4-byte elements, and twice or half of that for others. simd<T, L> halves itself until a part fits
// a register. A pack of 32 or 64 lanes goes through a formula operation by operation, so that the
// operands of the next one are ready; with one vector at a time a long formula waits for itself.
#ifndef PK_CORE_H
#define PK_CORE_H
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wpsabi"
#define PK_INLINE __attribute__((always_inline))
#define PK_FN static inline __attribute__((always_inline))
#define PK_MEMBER inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) &&                      \
    defined(__AVX512VL__) && !defined(__clang__)
#define PK_AVX512 1
#define PK_BYTES 64
#elif defined(__AVX2__)
#define PK_BYTES 32
#else
#define PK_BYTES 16
#endif

// A function that is compiled only where it is called.
#define PK_LAZY template <int = 0> PK_FN

namespace pk {

template <int bytes> struct sized;
template <> struct sized<1> {
    typedef int8_t sint;
    typedef uint8_t uint;
};
template <> struct sized<2> {
    typedef int16_t sint;
    typedef uint16_t uint;
};
template <> struct sized<4> {
    typedef int32_t sint;
    typedef uint32_t uint;
};
template <> struct sized<8> {
    typedef int64_t sint;
    typedef uint64_t uint;
};
template <class T> using sint_of = typename sized<sizeof(T)>::sint;
template <class T> using uint_of = typename sized<sizeof(T)>::uint;

template <class T> struct traits {
    static constexpr bool is_float = false;
    static constexpr bool is_signed = T(-1) < T(0);
    static constexpr T highest = is_signed ? T(uint_of<T>(-1) >> 1) : T(-1);
    static constexpr T lowest = is_signed ? T(-highest - 1) : T(0);
    typedef uint_of<T> wrap;  // the type in which + - * wrap around
};
template <> struct traits<float> {
    static constexpr bool is_float = true, is_signed = true;
    typedef float wrap;
};
template <> struct traits<double> {
    static constexpr bool is_float = true, is_signed = true;
    typedef double wrap;
};

template <class T, int L> struct simd;
template <class T, int L> inline constexpr bool whole = sizeof(T) * L <= PK_BYTES && L <= 16;
template <class T, int L> struct native {
    typedef T type __attribute__((vector_size(sizeof(T) * L)));
};
template <class T, int L> using native_t = typename native<T, L>::type;
template <class T, int L> struct loose {
    typedef T type __attribute__((vector_size(sizeof(T) * L), aligned(1), may_alias));
};
template <class T, int L> struct halves {
    simd<T, L / 2> lo, hi;
};
template <bool whole, class T, int L> struct storage {
    typedef native_t<T, L> type;
};
template <class T, int L> struct storage<false, T, L> {
    typedef halves<T, L> type;
};

// Masks: the bits of a mask register, or a vector of 0 and -1.
template <int L> struct mask_t;

template <int predicate, class T, int L> PK_FN mask_t<L> compare(simd<T, L> a, simd<T, L> b);
template <class T, int L> PK_FN simd<T, L> choose(mask_t<L> m, simd<T, L> a, simd<T, L> b);
template <class To, class T, int L> PK_FN simd<To, L> cast(simd<T, L> x);
template <class T, int L> PK_FN simd<T, L> greater(simd<T, L> a, simd<T, L> b);
template <class T, int L> PK_FN simd<T, L> lesser(simd<T, L> a, simd<T, L> b);
template <class T, int L> PK_FN simd<T, L> maximum_of(simd<T, L> a, simd<T, L> b);
template <class T, int L> PK_FN simd<T, L> minimum_of(simd<T, L> a, simd<T, L> b);
template <class T, int L> PK_FN simd<T, L> sign_from(simd<T, L> x, simd<T, L> s);

enum { EQ = 0, LT = 1, LE = 2, NE = 4, GE = 5, GT = 6, NOT_LT = 21 };

template <class T, int L> struct simd {
    typedef native_t<typename traits<T>::wrap, L> W;
    typedef typename storage<whole<T, L>, T, L>::type S;
    S s;

    simd() = default;
    PK_MEMBER simd(T x) {
        if constexpr (whole<T, L>) s = x - S{};
        else s.lo = x, s.hi = x;
    }
    static PK_MEMBER simd of(S s) {
        simd r;
        r.s = s;
        return r;
    }
    static PK_MEMBER simd of(simd<T, L / 2> lo, simd<T, L / 2> hi) {
        simd r;
        r.s.lo = lo;
        r.s.hi = hi;
        return r;
    }
    PK_MEMBER T operator[](int i) const {
        if constexpr (whole<T, L>) return s[i];
        else return i < L / 2 ? s.lo[i] : s.hi[i - L / 2];
    }

#define PK_ARITHMETIC(op)                                                                          \
    friend PK_MEMBER simd operator op(simd a, simd b) {                                            \
        if constexpr (whole<T, L>) return of((S)((W)a.s op(W) b.s));                               \
        else return of(a.s.lo op b.s.lo, a.s.hi op b.s.hi);                                        \
    }                                                                                              \
    PK_MEMBER simd &operator op## = (simd b) { return *this = *this op b; }
    PK_ARITHMETIC(+)
    PK_ARITHMETIC(-)
    PK_ARITHMETIC(*)
    PK_ARITHMETIC(&)
    PK_ARITHMETIC(|)
    PK_ARITHMETIC(^)
#undef PK_ARITHMETIC
    friend PK_MEMBER simd operator-(simd a) {
        if constexpr (whole<T, L>) return of((S)(-(W)a.s));
        else return of(-a.s.lo, -a.s.hi);
    }
    friend PK_MEMBER simd operator~(simd a) {
        if constexpr (whole<T, L>) return of(~a.s);
        else return of(~a.s.lo, ~a.s.hi);
    }
    friend PK_MEMBER simd operator/(simd a, simd b) {
        if constexpr (!whole<T, L>) return of(a.s.lo / b.s.lo, a.s.hi / b.s.hi);
        else if constexpr (traits<T>::is_float) return of(a.s / b.s);
        else {  // as C, but x / 0 = 0 and the lowest / -1 wraps
            S r = a.s;
            for (int i = 0; i < L; i++)
                r[i] = b.s[i] == 0                               ? T(0)
                       : b.s[i] == T(-1) && traits<T>::is_signed ? T(-(uint_of<T>)a.s[i])
                                                                 : T(a.s[i] / b.s[i]);
            return of(r);
        }
    }
    // A count of the width or more shifts everything out, as in NumPy.
    friend PK_MEMBER simd operator<<(simd a, simd n) {
        typedef native_t<uint_of<T>, L> U;
        if constexpr (!whole<T, L>) return of(a.s.lo << n.s.lo, a.s.hi << n.s.hi);
        else
            return of((S)(((U)a.s << ((U)n.s & U(simd<uint_of<T>, L>(8 * sizeof(T) - 1).s))) &
                          (U)((U)n.s < U(simd<uint_of<T>, L>(8 * sizeof(T)).s))));
    }
    friend PK_MEMBER simd operator>>(simd a, simd n) {
        typedef native_t<uint_of<T>, L> U;
        if constexpr (!whole<T, L>) return of(a.s.lo >> n.s.lo, a.s.hi >> n.s.hi);
        else {
            U last = simd<uint_of<T>, L>(8 * sizeof(T) - 1).s, over = (U)((U)n.s > last);
            if constexpr (traits<T>::is_signed)
                return of(a.s >> (S)(((U)n.s & ~over) | (last & over)));
            else return of((S)(((U)a.s >> ((U)n.s & last)) & ~over));
        }
    }
    PK_MEMBER simd &operator/=(simd b) { return *this = *this / b; }
    PK_MEMBER simd &operator<<=(simd n) { return *this = *this << n; }
    PK_MEMBER simd &operator>>=(simd n) { return *this = *this >> n; }

    friend PK_MEMBER mask_t<L> operator==(simd a, simd b) { return compare<EQ>(a, b); }
    friend PK_MEMBER mask_t<L> operator!=(simd a, simd b) { return compare<NE>(a, b); }
    friend PK_MEMBER mask_t<L> operator<(simd a, simd b) { return compare<LT>(a, b); }
    friend PK_MEMBER mask_t<L> operator<=(simd a, simd b) { return compare<LE>(a, b); }
    friend PK_MEMBER mask_t<L> operator>(simd a, simd b) { return compare<GT>(a, b); }
    friend PK_MEMBER mask_t<L> operator>=(simd a, simd b) { return compare<GE>(a, b); }
    friend PK_MEMBER simd select(mask_t<L> m, simd a, simd b) { return choose(m, a, b); }
    friend PK_MEMBER simd maximum(simd a, simd b) { return maximum_of(a, b); }
    friend PK_MEMBER simd minimum(simd a, simd b) { return minimum_of(a, b); }
    // One instruction; where either is NaN, b.
    friend PK_MEMBER simd max_ignore_nan(simd a, simd b) { return greater(a, b); }
    friend PK_MEMBER simd min_ignore_nan(simd a, simd b) { return lesser(a, b); }
    friend PK_MEMBER simd copysign(simd x, simd s) { return sign_from(x, s); }
};

// The first and second half of the lanes, and both together again.
template <class T, int L> PK_FN simd<T, L / 2> lower(simd<T, L> x) {
    typedef simd<T, L / 2> H;
    if constexpr (!whole<T, L>) return x.s.lo;
    else if constexpr (L == 16)
        return H::of(__builtin_shufflevector(x.s, x.s, 0, 1, 2, 3, 4, 5, 6, 7));
    else if constexpr (L == 8) return H::of(__builtin_shufflevector(x.s, x.s, 0, 1, 2, 3));
    else return H::of(__builtin_shufflevector(x.s, x.s, 0, 1));
}
template <class T, int L> PK_FN simd<T, L / 2> upper(simd<T, L> x) {
    typedef simd<T, L / 2> H;
    if constexpr (!whole<T, L>) return x.s.hi;
    else if constexpr (L == 16)
        return H::of(__builtin_shufflevector(x.s, x.s, 8, 9, 10, 11, 12, 13, 14, 15));
    else if constexpr (L == 8) return H::of(__builtin_shufflevector(x.s, x.s, 4, 5, 6, 7));
    else return H::of(__builtin_shufflevector(x.s, x.s, 2, 3));
}
template <class T, int H> PK_FN simd<T, 2 * H> join(simd<T, H> a, simd<T, H> b) {
    typedef simd<T, 2 * H> R;
    if constexpr (!whole<T, 2 * H>) return R::of(a, b);
    else if constexpr (H == 8)
        return R::of(__builtin_shufflevector(a.s, b.s, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                             14, 15));
    else if constexpr (H == 4)
        return R::of(__builtin_shufflevector(a.s, b.s, 0, 1, 2, 3, 4, 5, 6, 7));
    else return R::of(__builtin_shufflevector(a.s, b.s, 0, 1, 2, 3));
}

// The lanes converted as C does it (no saturation); and the same bits under another type.
template <class To, class T, int L> PK_FN simd<To, L> cast(simd<T, L> x) {
#if PK_AVX512  // GCC takes four instructions for these
    if constexpr (L == 8 && __is_same(T, float) && __is_same(To, double))
        return simd<To, L>::of(
            __builtin_ia32_cvtps2pd512_mask(x.s, native_t<To, L>{}, (char)-1, 4));
    else if constexpr (L == 8 && __is_same(T, int32_t) && __is_same(To, double))
        return simd<To, L>::of(__builtin_ia32_cvtdq2pd512_mask(x.s, native_t<To, L>{}, (char)-1));
    else
#endif
        if constexpr (whole<T, L> && whole<To, L>)
        return simd<To, L>::of(__builtin_convertvector(x.s, native_t<To, L>));
    else return join(cast<To>(lower(x)), cast<To>(upper(x)));
}
template <class To, class T, int L> PK_FN simd<To, L> bits(simd<T, L> x) {
    if constexpr (whole<T, L>) return simd<To, L>::of((native_t<To, L>)x.s);
    else return simd<To, L>::of(bits<To>(x.s.lo), bits<To>(x.s.hi));
}

// Shifts by a constant less than the width.
template <int n, class T, int L> PK_FN simd<T, L> shift_left(simd<T, L> x) {
    if constexpr (whole<T, L>)
        return simd<T, L>::of((native_t<T, L>)((native_t<uint_of<T>, L>)x.s << n));
    else return simd<T, L>::of(shift_left<n>(x.s.lo), shift_left<n>(x.s.hi));
}
template <int n, class T, int L> PK_FN simd<T, L> shift_right(simd<T, L> x) {
    if constexpr (whole<T, L>) return simd<T, L>::of(x.s >> n);
    else return simd<T, L>::of(shift_right<n>(x.s.lo), shift_right<n>(x.s.hi));
}

template <class T, int L, int b = 0> PK_FN simd<T, L> iota() {
    typedef simd<T, L> R;
    if constexpr (!whole<T, L>) return R::of(iota<T, L / 2, b>(), iota<T, L / 2, b + L / 2>());
    else if constexpr (L == 16)
        return R::of(typename R::S{b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7, b + 8, b + 9,
                                   b + 10, b + 11, b + 12, b + 13, b + 14, b + 15});
    else if constexpr (L == 8)
        return R::of(typename R::S{b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7});
    else if constexpr (L == 4) return R::of(typename R::S{b, b + 1, b + 2, b + 3});
    else return R::of(typename R::S{b, b + 1});
}

#if PK_AVX512
template <int L> struct mask_halves {
    mask_t<L / 2> lo, hi;
};
template <bool packed, int L> struct mask_storage {
    typedef typename sized<(L > 8 ? 2 : 1)>::uint type;
};
template <int L> struct mask_storage<true, L> {
    typedef mask_halves<L> type;
};
template <int L> struct mask_t {
    typedef typename mask_storage<(L > 16), L>::type B;
    B k;
    mask_t() = default;
    PK_MEMBER mask_t(bool b) {
        if constexpr (L > 16) k.lo = b, k.hi = b;
        else k = b ? B((1u << L) - 1) : B(0);
    }
    static PK_MEMBER mask_t of(unsigned k) {
        mask_t r;
        r.k = B(k);
        return r;
    }
    static PK_MEMBER mask_t of(mask_t<L / 2> lo, mask_t<L / 2> hi) {
        mask_t r;
        if constexpr (L > 16) r.k.lo = lo, r.k.hi = hi;
        else r.k = B(lo.k | unsigned(hi.k) << L / 2);
        return r;
    }
    PK_MEMBER bool operator[](int i) const {
        if constexpr (L > 16) return i < L / 2 ? k.lo[i] : k.hi[i - L / 2];
        else return k >> i & 1;
    }
#define PK_MASK_OPERATOR(op)                                                                       \
    friend PK_MEMBER mask_t operator op(mask_t a, mask_t b) {                                      \
        if constexpr (L > 16) return of(a.k.lo op b.k.lo, a.k.hi op b.k.hi);                       \
        else return of(a.k op b.k);                                                                \
    }
    PK_MASK_OPERATOR(&)
    PK_MASK_OPERATOR(|)
    PK_MASK_OPERATOR(^)
#undef PK_MASK_OPERATOR
    friend PK_MEMBER mask_t operator~(mask_t a) {
        if constexpr (L > 16) return of(~a.k.lo, ~a.k.hi);
        else return of(~a.k & ((1u << L) - 1));
    }
    friend PK_MEMBER bool any(mask_t a) {
        if constexpr (L > 16) return any(a.k.lo | a.k.hi);
        else return a.k != 0;
    }
    friend PK_MEMBER bool all(mask_t a) {
        if constexpr (L > 16) return all(a.k.lo & a.k.hi);
        else return a.k == B((1u << L) - 1);
    }
};
template <int L> PK_FN mask_t<L / 2> lower(mask_t<L> a) {
    if constexpr (L > 16) return a.k.lo;
    else return mask_t<L / 2>::of(a.k & ((1u << L / 2) - 1));
}
template <int L> PK_FN mask_t<L / 2> upper(mask_t<L> a) {
    if constexpr (L > 16) return a.k.hi;
    else return mask_t<L / 2>::of(unsigned(a.k) >> L / 2);
}
template <int H> PK_FN mask_t<2 * H> join(mask_t<H> a, mask_t<H> b) {
    return mask_t<2 * H>::of(a, b);
}

namespace isa {  // the native types under the names that builtins take
typedef char qi16 __attribute__((vector_size(16)));
typedef short hi16 __attribute__((vector_size(32)));
typedef int si16 __attribute__((vector_size(64)));
typedef long long di8 __attribute__((vector_size(64)));
typedef float sf16 __attribute__((vector_size(64)));
typedef double df8 __attribute__((vector_size(64)));
}  // namespace isa

template <int P, class T, int L> PK_FN mask_t<L> compare(simd<T, L> a, simd<T, L> b) {
    using namespace isa;
    constexpr int F = P + (P == GE || P == GT ? 8 : 0);
    if constexpr (!whole<T, L>) return join(compare<P>(a.s.lo, b.s.lo), compare<P>(a.s.hi, b.s.hi));
    else if constexpr (traits<T>::is_float && sizeof(T) == 4)
        return mask_t<L>::of((uint16_t)__builtin_ia32_cmpps512_mask(a.s, b.s, F, (short)-1, 4));
    else if constexpr (traits<T>::is_float)
        return mask_t<L>::of((uint8_t)__builtin_ia32_cmppd512_mask(a.s, b.s, F, (char)-1, 4));
    else if constexpr (traits<T>::is_signed) {
        if constexpr (sizeof(T) == 1)
            return mask_t<L>::of(
                (uint16_t)__builtin_ia32_cmpb128_mask((qi16)a.s, (qi16)b.s, P, (short)-1));
        else if constexpr (sizeof(T) == 2)
            return mask_t<L>::of(
                (uint16_t)__builtin_ia32_cmpw256_mask((hi16)a.s, (hi16)b.s, P, (short)-1));
        else if constexpr (sizeof(T) == 4)
            return mask_t<L>::of(
                (uint16_t)__builtin_ia32_cmpd512_mask((si16)a.s, (si16)b.s, P, (short)-1));
        else
            return mask_t<L>::of(
                (uint8_t)__builtin_ia32_cmpq512_mask((di8)a.s, (di8)b.s, P, (char)-1));
    } else {
        if constexpr (sizeof(T) == 1)
            return mask_t<L>::of(
                (uint16_t)__builtin_ia32_ucmpb128_mask((qi16)a.s, (qi16)b.s, P, (short)-1));
        else if constexpr (sizeof(T) == 2)
            return mask_t<L>::of(
                (uint16_t)__builtin_ia32_ucmpw256_mask((hi16)a.s, (hi16)b.s, P, (short)-1));
        else if constexpr (sizeof(T) == 4)
            return mask_t<L>::of(
                (uint16_t)__builtin_ia32_ucmpd512_mask((si16)a.s, (si16)b.s, P, (short)-1));
        else
            return mask_t<L>::of(
                (uint8_t)__builtin_ia32_ucmpq512_mask((di8)a.s, (di8)b.s, P, (char)-1));
    }
}
template <class T, int L> PK_FN simd<T, L> choose(mask_t<L> m, simd<T, L> a, simd<T, L> b) {
    using namespace isa;
    typedef simd<T, L> R;
    typedef typename R::S S;
    if constexpr (!whole<T, L>)
        return R::of(choose(lower(m), a.s.lo, b.s.lo), choose(upper(m), a.s.hi, b.s.hi));
    else if constexpr (sizeof(T) == 1)
        return R::of((S)__builtin_ia32_blendmb_128_mask((qi16)b.s, (qi16)a.s, m.k));
    else if constexpr (sizeof(T) == 2)
        return R::of((S)__builtin_ia32_blendmw_256_mask((hi16)b.s, (hi16)a.s, m.k));
    else if constexpr (traits<T>::is_float && sizeof(T) == 4)
        return R::of(__builtin_ia32_blendmps_512_mask(b.s, a.s, m.k));
    else if constexpr (traits<T>::is_float)
        return R::of(__builtin_ia32_blendmpd_512_mask(b.s, a.s, m.k));
    else if constexpr (sizeof(T) == 4)
        return R::of((S)__builtin_ia32_blendmd_512_mask((si16)b.s, (si16)a.s, m.k));
    else return R::of((S)__builtin_ia32_blendmq_512_mask((di8)b.s, (di8)a.s, m.k));
}
#else
template <int L> struct mask_t {
    simd<int32_t, L> m;
    mask_t() = default;
    PK_MEMBER mask_t(bool b) : m(b ? -1 : 0) {}
    static PK_MEMBER mask_t of(simd<int32_t, L> m) {
        mask_t r;
        r.m = m;
        return r;
    }
    PK_MEMBER bool operator[](int i) const { return m[i] != 0; }
    friend PK_MEMBER mask_t operator&(mask_t a, mask_t b) { return of(a.m & b.m); }
    friend PK_MEMBER mask_t operator|(mask_t a, mask_t b) { return of(a.m | b.m); }
    friend PK_MEMBER mask_t operator^(mask_t a, mask_t b) { return of(a.m ^ b.m); }
    friend PK_MEMBER mask_t operator~(mask_t a) { return of(~a.m); }
    friend PK_MEMBER bool any(mask_t a) {
        if constexpr (!whole<int32_t, L>) return any(mask_t<L / 2>::of(lower(a.m) | upper(a.m)));
#if __AVX__
        else if constexpr (L == 8)
            return __builtin_ia32_movmskps256((native_t<float, L>)a.m.s) != 0;
#endif
#if __SSE2__
        else if constexpr (L == 4) return __builtin_ia32_movmskps((native_t<float, L>)a.m.s) != 0;
#endif
        else {
            int32_t r = 0;
            for (int i = 0; i < L; i++) r |= a.m.s[i];
            return r != 0;
        }
    }
    friend PK_MEMBER bool all(mask_t a) { return !any(~a); }
};
template <int H> PK_FN mask_t<2 * H> join(mask_t<H> a, mask_t<H> b) {
    return mask_t<2 * H>::of(join(a.m, b.m));
}
template <int L> PK_FN mask_t<L / 2> lower(mask_t<L> a) { return mask_t<L / 2>::of(lower(a.m)); }
template <int L> PK_FN mask_t<L / 2> upper(mask_t<L> a) { return mask_t<L / 2>::of(upper(a.m)); }

template <int P, class T, int L>
PK_FN simd<sint_of<T>, L> compare_lanes(simd<T, L> a, simd<T, L> b) {
    typedef simd<sint_of<T>, L> R;
    typedef typename R::S S;
    if constexpr (!whole<T, L>)
        return R::of(compare_lanes<P>(a.s.lo, b.s.lo), compare_lanes<P>(a.s.hi, b.s.hi));
    else if constexpr (P == EQ) return R::of((S)(a.s == b.s));
    else if constexpr (P == NE) return R::of((S)(a.s != b.s));
    else if constexpr (P == LT) return R::of((S)(a.s < b.s));
    else if constexpr (P == LE) return R::of((S)(a.s <= b.s));
    else if constexpr (P == GT) return R::of((S)(a.s > b.s));
    else return R::of((S)(a.s >= b.s));
}
template <int P, class T, int L> PK_FN mask_t<L> compare(simd<T, L> a, simd<T, L> b) {
    return mask_t<L>::of(cast<int32_t>(compare_lanes<P>(a, b)));
}
template <class T, int L>
PK_FN simd<T, L> choose_lanes(simd<sint_of<T>, L> m, simd<T, L> a, simd<T, L> b) {
    if constexpr (!whole<T, L>)
        return simd<T, L>::of(choose_lanes(m.s.lo, a.s.lo, b.s.lo),
                              choose_lanes(m.s.hi, a.s.hi, b.s.hi));
    else return simd<T, L>::of(m.s ? a.s : b.s);
}
template <class T, int L> PK_FN simd<T, L> choose(mask_t<L> m, simd<T, L> a, simd<T, L> b) {
    return choose_lanes(cast<sint_of<T>>(m.m), a, b);
}
#endif

typedef mask_t<16> mask;
template <int L> PK_FN mask_t<L> operator!(mask_t<L> a) { return ~a; }
template <int L> PK_FN mask_t<L> operator==(mask_t<L> a, mask_t<L> b) { return ~(a ^ b); }
template <int L> PK_FN mask_t<L> operator<(mask_t<L> a, mask_t<L> b) { return ~a & b; }
template <int L> PK_FN mask_t<L> operator<=(mask_t<L> a, mask_t<L> b) { return ~a | b; }
template <int L> PK_FN mask_t<L> operator>(mask_t<L> a, mask_t<L> b) { return a & ~b; }
template <int L> PK_FN mask_t<L> operator>=(mask_t<L> a, mask_t<L> b) { return a | ~b; }
template <int L> PK_FN mask_t<L> operator!=(mask_t<L> a, mask_t<L> b) { return a ^ b; }
template <int L> PK_FN mask_t<L> &operator&=(mask_t<L> &a, mask_t<L> b) { return a = a & b; }
template <int L> PK_FN mask_t<L> &operator|=(mask_t<L> &a, mask_t<L> b) { return a = a | b; }
template <int L> PK_FN mask_t<L> &operator^=(mask_t<L> &a, mask_t<L> b) { return a = a ^ b; }
template <int L> PK_FN mask_t<L> select(mask_t<L> m, mask_t<L> a, mask_t<L> b) {
    return (m & a) | (~m & b);
}

typedef simd<float, 16> f32x16;
typedef simd<double, 16> f64x16;
typedef simd<int8_t, 16> i8x16;
typedef simd<int16_t, 16> i16x16;
typedef simd<int32_t, 16> i32x16;
typedef simd<int64_t, 16> i64x16;
typedef simd<uint8_t, 16> u8x16;
typedef simd<uint16_t, 16> u16x16;
typedef simd<uint32_t, 16> u32x16;
typedef simd<uint64_t, 16> u64x16;
template <class T, int L> struct vec_of {
    typedef simd<T, L> type;
};
template <int L> struct vec_of<bool, L> {
    typedef mask_t<L> type;
};
template <class T, int L = 16> using vec = typename vec_of<T, L>::type;

// All of L lanes on, known when the kernel is compiled.
template <int L> struct all_of {
    PK_MEMBER operator mask_t<L>() const { return mask_t<L>(true); }
};
typedef all_of<16> all_lanes;
template <int L> PK_FN all_of<L> operator&(all_of<L>, all_of<L>) { return {}; }
template <int L> PK_FN mask_t<L> operator&(all_of<L>, mask_t<L> m) { return m; }
template <int L> PK_FN mask_t<L> operator&(mask_t<L> m, all_of<L>) { return m; }
template <int L> PK_FN all_of<L / 2> lower(all_of<L>) { return {}; }
template <int L> PK_FN all_of<L / 2> upper(all_of<L>) { return {}; }
template <class T, int L> PK_FN simd<T, L> select(all_of<L>, simd<T, L> a, simd<T, L>) { return a; }

// x in as many lanes as the mask has, and the numbers of those lanes.
template <class T, int L> PK_FN vec<T, L> splat(T x, mask_t<L>) { return x; }
template <class T, int L> PK_FN vec<T, L> splat(T x, all_of<L>) { return x; }
template <class T, class U, int L> PK_FN vec<T, L> splat(T x, simd<U, L>) { return x; }
template <int L> PK_FN simd<int64_t, L> lane_index(mask_t<L>) { return iota<int64_t, L>(); }
template <int L> PK_FN simd<int64_t, L> lane_index(all_of<L>) { return iota<int64_t, L>(); }
PK_LAZY i64x16 lane_index() { return iota<int64_t, 16>(); }

// The mask of the first n lanes.
PK_LAZY mask first(int64_t n) {
#if PK_AVX512
    return mask::of(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1);
#else
    int32_t k = int32_t(n > 16 ? 16 : n < 0 ? 0 : n);
    return iota<int32_t, 16>() < i32x16(k);
#endif
}

// The same where 0 < n < 16 is known.
PK_LAZY mask first_few(int64_t n) {
#if PK_AVX512
    return mask::of((1u << n) - 1);
#else
    return iota<int32_t, 16>() < i32x16(int32_t(n));
#endif
}

// Memory. A lane that is off is not touched, and loads as 0.
template <class T, int L> PK_FN simd<T, L> load_whole(const T *p) {
    typedef simd<T, L> R;
    if constexpr (whole<T, L>)
        return R::of((typename R::S) * (const typename loose<T, L>::type *)p);
    else return R::of(load_whole<T, L / 2>(p), load_whole<T, L / 2>(p + L / 2));
}
template <class T, int L> PK_FN void store_whole(T *p, simd<T, L> v) {
    if constexpr (whole<T, L>) *(typename loose<T, L>::type *)p = v.s;
    else store_whole(p, v.s.lo), store_whole(p + L / 2, v.s.hi);
}
template <class T, int L> PK_FN simd<T, L> load_masked(const T *p, mask_t<L> m) {
    typedef simd<T, L> R;
    typedef typename R::S S;
#if PK_AVX512
    using namespace isa;
    if constexpr (!whole<T, L>)
        return R::of(load_masked<T, L / 2>(p, lower(m)),
                     load_masked<T, L / 2>(p + L / 2, upper(m)));
    else if constexpr (sizeof(T) == 1)
        return R::of((S)__builtin_ia32_loaddquqi128_mask((const char *)p, qi16{}, m.k));
    else if constexpr (sizeof(T) == 2)
        return R::of((S)__builtin_ia32_loaddquhi256_mask((const short *)p, hi16{}, m.k));
    else if constexpr (sizeof(T) == 4)
        return R::of((S)__builtin_ia32_loadups512_mask((const float *)p, sf16{}, m.k));
    else return R::of((S)__builtin_ia32_loadupd512_mask((const double *)p, df8{}, m.k));
#else
#if __AVX2__
    if constexpr (whole<T, L> && sizeof(T) * L == 32 && sizeof(T) >= 4) {
        typedef int si8 __attribute__((vector_size(32)));
        typedef long long di4 __attribute__((vector_size(32)));
        if constexpr (sizeof(T) == 4)
            return R::of((S)__builtin_ia32_maskloadd256((const si8 *)p, (si8)m.m.s));
        else
            return R::of((S)__builtin_ia32_maskloadq256((const di4 *)p, (di4)cast<int64_t>(m.m).s));
    } else
#endif
        if constexpr (!whole<T, L>)
        return R::of(load_masked<T, L / 2>(p, lower(m)),
                     load_masked<T, L / 2>(p + L / 2, upper(m)));
    else {
        S r = {};
        for (int i = 0; i < L; i++)
            if (m[i]) r[i] = ((const typename loose<T, 1>::type *)p)[i][0];
        return R::of(r);
    }
#endif
}
template <class T, int L> PK_FN void store_masked(T *p, simd<T, L> v, mask_t<L> m) {
#if PK_AVX512
    using namespace isa;
    if constexpr (!whole<T, L>)
        store_masked(p, v.s.lo, lower(m)), store_masked(p + L / 2, v.s.hi, upper(m));
    else if constexpr (sizeof(T) == 1) __builtin_ia32_storedquqi128_mask((char *)p, (qi16)v.s, m.k);
    else if constexpr (sizeof(T) == 2)
        __builtin_ia32_storedquhi256_mask((short *)p, (hi16)v.s, m.k);
    else if constexpr (sizeof(T) == 4) __builtin_ia32_storeups512_mask((float *)p, (sf16)v.s, m.k);
    else __builtin_ia32_storeupd512_mask((double *)p, (df8)v.s, m.k);
#else
#if __AVX2__
    if constexpr (whole<T, L> && sizeof(T) * L == 32 && sizeof(T) >= 4) {
        typedef int si8 __attribute__((vector_size(32)));
        typedef long long di4 __attribute__((vector_size(32)));
        if constexpr (sizeof(T) == 4) __builtin_ia32_maskstored256((si8 *)p, (si8)m.m.s, (si8)v.s);
        else __builtin_ia32_maskstoreq256((di4 *)p, (di4)cast<int64_t>(m.m).s, (di4)v.s);
    } else
#endif
        if constexpr (!whole<T, L>)
        store_masked(p, lower(v), lower(m)), store_masked(p + L / 2, upper(v), upper(m));
    else
        for (int i = 0; i < L; i++)
            if (m[i]) ((typename loose<T, 1>::type *)p)[i][0] = v.s[i];
#endif
}
template <class T, int L> PK_FN simd<T, L> load(const T *p, all_of<L>) {
    return load_whole<T, L>(p);
}
template <class T, int L> PK_FN simd<T, L> load(const T *p, mask_t<L> m) {
    return load_masked<T, L>(p, m);
}
template <class T, int L> PK_FN void store(T *p, simd<T, L> v, all_of<L>) { store_whole(p, v); }
template <class T, int L> PK_FN void store(T *p, simd<T, L> v, mask_t<L> m) {
    store_masked(p, v, m);
}

// Booleans are bytes of 0 and 1.
template <int L> PK_FN simd<uint8_t, L> mask_bytes(mask_t<L> m) {
    return choose<uint8_t, L>(m, 1, 0);
}
template <int L> PK_FN mask_t<L> load(const bool *p, all_of<L> m) {
    return load((const uint8_t *)p, m) != 0;
}
template <int L> PK_FN mask_t<L> load(const bool *p, mask_t<L> m) {
    return load((const uint8_t *)p, m) != 0;
}
template <int L> PK_FN void store(bool *p, mask_t<L> v, all_of<L> m) {
    store((uint8_t *)p, mask_bytes(v), m);
}
template <int L> PK_FN void store(bool *p, mask_t<L> v, mask_t<L> m) {
    store((uint8_t *)p, mask_bytes(v), m);
}

// Asks for the cache lines of what is loaded later.
template <class T, int L> PK_FN void prefetch(const T *p, all_of<L>) {
#pragma GCC unroll 16
    for (int i = 0; i < L; i += 64 / sizeof(T)) __builtin_prefetch(p + i);
}
template <class T, int L> PK_FN void prefetch(const T *p, mask_t<L>) { __builtin_prefetch(p); }

// A store past the caches where the address allows it; stream_fence() orders those before what
// follows.
template <class T, int L> PK_FN void stream_parts(T *p, simd<T, L> v) {
    if constexpr (!whole<T, L>) {
        stream_parts(p, v.s.lo);
        stream_parts(p + L / 2, v.s.hi);
    } else {
#if PK_AVX512
        typedef long long words __attribute__((vector_size(64), may_alias));
        if constexpr (sizeof(T) * L == 64) __builtin_ia32_movntdq512((words *)p, (words)v.s);
        else
#endif
            store_whole<T, L>(p, v);
    }
}
template <class T, int L> PK_FN void stream(T *p, simd<T, L> v, all_of<L>) {
    if ((uintptr_t)p & 63) store_whole(p, v);
    else stream_parts(p, v);
}
template <class T, int L> PK_FN void stream(T *p, simd<T, L> v, mask_t<L> m) { store(p, v, m); }
template <int L, class M> PK_FN void stream(bool *p, mask_t<L> v, M m) { store(p, v, m); }
PK_FN void stream_fence() {
#if PK_AVX512
    __builtin_ia32_sfence();
#endif
}

// Lane i is f(i) where the mask is on, else 0; f is not called for lanes that are off.
template <class T, class F, int L> PK_FN vec<T, L> gather(F f, mask_t<L> m) {
    T r[L];
    for (int i = 0; i < L; i++) r[i] = m[i] ? T(f(i)) : T(0);
    return load((const T *)r, all_of<L>{});
}
template <class T, class F, int L> PK_FN vec<T, L> gather(F f, all_of<L>) {
    T r[L];
    for (int i = 0; i < L; i++) r[i] = f(i);
    return load((const T *)r, all_of<L>{});
}
#if PK_AVX512
template <class T> PK_FN vec<T> gather_strided(const T *p, int64_t stride, mask on) {
    auto at = i64x16(stride) * lane_index();
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
}
#endif
template <int L, class T, class M> PK_FN vec<T, L> strided(const T *p, int64_t stride, M m) {
#if PK_AVX512
    if constexpr (sizeof(T) >= 4 && L > 16)
        return join(strided<L / 2>(p, stride, lower(m)),
                    strided<L / 2>(p + L / 2 * stride, stride, upper(m)));
    else if constexpr (sizeof(T) >= 4) return gather_strided(p, stride, m);
    else
#endif
        return gather<T>([&](int i) PK_INLINE { return p[i * stride]; }, m);
}
template <class T, int L> PK_FN vec<T, L> load_strided(const T *p, int64_t stride, all_of<L> m) {
    return strided<L>(p, stride, m);
}
template <class T, int L> PK_FN vec<T, L> load_strided(const T *p, int64_t stride, mask_t<L> m) {
    return strided<L>(p, stride, m);
}
template <class T, class V, int L>
PK_FN void store_strided(T *p, int64_t stride, V v, mask_t<L> m) {
    for (int i = 0; i < L; i++)
        if (m[i]) p[i * stride] = v[i];
}
template <class T, class V, int L> PK_FN void store_strided(T *p, int64_t stride, V v, all_of<L>) {
    for (int i = 0; i < L; i++) p[i * stride] = v[i];
}

// The value under f of all lanes, combined in the order of a tree: i with i + 32, then 16, 8, 4, 2
// and 1.
template <int n, class T, int L> PK_FN simd<T, L> shift_lanes(simd<T, L> x) {
    typedef simd<T, L> R;
    if constexpr (!whole<T, L>) {
        if constexpr (n == L / 2) return R::of(x.s.hi, x.s.hi);
        else return R::of(shift_lanes<n>(x.s.lo), x.s.hi);
    } else if constexpr (L == 16)  // i ^ n: one shuffle instruction without a constant in memory
        return R::of(__builtin_shufflevector(x.s, x.s, n, 1 ^ n, 2 ^ n, 3 ^ n, 4 ^ n, 5 ^ n, 6 ^ n,
                                             7 ^ n, 8 ^ n, 9 ^ n, 10 ^ n, 11 ^ n, 12 ^ n, 13 ^ n,
                                             14 ^ n, 15 ^ n));
    else if constexpr (L == 8)
        return R::of(
            __builtin_shufflevector(x.s, x.s, n, 1 ^ n, 2 ^ n, 3 ^ n, 4 ^ n, 5 ^ n, 6 ^ n, 7 ^ n));
    else if constexpr (L == 4)
        return R::of(__builtin_shufflevector(x.s, x.s, n, 1 ^ n, 2 ^ n, 3 ^ n));
    else return R::of(__builtin_shufflevector(x.s, x.s, n, n));
}
// The sixteen lanes that a longer fold begins with joining.
template <class T, int L, class F> PK_FN simd<T, 16> sixteen(simd<T, L> v, F f) {
    if constexpr (L > 16) return sixteen(f(v.s.lo, v.s.hi), f);
    else return v;
}
template <class T, int L, class F> PK_FN T fold(simd<T, L> v, F f) {
    if constexpr (L > 16) return fold(sixteen(v, f), f);
    else {
        v = f(v, shift_lanes<8>(v));
        v = f(v, shift_lanes<4>(v));
        v = f(v, shift_lanes<2>(v));
        v = f(v, shift_lanes<1>(v));
        return v[0];
    }
}
template <int n> PK_FN mask shift_lanes(mask v) {
    return shift_lanes<n>(mask_bytes(v)) != u8x16(0);
}
template <int L, class F> PK_FN bool fold(mask_t<L> v, F f) {
    if constexpr (L > 16) return fold(f(lower(v), upper(v)), f);
    else {
        v = f(v, shift_lanes<8>(v));
        v = f(v, shift_lanes<4>(v));
        v = f(v, shift_lanes<2>(v));
        return f(v, shift_lanes<1>(v))[0];
    }
}

// The first lanes of a value that has as many or more.
template <int N, class T, int L> PK_FN simd<T, N> front(simd<T, L> x) {
    if constexpr (N == L) return x;
    else return front<N>(lower(x));
}
template <int N, int L> PK_FN mask_t<N> front(mask_t<L> x) {
    if constexpr (N == L) return x;
    else return front<N>(lower(x));
}
template <class V> PK_FN V with_front(V, V front) { return front; }
template <class V, class W> PK_FN V with_front(V x, W front) {
    return join(with_front(lower(x), front), upper(x));
}

// A running fold of L lanes, each on its own until result() joins them. A vector shorter than that
// goes into the first lanes.
template <class T, int L, class F> struct folding_by {
    typedef T value;
    vec<T, L> lanes;
    F f;
    template <int N> PK_MEMBER void take(vec<T, N> x, all_of<N>) {
        lanes = with_front(lanes, f(front<N>(lanes), x));
    }
    template <int N> PK_MEMBER void take(vec<T, N> x, mask_t<N> m) {
        auto old = front<N>(lanes);
        lanes = with_front(lanes, select(m, f(old, x), old));
    }
    PK_MEMBER F combine() const { return f; }
    PK_MEMBER auto joined() const { return sixteen(lanes, f); }
    PK_MEMBER T result() const { return fold(lanes, f); }
};
template <class T, int L = 16, class F> PK_FN folding_by<T, L, F> folding(T identity, F f) {
    return {identity, f};
}

// m where neither a nor b is NaN.
template <class T, int L> PK_FN mask_t<L> and_ordered(mask_t<L> m, simd<T, L> a, simd<T, L> b) {
#if PK_AVX512
    if constexpr (!whole<T, L>)
        return join(and_ordered(lower(m), a.s.lo, b.s.lo), and_ordered(upper(m), a.s.hi, b.s.hi));
    else if constexpr (sizeof(T) == 4)
        return mask_t<L>::of((uint16_t)__builtin_ia32_cmpps512_mask(a.s, b.s, 7, (short)m.k, 4));
    else return mask_t<L>::of((uint8_t)__builtin_ia32_cmppd512_mask(a.s, b.s, 7, (char)m.k, 4));
#else
    return m & (a == a) & (b == b);
#endif
}
// The same for the greatest or least float. One instruction takes a vector, one tests two for NaN:
// a single NaN makes the result NaN.
template <class T, int L, bool most> struct extreme {
    typedef T value;
    static constexpr T bound = T(most ? -__builtin_inf() : __builtin_inf());
    simd<T, L> lanes = bound;
    mask_t<(L > 16 ? L / 2 : L)> ordered = true;

    template <class V> static PK_MEMBER V better(V a, V b) {
        if constexpr (most) return greater(a, b);
        else return lesser(a, b);
    }
    template <int N> PK_MEMBER void take(simd<T, N> x, all_of<N>) {
        lanes = with_front(lanes, better(front<N>(lanes), x));
        if constexpr (N > 16)
            ordered = with_front(ordered, and_ordered(front<N / 2>(ordered), lower(x), upper(x)));
        else ordered = with_front(ordered, and_ordered(front<N>(ordered), x, x));
    }
    template <int N> PK_MEMBER void take(simd<T, N> x, mask_t<N> m) {
        take(choose(m, x, simd<T, N>(bound)), all_of<N>{});
    }
    static PK_MEMBER auto combine() {
        return [](auto a, auto b) PK_INLINE { return better(a, b); };
    }
    PK_MEMBER simd<T, 16> joined() const {
        return all(ordered) ? sixteen(lanes, combine()) : simd<T, 16>(T(__builtin_nan("")));
    }
    PK_MEMBER T result() const {
        T best = fold(lanes, combine());
        return all(ordered) ? best : T(__builtin_nan(""));
    }
};
template <class T, int L = 16> using largest = extreme<T, L, true>;
template <class T, int L = 16> using smallest = extreme<T, L, false>;

// body(i, all_of<L>{}) for each full vector or pack of [begin, end), then vectors of 16 lanes:
// body(i, first(rest)).
template <int L = 16, class F> PK_FN void lanes(int64_t begin, int64_t end, F body) {
    int64_t i = begin;
    for (; i + L <= end; i += L) body(i, all_of<L>{});
    if constexpr (L == 16) {
        if (i < end) body(i, first_few(end - i));
    } else
        for (; i < end; i += 16) body(i, first(end - i));
}

// The same, with the lanes up to a cache line of p, where element `begin` will lie, going first, so
// that all full vectors can be streamed.
template <int L = 16, class T, class F>
PK_FN void aligned_lanes(const T *p, int64_t begin, int64_t end, F body) {
    static_assert(sizeof(T) >= 4, "a cache line has more elements than a vector");
    int64_t head = (uintptr_t(0) - (uintptr_t)p) % 64 / sizeof(T);
    if (head > end - begin) head = end - begin;
    if (head > 0) body(begin, first_few(head));
    lanes<L>(begin + head, end, body);
}

// The vectors of a row of n elements, n known: body(i, m, lane_set<k>{}) with no loop, so that
// values of vector k can stay in a register of their own.
template <int k> struct lane_set {
    static constexpr int index = k;
    PK_MEMBER constexpr operator int() const { return k; }
};
template <int n, int k = 0, class F> PK_FN void fixed_lanes(F body) {
    if constexpr (16 * k + 16 <= n) {
        body(int64_t(16 * k), all_lanes{}, lane_set<k>{});
        fixed_lanes<n, k + 1>(body);
    } else if constexpr (16 * k < n) body(int64_t(16 * k), first(n - 16 * k), lane_set<k>{});
}

// Arithmetic with one rounding, on one part or on all lanes.
#define PK_BY_PARTS1(f)                                                                            \
    if constexpr (!whole<T, L>) return simd<T, L>::of(f(x.s.lo), f(x.s.hi));                       \
    else
#define PK_BY_LANES1(f)                                                                            \
    {                                                                                              \
        simd<T, L> r;                                                                              \
        for (int i = 0; i < L; i++) r.s[i] = f(x.s[i]);                                            \
        return r;                                                                                  \
    }
#define PK_ROUND(name, imm, scalar)                                                                \
    template <class T, int L> PK_FN simd<T, L> name(simd<T, L> x) {                                \
        PK_BY_PARTS1(name)                                                                         \
        PK_ROUND512(imm)                                                                           \
        PK_ROUND256(imm)                                                                           \
        PK_ROUND128(imm)                                                                           \
        if constexpr (sizeof(T) == 4) PK_BY_LANES1(__builtin_##scalar##f)                          \
        else PK_BY_LANES1(__builtin_##scalar)                                                      \
    }                                                                                              \
    PK_FN float name(float x) { return __builtin_##scalar##f(x); }                                 \
    PK_FN double name(double x) { return __builtin_##scalar(x); }
#if PK_AVX512
#define PK_ROUND512(imm)                                                                           \
    if constexpr (sizeof(T) * L == 64 && sizeof(T) == 4)                                           \
        return simd<T, L>::of(__builtin_ia32_rndscaleps_mask(x.s, imm, x.s, (short)-1, 4));        \
    else if constexpr (sizeof(T) * L == 64)                                                        \
        return simd<T, L>::of(__builtin_ia32_rndscalepd_mask(x.s, imm, x.s, (char)-1, 4));         \
    else
#else
#define PK_ROUND512(imm)
#endif
#if __AVX__
#define PK_ROUND256(imm)                                                                           \
    if constexpr (sizeof(T) * L == 32 && sizeof(T) == 4)                                           \
        return simd<T, L>::of(__builtin_ia32_roundps256(x.s, imm));                                \
    else if constexpr (sizeof(T) * L == 32)                                                        \
        return simd<T, L>::of(__builtin_ia32_roundpd256(x.s, imm));                                \
    else
#else
#define PK_ROUND256(imm)
#endif
#if __SSE4_1__
#define PK_ROUND128(imm)                                                                           \
    if constexpr (sizeof(T) * L == 16 && sizeof(T) == 4)                                           \
        return simd<T, L>::of(__builtin_ia32_roundps(x.s, imm));                                   \
    else if constexpr (sizeof(T) * L == 16)                                                        \
        return simd<T, L>::of(__builtin_ia32_roundpd(x.s, imm));                                   \
    else
#else
#define PK_ROUND128(imm)
#endif
PK_ROUND(rint, 4, rint)
PK_ROUND(floor, 9, floor)
PK_ROUND(ceil, 10, ceil)
PK_ROUND(trunc, 11, trunc)

template <class T, int L> PK_FN simd<T, L> sqrt(simd<T, L> x) {
    PK_BY_PARTS1(sqrt)
#if __clang__
    return simd<T, L>::of(__builtin_elementwise_sqrt(x.s));
#else
#if PK_AVX512
    if constexpr (sizeof(T) * L == 64 && sizeof(T) == 4)
        return simd<T, L>::of(__builtin_ia32_sqrtps512_mask(x.s, x.s, (short)-1, 4));
    else if constexpr (sizeof(T) * L == 64)
        return simd<T, L>::of(__builtin_ia32_sqrtpd512_mask(x.s, x.s, (char)-1, 4));
    else
#endif
#if __AVX__
        if constexpr (sizeof(T) * L == 32 && sizeof(T) == 4)
        return simd<T, L>::of(__builtin_ia32_sqrtps256(x.s));
    else if constexpr (sizeof(T) * L == 32) return simd<T, L>::of(__builtin_ia32_sqrtpd256(x.s));
    else
#endif
#if __SSE2__
        if constexpr (sizeof(T) * L == 16 && sizeof(T) == 4)
        return simd<T, L>::of(__builtin_ia32_sqrtps(x.s));
    else if constexpr (sizeof(T) * L == 16) return simd<T, L>::of(__builtin_ia32_sqrtpd(x.s));
    else
#endif
        if constexpr (sizeof(T) == 4)
        PK_BY_LANES1(__builtin_sqrtf)
    else PK_BY_LANES1(__builtin_sqrt)
#endif
}
PK_FN float sqrt(float x) { return __builtin_sqrtf(x); }
PK_FN double sqrt(double x) { return __builtin_sqrt(x); }

template <class T, int L> static __attribute__((noinline, unused)) simd<T, L>
fused_lanes(simd<T, L> x, simd<T, L> y, simd<T, L> z) {
    for (int i = 0; i < L; i++)
        if constexpr (sizeof(T) == 4) z.s[i] = __builtin_fmaf(x.s[i], y.s[i], z.s[i]);
        else z.s[i] = __builtin_fma(x.s[i], y.s[i], z.s[i]);
    return z;
}
template <class T, int L> PK_FN simd<T, L> fused(simd<T, L> x, simd<T, L> y, simd<T, L> z) {
    if constexpr (!whole<T, L>)
        return simd<T, L>::of(fused(x.s.lo, y.s.lo, z.s.lo), fused(x.s.hi, y.s.hi, z.s.hi));
    else {
#if PK_AVX512
        if constexpr (sizeof(T) * L == 64 && sizeof(T) == 4)
            return simd<T, L>::of(__builtin_ia32_vfmaddps512_mask(x.s, y.s, z.s, (short)-1, 4));
        else if constexpr (sizeof(T) * L == 64)
            return simd<T, L>::of(__builtin_ia32_vfmaddpd512_mask(x.s, y.s, z.s, (char)-1, 4));
        else
#endif
#if __clang__
            return simd<T, L>::of(__builtin_elementwise_fma(x.s, y.s, z.s));
#elif __FMA__
        if constexpr (sizeof(T) * L == 32 && sizeof(T) == 4)
            return simd<T, L>::of(__builtin_ia32_vfmaddps256(x.s, y.s, z.s));
        else if constexpr (sizeof(T) * L == 32)
            return simd<T, L>::of(__builtin_ia32_vfmaddpd256(x.s, y.s, z.s));
        else if constexpr (sizeof(T) * L == 16 && sizeof(T) == 4)
            return simd<T, L>::of(__builtin_ia32_vfmaddps(x.s, y.s, z.s));
        else if constexpr (sizeof(T) * L == 16)
            return simd<T, L>::of(__builtin_ia32_vfmaddpd(x.s, y.s, z.s));
        else
#endif
        return fused_lanes(x, y, z);
    }
}
template <class T, int L> PK_FN simd<T, L> fma(simd<T, L> x, simd<T, L> y, simd<T, L> z) {
    return fused(x, y, z);
}
PK_FN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
PK_FN double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

// a < b ? a : b and a > b ? a : b: one instruction for floats; where either is NaN, and for two
// zeros, b.
#define PK_MINMAX(name, op, x86, order)                                                            \
    template <class T, int L> PK_FN simd<T, L> name(simd<T, L> a, simd<T, L> b) {                  \
        if constexpr (!whole<T, L>)                                                                \
            return simd<T, L>::of(name(a.s.lo, b.s.lo), name(a.s.hi, b.s.hi));                     \
        else if constexpr (!traits<T>::is_float) return simd<T, L>::of(a.s op b.s ? a.s : b.s);    \
        else {                                                                                     \
            PK_MINMAX512(x86)                                                                      \
            PK_MINMAX256(x86) PK_MINMAX128(x86) return simd<T, L>::of(a.s op b.s ? a.s : b.s);     \
        }                                                                                          \
    }
#if PK_AVX512
#define PK_MINMAX512(x86)                                                                          \
    if constexpr (sizeof(T) * L == 64 && sizeof(T) == 4)                                           \
        return simd<T, L>::of(__builtin_ia32_##x86##ps512_mask(a.s, b.s, b.s, (short)-1, 4));      \
    else if constexpr (sizeof(T) * L == 64)                                                        \
        return simd<T, L>::of(__builtin_ia32_##x86##pd512_mask(a.s, b.s, b.s, (char)-1, 4));       \
    else
#else
#define PK_MINMAX512(x86)
#endif
#if __AVX__
#define PK_MINMAX256(x86)                                                                          \
    if constexpr (sizeof(T) * L == 32 && sizeof(T) == 4)                                           \
        return simd<T, L>::of(__builtin_ia32_##x86##ps256(a.s, b.s));                              \
    else if constexpr (sizeof(T) * L == 32)                                                        \
        return simd<T, L>::of(__builtin_ia32_##x86##pd256(a.s, b.s));                              \
    else
#else
#define PK_MINMAX256(x86)
#endif
#if __SSE2__
#define PK_MINMAX128(x86)                                                                          \
    if constexpr (sizeof(T) * L == 16 && sizeof(T) == 4)                                           \
        return simd<T, L>::of(__builtin_ia32_##x86##ps(a.s, b.s));                                 \
    else if constexpr (sizeof(T) * L == 16)                                                        \
        return simd<T, L>::of(__builtin_ia32_##x86##pd(a.s, b.s));                                 \
    else
#else
#define PK_MINMAX128(x86)
#endif
PK_MINMAX(lesser, <, min, )
PK_MINMAX(greater, >, max, )

template <class T, int L> PK_FN simd<T, L> maximum_of(simd<T, L> a, simd<T, L> b) {
    if constexpr (traits<T>::is_float) return choose(compare<NE>(a, a), a, greater(a, b));
    else return greater(a, b);
}
template <class T, int L> PK_FN simd<T, L> minimum_of(simd<T, L> a, simd<T, L> b) {
    if constexpr (traits<T>::is_float) return choose(compare<NE>(a, a), a, lesser(a, b));
    else return lesser(a, b);
}

template <class T, int L> PK_FN simd<T, L> abs(simd<T, L> x) {
    if constexpr (traits<T>::is_float)
        return bits<T>(bits<uint_of<T>>(x) & simd<uint_of<T>, L>(uint_of<T>(-1) >> 1));
    else if constexpr (traits<T>::is_signed) return choose(compare<LT>(x, simd<T, L>(0)), -x, x);
    else return x;
}
// |x| with the sign of s.
template <class T, int L> PK_FN simd<T, L> sign_from(simd<T, L> x, simd<T, L> s) {
    typedef simd<uint_of<T>, L> U;
    U sign = uint_of<T>(1) << (8 * sizeof(T) - 1);
#if PK_AVX512
    if constexpr (!whole<T, L>)
        return simd<T, L>::of(sign_from(x.s.lo, s.s.lo), sign_from(x.s.hi, s.s.hi));
    else if constexpr (sizeof(T) * L == 64) {
        typedef isa::si16 I;
        return simd<T, L>::of((native_t<T, L>)__builtin_ia32_pternlogd512_mask(
            (I)sign.s, (I)s.s, (I)x.s, 0xca, (short)-1));
    } else
#endif
        return bits<T>((bits<uint_of<T>>(x) & ~sign) | (bits<uint_of<T>>(s) & sign));
}
template <class T, int L> PK_FN mask_t<L> isnan(simd<T, L> x) {
    if constexpr (traits<T>::is_float) return compare<NE>(x, x);
    else return mask_t<L>(false);
}
template <class T, int L> PK_FN mask_t<L> isinf(simd<T, L> x) {
    if constexpr (traits<T>::is_float) return compare<EQ>(abs(x), simd<T, L>(T(__builtin_inf())));
    else return mask_t<L>(false);
}
template <class T, int L> PK_FN mask_t<L> isfinite(simd<T, L> x) {
    if constexpr (traits<T>::is_float) return compare<LT>(abs(x), simd<T, L>(T(__builtin_inf())));
    else return mask_t<L>(true);
}
template <class T, int L> PK_FN mask_t<L> signbit(simd<T, L> x) {
    return compare<LT>(bits<sint_of<T>>(x), simd<sint_of<T>, L>(0));
}
template <class T, int L> PK_FN simd<T, L> rsqrt(simd<T, L> x) { return simd<T, L>(1) / sqrt(x); }

// Casts: a float outside an integer's range saturates, NaN gives 0, other floats are cut towards 0.
template <class To, class T, int L> PK_FN auto convert(simd<T, L> x) {
    if constexpr (__is_same(To, T)) return x;
    else if constexpr (__is_same(To, bool)) return compare<NE>(x, simd<T, L>(0));
    else if constexpr (!traits<T>::is_float || traits<To>::is_float) return cast<To>(x);
    else {
        constexpr int digits = sizeof(T) == 4 ? 24 : 53,
                      width = 8 * sizeof(To) - traits<To>::is_signed;
        constexpr To top = width <= digits
                               ? traits<To>::highest
                               : To(traits<To>::highest >> (width - digits) << (width - digits));
        auto z = choose(compare<EQ>(x, x), x, simd<T, L>(0));
        auto in = lesser(simd<T, L>(T(top)), greater(simd<T, L>(T(traits<To>::lowest)), z));
        if constexpr (sizeof(To) < 4) return cast<To>(cast<int32_t>(in));
        else if constexpr (width <= digits) return cast<To>(in);
        else
            return choose(compare<GT>(z, simd<T, L>(T(top))), simd<To, L>(traits<To>::highest),
                          cast<To>(in));
    }
}
template <class To, int L> PK_FN vec<To, L> convert(mask_t<L> m) {
    if constexpr (__is_same(To, bool)) return m;
    else return choose(m, simd<To, L>(1), simd<To, L>(0));
}

// The same for scalars.
template <class T> struct is_simd {
    typedef T scalar;
};
template <class T, int L> struct is_simd<simd<T, L>> {};
template <int L> struct is_simd<mask_t<L>> {};
template <int L> struct is_simd<all_of<L>> {};
template <class T> using scalar = typename is_simd<T>::scalar;
template <class T> PK_FN scalar<T> maximum(T a, T b) { return a != a || a > b ? a : b; }
template <class T> PK_FN scalar<T> minimum(T a, T b) { return a != a || a < b ? a : b; }
template <class T> PK_FN scalar<T> max_ignore_nan(T a, T b) { return a > b ? a : b; }
template <class T> PK_FN scalar<T> min_ignore_nan(T a, T b) { return a < b ? a : b; }
template <class T> PK_FN scalar<T> select(bool m, T a, T b) { return m ? a : b; }
template <class T, int L> PK_FN simd<scalar<T>, L> select(mask_t<L> m, T a, T b) {
    return choose<T, L>(m, a, b);
}
template <class To, class T> PK_FN decltype(To(scalar<T>())) convert(T x) {
    if constexpr (!traits<T>::is_float || traits<To>::is_float || __is_same(To, bool)) return To(x);
    else return convert<To>(simd<T, 16>(x))[0];
}
PK_FN float abs(float x) { return __builtin_fabsf(x); }
PK_FN double abs(double x) { return __builtin_fabs(x); }
template <class T> PK_FN scalar<T> abs(T x) { return x < T(0) ? T(uint_of<T>(0) - uint_of<T>(x)) : x; }
PK_FN float copysign(float x, float s) { return __builtin_copysignf(x, s); }
PK_FN double copysign(double x, double s) { return __builtin_copysign(x, s); }
PK_FN float rsqrt(float x) { return 1.0f / sqrt(x); }
PK_FN double rsqrt(double x) { return 1.0 / sqrt(x); }
PK_FN bool isnan(float x) { return x != x; }
PK_FN bool isnan(double x) { return x != x; }
PK_FN bool isinf(float x) { return abs(x) == __builtin_inff(); }
PK_FN bool isinf(double x) { return abs(x) == __builtin_inf(); }
PK_FN bool isfinite(float x) { return abs(x) < __builtin_inff(); }
PK_FN bool isfinite(double x) { return abs(x) < __builtin_inf(); }
PK_FN bool signbit(float x) { return __builtin_signbitf(x); }
PK_FN bool signbit(double x) { return __builtin_signbit(x); }

// Horner's rule by fma; the coefficient of the highest power comes first.
template <class T, int L> PK_FN simd<T, L> horner_from(simd<T, L>, simd<T, L> p) { return p; }
template <class T, int L, class... C>
PK_FN simd<T, L> horner_from(simd<T, L> x, simd<T, L> p, T c, C... rest) {
    return horner_from(x, fused(p, x, simd<T, L>(c)), T(rest)...);
}
template <class T, int L, class... C> PK_FN simd<T, L> horner(simd<T, L> x, T c, C... rest) {
    return horner_from(x, simd<T, L>(c), T(rest)...);
}
}  // namespace pk
#endif
