// Vectors: element types, the vector type and its operators.
//
// vec<T> has as many lanes for every element type. Sixteen are one zmm, two ymm, four xmm or NEON
// registers for 4-byte elements, and twice or half of that for others. simd<T, L> halves itself
// until a part fits a register. A pack of several vectors goes through a formula operation by operation, so that the
// operands of the next one are ready; with one vector at a time a long formula waits for itself.
#ifndef PK_TYPES_H
#define PK_TYPES_H
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wpsabi"
// Everything is part of the code that calls it, so that values stay in registers and calls overlap;
// or compiled once, where kernels need not be fast.
#ifdef PK_CALL_FUNCTIONS
#define PK_INLINE
#define PK_FN static inline
#define PK_MEMBER inline
#else
#define PK_INLINE __attribute__((always_inline))
#define PK_FN static inline __attribute__((always_inline))
#define PK_MEMBER inline __attribute__((always_inline))
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) &&                      \
    defined(__AVX512VL__) && !defined(__clang__)
#define PK_AVX512 1
#define PK_BYTES 64
#elif defined(__AVX2__)
#define PK_BYTES 32
#if !defined(__clang__)
#define PK_AVX2 1
#endif
#else
#define PK_BYTES 16
#endif

// The lanes of a vector, a power of two from 16 on. A dialect whose vectors have another width
// defines it in front of the prelude.
#ifndef PK_LANES
#define PK_LANES 16
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

// 0, 1, ... n - 1 as a type: a function of all of them is one function, where one that calls itself
// for the next number is compiled for each.
template <int...> struct numbers {};
template <int n, int... i> struct first_numbers : first_numbers<n - 1, n - 1, i...> {};
template <int... i> struct first_numbers<0, i...> {
    typedef numbers<i...> type;
};
template <int n> using numbers_to = typename first_numbers<n>::type;

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
template <class T, int L> PK_FN simd<T, L> maximum_with(simd<T, L> a, T b);
template <class T, int L> PK_FN simd<T, L> minimum_with(simd<T, L> a, T b);
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
    friend PK_MEMBER simd maximum(simd a, T b) { return maximum_with(a, b); }
    friend PK_MEMBER simd minimum(simd a, T b) { return minimum_with(a, b); }
    // One instruction; where either is NaN, b.
    friend PK_MEMBER simd max_ignore_nan(simd a, simd b) { return greater(a, b); }
    friend PK_MEMBER simd min_ignore_nan(simd a, simd b) { return lesser(a, b); }
    friend PK_MEMBER simd copysign(simd x, simd s) { return sign_from(x, s); }
};

#if PK_AVX2
// What GCC 12 takes several instructions for, although there is one: two halves as one register, and
// lanes of twice or half as many bytes. It sees through these where values are known.
namespace isa {  // the native types under the names that builtins take
typedef int si4 __attribute__((vector_size(16)));
typedef float sf4 __attribute__((vector_size(16)));
typedef double df2 __attribute__((vector_size(16)));
}  // namespace isa
template <class T, int L> inline constexpr bool is_register = sizeof(T) * L == 32;
template <class T, int L>
PK_FN native_t<T, L> both_halves(native_t<T, L / 2> a, native_t<T, L / 2> b) {
    using namespace isa;
    typedef native_t<T, L> R;
    if constexpr (!traits<T>::is_float)
        return (R)__builtin_ia32_vinsertf128_si256(__builtin_ia32_si256_si((si4)a), (si4)b, 1);
    else if constexpr (sizeof(T) == 4)
        return (R)__builtin_ia32_vinsertf128_ps256(__builtin_ia32_ps256_ps((sf4)a), (sf4)b, 1);
    else return (R)__builtin_ia32_vinsertf128_pd256(__builtin_ia32_pd256_pd((df2)a), (df2)b, 1);
}
// Lanes of 16 bytes as lanes of twice as many, and whether there is an instruction for it.
template <class To, class T, int L> constexpr bool has_widening() {
    constexpr bool from_four = __is_same(T, float) || __is_same(T, int32_t);
    constexpr bool to_double = __is_same(To, double) && from_four;
    constexpr bool whole_numbers = !traits<T>::is_float && !traits<To>::is_float;
    return sizeof(T) * L == 16 && sizeof(To) == 2 * sizeof(T) && (to_double || whole_numbers);
}
template <class To, class T, int L, int... i>
PK_FN native_t<To, L> widened(native_t<T, L> x, numbers<i...>) {
    return native_t<To, L>{To(x[i])...};
}
// The lower half of each lane of two registers, in one register.
template <class To, class T, int L> constexpr bool has_narrowing() {
    constexpr bool whole_numbers = !traits<T>::is_float && !traits<To>::is_float;
    return sizeof(To) * L == 32 && sizeof(T) == 2 * sizeof(To) && sizeof(To) > 1 && whole_numbers;
}
template <class To, class H> PK_FN native_t<To, 32 / sizeof(To)> narrowed(H a, H b) {
    typedef native_t<To, 32 / sizeof(To)> R;
    if constexpr (sizeof(To) == 4) {
        typedef native_t<float, 8> F;
        typedef native_t<int64_t, 4> I;
        auto mixed = (I)__builtin_shufflevector((F)a, (F)b, 0, 2, 8, 10, 4, 6, 12, 14);
        return (R)__builtin_shufflevector(mixed, mixed, 0, 2, 1, 3);
    } else
        return __builtin_shufflevector((R)a, (R)b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24,
                                       26, 28, 30);
}
#endif

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
#if PK_AVX2
    else if constexpr (is_register<T, 2 * H>) return R::of(both_halves<T, 2 * H>(a.s, b.s));
