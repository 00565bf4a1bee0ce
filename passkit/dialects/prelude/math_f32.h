// float32 functions: the same bits on every instruction set, each within 4 ulp of the rounded true
// value.
#ifndef PK_MATH_F32_H
#define PK_MATH_F32_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
template <int L> using f32 = simd<float, L>;
template <int L> using i32 = simd<int32_t, L>;

// name(x) of any number of lanes runs name_part on what one register holds; name(float) is lane 0
// of it.
#define PK_FUNCTION_F32(name)                                                                      \
    template <int L> PK_FN f32<L> name(f32<L> x) {                                                 \
        if constexpr (whole<float, L>) return name##_part(x);                                      \
        else return f32<L>::of(name(x.s.lo), name(x.s.hi));                                        \
    }                                                                                              \
    PK_LAZY float name(float x) { return name##_part(f32<PK_BYTES / 4>(x))[0]; }

// p * 2^n for an integral n of -300..300, rounded once.
template <int L> PK_FN f32<L> scale(f32<L> p, f32<L> n) {
#if PK_AVX512
    return f32<L>::of(__builtin_ia32_scalefps512_mask(p.s, n.s, p.s, (short)-1, 4));
#else
    i32<L> k = cast<int32_t>(n), h = shift_right<1>(k);
    return p * bits<float>(shift_left<23>(h + i32<L>(127))) *
           bits<float>(shift_left<23>(k - h + i32<L>(127)));
#endif
}

// table[k & 15] in each lane.
template <int L> PK_FN f32<L> lookup(const float *table, i32<L> k) {
#if PK_AVX512
    return f32<L>::of(__builtin_ia32_permvarsf512_mask(load_whole<float, 16>(table).s, k.s,
                                                       isa::sf16{}, (short)-1));
#elif __AVX2__
    f32<L> lo = f32<L>::of(__builtin_ia32_permvarsf256(load_whole<float, 8>(table).s, k.s));
    f32<L> hi = f32<L>::of(__builtin_ia32_permvarsf256(load_whole<float, 8>(table + 8).s, k.s));
    return f32<L>::of(__builtin_ia32_blendvps256(lo.s, hi.s, bits<float>(shift_left<28>(k)).s));
#else
    f32<L> r;
    for (int i = 0; i < L; i++) r.s[i] = table[k.s[i] & 15];
    return r;
#endif
}

// y >= 0 (or NaN) with the sign of x.
template <int L> PK_FN f32<L> with_sign(f32<L> y, f32<L> x) {
    return bits<float>(bits<int32_t>(y) | (bits<int32_t>(x) & i32<L>(int32_t(0x80000000))));
}

template <int L> struct split_exp {
    f32<L> mantissa, exponent;
};
// exp(x) = mantissa * 2^exponent
template <int L> PK_FN split_exp<L> exp_parts(f32<L> x) {
    f32<L> magic = 12582912.0f;
    f32<L> n = fused(x, f32<L>(0x1.715476p0f), magic) - magic;
    f32<L> r = fused(n, f32<L>(-0x1.62e4p-1f), x);
    r = fused(n, f32<L>(-0x1.7f7d1cp-20f), r);
    return {horner(r, 0x1.6a2444p-10f, 0x1.1239d6p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f,
                   0x1.fffffcp-2f, 1, 1),
            n};
}
template <int L> PK_FN f32<L> exp_part(f32<L> x) {
    auto e = exp_parts(greater(f32<L>(-104), lesser(f32<L>(89), x)));
    return scale(e.mantissa, e.exponent);
}
PK_FUNCTION_F32(exp)

// exponent and mantissa in [0.75, 1.5) of x > 0; log of 0, inf, NaN and negative x come out right
// of e * ln2 + log(m).
template <int L> struct split_log {
    f32<L> mantissa, exponent;
};
template <int L> PK_FN split_log<L> log_parts(f32<L> x) {
#if PK_AVX512
    f32<L> m = f32<L>::of(__builtin_ia32_getmantps512_mask(x.s, 11, x.s, (short)-1, 4));
    f32<L> e = f32<L>::of(__builtin_ia32_getexpps512_mask(x.s, x.s, (short)-1, 4));
    return {m, e - f32<L>::of(__builtin_ia32_getexpps512_mask(m.s, m.s, (short)-1, 4))};
#else
    auto odd = ~((x >= f32<L>(0x1p-126f)) & (x < f32<L>(__builtin_inff())));
    i32<L> b = bits<int32_t>(x);
    f32<L> less = 0.0f;
    if (__builtin_expect(any(odd), 0)) {
        auto tiny = odd & (x > f32<L>(0)) & (x < f32<L>(1));
        b = choose(tiny, bits<int32_t>(x * f32<L>(0x1p23f)), choose(odd, i32<L>(0x3f800000), b));
        f32<L> special = choose(x > f32<L>(0), x, f32<L>(__builtin_nanf("")));
        special = choose(x == f32<L>(0), f32<L>(-__builtin_inff()), special);
        less = choose(tiny, f32<L>(23), choose(odd, -special, less));
    }
    i32<L> k = shift_right<23>(b - i32<L>(0x3f400000));
    return {bits<float>(b - shift_left<23>(k)), cast<float>(k) - less};
#endif
}
template <int L> PK_FN f32<L> log_part(f32<L> x) {
    auto s = log_parts(x);
    f32<L> f = s.mantissa - f32<L>(1);
    f32<L> q = horner(f, -0x1.715eep-5f, 0x1.ac5004p-4f, -0x1.0d55e2p-3f, 0x1.28722p-3f,
                      -0x1.54f2c2p-3f, 0x1.996b86p-3f, -0x1.00003ep-2f, 0x1.55559ep-2f, -0x1p-1f);
    f32<L> t = fused(s.exponent, f32<L>(0x1.7f7d1cp-20f), f * f * q);
    return fused(s.exponent, f32<L>(0x1.62e4p-1f), f + t);
}
PK_FUNCTION_F32(log)

alignas(64) static const float erf_table[6][16] = {
    {0x1.20dd74p0f, 0x1.1af54ep0f, 0x1.0a7ef6p0f, 0x1.e57b74p-1f, 0x1.af767ap-1f, 0x1.7a0518p-1f,
     0x1.49c38ep-1f, 0x1.20ac04p-1f, 0x1.fd9ae2p-2f, 0x1.c67206p-2f, 0x1.996eeep-2f, 0x1.74538p-2f,
     0x1.555368p-2f, 0x1.3b1358p-2f, 0x1.24923ap-2f, 0x1.11111p-2f},
    {0, -0x1.730706p-3f, -0x1.4c387cp-2f, -0x1.a0cdd8p-2f, -0x1.b5db04p-2f, -0x1.9b12ep-2f,
     -0x1.667ed4p-2f, -0x1.2b07a6p-2f, -0x1.e87128p-3f, -0x1.8d734cp-3f, -0x1.45c32p-3f,
     -0x1.0e5896p-3f, -0x1.c6e934p-4f, -0x1.83bf9ep-4f, -0x1.4e5c5cp-4f, -0x1.234528p-4f},
    {-0x1.811c96p-2f, -0x1.5764dcp-2f, -0x1.d6e06ap-3f, -0x1.9a780ap-4f, 0x1.994982p-7f,
     0x1.5a9ee2p-4f, 0x1.d4ddeep-4f, 0x1.d3598cp-4f, 0x1.93c4eep-4f, 0x1.440d8ap-4f, 0x1.f75972p-5f,
     0x1.846a04p-5f, 0x1.2e150ep-5f, 0x1.dccc4p-6f, 0x1.7e2608p-6f, 0x1.368dbap-6f},
    {0, 0x1.acf3e6p-4f, 0x1.55beb6p-3f, 0x1.5ac9aep-3f, 0x1.01cc68p-3f, 0x1.0fae8ep-4f,
     0x1.093188p-6f, -0x1.c041ecp-7f, -0x1.9c7e98p-6f, -0x1.a1e424p-6f, -0x1.5bf412p-6f,
     -0x1.0a0f76p-6f, -0x1.8a2768p-7f, -0x1.237668p-7f, -0x1.b3e76ap-8f, -0x1.4b169p-8f},
    {0x1.c106ap-4f, 0x1.6a160ap-4f, 0x1.0c516p-5f, -0x1.99456ap-6f, -0x1.d0b6cap-5f,
     -0x1.d6980ap-5f, -0x1.4e0826p-5f, -0x1.481264p-6f, -0x1.1ec8d6p-8f, 0x1.4a7e2p-9f,
     0x1.566d48p-8f, 0x1.3bf37ap-8f, 0x1.09ed9p-8f, 0x1.4372fp-9f, 0x1.7d5bap-10f, 0x1.dac632p-10f},
    {0, -0x1.25f1e8p-5f, -0x1.8be8d6p-5f, -0x1.2f6226p-5f, -0x1.8e100ap-7f, 0x1.0fb59cp-7f,
     0x1.1b9a84p-6f, 0x1.ef2b92p-7f, 0x1.1ccf76p-7f, 0x1.d69784p-9f, 0x1.728452p-12f,
     -0x1.67c524p-11f, -0x1.0a26b2p-10f, -0x1.4b95a6p-11f, -0x1.b5773cp-12f, -0x1.028064p-11f},
};
alignas(64) static const float tanh_table[7][16] = {
    {0x1p0f, 0x1.cd1316p-1f, 0x1.69b4a8p-1f, 0x1.13e7a8p-1f, 0x1.af8f12p-2f, 0x1.5dca2p-2f,
     0x1.24aeeap-2f, 0x1.f661e6p-3f, 0x1.b7c27p-3f, 0x1.86f226p-3f, 0x1.5fdd6ep-3f, 0x1.3fe19p-3f,
     0x1.2539b6p-3f, 0x1.0eab82p-3f, 0x1.f6ac48p-4f, 0x1.d52958p-4f},
    {0, -0x1.3457cep-2f, -0x1.50ae3cp-2f, -0x1.f19328p-3f, -0x1.51ed3cp-3f, -0x1.d02e56p-4f,
     -0x1.4ae7ecp-4f, -0x1.eae7fap-5f, -0x1.79250cp-5f, -0x1.2a5a84p-5f, -0x1.e389c2p-6f,
     -0x1.8fad48p-6f, -0x1.4fdb3ep-6f, -0x1.1e2dacp-6f, -0x1.ed83bcp-7f, -0x1.ade82ap-7f},
    {-0x1.5554c6p-2f, -0x1.1617d8p-3f, 0x1.b854b4p-5f, 0x1.3cd896p-4f, 0x1.c3daa8p-5f,
     0x1.1dfaa2p-5f, 0x1.69b402p-6f, 0x1.d8a692p-7f, 0x1.41682p-7f, 0x1.c63e1ap-8f, 0x1.4bd4f6p-8f,
     0x1.f31b84p-9f, 0x1.80d1dp-9f, 0x1.2eb4acp-9f, 0x1.e48616p-10f, 0x1.89e75ap-10f},
    {0, 0x1.48244ap-3f, 0x1.93410cp-5f, -0x1.08052ap-7f, -0x1.bdf6f4p-7f, -0x1.321d36p-7f,
     -0x1.704762p-8f, -0x1.b74af2p-9f, -0x1.0d5728p-9f, -0x1.57169ap-10f, -0x1.c6022cp-11f,
     -0x1.373c58p-11f, -0x1.b86a46p-12f, -0x1.3fd444p-12f, -0x1.dba9e8p-13f, -0x1.68e3eap-13f},
    {0x1.10be1ap-3f, -0x1.3a92f8p-6f, -0x1.6c175cp-5f, -0x1.1f53ccp-7f, 0x1.265d84p-10f,
     0x1.03a46p-9f, 0x1.4beb7ap-10f, 0x1.87c67ep-11f, 0x1.dda646p-12f, 0x1.fafc9cp-13f,
     0x1.85415cp-13f, 0x1.d2499p-14f, 0x1.00f25ap-16f, 0x1.6d317p-18f, 0x1.befd42p-16f,
     0x1.86a81cp-16f},
    {0, -0x1.896742p-5f, 0x1.bdf97cp-7f, 0x1.d8b4ecp-8f, 0x1.1d1948p-10f, -0x1.512636p-13f,
     -0x1.d94bfep-13f, -0x1.2b9184p-13f, -0x1.57580ap-14f, -0x1.71c5bcp-15f, -0x1.bcf82ap-16f,
     -0x1.fbd5d6p-17f, -0x1.aad27ep-18f, -0x1.4a0f7cp-18f, -0x1.b1d27ap-19f, -0x1.5f5d08p-19f},
    {-0x1.9ebd9cp-5f, 0x1.98ba4ap-6f, 0x1.8c9e72p-9f, -0x1.f7648cp-9f, -0x1.07382ap-12f,
     -0x1.3c9b3ap-11f, -0x1.49ea3cp-16f, -0x1.0264eep-13f, -0x1.368486p-12f, 0x1.e2edd6p-17f,
     -0x1.38120cp-12f, -0x1.31864ap-13f, 0x1.6d3118p-12f, 0x1.1e3f9p-12f, 0x1.3d13a2p-17f,
     -0x1.d0a142p-16f},
};
// table[0] + table[1] * u + ... with the row of coefficients that k chooses.
template <int degree, int L>
PK_FN f32<L> lookup_polynomial(const float (*table)[16], i32<L> k, f32<L> u) {
    f32<L> p = lookup(table[degree], k);
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; i--) p = fused(p, u, lookup(table[i], k));
    return p;
}
template <int L> PK_FN f32<L> erf_part(f32<L> x) {
    f32<L> magic = 12582912.0f, a = lesser(f32<L>(3.8749f), abs(x));
    f32<L> m = fused(a, f32<L>(4), magic);
    f32<L> u = fused(m - magic, f32<L>(-0.25f), a);
    f32<L> y = lookup_polynomial<5>(erf_table, bits<int32_t>(m), u) * a;
    return with_sign(lesser(f32<L>(1), y), x);
}
PK_FUNCTION_F32(erf)

