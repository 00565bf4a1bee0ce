// Arithmetic, rounding and conversion beyond the operators.
#ifndef PK_ARITHMETIC_H
#define PK_ARITHMETIC_H
#ifndef PK_LOOPS_H
#include "loops.h"
#endif

namespace pk {
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

// With a constant that is no NaN, one instruction: where a is NaN, the second operand is the result.
// A constant of +0 needs one more, as of two zeros the second operand is the result, too.
#define PK_MINMAX_CONSTANT(name, order)                                                            \
    template <class T, int L> PK_FN simd<T, L> name##_with(simd<T, L> a, T b) {                    \
        if constexpr (traits<T>::is_float) {                                                       \
            if (__builtin_constant_p(b) && b == b && b != T(0)) return order(simd<T, L>(b), a);    \
            if (__builtin_constant_p(b) && b == T(0) && !__builtin_signbit(b))                     \
                return order(simd<T, L>(b), a + simd<T, L>(b));                                    \
        }                                                                                          \
        return name##_of(a, simd<T, L>(b));                                                        \
    }
PK_MINMAX_CONSTANT(maximum, greater)
PK_MINMAX_CONSTANT(minimum, lesser)

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
