// Masks: which lanes are on, comparisons that make them, and choices by them.
#ifndef PK_MASKS_H
#define PK_MASKS_H
#ifndef PK_TYPES_H
#include "types.h"
#endif

namespace pk {
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
        // GCC 12 stores masks of 8 lanes as bytes and loads them back as words, with a stray byte:
        // kunpckbw looks at neither's upper half.
        else if constexpr (L == 16) r.k = __builtin_ia32_kunpckhi(hi.k, lo.k);
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
#if PK_AVX2  // else a comparison with 0 goes first, where GCC does not see that m is a mask
    else if constexpr (sizeof(T) == 8) return simd<T, L>::of(m.s < 0 ? a.s : b.s);
#endif
    else return simd<T, L>::of(m.s ? a.s : b.s);
}
template <class T, int L> PK_FN simd<T, L> choose(mask_t<L> m, simd<T, L> a, simd<T, L> b) {
    return choose_lanes(cast<sint_of<T>>(m.m), a, b);
}
#endif

typedef mask_t<PK_LANES> mask;
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
template <class T, int L = PK_LANES> using vec = typename vec_of<T, L>::type;

// All of L lanes on, known when the kernel is compiled.
template <int L> struct all_of {
    PK_MEMBER operator mask_t<L>() const { return mask_t<L>(true); }
};
typedef all_of<PK_LANES> all_lanes;
// The same of vector k of a pack, where a loop takes its vectors one after the other.
template <int k> struct part_of_pack : all_lanes {};
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

// The mask of the first n of L lanes, and of a vector's.
template <int L> PK_FN mask_t<L> first_of(int64_t n) {
    if constexpr (L > 16) return join(first_of<L / 2>(n), first_of<L / 2>(n - L / 2));
    else if constexpr (L < 16) return lower(first_of<2 * L>(n));
    else {
#if PK_AVX512
        return mask_t<L>::of(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1);
#else
        int32_t k = int32_t(n > 16 ? 16 : n < 0 ? 0 : n);
        return iota<int32_t, L>() < simd<int32_t, L>(k);
#endif
    }
}
PK_LAZY mask first(int64_t n) { return first_of<PK_LANES>(n); }

// The same where 0 < n < L is known.
template <int L> PK_FN mask_t<L> first_few_of(int64_t n) {
    if constexpr (L > 16) return first_of<L>(n);
    else {
#if PK_AVX512
        return mask_t<L>::of((1u << n) - 1);
#else
        return iota<int32_t, L>() < simd<int32_t, L>(int32_t(n));
#endif
    }
}
PK_LAZY mask first_few(int64_t n) { return first_few_of<PK_LANES>(n); }
}  // namespace pk
#endif