template <int L> PK_FN f32<L> tanh_part(f32<L> x) {
    f32<L> magic = 12582912.0f, a = lesser(f32<L>(9.02f), abs(x));
    f32<L> m = fused(a, f32<L>(0x1.b7d6c4p0f), magic);
    f32<L> u = fused(m - magic, f32<L>(-0x1.2ap-1f), a);
    f32<L> y = lookup_polynomial<6>(tanh_table, bits<int32_t>(m), u) * a;
    return with_sign(lesser(f32<L>(1), y), x);
}
PK_FUNCTION_F32(tanh)

template <int L> PK_FN f32<L> exp2_part(f32<L> x) {
    f32<L> magic = 12582912.0f;
    x = greater(f32<L>(-151), lesser(f32<L>(129), x));
    f32<L> n = x + magic - magic;
    return scale(horner(x - n, 0x1.40b262p-13f, 0x1.5f095cp-10f, 0x1.3b2f1ap-7f, 0x1.c6af7ap-5f,
                        0x1.ebfbdap-3f, 0x1.62e43p-1f, 1),
                 n);
}
PK_FUNCTION_F32(exp2)

// 2^n (1 + p) - 1 with p = exp(r) - 1, halved on the way lest 2^128 overflow.
template <int L> PK_FN f32<L> expm1_part(f32<L> x) {
    f32<L> magic = 12582912.0f, a = greater(f32<L>(-104), lesser(f32<L>(89), x));
    f32<L> n = fused(a, f32<L>(0x1.715476p0f), magic) - magic;
    f32<L> r = fused(n, f32<L>(-0x1.62e4p-1f), a);
    r = fused(n, f32<L>(-0x1.7f7d1cp-20f), r);
    f32<L> p = fused(r * r,
                     horner(r, 0x1.a17f94p-13f, 0x1.6d37bep-10f, 0x1.111062p-7f, 0x1.5554fap-5f,
                            0x1.555556p-3f, 0.5f),
                     r);
    f32<L> half = scale(f32<L>(0.5f), n);
    f32<L> y = fused(p, half, half - f32<L>(0.5f));
    return choose(abs(x) < f32<L>(0x1p-25f), x, y + y);
}
PK_FUNCTION_F32(expm1)