#endif
    else if constexpr (H == 8)
        return R::of(__builtin_shufflevector(a.s, b.s, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                             14, 15));
    else if constexpr (H == 4)
        return R::of(__builtin_shufflevector(a.s, b.s, 0, 1, 2, 3, 4, 5, 6, 7));
    else return R::of(__builtin_shufflevector(a.s, b.s, 0, 1, 2, 3));
}

#if PK_AVX512
namespace isa {  // the native types under the names that builtins take
typedef char qi16 __attribute__((vector_size(16)));
typedef short hi16 __attribute__((vector_size(32)));
typedef int si16 __attribute__((vector_size(64)));
typedef long long di8 __attribute__((vector_size(64)));
typedef float sf16 __attribute__((vector_size(64)));
typedef double df8 __attribute__((vector_size(64)));
}  // namespace isa

// Integers of 8 and 16 bits as those of 32, in one instruction.
template <bool has_sign, class V> PK_FN isa::si16 widened_to_32(V v) {
    using namespace isa;
    constexpr bool bytes = sizeof(V) == 16;
    if constexpr (bytes && has_sign)
        return __builtin_ia32_pmovsxbd512_mask((qi16)v, si16{}, (short)-1);
    else if constexpr (bytes) return __builtin_ia32_pmovzxbd512_mask((qi16)v, si16{}, (short)-1);
    else if constexpr (has_sign)
        return __builtin_ia32_pmovsxwd512_mask((hi16)v, si16{}, (short)-1);
    else return __builtin_ia32_pmovzxwd512_mask((hi16)v, si16{}, (short)-1);
}
#endif

// The integer of so many bytes that has a sign if another has one.
template <int bytes, bool has_sign> struct whole_number {
    typedef typename sized<bytes>::uint type;
};
template <int bytes> struct whole_number<bytes, true> {
    typedef typename sized<bytes>::sint type;
};
template <class T, int bytes>
using resized = typename whole_number<bytes, traits<T>::is_signed>::type;

// The lanes converted as C does it (no saturation); and the same bits under another type. Integers
// go from 8 to 32 bits over 16: GCC has vectors for one step only.
template <class To, class T, int L> PK_FN simd<To, L> cast(simd<T, L> x) {
    constexpr int from = sizeof(T), to = sizeof(To);
#if PK_AVX512
    constexpr bool whole_numbers = !traits<T>::is_float && !traits<To>::is_float;
    typedef native_t<To, L> R;
    if constexpr (L == 16 && whole_numbers && from < 4 && to == 4)
        return simd<To, L>::of((R)widened_to_32<traits<T>::is_signed>(x.s));
    else if constexpr (L == 16 && whole_numbers && from == 4 && to == 2)
        return simd<To, L>::of((R)__builtin_ia32_pmovdw512_mask((isa::si16)x.s, isa::hi16{}, -1));
    else
#endif
    if constexpr (!traits<T>::is_float && !traits<To>::is_float && to >= 4 * from)
        return cast<To>(cast<resized<T, to / 2>>(x));
    else if constexpr (!traits<T>::is_float && !traits<To>::is_float && from >= 4 * to)
        return cast<To>(cast<resized<T, from / 2>>(x));
    else if constexpr (!traits<T>::is_float && traits<To>::is_float && from < 4)
        return cast<To>(cast<int32_t>(x));
    else
#if PK_AVX512  // GCC takes four instructions for these
    if constexpr (L == 8 && __is_same(T, float) && __is_same(To, double))
        return simd<To, L>::of(
            __builtin_ia32_cvtps2pd512_mask(x.s, native_t<To, L>{}, (char)-1, 4));
    else if constexpr (L == 8 && __is_same(T, int32_t) && __is_same(To, double))
        return simd<To, L>::of(__builtin_ia32_cvtdq2pd512_mask(x.s, native_t<To, L>{}, (char)-1));
    else
#endif
#if PK_AVX2
    if constexpr (has_widening<To, T, L>())
        return simd<To, L>::of(widened<To, T, L>(x.s, numbers_to<L>{}));
    else if constexpr (has_narrowing<To, T, L>())
        return simd<To, L>::of(narrowed<To>(x.s.lo.s, x.s.hi.s));
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
}  // namespace pk
#endif
