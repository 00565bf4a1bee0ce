// Densities for all cores: each argument is read once. FAMILY is the function of the terms.
#include <cmath>
#include <cstdint>
#include <vector>

typedef double T;
typedef double V;
#define PSI psi_of
using std::exp;
using std::fabs;
using std::lgamma;
using std::log;
using std::log1p;

#include "density_terms.h"

static const int BLOCK = 128;

// A generalized linear model: the product, the terms and the derivatives of a block of rows while
// it is in the cache. `sums` gets the value, the derivatives by intercept, scale and weights.
template <typename Y, Terms (*family)(V, V, Scale)>
static int64_t linear(int64_t n, int64_t k, const Y *y, const T *x, T alpha, const T *beta, T scale,
                      T *sums) {
  const Scale s = scale_of(scale);
  int64_t bad = INT64_MAX;
  for (int64_t j = 0; j < k + 3; j++) sums[j] = 0;
#pragma omp parallel reduction(min : bad)
  {
    std::vector<T> parts(k + 3);
    T *weights = parts.data() + 3;
#pragma omp for
    for (int64_t block = 0; block < n; block += BLOCK) {
      const int rows = n - block < BLOCK ? n - block : BLOCK;
      T location[BLOCK], by_location[BLOCK], value = 0, by_alpha = 0, by_scale = 0;
      for (int i = 0; i < rows; i++) {
        const T *row = x + (block + i) * k;
        T sum = alpha;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < k; j++) sum += row[j] * beta[j];
        location[i] = sum;
      }
#pragma omp simd reduction(+ : value, by_alpha, by_scale)
      for (int i = 0; i < rows; i++) {
        const Terms t = family(y[block + i], location[i], s);
        value += t.value;
        by_alpha += by_location[i] = t.by_location;
        by_scale += t.by_scale;
      }
      for (int i = 0; i < rows; i++) {
        const T *row = x + (block + i) * k;
#pragma omp simd
        for (int64_t j = 0; j < k; j++) weights[j] += row[j] * by_location[i];
        if (!(fabs(location[i]) < INFINITY) && block + i < bad) bad = block + i;
      }
      parts[0] += value;
      parts[1] += by_alpha;
      parts[2] += by_scale;
    }
#pragma omp critical
    for (int64_t j = 0; j < k + 3; j++) sums[j] += parts[j];
  }
  return bad;
}

#define LINEAR(name, Y)                                                                     \
  extern "C" int64_t name##_linear(int64_t n, int64_t k, const Y *y, const T *x, T alpha,   \
                                   const T *beta, T scale, T *sums) {                       \
    return linear<Y, name##_terms>(n, k, y, x, alpha, beta, scale, sums);                   \
  }
LINEAR(normal, double)
LINEAR(bernoulli, int32_t)
LINEAR(poisson, int32_t)
LINEAR(neg_binomial, int32_t)

extern "C" int64_t normal(int64_t n, const T *y, const T *mu, const T *sigma, T *by_y, T *by_mu,
                          T *by_sigma, T *value) {
  T sum = 0;
  int64_t bad = INT64_MAX;
#pragma omp parallel for simd reduction(+ : sum) reduction(min : bad)
  for (int64_t i = 0; i < n; i++) {
    const T s = sigma[i], z = (y[i] - mu[i]) / s, d = z / s;
    sum += -0.5 * z * z - log(s) - 0.91893853320467274178;
    by_y[i] = -d;
    by_mu[i] = d;
    by_sigma[i] = (z * z - 1) / s;
    const bool valid = y[i] == y[i] && fabs(mu[i]) < INFINITY && s > 0;
    bad = valid || bad < i ? bad : i;
  }
  *value = sum;
  return bad;
}
