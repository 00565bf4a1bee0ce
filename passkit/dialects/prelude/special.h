// Special functions, in double; those of floats are computed so too, and rounded once.
//
// Within 16 ulp of the true value, but near a zero of lgamma or digamma, where the error is below
// 4e-15 times the largest term of the sum that vanishes there. Coefficients fitted at Chebyshev
// nodes.
#ifndef PK_SPECIAL_H
#define PK_SPECIAL_H
#ifndef PK_MATH_F64_H
#include "math_f64.h"
#endif

// These are long; they are called, not pasted, so that a kernel with many of them is compiled fast.
// A call takes sixteen lanes: two wide registers, whose formulas wait for themselves in turn. Where
// registers are narrow it takes one, and a function is compiled once, not for each few lanes.
#define PK_CALLED static __attribute__((noinline, unused))
#if PK_AVX512
#define PK_LONG PK_FN
#define PK_SIXTEEN PK_CALLED
#else
#define PK_LONG PK_CALLED
#define PK_SIXTEEN PK_FN
#endif

namespace pk {
#define PK_IN_DOUBLE(name)                                                                         \
    template <int L> PK_FN f64<L> name##_pasted(f64<L> x) {                                        \
        if constexpr (whole<double, L>) return name##_part(x);                                     \
        else return f64<L>::of(name##_pasted(x.s.lo), name##_pasted(x.s.hi));                      \
    }                                                                                              \
    template <int L> PK_SIXTEEN f64<L> name##_of(f64<L> x) { return name##_pasted(x); }            \
    template <int L> PK_SIXTEEN simd<float, L> name##_of(simd<float, L> x) {                       \
        return cast<float>(name##_pasted(cast<double>(x)));                                        \
    }                                                                                              \
    template <class T, int L> PK_FN simd<T, L> name(simd<T, L> x) {                                \
        if constexpr (L > 16) return simd<T, L>::of(name(x.s.lo), name(x.s.hi));                   \
        else return name##_of(x);                                                                  \
    }                                                                                              \
    template <int = 0> PK_CALLED double name(double x) {                                           \
        return name##_part(f64<PK_BYTES / 8>(x))[0];                                               \
    }                                                                                              \
    PK_LAZY float name(float x) { return float(name(double(x))); }

// sin(pi t) / pi for |t| <= 1/2, without rounding errors where it vanishes.
template <int L> PK_FN f64<L> sin_of_turn(f64<L> t) {
    return t * horner(t * t, 0x1.07192db714f81p-22, -0x1.d3e3c296a65cfp-18, 0x1.37469730d3391p-13,
                      -0x1.3381697088111p-9, 0x1.ac6805cbe14f0p-6, -0x1.86a8e472088a4p-3,
                      0x1.9f9cb402bc3ebp-1, -0x1.a51a6625307d3p+0, 1.0);
}

// log of gamma of a >= 1/2: from 1.5 to 2.5 a polynomial, whence steps of 1 lead up to 8; above,
// Stirling's series.
template <int L> PK_FN f64<L> lgamma_above(f64<L> a) {
    f64<L> one = 1.0, half = 0.5;
    auto far = a >= f64<L>(8), less = a < f64<L>(1.5);
    f64<L> z = lesser(f64<L>(8), a), p = choose(less, a, one);
#pragma GCC unroll 6
    for (int k = 0; k < 6; k++) {
        auto more = z >= f64<L>(2.5);
        z = choose(more, z - one, z);
        p = choose(more, p * z, p);
    }
    f64<L> t = choose(less, z - one, z - f64<L>(2)), w = one / (a * a), e = log_part(choose(far, a, p));
    f64<L> q = horner(t, 0x1.11fa5e7c86f7bp-24, -0x1.2009c1a550d0dp-23, 0x1.b40adb09a1e12p-23,
                      -0x1.ce17528bcf460p-22, 0x1.012012be3900ap-20, -0x1.1276ebd557fb0p-19,
                      0x1.258f3057730fap-18, -0x1.3cb3be36ad88bp-17, 0x1.580e0afa55850p-16,
                      -0x1.78de9ab752b81p-15, 0x1.a127afee53e7dp-14, -0x1.d3fd4b679c1c4p-13,
                      0x1.0b36af8779ca0p-11, -0x1.38ac5c2d48207p-10, 0x1.7add6eadb5317p-9,
                      -0x1.e404fc218dbaep-8, 0x1.51322ac7d848ap-6, -0x1.13e001a55760ap-4,
                      0x1.4a34cc4a60fa6p-2, 0x1.b0ee6072093cep-2);
    f64<L> s = horner(w, -0x1.55b3a71b66a2ep-6, 0x1.96db40614b193p-8, -0x1.f5ff2fdcdf048p-10,
                      0x1.b94f6d6592192p-11, -0x1.38137ec070147p-11, 0x1.a01a019ee0dbep-11,
                      -0x1.6c16c16c16b29p-9, 0x1.5555555555555p-4);
    f64<L> series = fused(a - half, e - one, fused(s, one / a, f64<L>(0.41893853320467274178)));
    return choose(far, series, fused(t, q, choose(less, -e, e)));
}
// Where x < 1/2, by what the gamma functions of x and 1 - x multiply to: pi / sin(pi x).
template <int L> PK_LONG f64<L> lgamma_part(f64<L> x) {
    auto low = x < f64<L>(0.5);
    f64<L> y = lgamma_above(choose(low, f64<L>(1) - x, x));
    if (any(low)) {
        f64<L> s = abs(sin_of_turn(x - rint(x)));
        y = choose(low, -log_part(s) - y, y);
        y = choose(isinf(x) | (low & (s == f64<L>(0))), f64<L>(__builtin_inf()), y);
    }
    return y;
}
PK_IN_DOUBLE(lgamma)

namespace libm {
extern "C" double tgamma(double);
}
PK_LIBM_F64(tgamma)
// Negative where x < 0 and floor(x) is odd; NaN at negative whole numbers.
template <int L> PK_SIXTEEN simd<float, L> tgamma_of(simd<float, L> r) {
    simd<double, L> x = cast<double>(r), down = floor(x), half = down * simd<double, L>(0.5);
    auto low = x < simd<double, L>(0);
    simd<double, L> y = exp(lgamma_pasted(x));
    y = choose(low & (floor(half) != half), -y, y);
    y = choose(low & (down == x), simd<double, L>(__builtin_nan("")), y);
    return cast<float>(choose(x == simd<double, L>(0), sign_from(y, x), y));
}
template <int L> PK_FN simd<float, L> tgamma(simd<float, L> x) {
    if constexpr (L > 16) return simd<float, L>::of(tgamma(x.s.lo), tgamma(x.s.hi));
    else return tgamma_of(x);
}
PK_LAZY float tgamma(float x) { return tgamma(simd<float, 16>(x))[0]; }

// Steps of 1 lead up to 6 and leave a sum of reciprocals, which is kept as a fraction n / d.
template <int L> PK_FN f64<L> digamma_above(f64<L> a) {
    f64<L> one = 1.0, b = a, n = 0.0, d = 1.0;
#pragma GCC unroll 6
    for (int k = 0; k < 6; k++) {
        auto more = b < f64<L>(6);
        n = choose(more, fused(n, b, d), n);
        d = choose(more, d * b, d);
        b = choose(more, b + one, b);
    }
    f64<L> r = one / b, w = r * r;
    f64<L> tail = horner(w, -0x1.d699bd9c4f226p-3, 0x1.33f3b4a3cae63p-4, -0x1.56b06b7e04f96p-6,
                         0x1.f05736e14aa62p-8, -0x1.1110d0066019ap-8, 0x1.041040cb27e95p-8,
                         -0x1.1111111107826p-7, 0x1.5555555555554p-4);
    return log_part(b) - fused(tail, w, r * f64<L>(0.5)) - n / d;
}
// Where x < 1/2, by digamma(1 - x) - pi / tan(pi x).
template <int L> PK_LONG f64<L> digamma_part(f64<L> x) {
    auto low = x < f64<L>(0.5);
    f64<L> y = digamma_above(choose(low, f64<L>(1) - x, x));
    if (any(low)) {
        f64<L> r = choose(x == f64<L>(0), x, x - rint(x)), c = sin_of_turn(f64<L>(0.5) - abs(r));
        y = choose(low, y - c * f64<L>(0x1.921fb54442d18p1) / sin_of_turn(r), y);
        y = choose((r == f64<L>(0)) & (x < f64<L>(0)), f64<L>(__builtin_nan("")), y);
    }
    return y;
}
PK_IN_DOUBLE(digamma)

template <int L> PK_FN f64<L> trigamma_above(f64<L> a) {
    f64<L> one = 1.0, b = a, n = 0.0, d = 1.0;
#pragma GCC unroll 6
    for (int k = 0; k < 6; k++) {
        auto more = b < f64<L>(6);
        f64<L> q = b * b;
        n = choose(more, fused(n, q, d), n);
        d = choose(more, d * q, d);
        b = choose(more, b + one, b);
    }
    f64<L> r = one / b, w = r * r;
    f64<L> tail = horner(w, -0x1.2102cc84c83efp+7, 0x1.3427eb09f9579p+5, -0x1.a88e0b8bcb46ep+2,
                         0x1.288c86f485c6ap+0, -0x1.0317223225078p-2, 0x1.364cdb324b06dp-4,
                         -0x1.11110f87718ddp-5, 0x1.86186184696f5p-6, -0x1.1111111110e30p-5,
                         0x1.5555555555555p-3);
    return n / d + fused(w, fused(tail, r, f64<L>(0.5)), r);
}
// Where x < 1/2, by pi^2 / sin(pi x)^2 - trigamma(1 - x).
template <int L> PK_LONG f64<L> trigamma_part(f64<L> x) {
    auto low = x < f64<L>(0.5);
    f64<L> y = trigamma_above(choose(low, f64<L>(1) - x, x));
    if (any(low)) {
        f64<L> s = sin_of_turn(x - rint(x));
        y = choose(low, f64<L>(1) / (s * s) - y, y);
    }
    return y;
}
PK_IN_DOUBLE(trigamma)

// x of erfc(x) = y for 0 <= y <= 1/4: fractions in sqrt(-log(y)).
template <int L> PK_FN f64<L> erfc_tail(f64<L> y) {
    f64<L> r = sqrt(-log_part(y)), t = r - f64<L>(1.17);
    f64<L> x = horner(t, 0x1.809dc11b7c377p-9, 0x1.08fdf57f9f0d4p-4, 0x1.0084bd01b658cp-1,
                      0x1.e209398b45e05p+0, 0x1.f5c4fa219d053p+1, 0x1.2aeedf63089b5p+2,
                      0x1.7fd7e5f9217e2p+1, 0x1.9ca30ca05466ap-1) /
               horner(t, 0x1.ce912564738fbp-27, 0x1.8080dfd18bbe0p-9, 0x1.f63f92f35719bp-5,
                      0x1.be21011589494p-2, 0x1.758da184b92e2p+0, 0x1.4e885b00b8a19p+1,
                      0x1.3bdaf11e2010bp+1, 1.0);
    auto far = r > f64<L>(3.05);
    if (any(far)) {
        t = r - f64<L>(3);
        f64<L> v = horner(t, -0x1.0f2b5b5d744abp-18, -0x1.56153056ed7bbp-16, 0x1.b7c8c3036cd2dp-9,
                          0x1.0e92c6f9bb051p-4, 0x1.065713e8dc2dap-1, 0x1.f4cc3f9ef8454p+0,
                          0x1.d60909c6d4063p+1, 0x1.5b7d49d34d82ap+1) /
                   horner(t, -0x1.3485eefea8ed4p-38, -0x1.0f21c8fca9a65p-18, -0x1.172f45a2ec97cp-17,
                          0x1.b9ed648f31c43p-9, 0x1.cb22170108252p-5, 0x1.6734d397cb3bap-2,
                          0x1.f016dc47c3935p-1, 1.0);
        x = choose(far, v, x);
        auto farther = r > f64<L>(8);
        t = lesser(f64<L>(28), r) - f64<L>(8);
        v = horner(t, 0x1.5ecf72353735ep-31, 0x1.4366120d5a62ep-23, 0x1.a6a81782a5171p-17,
                   0x1.0d3a1a2b26121p-11, 0x1.7b222704cd543p-7, 0x1.3621254c9753bp-3,
                   0x1.255c41f513471p+0, 0x1.299f91a64a290p+2, 0x1.f5557c60ff25ep+2) /
            horner(t, 0x1.47811af54fc94p-59, 0x1.5ecf3a18286e7p-31, 0x1.38701a7ab434bp-23,
                   0x1.7fac98ba4f65cp-17, 0x1.baee4dbc1c2a2p-12, 0x1.0d2b5fe0c292ep-7,
                   0x1.61d4bcde2ead8p-4, 0x1.db77f52c37c72p-2, 1.0);
        x = choose(farther, choose(isinf(r), r, v), x);
    }
    return x;
}
// x of erf(x) = y for |y| <= 3/4.
template <int L> PK_FN f64<L> erf_middle(f64<L> y) {
    f64<L> t = f64<L>(0.5625) - y * y;
    return y *
           horner(t, 0x1.2f666bb3e5cf9p-8, 0x1.44eb62857933ep-2, 0x1.b44eee553f5f3p+1,
                  0x1.9aa0fc346dbd5p+3, 0x1.5ba239ec78e8cp+4, 0x1.20a1bd473e576p+4,
                  0x1.ca4c886e7e7b5p+2, 0x1.15a5b5f9cc7c1p+0) /
           horner(t, 0x1.ed4c2f46f0559p-6, 0x1.b4fecb6b12012p-1, 0x1.8fd8fea877178p+2,
                  0x1.29b9137075ac3p+4, 0x1.ac8733778f754p+4, 0x1.3b5347a7a7d93p+4,
                  0x1.c7c4449433bf7p+2, 1.0);
}
template <int L> PK_LONG f64<L> erfinv_part(f64<L> y) {
    f64<L> a = abs(y), x = erf_middle(y);
    auto far = ~(a <= f64<L>(0.75));
    return any(far) ? choose(far, sign_from(erfc_tail(f64<L>(1) - a), y), x) : x;
}
PK_IN_DOUBLE(erfinv)
template <int L> PK_LONG f64<L> erfcinv_part(f64<L> y) {
    f64<L> x = erf_middle(f64<L>(1) - y);
    auto low = y < f64<L>(0.25), high = ~(y <= f64<L>(1.75));
    if (any(low | high)) {
        f64<L> v = erfc_tail(choose(low, y, f64<L>(2) - y));
        x = choose(low, v, choose(high, -v, x));
    }
    return x;
}
PK_IN_DOUBLE(erfcinv)

// exp(log(a) / 3), and one step of Newton's; denormal numbers are scaled first.
template <int L> PK_LONG f64<L> cbrt_part(f64<L> x) {
    f64<L> a = abs(x);
    auto tiny = a < f64<L>(0x1p-960);
    a = choose(tiny, a * f64<L>(0x1p300), a);
    f64<L> y = exp_part(log_part(a) * f64<L>(0x1.5555555555555p-2)), q = y * y;
    f64<L> rest = fused(q, y, -a) + fused(y, y, -q) * y;
    y = y - rest / (q * f64<L>(3));
    y = choose(tiny, y * f64<L>(0x1p-100), y);
    return choose((a > f64<L>(0)) & (a < f64<L>(__builtin_inf())), sign_from(y, x), x);
}
PK_IN_DOUBLE(cbrt)

// sqrt(x^2 + y^2), both scaled by a power of 2 where a square would be too large or too small.
template <int L> PK_LONG f64<L> hypot_part(f64<L> x, f64<L> y) {
    f64<L> a = abs(x), b = abs(y), top = greater(a, b), low = lesser(a, b);
    auto large = top > f64<L>(0x1p500), small = top < f64<L>(0x1p-400);
    f64<L> s = choose(large, f64<L>(0x1p-600), choose(small, f64<L>(0x1p600), f64<L>(1)));
    f64<L> u = top * s, v = low * s, h = u * u;
    f64<L> r = sqrt(h + fused(v, v, fused(u, u, -h)));
    r = choose(large, r * f64<L>(0x1p600), choose(small, r * f64<L>(0x1p-600), r));
    r = choose(isnan(x) | isnan(y), x + y, r);
    return choose(isinf(x) | isinf(y), f64<L>(__builtin_inf()), r);
}
template <int L> PK_FN f64<L> hypot(f64<L> x, f64<L> y) {
    if constexpr (whole<double, L>) return hypot_part(x, y);
    else return f64<L>::of(hypot(x.s.lo, y.s.lo), hypot(x.s.hi, y.s.hi));
}
PK_LAZY double hypot(double x, double y) {
    return hypot_part(f64<PK_BYTES / 8>(x), f64<PK_BYTES / 8>(y))[0];
}
template <int L> PK_FN simd<float, L> hypot(simd<float, L> x, simd<float, L> y) {
    return cast<float>(hypot(cast<double>(x), cast<double>(y)));
}
PK_LAZY float hypot(float x, float y) { return float(hypot(double(x), double(y))); }
}  // namespace pk
#endif