template <int L> PK_FN f32<L> log2_part(f32<L> x) {
    auto s = log_parts(x);
    f32<L> f = s.mantissa - f32<L>(1);
    f32<L> q =
        horner(f, -0x1.0e9eccp-4f, 0x1.36f844p-3f, -0x1.84d5e8p-3f, 0x1.ab748ap-3f, -0x1.ebd5c6p-3f,
               0x1.2756c6p-2f, -0x1.715516p-2f, 0x1.ec71p-2f, -0x1.715476p-1f);
    f32<L> t = fused(f, f32<L>(0x1.4ae0cp-26f), f * f * q);
    return s.exponent + fused(f, f32<L>(0x1.715476p0f), t);
}
PK_FUNCTION_F32(log2)

template <int L> PK_FN f32<L> log10_part(f32<L> x) {
    auto s = log_parts(x);
    f32<L> f = s.mantissa - f32<L>(1);
    f32<L> q =
        horner(f, -0x1.4484aap-6f, 0x1.760268p-5f, -0x1.d4750ep-5f, 0x1.017ab2p-4f, -0x1.28210ap-4f,
               0x1.639d54p-4f, -0x1.bcb7fap-4f, 0x1.287ab6p-3f, -0x1.bcb7b2p-3f);
    f32<L> t = fused(f, f32<L>(-0x1.5b235ep-27f), f * f * q);
    t = fused(s.exponent, f32<L>(0x1.3509f8p-18f), t);
    return fused(s.exponent, f32<L>(0x1.344p-2f), fused(f, f32<L>(0x1.bcb7b2p-2f), t));
}
PK_FUNCTION_F32(log10)

