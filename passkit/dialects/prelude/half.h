// Floats of 16 bits: half and bfloat in memory, float in registers, where each operation is rounded
// to what memory holds. So a value has the same bits whether it was stored in between or not.
#ifndef PK_HALF_H
#define PK_HALF_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
struct half {
    uint16_t u;
    half() = default;
    PK_MEMBER explicit constexpr half(int u) : u(uint16_t(u)) {}
};
struct bfloat {
    uint16_t u;
    bfloat() = default;
    PK_MEMBER explicit constexpr bfloat(int u) : u(uint16_t(u)) {}
};

// What memory holds of L lanes: no arithmetic, only widen().
template <class H, int L> struct brief {
    simd<uint16_t, L> u;
    brief() = default;
    PK_MEMBER brief(H h) : u(h.u) {}
    PK_MEMBER explicit brief(simd<uint16_t, L> u) : u(u) {}
    PK_MEMBER H operator[](int i) const { return H(u[i]); }
};
template <int L> struct vec_of<half, L> {
    typedef brief<half, L> type;
};
template <int L> struct vec_of<bfloat, L> {
    typedef brief<bfloat, L> type;
};
#define PK_BRIEF_MEMORY(H, M)                                                                      \
    PK_BRIEF_LOAD(load, H, M)                                                                      \
    PK_BRIEF_LOAD(load_second, H, M)                                                               \
    PK_BRIEF_LOAD(load_back, H, M)                                                                 \
    template <int L> PK_FN void store(H *p, brief<H, L> v, M<L> m) {                               \
        store((uint16_t *)p, v.u, m);                                                              \
    }                                                                                              \
    template <int L> PK_FN void stream(H *p, brief<H, L> v, M<L> m) {                              \
        stream((uint16_t *)p, v.u, m);                                                             \
    }
#define PK_BRIEF_LOAD(name, H, M)                                                                  \
    template <int L> PK_FN brief<H, L> name(const H *p, M<L> m) {                                  \
        return brief<H, L>(name((const uint16_t *)p, m));                                          \
    }
PK_BRIEF_MEMORY(half, all_of)
PK_BRIEF_MEMORY(half, mask_t)
PK_BRIEF_MEMORY(bfloat, all_of)
PK_BRIEF_MEMORY(bfloat, mask_t)
#undef PK_BRIEF_MEMORY
#undef PK_BRIEF_LOAD

// What one instruction converts: this many lanes, and elsewhere what fits a register.
#if PK_AVX512
template <int L> inline constexpr bool at_once = L == 16;
#elif __F16C__ && __AVX2__
template <int L> inline constexpr bool at_once = L == 8;
#if __clang__
typedef _Float16 hf8 __attribute__((vector_size(16)));
#else
typedef short hi8 __attribute__((vector_size(16)));
#endif
#else
template <int L> inline constexpr bool at_once = whole<float, L>;
#endif

template <int L> PK_FN simd<float, L> widen_half(simd<uint16_t, L> h) {
    if constexpr (!at_once<L>) return join(widen_half(lower(h)), widen_half(upper(h)));
#if PK_AVX512
    else
        return simd<float, L>::of(
            __builtin_ia32_vcvtph2ps512_mask((isa::hi16)h.s, isa::sf16{}, (short)-1, 4));
#elif __F16C__ && __AVX2__
    else
#if __clang__  // has no builtin of GCC's name
        return simd<float, L>::of(__builtin_convertvector((hf8)h.s, native_t<float, L>));
#else
        return simd<float, L>::of(__builtin_ia32_vcvtph2ps256((hi8)h.s));
#endif
#else
    else {  // the exponent is too small by 112; infinity and NaN keep the largest
        typedef simd<uint32_t, L> U;
        U w = cast<uint32_t>(h), low = shift_left<13>(w & U(0x7fff));
        U large = bits<uint32_t>(bits<float>(low) * simd<float, L>(0x1p112f));
        U u = choose(compare<GE>(low, U(0x7c00u << 13)), low | U(0x7f800000), large);
        return bits<float>(u | shift_left<16>(w & U(0x8000)));
    }
#endif
}
// To the nearest, from the middle to the even one; NaN stays NaN.
template <int L> PK_FN simd<uint16_t, L> narrow_half(simd<float, L> x) {
    if constexpr (!at_once<L>) return join(narrow_half(lower(x)), narrow_half(upper(x)));
#if PK_AVX512
    else
        return simd<uint16_t, L>::of((native_t<uint16_t, L>)__builtin_ia32_vcvtps2ph512_mask(
            x.s, 0, isa::hi16{}, (short)-1));
#elif __F16C__ && __AVX2__
    else
        return simd<uint16_t, L>::of(
            (native_t<uint16_t, L>)__builtin_ia32_vcvtps2ph256(x.s, 0));
#else
    else {  // a sum with 0.5 counts the units of 2^-24
        typedef simd<uint32_t, L> U;
        typedef simd<float, L> F;
        U u = bits<uint32_t>(x), a = u & U(0x7fffffff), sign = shift_right<16>(u ^ a);
        U few = bits<uint32_t>(bits<float>(a) + F(0.5f)) - U(0x3f000000);
        U many = shift_right<13>(a + U(0xfff) + (shift_right<13>(a) & U(1)) - U(112u << 23));
        U r = choose(compare<LT>(a, U(113u << 23)), few, many);
        r = choose(compare<GE>(a, U(0x477ff000)), U(0x7c00), r);
        r = choose(compare<GT>(a, U(0x7f800000)), U(0x7e00) | shift_right<13>(a & U(0x7fffff)), r);
        return cast<uint16_t>(r | sign);
    }
#endif
}
// The bits of a float whose upper half are those of the nearest bfloat, unless it is NaN.
template <int L> PK_FN simd<uint32_t, L> to_bfloat(simd<uint32_t, L> u) {
    typedef simd<uint32_t, L> U;
    return u + U(0x7fff) + (shift_right<16>(u) & U(1));
}

