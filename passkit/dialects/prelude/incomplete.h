// Incomplete gamma and beta functions and Hurwitz' zeta function, in double; lane by lane, as each
// takes as many steps as its arguments ask for.
//
// Within 1e-13 of the true value, or of 1 where a beta function is 1 less a small part.
#ifndef PK_INCOMPLETE_H
#define PK_INCOMPLETE_H
#ifndef PK_SERIES_H
#include "series.h"
#endif

namespace pk {
static __attribute__((noinline, unused)) void each(double (*f)(double, double, double), double *x,
                                                   const double *y, const double *z) {
    for (int i = 0; i < 16; i++) x[i] = f(x[i], y[i], z[i]);
}
#define PK_IN_SERIES(name)                                                                         \
    template <int L> PK_FN f64<L> name(f64<L> a, f64<L> x) {                                       \
        if constexpr (L > 16) return f64<L>::of(name(a.s.lo, x.s.lo), name(a.s.hi, x.s.hi));       \
        else {                                                                                     \
            double r[16], s[16];                                                                   \
            store_whole(r, a);                                                                     \
            store_whole(s, x);                                                                     \
            each(name##_double<0>, r, s);                                                          \
            return load_whole<double, 16>(r);                                                      \
        }                                                                                          \
    }                                                                                              \
    template <int L> PK_FN simd<float, L> name(simd<float, L> a, simd<float, L> x) {               \
        return cast<float>(name(cast<double>(a), cast<double>(x)));                                \
    }                                                                                              \
    PK_LAZY double name(double a, double x) { return name##_double(a, x); }                        \
    PK_LAZY float name(float a, float x) { return float(name##_double(a, x)); }
PK_IN_SERIES(igamma)
PK_IN_SERIES(igammac)
PK_IN_SERIES(zeta)

template <int L> PK_FN f64<L> betainc(f64<L> a, f64<L> b, f64<L> x) {
    if constexpr (L > 16)
        return f64<L>::of(betainc(a.s.lo, b.s.lo, x.s.lo), betainc(a.s.hi, b.s.hi, x.s.hi));
    else {
        double r[16], s[16], t[16];
        store_whole(r, a);
        store_whole(s, b);
        store_whole(t, x);
        each(betainc_double<0>, r, s, t);
        return load_whole<double, 16>(r);
    }
}
template <int L>
PK_FN simd<float, L> betainc(simd<float, L> a, simd<float, L> b, simd<float, L> x) {
    return cast<float>(betainc(cast<double>(a), cast<double>(b), cast<double>(x)));
}
PK_LAZY double betainc(double a, double b, double x) { return betainc_double(a, b, x); }
PK_LAZY float betainc(float a, float b, float x) { return float(betainc_double(a, b, x)); }
}  // namespace pk
#endif