// log(1 + x) + more * ln2
template <int L> PK_FN f32<L> log1p_plus(f32<L> x, f32<L> more) {
    f32<L> e = log_parts(x + f32<L>(1)).exponent, s = scale(f32<L>(1), -e);
    f32<L> f = fused(x, s, s - f32<L>(1));  // one rounding, exact where e = 0
    f32<L> q = horner(f, -0x1.715eep-5f, 0x1.ac5004p-4f, -0x1.0d55e2p-3f, 0x1.28722p-3f,
                      -0x1.54f2c2p-3f, 0x1.996b86p-3f, -0x1.00003ep-2f, 0x1.55559ep-2f, -0x1p-1f);
    f32<L> n = e + more, t = fused(n, f32<L>(0x1.7f7d1cp-20f), f * f * q);
    return choose(abs(e) < f32<L>(200), fused(n, f32<L>(0x1.62e4p-1f), f + t), e);
}
template <int L> PK_FN f32<L> log1p_part(f32<L> x) {
    return sign_from(log1p_plus(x, f32<L>(0)), x);
}
PK_FUNCTION_F32(log1p)

template <int L> PK_FN f32<L> sigmoid_part(f32<L> x) {
    f32<L> e = exp_part(-abs(x));
    return choose(x < f32<L>(0), e, f32<L>(1)) / (f32<L>(1) + e);
}
PK_FUNCTION_F32(sigmoid)

// exp(|x|) / 2 = t gives sinh and cosh as t -+ 1/(4t), right up to overflow.
template <int L> PK_FN f32<L> half_exp(f32<L> a) {
    auto e = exp_parts(lesser(f32<L>(91), a));
    return scale(e.mantissa, e.exponent - f32<L>(1));
}
template <int L> PK_FN f32<L> sinh_part(f32<L> x) {
    f32<L> a = abs(x), t = half_exp(a), z = a * a;
    f32<L> small = fused(
        a * z, horner(z, 0x1.75220cp-19f, 0x1.a02456p-13f, 0x1.1110dep-7f, 0x1.555556p-3f), a);
    return with_sign(choose(a < f32<L>(1), small, t - f32<L>(0.25f) / t), x);
}
PK_FUNCTION_F32(sinh)
template <int L> PK_FN f32<L> cosh_part(f32<L> x) {
    f32<L> t = half_exp(abs(x));
    return t + f32<L>(0.25f) / t;
}
PK_FUNCTION_F32(cosh)

