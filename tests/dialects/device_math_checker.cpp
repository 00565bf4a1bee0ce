// The functions of device_math.h by a C++ compiler, over ranges of floats.
#include <algorithm>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define PK_FN inline
template <class To, class From> inline To bits(From x) {
    To y;
    static_assert(sizeof x == sizeof y);
    memcpy(&y, &x, sizeof y);
    return y;
}
inline float __uint_as_float(uint32_t x) { return bits<float>(x); }
#include "prelude/device_math.h"

static bool same(float a, float b) {
    return (a != a && b != b) || bits<uint32_t>(a) == bits<uint32_t>(b);
}

// How many of count floats, whose bits begin with first and are step apart, are divided wrongly.
template <class D> static int64_t wrong(const D &d, uint32_t first, uint32_t step, int64_t count) {
    int64_t found = 0;
    for (int64_t k = 0; k < count; k += 4) {
        float x[4], y[4];
        for (int n = 0; n < 4; ++n) x[n] = bits<float>(uint32_t(first + (k + n) * step));
        over(y, x, d);
        for (int n = 0; n < 4; ++n)
            found += !same(y[n], x[n] / d.s) || !same(over(x[n], d), x[n] / d.s);
    }
    return found;
}
// The same of the division itself where it is needed: of floats other than 0, how many ask for it.
template <class D> static int64_t asked(const D &d, uint32_t first, uint32_t step, int64_t count) {
    int64_t found = 0;
    for (int64_t k = 0; k < count; ++k) {
        const float x = bits<float>(uint32_t(first + k * step));
        found += x != 0 && is_near_0(d.near(x), d);
    }
    return found;
}

extern "C" {
int64_t wrong_known(float s, float high, float low, uint32_t first, uint32_t step, int64_t count) {
    return wrong(known_divisor(s, high, low), first, step, count);
}
int64_t asked_known(float s, float high, float low, uint32_t first, uint32_t step, int64_t count) {
    return asked(known_divisor(s, high, low), first, step, count);
}
int64_t wrong_divisor(float s, uint32_t first, uint32_t step, int64_t count) {
    return wrong(divisor(s), first, step, count);
}
int64_t asked_divisor(float s, uint32_t first, uint32_t step, int64_t count) {
    return asked(divisor(s), first, step, count);
}
// Pairs of a dividend and a divisor, without the division.
int64_t wrong_pairs(const float *x, const float *s, int64_t count) {
    int64_t found = 0;
    for (int64_t k = 0; k < count; ++k) found += !same(divisor(s[k]).near(x[k]), x[k] / s[k]);
    return found;
}
// 1 / x by any approximation that is off by 1 unit at most.
int64_t wrong_reciprocals(uint32_t first, int64_t count) {
    int64_t found = 0;
    for (int64_t k = 0; k < count; ++k) {
        const float x = bits<float>(uint32_t(first + k)), exact = 1 / x;
        found += !same(reciprocal(x), exact);
        for (int off = -1; off <= 1; ++off) {
            const float y = bits<float>(bits<uint32_t>(exact) + off);
            if (!isnormal(exact) || fabs(y - 1 / double(x)) > ldexp(1, ilogb(y) - 23)) continue;
            found += !same(fmaf(fmaf(-x, y, 1.0f), y, y), exact);
        }
    }
    return found;
}
// The largest error of erf in units of the result's last place; infinity where it is not odd.
double erf_error(uint32_t first, uint32_t step, int64_t count) {
    double most = 0;
    for (int64_t k = 0; k < count; ++k) {
        const float x = bits<float>(uint32_t(first + k * step));
        const double exact = erf(double(x));
        const double unit = ldexp(1, std::max(exact == 0 ? -149 : ilogb(float(exact)) - 23, -149));
        if (!same(erf_near(-x), -erf_near(x))) return INFINITY;
        most = std::max(most, fabs(erf_near(x) - exact) / unit);
    }
    return most;
}
double sigmoid_error(uint32_t first, uint32_t step, int64_t count) {
    double most = 0;
    for (int64_t k = 0; k < count; ++k) {
        const float x = bits<float>(uint32_t(first + k * step));
        const double exact = 1 / (1 + exp(-double(x)));
        const double unit = ldexp(1, std::max(exact == 0 ? -149 : ilogb(float(exact)) - 23, -149));
        most = std::max(most, fabs(sigmoid(x) - exact) / unit);
    }
    return most;
}
float sigmoid_of(float x) { return sigmoid(x); }
float erf_of(float x) { return erf_near(x); }
}
