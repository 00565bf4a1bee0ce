// Incomplete gamma and beta functions and Hurwitz' zeta function, of one double each.
//
// In the C that all dialects share: each says what PK_SCALAR and PK_TABLE, in front of functions
// and tables, PK_INFINITY and PK_NAN are; these are C++'s. All loops end, whatever the arguments.
// Sources: NIST Digital Library of Mathematical Functions, 8.7, 8.9, 8.12, 8.17, 25.11; N. M. Temme,
// The asymptotic expansion of the incomplete gamma functions, 1979.
#ifndef PK_SERIES_H
#define PK_SERIES_H
#ifndef PK_SPECIAL_H
#include "special.h"
#endif

#ifdef PK_BYTES
#define PK_SCALAR template <int = 0> static __attribute__((noinline, unused))
#define PK_TABLE static constexpr
#define PK_INFINITY __builtin_inf()
#define PK_NAN __builtin_nan("")
namespace pk {
#endif

// log(1 + u) - u, without cancellation about 0; ratio is 1 + u.
PK_SCALAR double log_less(double u, double ratio) {
    if (!(u > -0.4 && u < 0.5)) return log(ratio) - u;
    const double t = u / (2 + u), w = t * t;
    double sum = 0;
    for (int k = 31; k > 1; k -= 2) sum = sum * w + 1.0 / k;
    return 2 * t * w * sum - u * t;
}

// What Stirling's (z - 1/2) log(z) - z + log(2 pi) / 2 lacks to the log of gamma(z).
PK_SCALAR double stirling_rest(double z) {
    if (z < 8) return lgamma(z) - ((z - 0.5) * log(z) - z + 0.9189385332046728);
    const double w = 1 / (z * z);
    return (1 / 12.0 - w * (1 / 360.0 - w * (1 / 1260.0 - w * (1 / 1680.0 - w * (1 / 1188.0 -
            w * (691 / 360360.0 - w * (1 / 156.0 - w * (3617 / 122400.0)))))))) / z;
}

// log(gamma(2 + t)) / t about 0.
PK_TABLE double gamma_of_two[27] = {
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546,
    -0.007385551028673986, 0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425,
    -0.00022315475845357936, 9.945751278180853e-05, -4.492623673813314e-05, 2.0507212775670694e-05,
    -9.439488275268395e-06, 4.374866789907487e-06, -2.039215753801366e-06, 9.55141213040742e-07,
    -4.492469198764566e-07, 2.1207184805554667e-07, -1.00432248239681e-07, 4.769810169363981e-08,
    -2.2711094608943164e-08, 1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09,
    -1.1921401405860912e-09, 5.731367241678862e-10, -2.7595228851242334e-10
};
// log(gamma(1 + a)) for 0 < a < 2, without cancellation about 0.
PK_SCALAR double lgamma_after(double a) {
    if (a > 0.5) return lgamma(1 + a);
    double sum = 0;
    for (int k = 27 - 1; k >= 0; --k) sum = sum * a + gamma_of_two[k];
    return sum * a - log1p(a);
}

// x^a exp(-x) / gamma(a)
PK_SCALAR double igamma_front(double a, double x) {
    if (a < 8) return exp(a * log(x) - x - lgamma(a));
    const double part = exp(a * log_less((x - a) / a, x / a) - stirling_rest(a));
    return sqrt(a) * 0.3989422804014327 * part;
}

// The lower function by its series.
PK_SCALAR double igamma_series(double a, double x) {
    double term = 1, sum = 1;
    for (int k = 1; k < 10000 && term > sum * 1e-17; ++k) {
        term *= x / (a + k);
        sum += term;
    }
    return igamma_front(a, x) * (sum / a);
}

// The upper function by its continued fraction, for x > a.
PK_SCALAR double igamma_fraction(double a, double x) {
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, step = 0;
    for (int k = 1; k < 10000 && !(step > 1 - 5e-16 && step < 1 + 5e-16); ++k) {
        const double n = k * (a - k);
        b += 2;
        d = 1 / (n * d + b);
        c = b + n / c;
        step = c * d;
        h *= step;
    }
    return igamma_front(a, x) * h;
}

// The upper function where a and x are small.
PK_SCALAR double igamma_rest(double a, double x) {
    double factor = 1, sum = 0;
    for (int k = 1; k < 40; ++k) {
        factor *= -x / k;
        sum += factor / (a + k);
    }
    const double e = a * log(x) - lgamma_after(a);
    return -expm1(e) - a * exp(e) * sum;
}

// Coefficients of the expansion in 1 / a and eta: so many of each power of 1 / a.
PK_TABLE int temme_counts[8] = {17, 15, 13, 11, 9, 7, 3, 1};
PK_TABLE double temme[76] = {
    -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
    0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
    -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
    1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
    -5.830772132550426e-11, -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
    -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05,
    7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07,
    -5.752545603517705e-08, 1.1951628599778148e-08, -1.7543241719747647e-11,
    -1.0091543710600413e-09, 0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
    2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05,
    3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07,
    -2.0477098421990866e-10, -1.409252991086752e-08, 0.0006494341563786008, 0.00022947209362139917,
    -0.0004691894943952557, 0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
    1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
    -2.7861080291528143e-11, -1.6958404091930278e-07, -0.0008618882909167117, 0.0007840392217200666,
    -0.0002990724803031902, -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
    1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06, -0.00033679855336635813,
    -6.972813758365857e-05, 0.0002772753244959392, -0.00019932570516188847, 6.797780477937208e-05,
    1.419062920643967e-07, -1.3594048189768693e-05, 0.0005313079364639922, -0.0005921664373536939,
    0.0002708782096718045, 0.00034436760689237765
};
// For a >= 100 and x about a; u is (x - a) / a.
PK_SCALAR double igamma_about(double a, double x, double u, int upper) {
    const double loss = -log_less(u, x / a), root = sqrt(2 * loss), eta = u < 0 ? -root : root;
    double sum = 0;
    for (int k = 7, last = 76; k >= 0; --k) {
        double part = 0;
        for (int n = 0; n < temme_counts[k]; ++n) part = part * eta + temme[--last];
        sum = sum / a + part;
    }
    const double rest = 0.3989422804014327 / sqrt(a) * exp(-a * loss) * sum;
    const double z = eta * sqrt(a * 0.5);
    return upper ? 0.5 * erfc(z) + rest : 0.5 * erfc(-z) - rest;
}

// The lower incomplete gamma function over gamma(a), or the upper one; NaN but for a > 0, x >= 0.
// The lower one of 0 is 0, whatever a is, as TensorFlow has it.
PK_SCALAR double igamma_part(double a, double x, int upper) {
    if (x == 0 && !upper) return 0;
    if (!(a > 0 && x >= 0) || (a == PK_INFINITY && x == PK_INFINITY)) return PK_NAN;
    if (x == PK_INFINITY) return upper ? 0 : 1;
    if (x == 0 || a == PK_INFINITY) return upper;
    const double u = (x - a) / a;
    if (a >= 100 && u > -0.3 && u < 0.3) return igamma_about(a, x, u, upper);
    if (!upper && (x <= 1.1 || x < a)) return igamma_series(a, x);
    if (x > 1.1 && x >= a) return upper ? igamma_fraction(a, x) : 1 - igamma_fraction(a, x);
    if (x > 1.1 || (x > 0.5 ? x * 1.1 < a : -0.4 / log(x) < a)) return 1 - igamma_series(a, x);
    return igamma_rest(a, x);
}
PK_SCALAR double igamma_double(double a, double x) { return igamma_part(a, x, 0); }
PK_SCALAR double igammac_double(double a, double x) { return igamma_part(a, x, 1); }

// The continued fraction of the incomplete beta function, for x below (a + 1) / (a + b + 2).
PK_SCALAR double betainc_fraction(double a, double b, double x) {
    double c = 1, d = 1 / (1 - (a + b) / (a + 1) * x), h = d, step = 0;
    for (int k = 1; k < 20000 && !(step > 1 - 5e-16 && step < 1 + 5e-16); ++k) {
        const double m = a + 2.0 * k, even = k / (m - 1) * ((b - k) / m) * x;
        const double odd = -(a + k) / m * ((a + b + k) / (m + 1)) * x;
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        h *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        step = c * d;
        h *= step;
    }
    return h;
}

// The incomplete beta function over beta(a, b); NaN but for a and b above 0 and x from 0 to 1.
PK_SCALAR double betainc_double(double a, double b, double x) {
    if (!(a > 0 && b > 0 && x >= 0 && x <= 1) || (a == PK_INFINITY && b == PK_INFINITY))
        return PK_NAN;
    if (x == 0 || x == 1) return x;
    if (a == PK_INFINITY || b == PK_INFINITY) return b == PK_INFINITY ? 1 : 0;
    if (a < 1e-200 || b < 1e-200) return b / (a + b);
    const double s = a + b, y = 1 - x, off = x < 0.5 ? a - s * x : s * y - b;
    const double e = a * log_less(-off / a, s / a * x) + b * log_less(off / b, s / b * y) +
                     stirling_rest(s) - stirling_rest(a) - stirling_rest(b);
    const double front = sqrt(a / s * b) * 0.3989422804014327 * exp(e);
    if (x * (s + 2) > a + 1) return 1 - front * (betainc_fraction(b, a, y) / b);
    return front * (betainc_fraction(a, b, x) / a);
}

// B2 / 2!, B4 / 4! and so on.
PK_TABLE double bernoulli_parts[12] = {
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19
};
// The sum of (q + k)^-s for q > 0: ten terms, then Euler's and Maclaurin's sum of the others.
PK_SCALAR double zeta_above(double s, double q) {
    double sum = 0, p = 0;
    for (int k = 0; k < 10; ++k) {
        p = pow(q, -s);
        sum += p;
        if (p <= sum * 1e-17) return sum;
        q += 1;
    }
    p = pow(q, -s);
    sum += q / (s - 1) * p + 0.5 * p;
    p *= s / q;
    for (int k = 0; k < 12; ++k) {
        sum += p * bernoulli_parts[k];
        p *= (s + 2 * k + 1) / q * ((s + 2 * k + 2) / q);
    }
    return sum;
}
// Where q < 0 there are terms of both signs: the least in size, those above and those below it. At a
// pole, where q is 0, -1 and so on, it is infinite for even s, and NaN for others.
PK_SCALAR double zeta_double(double s, double q) {
    if (!(s >= 1) || q != q) return PK_NAN;
    if (s == 1) return PK_INFINITY;
    if (q > 0) return zeta_above(s, q);
    const double sign = 2 * floor(0.5 * s) == s ? 1 : -1, least = q - floor(q + 0.5);
    if (q == floor(q)) return sign > 0 ? PK_INFINITY : PK_NAN;
    if (s != floor(s)) return PK_NAN;
    const double below = zeta_above(s, 1 - least) - zeta_above(s, 1 - q);
    const double one = least < 0 ? sign * pow(-least, -s) : pow(least, -s);
    return one + zeta_above(s, 1 + least) + sign * below;
}
#ifdef PK_BYTES
}  // namespace pk
#endif
#endif