template <int L> PK_FN f32<L> asinh_part(f32<L> x) {
    f32<L> a = abs(x), z = a * a;
    auto big = a > f32<L>(0x1p25f);
    f32<L> u = choose(big, a, a + z / (f32<L>(1) + sqrt(fused(a, a, f32<L>(1)))));
    return with_sign(log1p_plus(u, choose(big, f32<L>(1), f32<L>(0))), x);
}
PK_FUNCTION_F32(asinh)
template <int L> PK_FN f32<L> acosh_part(f32<L> x) {
    f32<L> t = choose(x < f32<L>(1), f32<L>(__builtin_nanf("")), x - f32<L>(1));
    auto big = x > f32<L>(0x1p25f);
    return log1p_plus(choose(big, x, t + sqrt(fused(t, t, t + t))),
                      choose(big, f32<L>(1), f32<L>(0)));
}
PK_FUNCTION_F32(acosh)
template <int L> PK_FN f32<L> atanh_part(f32<L> x) {
    f32<L> a = abs(x);
    f32<L> y = log1p_plus((a + a) / (f32<L>(1) - a), f32<L>(0)) * f32<L>(0.5f);
    return with_sign(choose(a < f32<L>(0x1p-13f), a, y), x);
}
PK_FUNCTION_F32(atanh)

template <int L> PK_FN f32<L> atan_poly(f32<L> t) {
    f32<L> z = t * t;
    return fused(t * z,
                 horner(z, -0x1.deef1ap-10f, 0x1.6acf68p-7f, -0x1.01f2ap-5f, 0x1.dd7b7ep-5f,
                        -0x1.590972p-4f, 0x1.c0e6ecp-4f, -0x1.242978p-3f, 0x1.9992c4p-3f,
                        -0x1.555542p-2f),
                 t);
}
template <int L> PK_FN f32<L> atan_part(f32<L> x) {
    f32<L> a = abs(x);
    auto far = a > f32<L>(1);
    f32<L> y = atan_poly(choose(far, f32<L>(1), a) / choose(far, a, f32<L>(1)));
    return with_sign(choose(far, f32<L>(0x1.921fb6p0f) - (y + f32<L>(0x1.777a5cp-25f)), y), x);
}
PK_FUNCTION_F32(atan)
template <int L> PK_FN f32<L> atan2_part(f32<L> y, f32<L> x) {
    f32<L> a = abs(y), b = abs(x), top = lesser(a, b), bottom = greater(a, b);
    f32<L> t = top / bottom;
    t = choose(top == bottom, f32<L>(1), t);
    t = choose(bottom == f32<L>(0), f32<L>(0), t);
    f32<L> r = atan_poly(t);
    r = choose(a > b, f32<L>(0x1.921fb6p0f) - (r + f32<L>(0x1.777a5cp-25f)), r);
    r = choose(signbit(x), f32<L>(0x1.921fb6p1f) - (r + f32<L>(0x1.777a5cp-24f)), r);
    return choose(isnan(x) | isnan(y), x + y, with_sign(r, y));
}

template <int L> PK_FN f32<L> asin_poly(f32<L> s, f32<L> z) {
    return fused(
        s * z,
        horner(z, 0x1.570828p-5f, 0x1.8f0aap-6f, 0x1.742fe6p-5f, 0x1.330538p-4f, 0x1.5555bep-3f),
        s);
}
template <int L> PK_FN f32<L> asin_part(f32<L> x) {
    f32<L> a = abs(x);
    auto far = a > f32<L>(0.5f);
    f32<L> z = choose(far, fused(a, f32<L>(-0.5f), f32<L>(0.5f)), a * a);
    f32<L> p = asin_poly(choose(far, sqrt(z), a), z);
    return with_sign(
        choose(far, f32<L>(0x1.921fb6p0f) - (fused(p, f32<L>(2), f32<L>(0x1.777a5cp-25f))), p), x);
}
PK_FUNCTION_F32(asin)
template <int L> PK_FN f32<L> acos_part(f32<L> x) {
    f32<L> a = abs(x);
    auto far = a > f32<L>(0.5f);
    f32<L> z = choose(far, fused(a, f32<L>(-0.5f), f32<L>(0.5f)), x * x);
    f32<L> p = asin_poly(choose(far, sqrt(z), x), z), q = p + p;
    f32<L> wide = choose(x < f32<L>(0), f32<L>(0x1.921fb6p1f) - (q + f32<L>(0x1.777a5cp-24f)), q);
    return choose(far, wide, f32<L>(0x1.921fb6p0f) - (p + f32<L>(0x1.777a5cp-25f)));
}
PK_FUNCTION_F32(acos)

