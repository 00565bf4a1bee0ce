// Convolutions by im2col: windows are copied to a matrix and multiplied by the filter.
typedef void (*Gemm32)(int, int, int, int32_t, int32_t, int32_t, float, const float *, int32_t,
                       const float *, int32_t, float, float *, int32_t);
typedef void (*Gemm64)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                       const float *, int64_t, float, float *, int64_t);
typedef void (*Gemm32d)(int, int, int, int32_t, int32_t, int32_t, double, const double *, int32_t,
                        const double *, int32_t, double, double *, int32_t);
typedef void (*Gemm64d)(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t,
                        const double *, int64_t, double, double *, int64_t);

enum { ROW_MAJOR = 101, AS_IS = 111 };

// c = a b for row-major matrices, by cblas_?gemm where there is one. A and B are its types for integers
// of 32 and of 64 bits.
template <class T, class A, class B>
static void product(void *gemm, bool wide, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda,
                    const T *b, int64_t ldb, T *c, int64_t ldc) {
  if (k > 0 && gemm && wide) {
    ((B)gemm)(ROW_MAJOR, AS_IS, AS_IS, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
    return;
  }
  if (k > 0 && gemm) {
    ((A)gemm)(ROW_MAJOR, AS_IS, AS_IS, (int32_t)m, (int32_t)n, (int32_t)k, 1, a, (int32_t)lda, b,
              (int32_t)ldb, 0, c, (int32_t)ldc);
    return;
  }
  for (int64_t i = 0; i < m; i++) {
    T *row = c + i * ldc;
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += a[i * lda + p] * b[p * ldb + j];
  }
}

// Compute results first to first + count of an image as products of their windows with the filter.
template <class T, class A, class B>
static void im2col_of(const Shape &s, void *const *buf, bool wide, int64_t image, int64_t first,
                       int64_t count, unsigned char *scratch) {
  const int64_t pixels = s.result[0] * s.result[1] * s.result[2];
  const int64_t own = s.channels / s.groups, each = s.filters / s.groups;
  const int64_t length = s.window[0] * s.window[1] * s.window[2] * own;
  const T *x = (const T *)buf[2] + image * s.size[0] * s.size[1] * s.size[2] * s.channels;
  T *y = (T *)buf[5] + (image * pixels + first) * s.filters, *patches = (T *)scratch;
  for (int64_t g = 0; g < s.groups; g++) {
    gather_results(s, x, first, count, g, length, patches);
    product<T, A, B>(buf[1], wide, count, each, length, patches, length,
                     (const T *)buf[3] + g * each, s.filters, y + g * each, s.filters);
  }
}

static void im2col(const Shape &s, const int64_t *size, void *const *buf, int64_t image,
                    int64_t first, int64_t count, unsigned char *scratch) {
  if (size[1] == 4)
    im2col_of<float, Gemm32, Gemm64>(s, buf, size[2] != 0, image, first, count, scratch);
  else
    im2col_of<double, Gemm32d, Gemm64d>(s, buf, size[2] != 0, image, first, count, scratch);
}

// Return the dot product of two arrays of n doubles; the order of the sum depends on n only.
static double dot(const double *a, const double *b, int64_t n) {
  typedef Vector<double> L;
  typedef L::type V;
  enum { SUMS = 4 };
  V sums[SUMS] = {};
  double total = 0;
  int64_t k = 0;
  for (; k + SUMS * L::COUNT <= n; k += SUMS * L::COUNT)
    for (int v = 0; v < SUMS; v++)
      sums[v] += *(const V *)(a + k + v * L::COUNT) * *(const V *)(b + k + v * L::COUNT);
  for (; k < n; k++) total += a[k] * b[k];
  const V sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int i = 0; i < L::COUNT; i++) total += sum[i];
  return total;
}

// Compute results of a signal filter: float32 images of one channel, a filter in doubles, and sums in
// doubles that are rounded once.
static void signal_filters(const Shape &s, const int64_t *size, void *const *buf, int64_t image,
                    int64_t first, int64_t count, unsigned char *scratch) {
  const int64_t pixels = s.result[0] * s.result[1] * s.result[2];
  const int64_t taps = s.window[0] * s.window[1] * s.window[2];
  const float *x = (const float *)buf[2] + image * s.size[0] * s.size[1] * s.size[2];
  const double *filter = (const double *)buf[4];
  float *y = (float *)buf[5] + (image * pixels + first) * s.filters;
  double *patches = (double *)scratch, *sums = patches + count * taps;
  gather_results(s, x, first, count, 0, taps, patches);
  if (s.filters == 1) {
    for (int64_t i = 0; i < count; i++) y[i] = (float)dot(patches + i * taps, filter, taps);
    return;
  }
  product<double, Gemm32d, Gemm64d>(buf[1], size[2] != 0, count, s.filters, taps, patches, taps,
                                    filter, s.filters, sums, s.filters);
  for (int64_t i = 0; i < count * s.filters; i++) y[i] = (float)sums[i];
}

// Convert the filter of a signal to doubles.
static void widen_filter(const Shape &s, void *const *buf) {
  copy((const float *)buf[3], s.window[0] * s.window[1] * s.window[2] * s.filters,
       (double *)buf[4]);
}
