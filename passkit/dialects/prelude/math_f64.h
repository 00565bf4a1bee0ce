// float64 functions: exp, log, tanh and kin and sin, cos as vectors, the others lane by lane by the
// C library.
#ifndef PK_MATH_F64_H
#define PK_MATH_F64_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
template <int L> using f64 = simd<double, L>;
template <int L> using i64 = simd<int64_t, L>;

#define PK_FUNCTION_F64(name)                                                                      \
    template <int L> PK_FN f64<L> name(f64<L> x) {                                                 \
        if constexpr (whole<double, L>) return name##_part(x);                                     \
        else return f64<L>::of(name(x.s.lo), name(x.s.hi));                                        \
    }                                                                                              \
    PK_LAZY double name(double x) { return name##_part(f64<PK_BYTES / 8>(x))[0]; }

// Out of line, so that each function is compiled once for all its uses.
static __attribute__((noinline, unused)) void each(double (*f)(double), double *x) {
    for (int i = 0; i < 16; i++) x[i] = f(x[i]);
}
static __attribute__((noinline, unused)) void each(double (*f)(double, double), double *x,
                                                   const double *y) {
    for (int i = 0; i < 16; i++) x[i] = f(x[i], y[i]);
}
namespace libm {
extern "C" {
double exp2(double);
double log10(double);
double tan(double);
double sin(double);
double cos(double);
double asin(double);
double acos(double);
double atan(double);
double sinh(double);
double cosh(double);
double asinh(double);
double acosh(double);
double atanh(double);
double erfc(double);
double pow(double, double);
double atan2(double, double);
}
}  // namespace libm
#define PK_LIBM_F64(name)                                                                          \
    template <int L> PK_FN f64<L> name(f64<L> x) {                                                 \
        if constexpr (L > 16) return f64<L>::of(name(x.s.lo), name(x.s.hi));                       \
        else {                                                                                     \
            double r[16];                                                                          \
            store_whole(r, x);                                                                     \
            each(libm::name, r);                                                                   \
            return load_whole<double, 16>(r);                                                      \
        }                                                                                          \
    }                                                                                              \
    PK_LAZY double name(double x) { return libm::name(x); }
#define PK_LIBM2_F64(name)                                                                         \
    template <int L> PK_FN f64<L> name(f64<L> x, f64<L> y) {                                       \
        if constexpr (L > 16) return f64<L>::of(name(x.s.lo, y.s.lo), name(x.s.hi, y.s.hi));       \
        else {                                                                                     \
            double r[16], s[16];                                                                   \
            store_whole(r, x);                                                                     \
            store_whole(s, y);                                                                     \
            each(libm::name, r, s);                                                                \
            return load_whole<double, 16>(r);                                                      \
        }                                                                                          \
    }                                                                                              \
    PK_LAZY double name(double x, double y) { return libm::name(x, y); }
PK_LIBM_F64(exp2)
PK_LIBM_F64(log10)
PK_LIBM_F64(tan)
PK_LIBM_F64(asin)
PK_LIBM_F64(acos)
PK_LIBM_F64(atan)
PK_LIBM_F64(sinh)
PK_LIBM_F64(cosh)
PK_LIBM_F64(asinh)
PK_LIBM_F64(acosh)
PK_LIBM_F64(atanh)
PK_LIBM_F64(erfc)
PK_LIBM2_F64(pow)
PK_LIBM2_F64(atan2)

// p * 2^n for an integral n of -2000..2000, rounded once.
template <int L> PK_FN f64<L> scale(f64<L> p, f64<L> n) {
#if PK_AVX512
    return f64<L>::of(__builtin_ia32_scalefpd512_mask(p.s, n.s, p.s, (char)-1, 4));
#else
    i64<L> k = bits<int64_t>(n + f64<L>(0x1.8p52)) - i64<L>(0x4338000000000000),
           h = shift_right<1>(k);
    return p * bits<double>(shift_left<52>(h + i64<L>(1023))) *
           bits<double>(shift_left<52>(k - h + i64<L>(1023)));
#endif
}

// The same, but 0 where x is below the least, as in math_f32.h.
template <int L> PK_FN f64<L> scale_above([[maybe_unused]] double least, [[maybe_unused]] f64<L> x,
                                        f64<L> p, f64<L> n) {
#if PK_AVX512
    auto on = compare<NOT_LT>(x, f64<L>(least));
    return f64<L>::of(__builtin_ia32_scalefpd512_mask(p.s, n.s, isa::df8{}, (char)on.k, 4));
#else
    return scale(p, n);
#endif
}

// exp(x) = (1 + small) 2^n
template <int L> struct split_exp_f64 {
    f64<L> small, n;
};
template <int L> PK_FN split_exp_f64<L> exp_parts(f64<L> x) {
    f64<L> magic = 0x1.8p52;
    f64<L> n = fused(x, f64<L>(0x1.71547652b82fep0), magic) - magic;
    f64<L> r = fused(n, f64<L>(-0x1.62e42fefa38p-1), x);
    r = fused(n, f64<L>(-0x1.ef35793c7673p-45), r);
    return {fused(r * r,
                  horner(r, 0x1.af38dd9c22e2cp-26, 0x1.2891af936d82ap-22, 0x1.71de0d988c7bdp-19,
                         0x1.a019b8e9aa8e5p-16, 0x1.a01a01a7c9bd5p-13, 0x1.6c16c17894fdcp-10,
                         0x1.11111111109acp-7, 0x1.5555555553d4bp-5, 0x1.5555555555556p-3,
                         0x1.0000000000001p-1),
                  r),
            n};
}
template <int L> PK_FN f64<L> exp_part(f64<L> x) {
    f64<L> a = greater(f64<L>(-746), lesser(f64<L>(711), x));
    auto e = exp_parts(a);
    return scale_above(-745.5, a, e.small + f64<L>(1), e.n);
}
PK_FUNCTION_F64(exp)
template <int L> PK_FN f64<L> expm1_part(f64<L> x) {
    auto e = exp_parts(greater(f64<L>(-100), lesser(f64<L>(709.9), x)));
    f64<L> half = scale(f64<L>(0.5), e.n), y = fused(e.small, half, half - f64<L>(0.5));
    return choose(abs(x) < f64<L>(0x1p-54), x, y + y);
}
PK_FUNCTION_F64(expm1)
template <int L> PK_FN f64<L> sigmoid_part(f64<L> x) {
    f64<L> e = exp_part(-abs(x));
    return choose(x < f64<L>(0), e, f64<L>(1)) / (f64<L>(1) + e);
}
PK_FUNCTION_F64(sigmoid)
template <int L> PK_FN f64<L> tanh_part(f64<L> x) {
    f64<L> a = lesser(f64<L>(20), abs(x)), e = expm1_part(a + a);
    return sign_from(choose(a < f64<L>(0x1p-28), a, e / (e + f64<L>(2))), x);
}
PK_FUNCTION_F64(tanh)

// x = m 2^e with m in [0.75, 1.5); for 0, inf, NaN and x < 0, m + e is what log gives.
template <int L> struct split_log_f64 {
    f64<L> mantissa, exponent;
};
template <int L> PK_FN split_log_f64<L> log_parts(f64<L> x) {
#if PK_AVX512
    f64<L> m = f64<L>::of(__builtin_ia32_getmantpd512_mask(x.s, 11, x.s, (char)-1, 4));
    f64<L> e = f64<L>::of(__builtin_ia32_getexppd512_mask(x.s, x.s, (char)-1, 4));
    return {m, e - f64<L>::of(__builtin_ia32_getexppd512_mask(m.s, m.s, (char)-1, 4))};
#else
    auto odd = ~((x >= f64<L>(0x1p-1022)) & (x < f64<L>(__builtin_inf())));
    i64<L> b = bits<int64_t>(x);
    f64<L> less = 0.0;
    if (__builtin_expect(any(odd), 0)) {
        auto tiny = odd & (x > f64<L>(0)) & (x < f64<L>(1));
        b = choose(tiny, bits<int64_t>(x * f64<L>(0x1p52)),
                   choose(odd, i64<L>(0x3ff0000000000000), b));
        f64<L> special = choose(x > f64<L>(0), x, f64<L>(__builtin_nan("")));
        special = choose(x == f64<L>(0), f64<L>(-__builtin_inf()), special);
        less = choose(tiny, f64<L>(52), choose(odd, -special, less));
    }
    // k = b >> 52 as a double, without a shift of signed 64-bit lanes
    b = b - i64<L>(0x3fe8000000000000) + i64<L>(int64_t(2048) << 52);
    i64<L> k = bits<int64_t>(shift_right<52>(bits<uint64_t>(b)));
    f64<L> e = bits<double>(k + i64<L>(0x4330000000000000)) - f64<L>(0x1p52 + 2048);
    k = shift_left<52>(k) - i64<L>(int64_t(2048) << 52);
    return {bits<double>(b - i64<L>(int64_t(2048) << 52) - k + i64<L>(0x3fe8000000000000)),
            e - less};
#endif
}
// (log(1 + f) - f) / f^2
template <int L> PK_FN f64<L> log_tail(f64<L> f) {
    return horner(f, -0x1.e85c10fe7120ep-8, 0x1.c0bcfe660a589p-6, -0x1.8719e2c880be6p-5,
                  0x1.cf360d26720e4p-5, -0x1.d7b6951661e99p-5, 0x1.e23394867d0e1p-5,
                  -0x1.fe1ad20e6f4a5p-5, 0x1.10df31bcea346p-4, -0x1.249d1327db204p-4,
                  0x1.3b17f8cec6bb1p-4, -0x1.555537c9a32c8p-4, 0x1.745ceb9bce30ep-4,
                  -0x1.999997fc2f7ddp-4, 0x1.c71c72b456fbap-4, -0x1.0000000767b5ep-3,
                  0x1.2492492340ca3p-3, -0x1.555555553f379p-3, 0x1.999999999b521p-3,
                  -0x1.00000000000b0p-2, 0x1.5555555555550p-2, -0x1.0000000000000p-1);
}
template <int L> PK_FN f64<L> log_part(f64<L> x) {
    auto s = log_parts(x);
    f64<L> f = s.mantissa - f64<L>(1);
    f64<L> t = fused(s.exponent, f64<L>(0x1.ef35793c7673p-45), f * f * log_tail(f));
    return fused(s.exponent, f64<L>(0x1.62e42fefa38p-1), f + t);
}
PK_FUNCTION_F64(log)
template <int L> PK_FN f64<L> log2_part(f64<L> x) {
    auto s = log_parts(x);
    f64<L> f = s.mantissa - f64<L>(1), c = 0x1.71547652b82fep0;
    f64<L> t = f * f * log_tail(f);
    return s.exponent + fused(f, c, fused(f, f64<L>(0x1.777d0ffda0d24p-56), t * c));
}
PK_FUNCTION_F64(log2)
template <int L> PK_FN f64<L> log1p_part(f64<L> x) {
    f64<L> e = log_parts(x + f64<L>(1)).exponent, s = scale(f64<L>(1), -e);
    f64<L> f = fused(x, s, s - f64<L>(1));  // one rounding, exact where e = 0
    f64<L> t = fused(e, f64<L>(0x1.ef35793c7673p-45), f * f * log_tail(f));
    f64<L> y = fused(e, f64<L>(0x1.62e42fefa38p-1), f + t);
    return sign_from(choose(abs(e) < f64<L>(2000), y, e), x);
}
PK_FUNCTION_F64(log1p)

// table[k & 15] in each lane.
template <int L> PK_FN f64<L> lookup(const double *table, i64<L> k) {
#if PK_AVX512
    return f64<L>::of(
        __builtin_ia32_vpermt2varpd512_mask((isa::di8)k.s, load_whole<double, 8>(table).s,
                                            load_whole<double, 8>(table + 8).s, (char)-1));
#else
    f64<L> r;
    for (int i = 0; i < L; i++) r.s[i] = table[k.s[i] & 15];
    return r;
#endif
}
alignas(64) static const double erf_table_f64[13][16] = {
    {0x1.20dd750429b6dp0, 0x1.13e08c7a16a26p0, 0x1.e57b7477c132ap-1, 0x1.9450bb1ec6057p-1,
     0x1.49c38e4b7a740p-1, 0x1.0ee12190b194ap-1, 0x1.c672068e64fbdp-2, 0x1.8603df090937fp-2,
     0x1.5553672d623fcp-2, 0x1.2f6827c1b08c7p-2, 0x1.11110f080c546p-2, 0x1.f07c1eda95279p-3,
     0x1.c71c71c59c1f2p-3, 0x1.a41a41a4107d2p-3, 0x1.8618618618310p-3, 0x1.6c16c16c16c0bp-3},
    {0, -0x1.09ac3c1b2b12ap-2, -0x1.a0cdd9ab35665p-2, -0x1.ad1533f36788ap-2, -0x1.667ed552b838dp-2,
     -0x1.0e9e17d6132b9p-2, -0x1.8d734c1fef1dcp-3, -0x1.284241dbd5d39p-3, -0x1.c6e932c0394c7p-4,
     -0x1.6793ed0a040bcp-4, -0x1.234526458097ep-4, -0x1.e170940df1a6dp-5, -0x1.948b0f94c6d9ap-5,
     -0x1.58b3150861808p-5, -0x1.293725bb780c2p-5, -0x1.02e85c089895cp-5},
    {-0x1.812746b0379e5p-2, -0x1.276ba5c062301p-2, -0x1.9a7d8dd5f7417p-4, 0x1.bbf4930fce5cap-5,
     0x1.d4d9711bbe4d3p-4, 0x1.b7e9ea2ad6b1fp-4, 0x1.4408c71d2d866p-4, 0x1.ba09e2a359a41p-5,
     0x1.2e2218ebc1552p-5, 0x1.a9f5181df9bf6p-6, 0x1.36ac76646eeccp-6, 0x1.d2d9631bbaa00p-7,
     0x1.679809f5cdab3p-7, 0x1.1ad4946c8e15fp-7, 0x1.c4e651df62cb0p-8, 0x1.703966729a5c0p-8},
    {0, 0x1.24d6bbb4621d3p-3, 0x1.5acfc2be8bf24p-3, 0x1.8a284b2851bd2p-4, 0x1.0946e10479bc9p-6,
     -0x1.5d2c619011c4cp-6, -0x1.a1de1a05950a7p-6, -0x1.3244824951a6dp-6, -0x1.8a39a4ff117b1p-7,
     -0x1.f70a65d7c8c3bp-8, -0x1.4b3ef89efcceap-8, -0x1.c4afa67cbf354p-9, -0x1.3fa3698d1d37bp-9,
     -0x1.d021c2acf2b70p-10, -0x1.5911015afb8ddp-10, -0x1.05d92c67eb326p-10},
    {0x1.ce2f21a041814p-4, 0x1.01ba55d89947bp-4, -0x1.97842b84f1f4bp-6, -0x1.f10767cbe7a73p-5,
     -0x1.4bfeaee1eb486p-5, -0x1.6e17e72397ad7p-7, 0x1.7610514e67901p-9, 0x1.4b850d12899dcp-8,
     0x1.e000cccefee88p-9, 0x1.2496775d64406p-9, 0x1.605c898b84e17p-10, 0x1.b6d7faa5fa849p-11,
     0x1.1c1df54af3801p-11, 0x1.7cd36372f07c6p-12, 0x1.06e861d5c78c7p-12, 0x1.7468119da05b8p-13},
    {0, -0x1.7d1fdd683eea7p-5, -0x1.35e003c00008ep-5, -0x1.2f7c091728b07p-11, 0x1.1847c30cad564p-6,
     0x1.8b92ad99446cap-7, 0x1.c69ab0b17b56fp-9, -0x1.4fd3da723f28ep-12, -0x1.ce5982e03c10ap-11,
     -0x1.41544bb8a1687p-11, -0x1.72b720a3ad30ap-12, -0x1.a8ccafeb8bf9dp-13, -0x1.f904a4510605dp-14,
     -0x1.3878270b4dce2p-14, -0x1.909f038d41be5p-15, -0x1.08d28970bafbfp-15},
    {-0x1.b82ce30e21c77p-6, -0x1.390f03fd89ca9p-7, 0x1.de96d03224560p-7, 0x1.d5674419c433ep-7,
     0x1.83d62c281d09bp-10, -0x1.1675328467c8cp-8, -0x1.733cc63894236p-9, -0x1.80ca49d56f1e7p-11,
     0x1.9226f116adb44p-15, 0x1.21dc010243d52p-13, 0x1.75df9f41b0050p-14, 0x1.985b5fa4a4711p-15,
     0x1.c07b9c8771fb1p-16, 0x1.005df6c3767d1p-16, 0x1.313be99455a65p-17, 0x1.78a2e237657c2p-18},
    {0, 0x1.65d147d1e7da3p-7, 0x1.4ea86bcdc6057p-8, -0x1.12da45cb43e88p-8, -0x1.0fddddf578e33p-8,
     -0x1.7bfc203f0a5b3p-12, 0x1.f7c00e5828359p-11, 0x1.1a93629130987p-11, 0x1.df087ec201086p-14,
     -0x1.663540f2fd298p-17, -0x1.45fbe19e4a5d3p-16, -0x1.7dfe78055a55ep-17, -0x1.8cc7d1ed2fa1ep-18,
     -0x1.a486e5d01ea73p-19, -0x1.d11b3850deb23p-20, -0x1.0bd4763b634e8p-20},
    {0x1.565bc658148a2p-8, 0x1.cc3ba4a479ee7p-11, -0x1.ea276bc08548bp-9, -0x1.ac21b04d0e881p-10,
     0x1.3811d6b069cebp-10, 0x1.f5539af70ea16p-11, 0x1.205207385c488p-16, -0x1.92e9d8426a9cdp-13,
     -0x1.5c1c1acbdecdfp-14, -0x1.b7261782d85bap-17, 0x1.2923426b93cfep-19, 0x1.44f4bb3e37489p-19,
     0x1.59b8e785d678ap-20, 0x1.584dd680a5e46p-21, 0x1.624f76c9afccbp-22, 0x1.7ce91db05842cp-23},
    {0, -0x1.0770c2de368a1p-9, -0x1.3fcc6ff0988c2p-12, 0x1.289b5f9b10bdep-10, 0x1.6b1f694b2d9f3p-12,
     -0x1.4c23287f45c6bp-12, -0x1.685717b152615p-13, 0x1.f916eb02b301ep-17, 0x1.0efae62ec42c8p-15,
     0x1.558f705b0be49p-17, 0x1.16c906d301e13p-20, -0x1.7ff1549b88036p-22, -0x1.1d417e0b84c3fp-22,
     -0x1.17d678a7b1d46p-23, -0x1.0db97e15d8d45p-24, -0x1.0edae12238920p-25},
    {-0x1.c023bf454b212p-11, 0x1.5a3e34a3ef244p-19, 0x1.572b1f92d7cfcp-11, 0x1.445450addcd75p-16,
     -0x1.32fc10ba11214p-12, -0x1.486ee10612d87p-15, 0x1.2ae53075e6aefp-14, 0x1.787dc2a2da12cp-16,
     -0x1.753bbc7004df0p-18, -0x1.25f38c1ece254p-18, -0x1.04b5d0d0f4969p-20, -0x1.6c0a4dec909d6p-25,
     0x1.83ee36b0e9d68p-25, 0x1.baa40a9a366f7p-26, 0x1.997114c568b62p-27, 0x1.811cd261f9449p-28},
    {0, 0x1.3a5db1ab0ae2bp-12, -0x1.47e00ddfb16cdp-15, -0x1.698ec4a1bb129p-13,
     0x1.97676327e5765p-16, 0x1.f4e5b33966b85p-15, -0x1.3a8b2a3523511p-19, -0x1.9ff03fdf27c08p-17,
     -0x1.e30e7bd81076dp-20, 0x1.24292b7f8bc75p-20, 0x1.f7051e0369be9p-22, 0x1.31aded44b3f3fp-24,
     -0x1.e788b2e135089p-30, -0x1.3db21f02f62d4p-28, -0x1.341ef33a24c7fp-29,
     -0x1.1277fc11fa8fcp-30},
    {0x1.f28a250412acap-14, -0x1.35c1501172abcp-16, -0x1.6941ab1b53cb0p-14, 0x1.de3fbef44a521p-16,
     0x1.21bc976eaae1fp-15, -0x1.a56f0ddb38053p-17, -0x1.2997fd9b6972ep-17, 0x1.1ffa5f8e0893ep-19,
     0x1.ab91c787f60f5p-20, -0x1.0f574d580e56fp-28, -0x1.3d1bdb18e0f74p-23, -0x1.4a58be388a07ap-25,
     -0x1.e8680ea2be45cp-29, 0x1.30eac2045a983p-31, 0x1.ba7bea1d552f5p-32, 0x1.841ad01308efep-33},
};
template <int L> PK_FN f64<L> erf_part(f64<L> x) {
    f64<L> magic = 0x1.8p52, a = lesser(f64<L>(5.8), abs(x));
    f64<L> m = fused(a, f64<L>(0x1.5555555555555p1), magic),
           u = fused(m - magic, f64<L>(-0.375), a);
    i64<L> k = bits<int64_t>(m);
    constexpr int degree = sizeof(erf_table_f64) / sizeof(erf_table_f64[0]) - 1;
    f64<L> p = lookup(erf_table_f64[degree], k);
#if PK_AVX512
#pragma GCC unroll 16
#else  // a look-up is several instructions for each lane: those of one degree are enough to overlap
#pragma GCC unroll 1
#endif
    for (int i = degree - 1; i >= 0; i--) p = fused(p, u, lookup(erf_table_f64[i], k));
    return sign_from(lesser(f64<L>(1), choose(a < f64<L>(5.8), p * a, f64<L>(1) + a * f64<L>(0))),
                     x);
}
PK_FUNCTION_F64(erf)

// sin(x - n pi) with the sign of (-1)^n; for cos n is a half more. The C library where |x| is huge.
template <int L> PK_FN f64<L> sin_of(f64<L> x, double shift, double (*libm)(double)) {
    f64<L> magic = 0x1.8p52, over_pi = 0x1.45f306dc9c883p-2;
    f64<L> m = shift == 0 ? fused(x, over_pi, magic) : fused(x, over_pi, f64<L>(-shift)) + magic;
    f64<L> n = m - magic + f64<L>(shift);
    f64<L> r = fused(n, f64<L>(-0x1.921fb54442d18p1), x);
    r = fused(n, f64<L>(-0x1.1a62633145c07p-53), r);
    r = fused(n, f64<L>(0x1.f1976b7ed8fbcp-109), r);
    f64<L> z = r * r,
           y = fused(r * z,
                     horner(z, 0x1.893756b8e64d3p-49, -0x1.ae4dbca740e32p-41, 0x1.6123f63c74d81p-33,
                            -0x1.ae64557ee2409p-26, 0x1.71de3a541e7f2p-19, -0x1.a01a01a018566p-13,
                            0x1.1111111111104p-7, -0x1.5555555555555p-3),
                     r);
    auto odd = bits<int64_t>(m) + i64<L>(shift == 0 ? 0 : 1);
    y = bits<double>(bits<int64_t>(y) ^ shift_left<63>(odd));
    auto huge = ~(abs(x) <= f64<L>(0x1p20));
    if (__builtin_expect(any(huge), 0)) {
        double t[16] = {};
        store_whole(t, x);
        each(libm, t);
        y = choose(huge, load_whole<double, L>(t), y);
    }
    return y;
}
template <int L> PK_FN f64<L> sin_part(f64<L> x) {
    return choose(x == f64<L>(0), x, sin_of(x, 0, libm::sin));
}
template <int L> PK_FN f64<L> cos_part(f64<L> x) { return sin_of(abs(x), 0.5, libm::cos); }
PK_FUNCTION_F64(sin)
PK_FUNCTION_F64(cos)
}  // namespace pk
#endif