template <int L> PK_FN simd<float, L> widen(brief<half, L> h) { return widen_half(h.u); }
template <int L> PK_FN simd<float, L> widen(brief<bfloat, L> h) {
    return bits<float>(shift_left<16>(cast<uint32_t>(h.u)));
}
template <class H, int L> PK_FN brief<H, L> narrow(simd<float, L> x) {
    if constexpr (__is_same(H, half)) return brief<H, L>(narrow_half(x));
    else {
        simd<uint32_t, L> u = bits<uint32_t>(x), quiet = u | simd<uint32_t, L>(0x400000);
        u = choose(compare<EQ>(x, x), to_bfloat(u), quiet);
        return brief<H, L>(cast<uint16_t>(shift_right<16>(u)));
    }
}
// The same from double, rounded once: what a float drops leaves a trace in its last bit.
template <class H, int L> PK_FN brief<H, L> narrow(simd<double, L> x) {
    if constexpr (__is_same(H, half)) {
        typedef simd<uint64_t, L> U;
        U u = bits<uint64_t>(x), low = u & U(0x1fffffff), kept = u ^ low;
        kept = choose(compare<NE>(low, U(0)), kept | U(0x20000000), kept);
        return narrow<H>(cast<float>(bits<double>(kept)));
    } else return narrow<H>(cast<float>(x));
}
template <class H, int L> PK_FN simd<float, L> rounded(simd<float, L> x) {
    if constexpr (__is_same(H, half)) return widen_half(narrow_half(x));
    else {
        auto near = to_bfloat(bits<uint32_t>(x)) & simd<uint32_t, L>(0xffff0000);
        return choose(compare<EQ>(x, x), bits<float>(near), x);
    }
}

// The number of 16 bits next to x on the way to y; y where they are equal.
template <class H, int L> PK_FN simd<float, L> neighbour(simd<float, L> x, simd<float, L> y) {
    typedef simd<uint16_t, L> U;
    typedef simd<float, L> F;
    U u = narrow<H>(x).u;
    U next = choose(compare<GT>(y, x) ^ compare<GT>(x, F(0)), u - U(1), u + U(1));
    next = choose(compare<EQ>(x, F(0)), choose(compare<GT>(y, x), U(1), U(0x8001)), next);
    F found = choose(compare<EQ>(x, y), y, widen(brief<H, L>(next)));
    return choose(compare<EQ>(x, x) & compare<EQ>(y, y), found, x + y);
}
template <class H> PK_FN float neighbour(float x, float y) {
    return neighbour<H>(simd<float, 16>(x), simd<float, 16>(y))[0];
}

// The same for scalars.
PK_FN float widen(half h) { return widen(brief<half, 16>(h))[0]; }
PK_FN float widen(bfloat h) { return widen(brief<bfloat, 16>(h))[0]; }
template <class H> PK_FN H narrow(float x) { return narrow<H>(simd<float, 16>(x))[0]; }
template <class H> PK_FN H narrow(double x) { return narrow<H>(simd<double, 16>(x))[0]; }
template <class H> PK_FN float rounded(float x) { return rounded<H>(simd<float, 16>(x))[0]; }
}  // namespace pk
#endif
