// Log densities of an element and their derivatives, in C that is both C++ and OpenCL C.
//
// V is the type of elements, a number or in OpenCL C a vector; T that of numbers.

typedef struct {
  V value, by_location, by_scale;
} Terms;

// A scale or precision, and functions of it that are the same for all elements.
typedef struct {
  T scale, inverse, logarithm, gammaln, psi;
} Scale;

static T psi_of(T x) {
  T sum = 0;
  for (; x < 8; x += 1) sum -= 1 / x;
  const T f = 1 / (x * x);
  return sum + log(x) - (T)0.5 / x -
         f * ((T)1 / 12 - f * ((T)1 / 120 - f * ((T)1 / 252 - f * ((T)1 / 240 - f / 132))));
}

static Scale scale_of(T scale) {
  Scale s;
  s.scale = scale;
  s.inverse = 1 / scale;
  s.logarithm = log(scale);
  s.gammaln = lgamma(scale);
  s.psi = psi_of(scale);
  return s;
}

static inline Terms normal_terms(V y, V location, Scale s) {
  const V z = (y - location) * s.inverse;
  Terms t;
  t.value = (T)-0.5 * z * z - s.logarithm - (T)0.91893853320467274178;
  t.by_location = z * s.inverse;
  t.by_scale = (z * z - (T)1) * s.inverse;
  return t;
}

static inline Terms bernoulli_terms(V y, V location, Scale s) {
  const V sign = (T)2 * y - (T)1, x = sign * location, e = exp(-fabs(x));
  Terms t;
  t.value = (V)0.5 * (x - fabs(x)) - log1p(e);
  t.by_location = sign * (x < (T)0 ? (V)1 : e) / ((V)1 + e);
  t.by_scale = (V)0;
  return t;
}

static inline Terms poisson_terms(V y, V location, Scale s) {
  const V rate = exp(location);
  Terms t;
  t.value = y * location - rate - lgamma(y + (T)1);
  t.by_location = y - rate;
  t.by_scale = (V)0;
  return t;
}

static inline Terms neg_binomial_terms(V y, V location, Scale s) {
  const V x = location - s.logarithm, e = exp(-fabs(x)), total = y + s.scale;
  const V log_sum = s.logarithm + (V)0.5 * (x + fabs(x)) + log1p(e);
  const V share = (x < (T)0 ? e : (V)1) / ((V)1 + e);  // exp(location - log_sum)
  Terms t;
  t.value = s.scale * s.logarithm - s.gammaln - total * log_sum + y * location + lgamma(total) -
            lgamma(y + (T)1);
  t.by_location = y - total * share;
  t.by_scale = (T)1 - total * exp(-log_sum) + s.logarithm - log_sum + PSI(total) - s.psi;
  return t;
}