alignas(64) static const float erfcx_table[8][16] = {
    {0x1p0f, 0x1.164fc6p-1f, 0x1.6bb376p-2f, 0x1.08fc26p-2f, 0x1.9d7738p-3f, 0x1.51a8e2p-3f,
     0x1.1cc7d2p-3f, 0x1.ebe61cp-4f, 0x1.b096fap-4f, 0x1.81e25cp-4f, 0x1.5c2fcap-4f, 0x1.3d23ecp-4f,
     0x1.2323acp-4f, 0x1.0d0da8p-4f, 0x1.f4211p-5f, 0x1.d3225cp-5f},
    {-0x1.20dd74p0f, -0x1.a8e46ep-2f, -0x1.917d7ap-3f, -0x1.c053fep-4f, -0x1.18737ap-4f,
     -0x1.7c1d7cp-5f, -0x1.11183ep-5f, -0x1.9a14d4p-6f, -0x1.3e981cp-6f, -0x1.fcab46p-7f,
     -0x1.9f20cap-7f, -0x1.590552p-7f, -0x1.232c4ep-7f, -0x1.f1e45ap-8f, -0x1.ae795p-8f,
     -0x1.77d19ap-8f},
    {0x1.ffff72p-1f, 0x1.15c9f4p-2f, 0x1.90e64ap-4f, 0x1.62954ap-5f, 0x1.6b01cep-6f, 0x1.9d87a6p-7f,
     0x1.fe8668p-8f, 0x1.4f1bdap-8f, 0x1.cdfb86p-9f, 0x1.4b0c64p-9f, 0x1.e9ac2ap-10f,
     0x1.741b5cp-10f, 0x1.20de14p-10f, 0x1.c9da26p-11f, 0x1.704936p-11f, 0x1.2ccff6p-11f},
    {-0x1.811a3p-1f, -0x1.4374a8p-3f, -0x1.711358p-5f, -0x1.08bd74p-6f, -0x1.c2917cp-8f,
     -0x1.b411a4p-9f, -0x1.d1d134p-10f, -0x1.0cbc74p-10f, -0x1.49ceeep-11f, -0x1.a977e6p-12f,
     -0x1.1de1bcp-12f, -0x1.8dae5ap-13f, -0x1.1cb508p-13f, -0x1.a220bp-14f, -0x1.3948d6p-14f,
     -0x1.df6ca4p-15f},
    {0x1.feda36p-2f, 0x1.57179ep-4f, 0x1.3ca03ep-6f, 0x1.78bb64p-8f, 0x1.09bafcp-9f,
     0x1.c3fa42p-11f, 0x1.93c09ap-12f, 0x1.bf573ep-13f, 0x1.9d2464p-14f, 0x1.bf1734p-15f,
     0x1.7278c4p-15f, 0x1.2e3338p-16f, 0x1.fe35dp-16f, 0x1.1642fp-18f, 0x1.0344dap-16f,
     0x1.0bf29p-17f},
    {-0x1.2d2b8cp-2f, -0x1.51661ap-5f, -0x1.016d16p-7f, -0x1.0111b8p-9f, -0x1.351b24p-11f,
     -0x1.bad03p-13f, -0x1.6c9a9p-14f, -0x1.7c984ep-15f, -0x1.4d3b0ap-16f, -0x1.4a6eb2p-17f,
     -0x1.93a2cep-18f, -0x1.c90306p-19f, -0x1.43359cp-19f, -0x1.237ddp-20f, -0x1.3a7f8ap-18f,
     -0x1.e621d2p-22f},
    {0x1.25f74ap-3f, 0x1.4286c6p-6f, 0x1.b77a18p-9f, 0x1.28ac6ap-11f, 0x1.5d19f2p-12f,
     -0x1.48428ep-17f, 0x1.71e2c4p-14f, -0x1.149eacp-14f, 0x1.487aeap-14f, 0x1.25ec48p-14f,
     -0x1.dec9aap-16f, 0x1.73402ep-15f, -0x1.63b4ep-14f, 0x1.735492p-15f, -0x1.974c44p-15f,
     -0x1.ddeb46p-17f},
    {-0x1.5c285ep-5f, -0x1.119d3cp-7f, -0x1.230db8p-10f, -0x1.c972cap-14f, -0x1.025684p-14f,
     -0x1.34736cp-16f, -0x1.1e3eep-19f, 0x1.8e70c2p-15f, 0x1.51434ap-19f, -0x1.8938f4p-20f,
     0x1.b8fcd4p-20f, 0x1.c902c2p-22f, 0x1.e3c5f4p-20f, -0x1.e3726ap-21f, 0x1.07d93ep-15f,
     -0x1.0c205p-21f},
};

