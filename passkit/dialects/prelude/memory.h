// Memory. A lane that is off is not touched, and loads as 0.
#ifndef PK_MEMORY_H
#define PK_MEMORY_H
#ifndef PK_MASKS_H
#include "masks.h"
#endif

namespace pk {
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
#if __AVX2__ && !PK_AVX512
// The first n bytes of a register, in at most six stores. AMD's processors of this kind take a
// masked store for as long as six others.
typedef char bytes32 __attribute__((vector_size(32)));
PK_FN void store_bytes(char *p, bytes32 v, int n) {
    typedef char loose32 __attribute__((vector_size(32), aligned(1), may_alias));
    typedef long long di2 __attribute__((vector_size(16)));
    typedef long long loose16 __attribute__((vector_size(16), aligned(1), may_alias));
    typedef long long loose8 __attribute__((aligned(1), may_alias));
    typedef int loose4 __attribute__((aligned(1), may_alias));
    typedef short loose2 __attribute__((aligned(1), may_alias));
    typedef long long di4 __attribute__((vector_size(32)));
    if (n == 32) {
        *(loose32 *)p = v;
        return;
    }
    di2 part = __builtin_shufflevector((di4)v, (di4)v, 0, 1);
    if (n & 16) {
        *(loose16 *)p = part, p += 16;
        part = __builtin_shufflevector((di4)v, (di4)v, 2, 3);
    }
    long long eight = part[0];
    if (n & 8) *(loose8 *)p = eight, p += 8, eight = part[1];
    if (n & 4) *(loose4 *)p = int(eight), p += 4, eight >>= 32;
    if (n & 2) *(loose2 *)p = short(eight), p += 2, eight >>= 16;
    if (n & 1) *p = char(eight);
}
// Those of its lanes of four bytes that are on: most often the first ones.
static __attribute__((noinline, unused)) void store_some(int *p, bytes32 v, bytes32 m) {
    typedef float sf8 __attribute__((vector_size(32)));
    typedef int si8 __attribute__((vector_size(32)));
    const int on = __builtin_ia32_movmskps256((sf8)m);
    if (on & (on + 1)) __builtin_ia32_maskstored256((si8 *)p, (si8)m, (si8)v);
    else store_bytes((char *)p, v, 4 * __builtin_popcount(on));
}
// The same of lanes of so many bytes, of which bit i tells whether lane i is on.
static __attribute__((noinline, unused)) void store_narrow(char *p, bytes32 v, int on, int size) {
    if (!(on & (on + 1))) return store_bytes(p, v, size * __builtin_popcount(on));
    for (int i = 0; i < 16 * size; i++)
        if (on >> i / size & 1) p[i] = v[i];
}
static __attribute__((noinline, unused)) bytes32 load_narrow(const char *p, int on, int size) {
    bytes32 r = {};
    if (!(on & (on + 1))) __builtin_memcpy(&r, p, size * __builtin_popcount(on));
    else
        for (int i = 0; i < 16 * size; i++)
            if (on >> i / size & 1) r[i] = p[i];
    return r;
}
PK_LAZY int lanes_on(mask_t<16> m) {
    typedef float sf8 __attribute__((vector_size(32)));
    const int low = __builtin_ia32_movmskps256((sf8)lower(m).m.s);
    return low | __builtin_ia32_movmskps256((sf8)upper(m).m.s) << 8;
}
template <class T, int L> constexpr bool narrow_lanes = sizeof(T) < 4 && L == 16;
#endif
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
    } else if constexpr (narrow_lanes<T, L>) {
        const bytes32 all = load_narrow((const char *)p, lanes_on(m), sizeof(T));
        S r;
        __builtin_memcpy(&r, &all, sizeof r);
        return R::of(r);
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
        if constexpr (sizeof(T) == 4) store_some((int *)p, (bytes32)v.s, (bytes32)m.m.s);
        else store_some((int *)p, (bytes32)v.s, (bytes32)cast<int64_t>(m.m).s);
    } else if constexpr (narrow_lanes<T, L>) {
        bytes32 all = {};
        __builtin_memcpy(&all, &v.s, sizeof v.s);
        store_narrow((char *)p, all, lanes_on(m), sizeof(T));
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

// One element for all lanes, if any of them is on.
template <class T, class M> PK_FN T load_one(const T *p, M m) { return any(m) ? *p : T(0); }

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
// The same of rows that lie apart.
template <class T, class M> PK_FN void ahead(const T *p, int64_t stride, int64_t rows, M m) {
    for (int64_t r = 0; r < rows; r++) prefetch(p + r * stride, m);
}

// A store past the caches where the address allows it; stream_fence() orders those before what
// follows. Vectors shorter than a cache line meet in the processor's write buffers.
template <class T, int L> PK_FN void stream_parts(T *p, simd<T, L> v) {
    if constexpr (!whole<T, L>) {
        stream_parts(p, v.s.lo);
        stream_parts(p + L / 2, v.s.hi);
    } else {
#if PK_AVX512
        typedef long long w64 __attribute__((vector_size(64), may_alias));
        typedef long long w32 __attribute__((vector_size(32), may_alias));
        typedef long long w16 __attribute__((vector_size(16), may_alias));
        constexpr int bytes = sizeof(T) * L;
        if constexpr (bytes == 64) __builtin_ia32_movntdq512((w64 *)p, (w64)v.s);
        else if constexpr (bytes == 32) __builtin_ia32_movntdq256((w32 *)p, (w32)v.s);
        else if constexpr (bytes == 16) __builtin_ia32_movntdq((w16 *)p, (w16)v.s);
        else
#endif
            store_whole<T, L>(p, v);
    }
}
template <class T, int L> PK_FN void stream(T *p, simd<T, L> v, all_of<L>) {
    constexpr int bytes = sizeof(T) * L < 64 ? sizeof(T) * L : 64;
    if ((uintptr_t)p & (bytes - 1)) store_whole(p, v);
    else stream_parts(p, v);
}
// Behind packs there may be whole vectors, too.
template <class T, int L> PK_FN void stream(T *p, simd<T, L> v, mask_t<L> m) {
    if (all(m)) stream(p, v, all_of<L>{});
    else store(p, v, m);
}
template <int L, class M> PK_FN void stream(bool *p, mask_t<L> v, M m) {
    stream((uint8_t *)p, mask_bytes(v), m);
}
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
template <class T> PK_FN vec<T, 16> gather_lanes(const T *p, i64x16 at, mask_t<16> on) {
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
template <class T> PK_FN vec<T, 16> gather_strided(const T *p, int64_t stride, mask_t<16> on) {
    return gather_lanes(p, i64x16(stride) * lane_index(), on);
}
#endif
#if PK_AVX512 && __BMI2__
// p[0], p[3], ...: a gather takes longer than the three vectors in which they lie.
template <class T> PK_FN vec<T, 16> every_third(const T *p, mask_t<16> on) {
    if constexpr (sizeof(T) == 8) {
        auto half = [&](const T *q, unsigned lanes) PK_INLINE {
            const unsigned among = __builtin_ia32_pdep_si(lanes, 0x249249);
            auto a = load_masked<T, 8>(q, mask_t<8>::of(among & 255)).s;
            auto b = load_masked<T, 8>(q + 8, mask_t<8>::of(among >> 8 & 255)).s;
            auto c = load_masked<T, 8>(q + 16, mask_t<8>::of(among >> 16)).s;
            auto ab = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 0, 0);
            return simd<T, 8>::of(__builtin_shufflevector(ab, c, 0, 1, 2, 3, 4, 5, 10, 13));
        };
        return vec<T, 16>::of(half(p, lower(on).k), half(p + 24, upper(on).k));
    } else {
        const uint64_t among = __builtin_ia32_pdep_di(unsigned(on.k), 0x249249249249);
        auto a = load_masked<T, 16>(p, mask_t<16>::of(among & 65535)).s;
        auto b = load_masked<T, 16>(p + 16, mask_t<16>::of(among >> 16 & 65535)).s;
        auto c = load_masked<T, 16>(p + 32, mask_t<16>::of(among >> 32)).s;
        auto ab = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
        return vec<T, 16>::of(__builtin_shufflevector(ab, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20,
                                                  23, 26, 29));
    }
}
#endif
template <int L, class T, class M> PK_FN vec<T, L> strided(const T *p, int64_t stride, M m) {
#if PK_AVX512 && __BMI2__
    if constexpr (sizeof(T) >= 4 && L == 16)
        if (__builtin_constant_p(stride) && stride == 3) return every_third(p, m);
#endif
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
}  // namespace pk
#endif
