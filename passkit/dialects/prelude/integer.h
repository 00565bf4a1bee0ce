// Whole-number division: quotients and remainders, NumPy's and C's, and division by one divisor.
#ifndef PK_INTEGER_H
#define PK_INTEGER_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
// NumPy's floor division: rounds towards minus infinity, x / 0 = 0, the lowest / -1 wraps.
template <class T> PK_FN T floor_quotient(T a, T b) {
    if (b == 0) return 0;
    if constexpr (traits<T>::is_signed) {
        if (b == -1) return T(uint_of<T>(0) - uint_of<T>(a));
        return T(a / b - (a % b != 0 && (a ^ b) < 0));
    } else return T(a / b);
}
// a - floor(a / b) b, of the sign of b; 0 where b is 0.
template <class T> PK_FN T floor_rest(T a, T b) {
    if (b == 0) return 0;
    if constexpr (traits<T>::is_signed) {
        if (b == -1) return 0;
        T r = T(a % b);
        return T(r + (r != 0 && (r ^ b) < 0 ? b : T(0)));
    } else return T(a % b);
}
// C's division, towards zero; x / 0 = 0, the lowest / -1 wraps.
template <class T> PK_FN T cut_quotient(T a, T b) {
    if (b == 0) return 0;
    if constexpr (traits<T>::is_signed) {
        if (b == -1) return T(uint_of<T>(0) - uint_of<T>(a));
    }
    return T(a / b);
}
template <class T> PK_FN T cut_rest(T a, T b) {
    if (b == 0 || (traits<T>::is_signed && b == T(-1))) return 0;
    return T(a % b);
}
// Euclid's algorithm on magnitudes.
template <class T> PK_FN T common_divisor(T a, T b) {
    auto u = uint_of<T>(abs(a)), v = uint_of<T>(abs(b));
    while (v != 0) {
        auto rest = uint_of<T>(u % v);
        u = v;
        v = rest;
    }
    return T(u);
}
// Wraps; to a negative power 1 and -1 stay what they are or change sign, all else gives 0.
template <class T> PK_FN T power_of_whole(T a, T n) {
    typedef uint_of<T> U;
    if (n < T(0)) {
        if (a == T(1)) return 1;
        return a == T(-1) ? (n & 1 ? T(-1) : T(1)) : T(0);
    }
    U out = 1, factor = U(a);
    for (U k = U(n); k != 0; k = U(k >> 1)) {
        if (k & 1) out = U(uint64_t(out) * factor);
        factor = U(uint64_t(factor) * factor);
    }
    return T(out);
}
PK_FN float cut_rest(float a, float b) { return __builtin_fmodf(a, b); }
PK_FN double cut_rest(double a, double b) { return __builtin_fmod(a, b); }
// NumPy's divmod of floats.
template <class T> PK_FN T float_rest(T a, T b) {
    T r = cut_rest(a, b);
    if (b == 0) return r;
    if (r != 0) return (b < 0) != (r < 0) ? r + b : r;
    return copysign(T(0), b);
}
template <class T> PK_FN T float_quotient(T a, T b) {
    if (b == 0) return a / b;
    T r = cut_rest(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign(T(0), a / b);
    T f = floor(q);
    return q - f > T(0.5) ? f + 1 : f;
}
PK_FN float floor_rest(float a, float b) { return float_rest(a, b); }
PK_FN double floor_rest(double a, double b) { return float_rest(a, b); }
PK_FN float floor_quotient(float a, float b) { return float_quotient(a, b); }
PK_FN double floor_quotient(double a, double b) { return float_quotient(a, b); }

// Lane by lane and out of line: a division is slow anyway, and 16 copies of it long to compile.
template <class T, T (*f)(T, T)>
static __attribute__((noinline, unused)) void each_pair(T *a, const T *b) {
    for (int i = 0; i < 16; i++) a[i] = f(a[i], b[i]);
}
template <class T> struct same_as {
    typedef T type;
};
template <class T> using same = typename same_as<T>::type;  // not deduced, hence converted
#define PK_PAIRWISE(name, f)                                                                       \
    template <class T> PK_FN scalar<T> name(T a, T b) { return f(a, b); }                          \
    template <class T, int L> PK_FN simd<T, L> name(simd<T, L> x, simd<T, L> y) {                  \
        if constexpr (L > 16) return join(name(lower(x), lower(y)), name(upper(x), upper(y)));     \
        else {                                                                                     \
            T a[16], b[16];                                                                        \
            store_whole(a, x);                                                                     \
            store_whole(b, y);                                                                     \
            each_pair<T, f>(a, b);                                                                 \
            return load_whole<T, 16>(a);                                                           \
        }                                                                                          \
    }                                                                                              \
    template <class T, int L> PK_FN simd<T, L> name(simd<T, L> x, same<T> y) {                     \
        return name(x, simd<T, L>(y));                                                             \
    }                                                                                              \
    template <class T, int L> PK_FN simd<T, L> name(same<T> x, simd<T, L> y) {                     \
        return name(simd<T, L>(x), y);                                                             \
    }
PK_PAIRWISE(floor_divide, floor_quotient)
PK_PAIRWISE(remainder, floor_rest)
PK_PAIRWISE(fmod, cut_rest)
PK_PAIRWISE(cut_divide, cut_quotient)
PK_PAIRWISE(gcd, common_divisor)
PK_PAIRWISE(whole_power, power_of_whole)
}  // namespace pk
#endif