// x / 2pi modulo 1 as 64 fraction bits of the lanes with 2^17 <= |x| < inf; 0 in the others.
// Integers only: it leaves the vector registers alone, so that a loop which may call it keeps its
// constants in them.
static __attribute__((noinline, cold, unused)) void reduce_huge(int lanes, const uint32_t *x,
                                                                int64_t *turns) {
    static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                           0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    for (int i = 0; i < lanes; i++) {
        uint64_t m = (x[i] & 0x7fffff) | 0x800000;
        int e = int(x[i] >> 23 & 255) - 150;  // |x| = m * 2^e
        turns[i] = 0;
        if (e < -6 || e > 104) continue;
        const uint32_t *w = two_over_pi + ((e + 30) >> 5);
        int s = (e + 30) & 31;  // bits above these make whole turns
        uint64_t a = uint32_t((uint64_t(w[0]) << 32 | w[1]) << s >> 32),
                 b = uint32_t((uint64_t(w[1]) << 32 | w[2]) << s >> 32);
        uint64_t c = uint32_t((uint64_t(w[2]) << 32 | w[3]) << s >> 32), t = m * b + (m * c >> 32);
        uint64_t u = uint64_t(uint32_t(m * a + (t >> 32))) << 32 | uint32_t(t);
        turns[i] = int64_t(x[i] >> 31 ? 0 - u : u);
    }
}
template <int L> PK_FN simd<int64_t, L> huge_turns(f32<L> x) {
    uint32_t b[L];
    int64_t t[L];
    store_whole(b, bits<uint32_t>(x));
    reduce_huge(L, b, t);
    return load_whole<int64_t, L>(t);
}
// r = x - (n + shift) * pi for the nearest n, and the sign of sin(x) against sin(r) in the top bit
// of odd.
template <int L> struct reduced {
    f32<L> r;
    i32<L> odd;
};
template <int L> PK_FN reduced<L> reduce_by_pi(f32<L> x, float shift) {
    f32<L> magic = 12582912.0f;
    f32<L> m = shift == 0 ? fused(x, f32<L>(0x1.45f306p-2f), magic)
                          : fused(x, f32<L>(0x1.45f306p-2f), f32<L>(-shift)) + magic;
    f32<L> n = m - magic + f32<L>(shift);
    f32<L> r = fused(n, f32<L>(-0x1.921fb6p1f), x);
    r = fused(n, f32<L>(0x1.777a5cp-24f), r);
    r = fused(n, f32<L>(0x1.ee59dap-49f), r);
    i32<L> odd = shift_left<31>(bits<int32_t>(m));
    auto huge = abs(x) > f32<L>(0x1p17f);
    if (__builtin_expect(any(huge), 0)) {
        simd<int64_t, L> u = huge_turns(x) - simd<int64_t, L>(shift != 0 ? int64_t(1) << 62 : 0),
                         v = u + u;
        simd<double, L> d = cast<double>(v) * simd<double, L>(0x1.921fb54442d18p-63);
        auto far = cast<int32_t>(shift_right<32>(u ^ v)) & i32<L>(int32_t(0x80000000));
        r = choose(huge, cast<float>(d), r);
        r = choose(abs(x) < f32<L>(__builtin_inff()), r, x - x);
        odd = choose(huge, far, odd);
    }
    return {r, odd};
}
template <int L> PK_FN f32<L> sin_poly(reduced<L> a) {
    f32<L> z = a.r * a.r;
    f32<L> y = fused(a.r * z,
                     horner(z, -0x1.b0a156p-26f, 0x1.7298c6p-19f, -0x1.a02296p-13f, 0x1.111134p-7f,
                            -0x1.555556p-3f),
                     a.r);
    return bits<float>(bits<int32_t>(y) ^ a.odd);
}
template <int L> PK_FN f32<L> sin_part(f32<L> x) {
    f32<L> y = sin_poly(reduce_by_pi(x, 0));
    return choose(x == f32<L>(0), x, y);
}
PK_FUNCTION_F32(sin)
template <int L> PK_FN f32<L> cos_part(f32<L> x) {
    auto a = reduce_by_pi(abs(x), 0.5f);
    a.odd = ~a.odd & i32<L>(int32_t(0x80000000));
    return sin_poly(a);
}
PK_FUNCTION_F32(cos)

template <int L> PK_FN f32<L> tan_part(f32<L> x) {
    f32<L> magic = 12582912.0f;
    f32<L> m = fused(x, f32<L>(0x1.45f306p-1f), magic), n = m - magic;
    f32<L> r = fused(n, f32<L>(-0x1.921fb6p0f), x);
    r = fused(n, f32<L>(0x1.777a5cp-25f), r);
    r = fused(n, f32<L>(0x1.ee59dap-50f), r);
    i32<L> odd = bits<int32_t>(m) & i32<L>(1);
    auto huge = abs(x) > f32<L>(0x1p17f);
    if (__builtin_expect(any(huge), 0)) {
        simd<int64_t, L> u = huge_turns(x), v = u + u + u + u;
        simd<double, L> d = cast<double>(v) * simd<double, L>(0x1.921fb54442d18p-64);
        auto far = cast<int32_t>(shift_right<63>((u + u) ^ v)) & i32<L>(1);
        r = choose(huge, cast<float>(d), r);
        r = choose(abs(x) < f32<L>(__builtin_inff()), r, x - x);
        odd = choose(huge, far, odd);
    }
    f32<L> z = r * r,
           t = fused(r * z,
                     horner(z, 0x1.2b9688p-8f, -0x1.37045cp-12f, 0x1.6cb60ep-7f, 0x1.5aebb8p-6f,
                            0x1.bb0428p-5f, 0x1.110cccp-3f, 0x1.555562p-2f),
                     r);
    auto flip = odd != i32<L>(0);
    f32<L> y = choose(flip, f32<L>(-1), t) / choose(flip, t, f32<L>(1));
    return choose(x == f32<L>(0), x, y);
}
PK_FUNCTION_F32(tan)

