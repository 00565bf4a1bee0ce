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
    template <int L> PK_FUNCTION f32<L> name(f32<L> x) {                                           \
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

// table[k & (size - 1)] in each lane, for tables of 16 and 32.
template <int size, int L> PK_FN f32<L> lookup(const float (&table)[size], i32<L> k) {
    if constexpr (!whole<float, L>) return f32<L>::of(lookup(table, k.s.lo), lookup(table, k.s.hi));
    else {
#if PK_AVX512
        f32<L> r = load_whole<float, 16>(table);
        if constexpr (size == 16)
            return f32<L>::of(__builtin_ia32_permvarsf512_mask(r.s, k.s, isa::sf16{}, (short)-1));
        else {  // overwrites the first half; GCC would overwrite, thus copy, k
            auto &second = *(const native_t<float, 16> *)(table + 16);
            asm("vpermt2ps %2, %1, %0" : "+v"(r.s) : "v"(k.s), "vm"(second));
            return r;
        }
#elif __AVX2__
        auto eighth = [&](int i) PK_INLINE {
            return __builtin_ia32_permvarsf256(load_whole<float, 8>(table + 8 * i).s, k.s);
        };
        auto odd = bits<float>(shift_left<28>(k)).s, high = bits<float>(shift_left<27>(k)).s;
        auto r = __builtin_ia32_blendvps256(eighth(0), eighth(1), odd);
        if constexpr (size == 32)
            r = __builtin_ia32_blendvps256(
                r, __builtin_ia32_blendvps256(eighth(2), eighth(3), odd), high);
        return f32<L>::of(r);
#else
        f32<L> r;
        for (int i = 0; i < L; i++) r.s[i] = table[k.s[i] & (size - 1)];
        return r;
#endif
    }
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
// exp(x) = 2^n 2^(j/32) exp(r): the sum with 1.5 2^18 rounds to 32nds, whose number ends in j.
alignas(64) static const float exp_table[32] = {
    0x1p0f, 0x1.059b0ep0f, 0x1.0b5586p0f, 0x1.11301ep0f, 0x1.172b84p0f, 0x1.1d4874p0f,
    0x1.2387a6p0f, 0x1.29e9ep0f, 0x1.306fep0f, 0x1.371a74p0f, 0x1.3dea64p0f, 0x1.44e086p0f,
    0x1.4bfdaep0f, 0x1.5342b6p0f, 0x1.5ab07ep0f, 0x1.6247ecp0f, 0x1.6a09e6p0f, 0x1.71f75ep0f,
    0x1.7a1148p0f, 0x1.82589ap0f, 0x1.8ace54p0f, 0x1.93737cp0f, 0x1.9c4918p0f, 0x1.a5503cp0f,
    0x1.ae89fap0f, 0x1.b7f77p0f, 0x1.c199bep0f, 0x1.cb720ep0f, 0x1.d5818ep0f, 0x1.dfc974p0f,
    0x1.ea4afap0f, 0x1.f50766p0f};
template <int L> PK_FN f32<L> exp_to_89(f32<L> x) {
    x = cut_below(-104, x);
    f32<L> magic = 0x1.8p18f, m = fused(x, f32<L>(0x1.715476p0f), magic), n = m - magic;
    f32<L> r = fused(n, f32<L>(-0x1.62e4p-1f), x);
    r = fused(n, f32<L>(-0x1.7f7d1cp-20f), r);
    f32<L> t = lookup(exp_table, bits<int32_t>(m));
    f32<L> p = fused(t * r, fused(r, f32<L>(0x1.000026p-1f), f32<L>(0x1.0000fap0f)), t);
    return scale_above(-104, x, p, n);
}
template <int L> PK_FN f32<L> exp_part(f32<L> x) { return exp_to_89(lesser(f32<L>(89), x)); }
PK_FUNCTION_F32(exp)
// The same of what is 0 or less, or NaN.
template <int L> PK_FN f32<L> exp_nonpositive_part(f32<L> x) { return exp_to_89(x); }
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

alignas(64) static constexpr float erf_table[5][32] = {
    {0x1.20dd76p0f, 0x1.1f5e1ap0f, 0x1.1af54ep0f, 0x1.13e08cp0f, 0x1.0a7ef6p0f, 0x1.fe8f16p-1f,
     0x1.e57b74p-1f, 0x1.cacbc2p-1f, 0x1.af767ap-1f, 0x1.9450bcp-1f, 0x1.7a0518p-1f,
     0x1.611066p-1f, 0x1.49c38ep-1f, 0x1.3448f8p-1f, 0x1.20ac04p-1f, 0x1.0ee122p-1f,
     0x1.fd9ae2p-2f, 0x1.e09a7ap-2f, 0x1.c67206p-2f, 0x1.aed2p-2f, 0x1.996eeep-2f, 0x1.8603ep-2f,
     0x1.74538p-2f, 0x1.642828p-2f, 0x1.555368p-2f, 0x1.47ad4p-2f, 0x1.3b1358p-2f, 0x1.2f6828p-2f,
     0x1.24923ap-2f, 0x1.1a7b9p-2f, 0x1.11111p-2f, 0x1.08421p-2f},
    {-0x1.f1ed7cp-16f, -0x1.7d9004p-4f, -0x1.730702p-3f, -0x1.09ac38p-2f, -0x1.4c3884p-2f,
     -0x1.7edeecp-2f, -0x1.a0cdd8p-2f, -0x1.b29322p-2f, -0x1.b5db02p-2f, -0x1.ad1534p-2f,
     -0x1.9b12e2p-2f, -0x1.82ad1cp-2f, -0x1.667ed6p-2f, -0x1.48b7c6p-2f, -0x1.2b07a6p-2f,
     -0x1.0e9e1ap-2f, -0x1.e8712cp-3f, -0x1.b87062p-3f, -0x1.8d734ep-3f, -0x1.67575ap-3f,
     -0x1.45c32p-3f, -0x1.284242p-3f, -0x1.0e5896p-3f, -0x1.ef1beep-4f, -0x1.c6e932p-4f,
     -0x1.a35764p-4f, -0x1.83bf9ep-4f, -0x1.6793ecp-4f, -0x1.4e5c5cp-4f, -0x1.37b3d8p-4f,
     -0x1.234526p-4f, -0x1.10c83ap-4f},
    {-0x1.7ebep-2f, -0x1.7667b4p-2f, -0x1.57641p-2f, -0x1.2763f8p-2f, -0x1.d6e4c8p-3f,
     -0x1.5274e4p-3f, -0x1.9a6e7cp-4f, -0x1.45944cp-5f, 0x1.9995f4p-7f, 0x1.bbbc18p-5f,
     0x1.5a957p-4f, 0x1.ab14bap-4f, 0x1.d4e2bep-4f, 0x1.df9ac2p-4f, 0x1.d35dap-4f, 0x1.b7dbfcp-4f,
     0x1.93babep-4f, 0x1.6bfa4ep-4f, 0x1.441478p-4f, 0x1.1e3e26p-4f, 0x1.f7521ap-5f,
     0x1.b9eb08p-5f, 0x1.8463fap-5f, 0x1.561cb4p-5f, 0x1.2e07c6p-5f, 0x1.0bd776p-5f,
     0x1.dcd8b4p-6f, 0x1.a9e584p-6f, 0x1.7e4308p-6f, 0x1.581006p-6f, 0x1.366e7ap-6f,
     0x1.19855ep-6f},
    {-0x1.eb53b8p-5f, 0x1.c50a54p-5f, 0x1.ac6b3p-4f, 0x1.247992p-3f, 0x1.5573f6p-3f,
     0x1.66b102p-3f, 0x1.5a88p-3f, 0x1.3649acp-3f, 0x1.01b332p-3f, 0x1.8a2668p-4f, 0x1.0fd49ep-4f,
     0x1.404eap-5f, 0x1.0a48e6p-6f, -0x1.571deap-10f, -0x1.be8876p-7f, -0x1.5c55ccp-6f,
     -0x1.9bddecp-6f, -0x1.ae16bep-6f, -0x1.a19a54p-6f, -0x1.832ff2p-6f, -0x1.5bef2cp-6f,
     -0x1.3247b8p-6f, -0x1.0a1e1ep-6f, -0x1.cae476p-7f, -0x1.8a5a2p-7f, -0x1.52bd54p-7f,
     -0x1.238b8ap-7f, -0x1.f7418p-8f, -0x1.b3f12ap-8f, -0x1.7b4232p-8f, -0x1.4b5876p-8f,
     -0x1.22bae4p-8f},
    {0x1.2e86b4p-1f, 0x1.a6337ap-4f, 0x1.65275p-4f, 0x1.d1e432p-5f, 0x1.218b46p-5f,
     0x1.931a16p-10f, -0x1.c714fap-6f, -0x1.556fcap-5f, -0x1.e709acp-5f, -0x1.c35fb2p-5f,
     -0x1.bdbdf2p-5f, -0x1.9d87d2p-5f, -0x1.5aba0cp-5f, -0x1.117f5ep-5f, -0x1.5f35fep-6f,
     -0x1.155bf6p-7f, -0x1.57fb34p-10f, 0x1.9d515p-13f, 0x1.56ea3ep-12f, 0x1.f3e926p-10f,
     0x1.a35b34p-8f, 0x1.086254p-7f, 0x1.78af4p-8f, 0x1.505576p-9f, 0x1.98797ap-8f, 0x1.aed8fp-9f,
     0x1.7c892ep-10f, 0x1.885b4ap-9f, -0x1.dfdaa4p-11f, -0x1.3e426ap-12f, 0x1.1e764p-8f,
     0x1.dfff8p-10f},
};
alignas(64) static constexpr float tanh_table[6][32] = {
    {0x1p0f, 0x1.f17868p-1f, 0x1.cb4228p-1f, 0x1.992434p-1f, 0x1.65c69p-1f, 0x1.3738bep-1f,
     0x1.0f9498p-1f, 0x1.dd8d0ap-2f, 0x1.a7c2eap-2f, 0x1.7b9b4ap-2f, 0x1.571c6p-2f,
     0x1.38a828p-2f, 0x1.1ef9f2p-2f, 0x1.09179ap-2f, 0x1.ec8294p-3f, 0x1.cbc6fp-3f,
     0x1.af17e6p-3f, 0x1.95c31ap-3f, 0x1.7f3be6p-3f, 0x1.6b1238p-3f, 0x1.58ebe8p-3f,
     0x1.487facp-3f, 0x1.39916cp-3f, 0x1.2bef6ap-3f, 0x1.1f703p-3f, 0x1.13f0dcp-3f,
     0x1.0953ecp-3f, 0x1.ff0078p-4f, 0x1.ecc078p-4f, 0x1.dbc2aap-4f, 0x1.cbe6d8p-4f,
     0x1.bd10f2p-4f},
    {-0x1.8499cap-24f, -0x1.7a36b8p-3f, -0x1.3788d8p-2f, -0x1.5f64a2p-2f, -0x1.4e05p-2f,
     -0x1.231938p-2f, -0x1.e67fdp-3f, -0x1.8fbb62p-3f, -0x1.4784fap-3f, -0x1.0da3cap-3f,
     -0x1.bfcfaap-4f, -0x1.77ad7cp-4f, -0x1.3e8626p-4f, -0x1.10ddcep-4f, -0x1.d80f86p-5f,
     -0x1.9bfee4p-5f, -0x1.6a827cp-5f, -0x1.41538ep-5f, -0x1.1eb9a8p-5f, -0x1.01654p-5f,
     -0x1.d0a8d4p-6f, -0x1.a57de4p-6f, -0x1.800fe4p-6f, -0x1.5f6676p-6f, -0x1.42bb52p-6f,
     -0x1.296e9ap-6f, -0x1.12fe74p-6f, -0x1.fe0102p-7f, -0x1.da39f4p-7f, -0x1.ba15dcp-7f,
     -0x1.9d1abcp-7f, -0x1.82e1ecp-7f},
    {-0x1.55530ep-2f, -0x1.132914p-2f, -0x1.0a96fcp-3f, -0x1.287208p-7f, 0x1.d383fep-5f,
     0x1.41a116p-4f, 0x1.3921cep-4f, 0x1.0ca874p-4f, 0x1.b45134p-5f, 0x1.5a2aeep-5f,
     0x1.10e0aap-5f, 0x1.af0fb4p-6f, 0x1.56e02ep-6f, 0x1.135162p-6f, 0x1.be9228p-7f,
     0x1.6e1898p-7f, 0x1.2f3568p-7f, 0x1.fb388cp-8f, 0x1.ac0c54p-8f, 0x1.6c893ep-8f, 0x1.38cp-8f,
     0x1.0e51e4p-8f, 0x1.d62b1p-9f, 0x1.9bc2acp-9f, 0x1.6a38e4p-9f, 0x1.408e42p-9f,
     0x1.1d1fa6p-9f, 0x1.fd130cp-10f, 0x1.c84422p-10f, 0x1.9ac2aap-10f, 0x1.731d56p-10f,
     0x1.50725ap-10f},
    {-0x1.1c5a46p-12f, 0x1.0fc808p-3f, 0x1.4633dep-3f, 0x1.b2a62ap-4f, 0x1.7181bcp-5f,
     0x1.df0f3ap-8f, -0x1.2e3dc6p-7f, -0x1.c5cadp-7f, -0x1.b5fed8p-7f, -0x1.6fd916p-7f,
     -0x1.23a378p-7f, -0x1.c2e604p-8f, -0x1.59c78p-8f, -0x1.095a08p-8f, -0x1.9928c6p-9f,
     -0x1.3e3fcap-9f, -0x1.f39a28p-10f, -0x1.8c3bbap-10f, -0x1.3d6baap-10f, -0x1.00fb22p-10f,
     -0x1.a3d674p-11f, -0x1.5a14ep-11f, -0x1.1f6318p-11f, -0x1.e21a48p-12f, -0x1.965152p-12f,
     -0x1.5967cap-12f, -0x1.27791cp-12f, -0x1.fc1354p-13f, -0x1.b7053p-13f, -0x1.7da9ap-13f,
     -0x1.4d793cp-13f, -0x1.249e74p-13f},
    {0x1.18a4bep-3f, 0x1.27ba2cp-4f, -0x1.5e24ccp-6f, -0x1.c5f3dp-5f, -0x1.5ebc38p-5f,
     -0x1.62fd2cp-6f, -0x1.ff922cp-8f, -0x1.07fe84p-10f, 0x1.52c144p-10f, 0x1.0d6f38p-9f,
     0x1.d8ce74p-10f, 0x1.9ebeacp-10f, 0x1.3ba024p-10f, 0x1.a538cp-11f, 0x1.67338ap-11f,
     0x1.021bdp-11f, 0x1.8bea24p-12f, 0x1.21a494p-12f, 0x1.1731a2p-12f, 0x1.1dd318p-13f,
     0x1.f86c48p-14f, 0x1.42d118p-14f, 0x1.c8c634p-14f, 0x1.d5276ep-16f, 0x1.52d8ap-14f,
     0x1.a1298cp-15f, 0x1.3f525cp-19f, 0x1.43807ep-16f, 0x1.6410fcp-15f, 0x1.a84de4p-16f,
     0x1.7a1faep-17f, -0x1.33b632p-18f},
    {-0x1.79387p-6f, -0x1.157264p-4f, -0x1.7df03ep-5f, -0x1.0f03fcp-9f, 0x1.e05456p-7f,
     0x1.8fad3cp-7f, 0x1.b22c82p-8f, 0x1.5ab1cep-9f, 0x1.f7195ep-11f, 0x1.059edap-15f,
     -0x1.4d3ecep-13f, -0x1.1aec12p-12f, -0x1.bac9p-13f, -0x1.ee1edp-14f, -0x1.251a7ep-13f,
     -0x1.67eff4p-14f, -0x1.451b6ap-14f, -0x1.d71e8ep-15f, -0x1.9a81dp-15f, -0x1.2c58d8p-16f,
     -0x1.d5026ap-17f, -0x1.ef5ee8p-18f, -0x1.8c1e36p-16f, 0x1.7197a2p-20f, -0x1.098556p-16f,
     -0x1.a64a34p-18f, 0x1.38a3a6p-20f, -0x1.3c016p-20f, -0x1.9bcd4cp-18f, -0x1.95eb54p-19f,
     0x1.d3e17cp-21f, 0x1.b222aep-19f},
};
#if !PK_AVX512
// A table by columns: the coefficients that one k chooses lie side by side.
template <int size> struct columns {
    alignas(32) float at[size][8];
};
template <int rows, int size> constexpr columns<size> columns_of(const float (&table)[rows][size]) {
    columns<size> made{};
    for (int k = 0; k < size; k++)
        for (int i = 0; i < rows; i++) made.at[k][i] = table[i][k];
    return made;
}
template <const auto &table> static constexpr auto by_columns = columns_of(table);

// Element n of the lines at L places in vector n, for the first four elements, or the next four.
template <int half, int L> PK_FN void fourfold(f32<L> *to, const float *const *from) {
    constexpr int o = 4 * half;
    if constexpr (L == 4) {
        auto line = [&](int i) PK_INLINE { return load_whole<float, 4>(from[i] + o).s; };
        auto a = line(0), b = line(1), c = line(2), d = line(3);
        auto p = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        auto q = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        auto r = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        auto s = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        to[0] = f32<L>::of(__builtin_shufflevector(p, q, 0, 1, 4, 5));
        to[1] = f32<L>::of(__builtin_shufflevector(p, q, 2, 3, 6, 7));
        to[2] = f32<L>::of(__builtin_shufflevector(r, s, 0, 1, 4, 5));
        to[3] = f32<L>::of(__builtin_shufflevector(r, s, 2, 3, 6, 7));
    } else {
        auto both = [&](int i) PK_INLINE {
            auto x = load_whole<float, 8>(from[i]).s, y = load_whole<float, 8>(from[i + 4]).s;
            return __builtin_shufflevector(x, y, o, o + 1, o + 2, o + 3, o + 8, o + 9, o + 10,
                                           o + 11);
        };
        auto a = both(0), b = both(1), c = both(2), d = both(3);
        auto p = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
        auto q = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
        auto r = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
        auto s = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
        to[0] = f32<L>::of(__builtin_shufflevector(p, q, 0, 1, 8, 9, 4, 5, 12, 13));
        to[1] = f32<L>::of(__builtin_shufflevector(p, q, 2, 3, 10, 11, 6, 7, 14, 15));
        to[2] = f32<L>::of(__builtin_shufflevector(r, s, 0, 1, 8, 9, 4, 5, 12, 13));
        to[3] = f32<L>::of(__builtin_shufflevector(r, s, 2, 3, 10, 11, 6, 7, 14, 15));
    }
}
#endif
// table[0] + table[1] * u + ... with the column of coefficients that k chooses. Without AVX-512 a
// lane's column is loaded whole: a table in registers would take seven instructions a coefficient.
template <const auto &table, int L> PK_FN f32<L> lookup_polynomial(i32<L> k, f32<L> u) {
    constexpr int rows = sizeof table / sizeof table[0];
    f32<L> c[8];
#if PK_AVX512
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) c[i] = lookup(table[i], k);
#else
    constexpr int size = sizeof table[0] / sizeof(float);
    uint32_t offset[L];
    store_whole((int32_t *)offset, shift_left<5>(k & i32<L>(size - 1)));
    asm("" : "+m"(offset));  // lanes are read from memory, which takes half of their extraction
    const float *from[L];
#pragma GCC unroll 8
    for (int i = 0; i < L; i++)
        from[i] = (const float *)((const char *)by_columns<table>.at + offset[i]);
    fourfold<0, L>(c, from);
    if constexpr (rows > 4) fourfold<1, L>(c + 4, from);
#endif
    f32<L> p = c[rows - 1];
#pragma GCC unroll 8
    for (int i = rows - 2; i >= 0; i--) p = fused(p, u, c[i]);
    return p;
}
// Eighths number the table's columns; the greatest a gives 1 exactly.
template <int L> PK_FN f32<L> erf_part(f32<L> x) {
    f32<L> magic = 0x1.8p23f, a = lesser(f32<L>(0x1.f7fffep1f), abs(x));
    f32<L> m = fused(a, f32<L>(8), magic), u = fused(m - magic, f32<L>(-0.125f), a);
    return lookup_polynomial<erf_table>(bits<int32_t>(m), u) * with_sign(a, x);
}
PK_FUNCTION_F32(erf)

template <int L> PK_FN f32<L> tanh_part(f32<L> x) {
    f32<L> magic = 0x1.8p23f, a = lesser(f32<L>(0x1.299998p3f), abs(x));
    f32<L> m = fused(a, f32<L>(0x1.af286cp1f), magic), u = fused(m - magic, f32<L>(-0x1.3p-2f), a);
    return lookup_polynomial<tanh_table>(bits<int32_t>(m), u) * with_sign(a, x);
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
    f32<L> a = cut_below(-104, -abs(x));
    auto p = exp_parts(a);  // more exact than exp: the quotient adds errors of its own
    f32<L> e = scale_above(-104, a, p.mantissa, p.exponent);
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

alignas(64) static constexpr float erfcx_table[8][16] = {
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
    f32<L> q = lookup_polynomial<erfcx_table>(bits<int32_t>(m), u);
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
    template <int L> PK_FUNCTION f32<L> name(f32<L> x, f32<L> y) {                                 \
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
