// Bits: total shifts, neighbours of floats, scaling by powers of 2.
#ifndef PK_BITS_H
#define PK_BITS_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
template <class T, int L> PK_FN simd<T, L> left_shift(simd<T, L> x, simd<T, L> n) { return x << n; }
template <class T, int L> PK_FN simd<T, L> right_shift(simd<T, L> x, simd<T, L> n) {
    return x >> n;
}
template <class T> PK_FN scalar<T> left_shift(T x, T n) {
    return uint_of<T>(n) < 8 * sizeof(T) ? T(uint_of<T>(x) << n) : T(0);
}
template <class T> PK_FN scalar<T> right_shift(T x, T n) {
    return uint_of<T>(n) < 8 * sizeof(T) ? T(x >> n) : x < T(0) ? T(-1) : T(0);
}

// The float next to x on the way to y; y where they are equal.
template <class T, int L> PK_FN simd<T, L> nextafter(simd<T, L> x, simd<T, L> y) {
    typedef simd<sint_of<T>, L> I;
    typedef simd<T, L> F;
    auto away = ~((x < y) ^ (x > F(0)));
    F next = bits<T>(bits<sint_of<T>>(x) + choose(away, I(1), I(-1)));
    next = choose(x == F(0), sign_from(bits<T>(I(1)), y), next);
    return choose(x == y, y, choose(isnan(x) | isnan(y), x + y, next));
}
PK_LAZY float nextafter(float x, float y) { return nextafter(simd<float, 16>(x), simd<float, 16>(y))[0]; }
PK_LAZY double nextafter(double x, double y) {
    return nextafter(simd<double, 16>(x), simd<double, 16>(y))[0];
}

// 2^n for a whole n of -1022..1023
template <int L> PK_FN simd<double, L> power_of_two(simd<double, L> n) {
    typedef simd<int64_t, L> I;
    return bits<double>(shift_left<52>(bits<int64_t>(n + simd<double, L>(0x1.8p52 + 1023)) - I(0x4338000000000000)));
}
// x 2^n for a whole n, rounded once: no step but the last gives a denormal number.
template <int L> PK_FN simd<double, L> ldexp(simd<double, L> x, simd<double, L> n) {
    typedef simd<double, L> D;
    n = greater(D(-2200), lesser(D(2200), n));
    for (int k = 0; k < 2; k++) {
        D step = choose(n < D(-1022), D(-969), choose(n > D(1023), D(1023), D(0)));
        x = x * power_of_two(step);
        n = n - step;
    }
    return x * power_of_two(greater(D(-1022), lesser(D(1023), n)));
}
template <int L> PK_FN simd<float, L> ldexp(simd<float, L> x, simd<float, L> n) {
    n = greater(simd<float, L>(-400), lesser(simd<float, L>(400), n));
    return cast<float>(cast<double>(x) * power_of_two(cast<double>(n)));
}
PK_LAZY float ldexp(float x, float n) { return ldexp(simd<float, 16>(x), simd<float, 16>(n))[0]; }
PK_LAZY double ldexp(double x, double n) {
    return ldexp(simd<double, 16>(x), simd<double, 16>(n))[0];
}
}  // namespace pk
#endif
