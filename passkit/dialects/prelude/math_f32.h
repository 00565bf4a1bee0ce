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

// name(x) runs name_part on the lanes of a register, or of a pack where there are registers for it;
// name(float) is lane 0 of it.
#if PK_AVX512
template <int L> inline constexpr bool together = L <= 64;
#else
template <int L> inline constexpr bool together = whole<float, L>;
#endif
#define PK_FUNCTION_F32(name)                                                                      \
    template <int L> PK_FN f32<L> name(f32<L> x) {                                                 \
        if constexpr (together<L>) return name##_part(x);                                          \
        else return f32<L>::of(name(x.s.lo), name(x.s.hi));                                        \
    }                                                                                              \
    PK_LAZY float name(float x) { return name##_part(f32<PK_BYTES / 4>(x))[0]; }

// p * 2^floor(n) for n of -300..300, rounded once.
template <int L> PK_FN f32<L> scale(f32<L> p, f32<L> n) {
#if PK_AVX512
    if constexpr (!whole<float, L>) return f32<L>::of(scale(p.s.lo, n.s.lo), scale(p.s.hi, n.s.hi));
    else return f32<L>::of(__builtin_ia32_scalefps512_mask(p.s, n.s, p.s, (short)-1, 4));
#else
    i32<L> k = cast<int32_t>(floor(n)), h = shift_right<1>(k);
    return p * bits<float>(shift_left<23>(h + i32<L>(127))) *
           bits<float>(shift_left<23>(k - h + i32<L>(127)));
#endif
}
#if PK_AVX512
// The same where x is not below the least, else 0: there a result that underflows would take the
// processor some 150 cycles.
template <int L> PK_FN f32<L> scale_above(float least, f32<L> x, f32<L> p, f32<L> n) {
    if constexpr (!whole<float, L>)
        return f32<L>::of(scale_above(least, x.s.lo, p.s.lo, n.s.lo),
                          scale_above(least, x.s.hi, p.s.hi, n.s.hi));
    else {
        auto on = compare<NOT_LT>(x, f32<L>(least));
        return f32<L>::of(__builtin_ia32_scalefps512_mask(p.s, n.s, isa::sf16{}, (short)on.k, 4));
    }
}
// The argument of a function that ends in scale_above need not be cut off below.
template <int L> PK_FN f32<L> cut_below(float, f32<L> x) { return x; }
#else
template <int L> PK_FN f32<L> scale_above(float, f32<L>, f32<L> p, f32<L> n) { return scale(p, n); }
template <int L> PK_FN f32<L> cut_below(float least, f32<L> x) { return greater(f32<L>(least), x); }
#endif

// table[k & 7] in each lane: eight numbers are what one permutation chooses from with AVX2, too.
template <int L> PK_FN f32<L> lookup(const float (&table)[8], i32<L> k) {
    if constexpr (!whole<float, L>) return f32<L>::of(lookup(table, k.s.lo), lookup(table, k.s.hi));
    else {
#if PK_AVX512
        auto &t = *(const native_t<float, 8> *)table;
        auto twice = __builtin_shufflevector(t, t, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
        f32<L> r;  // GCC would clear it first
        asm("vpermps %1, %2, %0" : "=v"(r.s) : "v"(twice), "v"(k.s));
        return r;
#elif __AVX2__
        return f32<L>::of(__builtin_ia32_permvarsf256(load_whole<float, 8>(table).s, k.s));
#else
        f32<L> r;
        for (int i = 0; i < L; i++) r.s[i] = table[k.s[i] & 7];
        return r;
#endif
    }
}
// table[0] + table[1] * u + ... with the column of coefficients that k chooses.
template <int rows, int L>
PK_FN f32<L> lookup_polynomial(const float (&table)[rows][8], i32<L> k, f32<L> u) {
    f32<L> p = lookup(table[rows - 1], k);
#pragma GCC unroll 8
    for (int i = rows - 2; i >= 0; i--) p = fused(p, u, lookup(table[i], k));
    return p;
}
// The same for places that lie further apart the further from 0: those of 1 + a / unit that have no
// more than one bit behind the first one. u goes from the last place at or below a on.
template <int rows, int L>
PK_FN f32<L> lookup_further(const float (&table)[rows][8], float unit, f32<L> a) {
    i32<L> b = bits<int32_t>(fused(a, f32<L>(1 / unit), f32<L>(1)));
    f32<L> place = bits<float>(b & i32<L>(-0x400000)) - f32<L>(1);
    return lookup_polynomial(table, shift_right<22>(b), fused(place, f32<L>(-unit), a));
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
// exp(x) = 2^n 2^(j/8) exp(r): the sum with 1.5 2^20 rounds to eighths, whose number ends in j.
alignas(32) static const float exp_table[8] = {
    0x1p0f, 0x1.172b84p0f, 0x1.306fep0f, 0x1.4bfdaep0f, 0x1.6a09e6p0f, 0x1.8ace54p0f,
    0x1.ae89fap0f, 0x1.d5818ep0f};
template <int most, int L> PK_FN f32<L> exp_up_to(f32<L> x) {
    x = cut_below(-104, x);
    f32<L> magic = 0x1.8p20f + 64, m = fused(x, f32<L>(0x1.715476p0f), magic), n = m - magic;
    f32<L> r = fused(n, f32<L>(-0x1.62e4p-1f), x);
    r = fused(n, f32<L>(-0x1.7f7d1cp-20f), r);
    f32<L> t = lookup(exp_table, bits<int32_t>(m));
    f32<L> p = fused(t * r, horner(r, 0x1.5548aap-3f, 0x1.0008aap-1f, 1), t);
#if !PK_AVX512
    if constexpr (most == 0) {  // n + 64 can be added to the exponent: what is less rounds once
        i32<L> up = shift_left<20>(bits<int32_t>(m) & i32<L>(-8));
        f32<L> down = fused(x, f32<L>(0), f32<L>(0x1p-64f));  // or NaN: up is anything then
        return bits<float>(bits<int32_t>(p) + up) * down;
    }
#endif
    return scale_above(-104, x, p, n);
}
template <int L> PK_FN f32<L> exp_part(f32<L> x) { return exp_up_to<89>(lesser(f32<L>(89), x)); }
PK_FUNCTION_F32(exp)
// The same of what is 0 or less, or NaN.
template <int L> PK_FN f32<L> exp_nonpositive_part(f32<L> x) { return exp_up_to<0>(x); }
PK_FUNCTION_F32(exp_nonpositive)

// exponent and mantissa in [0.75, 1.5) of x > 0; log of 0, inf, NaN and negative x come out right
// of e * ln2 + log(m).
template <int L> struct split_log {
    f32<L> mantissa, exponent;
};
template <int L> PK_FN split_log<L> log_parts(f32<L> x) {
#if PK_AVX512
    if constexpr (!whole<float, L>) {
        auto lo = log_parts(x.s.lo), hi = log_parts(x.s.hi);
        return {f32<L>::of(lo.mantissa, hi.mantissa), f32<L>::of(lo.exponent, hi.exponent)};
    } else {
        f32<L> m = f32<L>::of(__builtin_ia32_getmantps512_mask(x.s, 11, x.s, (short)-1, 4));
        f32<L> e = f32<L>::of(__builtin_ia32_getexpps512_mask(x.s, x.s, (short)-1, 4));
        return {m, e - f32<L>::of(__builtin_ia32_getexpps512_mask(m.s, m.s, (short)-1, 4))};
    }
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

alignas(32) static const float erf_table[7][8] = {
    {0, 0x1.1855a6p-1f, 0x1.bbef1p-1f, 0x1.f39bc2p-1f, 0x1.fea422p-1f, 0x1.ffe96ap-1f,
     0x1.ffff24p-1f, 0x1.fffffcp-1f},
    {0x1.20dd76p0f, 0x1.b3ab04p-1f, 0x1.75a936p-2f, 0x1.6c7e44p-4f, 0x1.946244p-7f, 0x1.fe43a4p-11f,
     0x1.6e2d58p-15f, 0x1.2b0452p-20f},
    {-0x1.81db06p-17f, -0x1.cee5acp-2f, -0x1.8d03fap-2f, -0x1.227478p-3f, -0x1.adae6cp-6f,
     -0x1.52a242p-9f, -0x1.224478p-13f, -0x1.d84044p-18f},
    {-0x1.80c7c6p-2f, -0x1.fa2192p-4f, 0x1.3939bp-3f, 0x1.efce52p-4f, 0x1.0eaf58p-5f,
     0x1.1699c8p-8f, 0x1.25ee2p-12f, 0x1.48f606p-17f},
    {-0x1.0f973ep-8f, 0x1.77bf2cp-3f, 0x1.8950ep-5f, -0x1.92d3p-5f, -0x1.af5174p-6f,
     -0x1.3cb56ep-8f, -0x1.b9fdd6p-12f, 0x1.115a2p-14f},
    {0x1.10d8d6p-3f, -0x1.0cf40ap-10f, -0x1.0950f8p-4f, -0x1.719c2ep-8f, 0x1.92d056p-7f,
     0x1.fda17ep-9f, 0x1.dac90ap-12f, 0x1.a00946p-16f},
    {-0x1.5a4d1cp-5f, -0x1.85a5cp-5f, 0x1.3f7662p-7f, 0x1.00de7ap-6f, -0x1.03d6b2p-9f,
     -0x1.c5e9e6p-10f, -0x1.98d3fp-13f, -0x1.69bb9cp-11f},
};
// About the nearest of 8 multiples of 17/32; the greatest a gives 1 exactly.
template <int L> PK_FN f32<L> erf_part(f32<L> x) {
    f32<L> magic = 0x1.8p23f, a = lesser(f32<L>(0x1.f8p1f), abs(x));
    f32<L> m = fused(a, f32<L>(0x1.e1e1e2p0f), magic), u = fused(m - magic, f32<L>(-0x1.1p-1f), a);
    return with_sign(lookup_polynomial(erf_table, bits<int32_t>(m), u), x);
}
PK_FUNCTION_F32(erf)

alignas(32) static const float tanh_table[7][8] = {
    {0x1.1bf48p-1f, 0x1.b2523cp-1f, 0x1.e878ap-1f, 0x1.fe06ecp-1f, 0x1.ffd67ap-1f, 0x1.ffffb8p-1f,
     0, 0x1.35f98ap-2f},
    {0x1.6283eap-1f, 0x1.1f2568p-2f, 0x1.6fcdc2p-4f, 0x1.f7fa3p-8f, 0x1.4a9fbap-11f,
     0x1.31b0e4p-18f, 0x1p0f, 0x1.d11574p-1f},
    {-0x1.890d8ap-2f, -0x1.e742c6p-3f, -0x1.5edb7p-4f, -0x1.f4a30ap-8f, -0x1.414b34p-11f,
     -0x1.733552p-18f, -0x1.972b1p-19f, -0x1.1990acp-2f},
    {-0x1.41dd3cp-6f, 0x1.bdea46p-4f, 0x1.a8615ap-5f, 0x1.452f26p-8f, 0x1.818914p-12f,
     0x1.452812p-18f, -0x1.553066p-2f, -0x1.c1f31ep-3f},
    {0x1.2d6a58p-3f, -0x1.f90b06p-7f, -0x1.59afecp-6f, -0x1.2711e8p-9f, -0x1.232bfcp-13f,
     -0x1.70e39cp-19f, -0x1.18142ap-9f, 0x1.470cf4p-3f},
    {-0x1.4b8154p-4f, -0x1.86e1c4p-7f, 0x1.64e636p-8f, 0x1.5c6eaep-11f, 0x1.f783d6p-16f,
     0x1.c49e82p-21f, 0x1.2e58eap-3f, 0x1.369cd6p-5f},
    {0x1.fa643cp-7f, 0x1.80cbbep-8f, -0x1.6403fp-11f, -0x1.8f5b26p-14f, -0x1.7810d4p-19f,
     -0x1.be55c8p-24f, -0x1.6b9a64p-5f, -0x1.d80c8p-5f},
};
template <int L> PK_FN f32<L> tanh_part(f32<L> x) {
    f32<L> a = lesser(f32<L>(0x1.2bp3f), abs(x));
    return with_sign(lookup_further(tanh_table, 0.625f, a), x);
}
PK_FUNCTION_F32(tanh)

template <int L> PK_FN f32<L> exp2_part(f32<L> x) {
    f32<L> magic = 12582912.0f;
    x = cut_below(-151, lesser(f32<L>(129), x));
    f32<L> n = x + magic - magic;
    f32<L> p = horner(x - n, 0x1.40b262p-13f, 0x1.5f095cp-10f, 0x1.3b2f1ap-7f, 0x1.c6af7ap-5f,
                      0x1.ebfbdap-3f, 0x1.62e43p-1f, 1);
    return scale_above(-151, x, p, n);
}
PK_FUNCTION_F32(exp2)

// 2^n (1 + p) - 1 with p = exp(r) - 1, halved on the way lest 2^128 overflow.
template <int L> PK_FN f32<L> expm1_part(f32<L> x) {
    f32<L> magic = 12582912.0f, a = greater(f32<L>(-30), lesser(f32<L>(89), x));
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
    f32<L> e = exp_up_to<0>(-abs(x));
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

alignas(32) static const float erfcx_table[8][8] = {
    {0x1.0fce4ep-1f, 0x1.5f88f6p-2f, 0x1.fdb50ep-3f, 0x1.436aep-3f, 0x1.d66ec4p-4f, 0x1.2ef8dp-4f,
     0x1p0f, 0x1.693716p-1f},
    {-0x1.97fde2p-2f, -0x1.797b46p-3f, -0x1.a0c114p-4f, -0x1.5db442p-5f, -0x1.77b416p-6f,
     -0x1.3b2006p-7f, -0x1.20dd74p0f, -0x1.496434p-1f},
    {0x1.07106ep-2f, 0x1.703b6ep-4f, 0x1.3fa698p-5f, 0x1.6e6252p-7f, 0x1.2683dp-8f, 0x1.4514eap-10f,
     0x1.ffff74p-1f, 0x1.efab1ep-2f},
    {-0x1.2de342p-3f, -0x1.4e7a04p-5f, -0x1.ceed2ap-7f, -0x1.762b0ep-9f, -0x1.c424ccp-11f,
     -0x1.4c3ep-13f, -0x1.811a7ap-1f, -0x1.404286p-2f},
    {0x1.35d9fap-4f, 0x1.2d7c62p-6f, 0x1.392a6cp-8f, 0x1.7c329ap-11f, 0x1.4ca478p-13f,
     0x1.4ca73ap-16f, 0x1.fee1c8p-2f, 0x1.28998ap-3f},
    {-0x1.0ca614p-5f, -0x1.36eedep-7f, -0x1.740664p-10f, -0x1.8929dcp-13f, -0x1.b120a6p-16f,
     -0x1.34f3b8p-19f, -0x1.2d58ep-2f, 0x1.4add7p-4f},
    {0x1.49a2bcp-7f, 0x1.525944p-8f, 0x1.49b15p-12f, 0x1.6f598cp-15f, 0x1.a06ff4p-19f,
     0x1.c6751ep-23f, 0x1.26f43p-3f, -0x1.57bc0cp-2f},
    {-0x1.7b121cp-10f, -0x1.b2ae5cp-10f, -0x1.30257cp-15f, -0x1.8ed862p-18f, -0x1.998342p-23f,
     -0x1.6e0b8ap-27f, -0x1.6051cap-5f, 0x1.361dc2p-2f},
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
    f32<L> q = lookup_further(erfcx_table, 0.6875f, a);
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
    template <int L> PK_FN f32<L> name(f32<L> x, f32<L> y) {                                       \
        if constexpr (whole<float, L>) return name##_part(x, y);                                   \
        else return f32<L>::of(name(x.s.lo, y.s.lo), name(x.s.hi, y.s.hi));                        \
    }                                                                                              \
    PK_LAZY float name(float x, float y) {                                                         \
        return name##_part(f32<PK_BYTES / 4>(x), f32<PK_BYTES / 4>(y))[0];                         \
    }
PK_FUNCTION2_F32(pow)
PK_FUNCTION2_F32(atan2)
}  // namespace pk
#endif