// erfcx(|x|) exp(-x^2), and 2 minus that where x < 0.
template <int L> PK_FN f32<L> erfc_part(f32<L> x) {
    f32<L> magic = 12582912.0f, a = lesser(f32<L>(10.17f), abs(x));
    f32<L> m = fused(a, f32<L>(0x1.861862p0f), magic), u = fused(m - magic, f32<L>(-0.65625f), a);
    f32<L> q = lookup_polynomial<7>(erfcx_table, bits<int32_t>(m), u);
    f32<L> h = a * a, low = fused(a, a, -h);
    f32<L> n = fused(h, f32<L>(-0x1.715476p0f), magic) - magic;
    f32<L> r = fused(n, f32<L>(-0x1.62e4p-1f), -h);
    r = fused(n, f32<L>(-0x1.7f7d1cp-20f), r) - low;
    f32<L> p = horner(r, 0x1.6a2444p-10f, 0x1.1239d6p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f,
                      0x1.fffffcp-2f, 1, 1);
    f32<L> y = scale(p * q, n);
    return choose(x < f32<L>(0), f32<L>(2) - y, y);
}
PK_FUNCTION_F32(erfc)

// In double: 2^(y log2 |x|), then C's special cases.
template <int L> PK_FN f32<L> pow_magnitude(f32<L> a, f32<L> y) {
    typedef simd<double, L> D;
    typedef simd<int64_t, L> I;
    D x = cast<double>(a);
    I b = bits<int64_t>(x), k = shift_right<52>(b - I(0x3fe8000000000000));
    D f = bits<double>(b - shift_left<52>(k)) - D(1);
    D w = fused(f,
                horner(f, -0x1.088bceb7e62e9p-5, 0x1.72e2daa4c3532p-4, -0x1.039bc2d08a5abp-3,
                       0x1.17bb42be87dfap-3, -0x1.287186f6b9c4ap-3, 0x1.4786ac725fd35p-3,
                       -0x1.712f2eb25c918p-3, 0x1.a61ce611a15f4p-3, -0x1.ec720c5f57d4cp-3,
                       0x1.2776bd0b0c3a7p-2, -0x1.715473b6922aep-2, 0x1.ec709dcb8af7fp-2,
                       -0x1.7154765404ed6p-1, 0x1.71547652b7c21p+0),
                cast<double>(cast<int32_t>(k)));
    D t = w * cast<double>(y);
    t = greater(D(-160), lesser(D(160), t));
    D magic = 0x1.8p52, m = t + magic, r = t - (m - magic);
    D p = horner(r, 0x1.41d32d337f156p-13, 0x1.5f456a79e0b10p-10, 0x1.3b2dbbca3558dp-7,
                 0x1.c6aed4b97afbap-5, 0x1.ebfbdadca329cp-3, 0x1.62e430c7e8f91p-1,
                 0x1.000000026155dp+0);
    return cast<float>(bits<double>(bits<int64_t>(p) + shift_left<52>(bits<int64_t>(m))));
}
template <int L> PK_FN f32<L> pow_halves(f32<L> a, f32<L> y) {
    if constexpr (whole<double, L>) return pow_magnitude(a, y);
    else return join(pow_halves(lower(a), lower(y)), pow_halves(upper(a), upper(y)));
}
template <int L> PK_FN f32<L> pow_part(f32<L> x, f32<L> y) {
    f32<L> inf = __builtin_inff(), one = 1.0f, zero = 0.0f, a = abs(x), b = abs(y);
    f32<L> r = pow_halves(a, y);
    auto plain = (x > zero) & (x < inf) & (b < inf);
    if (__builtin_expect(any(~plain), 0)) {
        f32<L> flat = choose((a < one) ^ (y < zero), zero, inf);  // where a or b is 0 or inf
        r = choose((a == zero) | (a == inf) | (b == inf), flat, r);
        r = choose((b == inf) & (a == one), one, r);
        auto integral = rint(y) == y;
        auto low_bit = cast<int32_t>(lesser(f32<L>(0x1p24f), b)) & i32<L>(1);
        auto odd = integral & (b < f32<L>(0x1p24f)) & (low_bit != i32<L>(0));
        r = choose(odd, sign_from(r, x), r);
        r = choose((x < zero) & ~integral & (a < inf), f32<L>(__builtin_nanf("")), r);
        r = choose(isnan(x) | isnan(y), x + y, r);
        r = choose((y == zero) | (x == one), one, r);
    }
    return r;
}

#define PK_FUNCTION2_F32(name)                                                                     \
    template <int L> PK_FN f32<L> name##_of(f32<L> x, f32<L> y) {                                  \
        if constexpr (whole<float, L>) return name##_part(x, y);                                   \
        else return f32<L>::of(name##_of(x.s.lo, y.s.lo), name##_of(x.s.hi, y.s.hi));              \
    }                                                                                              \
    PK_LAZY f32x16 name(f32x16 x, f32x16 y) { return name##_of(x, y); }                            \
    PK_LAZY float name(float x, float y) {                                                         \
        return name##_part(f32<PK_BYTES / 4>(x), f32<PK_BYTES / 4>(y))[0];                         \
    }
PK_FUNCTION2_F32(pow)
PK_FUNCTION2_F32(atan2)
}  // namespace pk
#endif
