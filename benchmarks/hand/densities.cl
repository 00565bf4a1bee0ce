// Densities on an OpenCL device, for work-items that compute blocks of rows. FAMILY is the function
// of the terms, Y the type of outcomes, COLUMNS the columns of the matrix; rows are a multiple of 4.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double T;
typedef double4 V;

static V psi_of_vector(V x);
#define PSI psi_of_vector
#include "density_terms.h"

static V psi_of_vector(V x) {
  return (V)(psi_of(x.x), psi_of(x.y), psi_of(x.z), psi_of(x.w));
}

#define BLOCK 128
#define SUMS (COLUMNS + 4)  // value, derivatives by intercept and scale, first failure, weights

static T total(V v) { return (v.x + v.y) + (v.z + v.w); }

static T product(__global const T *row, __constant T *beta) {
  T s[4] = {0, 0, 0, 0};
  int j = 0;
  for (; j + 4 <= COLUMNS; j += 4)
    for (int l = 0; l < 4; l++) s[l] += row[j + l] * beta[j + l];
  for (; j < COLUMNS; j++) s[0] += row[j] * beta[j];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// The terms of a block of rows, whose derivatives by the location are stored.
static void terms_of(int rows, long low, __global const Y *y, __global const T *x, T alpha,
                     __constant T *beta, Scale s, T *d, T *parts) {
  T location[BLOCK];
  for (int i = 0; i < rows; i++) {
    location[i] = alpha + product(x + (low + i) * COLUMNS, beta);
    if (!isfinite(location[i])) parts[3] = fmin(parts[3], (T)(low + i));
  }
  V value = 0, by_alpha = 0, by_scale = 0;
  for (int i = 0; i < rows; i += 4) {
    const V outcome = (V)(y[low + i], y[low + i + 1], y[low + i + 2], y[low + i + 3]);
    const V at = (V)(location[i], location[i + 1], location[i + 2], location[i + 3]);
    const Terms t = FAMILY(outcome, at, s);
    value += t.value;
    by_alpha += t.by_location;
    by_scale += t.by_scale;
    d[i] = t.by_location.x, d[i + 1] = t.by_location.y;
    d[i + 2] = t.by_location.z, d[i + 3] = t.by_location.w;
  }
  parts[0] += total(value);
  parts[1] += total(by_alpha);
  parts[2] += total(by_scale);
}

// Everything in one pass over the matrix.
__kernel void one_pass(__global const Y *y, __global const T *restrict x, T alpha,
                       __constant T *beta, T scale, __global T *restrict sums, long n, long rows) {
  T parts[SUMS] = {0}, d[BLOCK];
  parts[3] = INFINITY;
  const Scale s = scale_of(scale);
  const long high = min(n, (long)(get_global_id(0) + 1) * rows);
  for (long low = get_global_id(0) * rows; low < high; low += BLOCK) {
    const int count = min((long)BLOCK, high - low);
    terms_of(count, low, y, x, alpha, beta, s, d, parts);
    for (int i = 0; i < count; i++)
      for (int j = 0; j < COLUMNS; j++) parts[4 + j] += x[(low + i) * COLUMNS + j] * d[i];
  }
  for (int j = 0; j < SUMS; j++) sums[get_global_id(0) * SUMS + j] = parts[j];
}

// The terms, as Stan's kernels of generalized linear models compute them; `by_location` is stored.
__kernel void terms(__global const Y *y, __global const T *restrict x, T alpha, __constant T *beta,
                    T scale, __global T *restrict sums, long n, long rows,
                    __global T *restrict by_location) {
  T parts[4] = {0, 0, 0, INFINITY}, d[BLOCK];
  const Scale s = scale_of(scale);
  const long high = min(n, (long)(get_global_id(0) + 1) * rows);
  for (long low = get_global_id(0) * rows; low < high; low += BLOCK) {
    const int count = min((long)BLOCK, high - low);
    terms_of(count, low, y, x, alpha, beta, s, d, parts);
    for (int i = 0; i < count; i++) by_location[low + i] = d[i];
  }
  for (int j = 0; j < 4; j++) sums[get_global_id(0) * SUMS + j] = parts[j];
}

// The product of the stored derivatives and the matrix.
__kernel void weights(__global const T *restrict by_location, __global const T *restrict x,
                      __global T *restrict sums, long n, long rows) {
  T parts[COLUMNS] = {0};
  const long high = min(n, (long)(get_global_id(0) + 1) * rows);
  for (long i = get_global_id(0) * rows; i < high; i++) {
    const T d = by_location[i];
    for (int j = 0; j < COLUMNS; j++) parts[j] += x[i * COLUMNS + j] * d;
  }
  for (int j = 0; j < COLUMNS; j++) sums[get_global_id(0) * SUMS + 4 + j] = parts[j];
}

// The sums of what the items of the other kernels have stored.
__kernel void finish(__global const T *sums, __global T *result, int items) {
  const int j = get_global_id(0);
  T sum = j == 3 ? INFINITY : 0;
  for (int i = 0; i < items; i++) {
    const T part = sums[i * SUMS + j];
    sum = j == 3 ? fmin(sum, part) : sum + part;
  }
  result[j] = sum;
}

// The normal distribution of three vectors, with all derivatives.
__kernel void normal(__global const V *y, __global const V *mu, __global const V *sigma,
                     __global V *by_y, __global V *by_mu, __global V *by_sigma,
                     __global T *restrict sums, long n, long rows) {
  V value = 0;
  T bad = INFINITY;
  const long high = min(n, (long)(get_global_id(0) + 1) * rows) / 4;
  for (long i = get_global_id(0) * rows / 4; i < high; i++) {
    const V s = sigma[i], z = (y[i] - mu[i]) / s, d = z / s;
    value += -0.5 * z * z - log(s) - 0.91893853320467274178;
    by_y[i] = -d;
    by_mu[i] = d;
    by_sigma[i] = (z * z - 1.0) / s;
    if (any(y[i] != y[i]) || !all(isfinite(mu[i])) || !all(s > 0.0)) bad = fmin(bad, (T)(4 * i));
  }
  sums[get_global_id(0) * SUMS] = total(value);
  sums[get_global_id(0) * SUMS + 3] = bad;
}
