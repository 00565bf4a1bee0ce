typedef void (*Gemm32)(int, int, int, int32_t, int32_t, int32_t, float, const float *, int32_t,
                       const float *, int32_t, float, float *, int32_t);
typedef void (*Gemm64)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                       const float *, int64_t, float, float *, int64_t);
typedef void (*Gemm32d)(int, int, int, int32_t, int32_t, int32_t, double, const double *, int32_t,
                        const double *, int32_t, double, double *, int32_t);
typedef void (*Gemm64d)(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t,
                        const double *, int64_t, double, double *, int64_t);

enum { ROW_MAJOR = 101, AS_IS = 111 };

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

// The windows of one row of results, one below the other; those of one group of channels.
template <class T>
static void gather(const Shape &s, const T *image, int64_t row, int64_t group, T *to) {
  const int64_t own = s.channels / s.groups;
  const int64_t z = row / s.result[1] * s.stride[0] - s.before[0];
  const int64_t y = row % s.result[1] * s.stride[1] - s.before[1];
  for (int64_t i = 0; i < s.result[2]; i++)
    for (int64_t a = 0; a < s.window[0]; a++)
      for (int64_t b = 0; b < s.window[1]; b++)
        for (int64_t c = 0; c < s.window[2]; c++, to += own) {
          const int64_t d = z + a * s.dilation[0], h = y + b * s.dilation[1];
          const int64_t w = i * s.stride[2] - s.before[2] + c * s.dilation[2];
          const bool inside = d >= 0 && d < s.size[0] && h >= 0 && h < s.size[1] && w >= 0 &&
                              w < s.size[2];
          if (inside)
            memcpy(to, image + ((d * s.size[1] + h) * s.size[2] + w) * s.channels + group * own,
                   own * sizeof(T));
          else
            memset(to, 0, own * sizeof(T));
        }
}

// Rows of one image as products of their windows with the filter.
template <class T, class A, class B>
static void windows_of(const Shape &s, void *const *buf, bool wide, int64_t image, int64_t first,
                       int64_t rows, unsigned char *scratch) {
  const int64_t lines = s.result[0] * s.result[1];
  const int64_t own = s.channels / s.groups, each = s.filters / s.groups;
  const int64_t length = s.window[0] * s.window[1] * s.window[2] * own;
  const T *x = (const T *)buf[2] + image * s.size[0] * s.size[1] * s.size[2] * s.channels;
  T *y = (T *)buf[5] + (image * lines + first) * s.result[2] * s.filters;
  T *patches = (T *)scratch;
  for (int64_t g = 0; g < s.groups; g++) {
    for (int64_t r = 0; r < rows; r++)
      gather(s, x, first + r, g, patches + r * s.result[2] * length);
    product<T, A, B>(buf[1], wide, rows * s.result[2], each, length, patches, length,
                     (const T *)buf[3] + g * each, s.filters, y + g * each, s.filters);
  }
}

static void windows(const Shape &s, const int64_t *size, void *const *buf, int64_t image,
                    int64_t first, int64_t rows, unsigned char *scratch) {
  if (size[1] == 4)
    windows_of<float, Gemm32, Gemm64>(s, buf, size[2] != 0, image, first, rows, scratch);
  else
    windows_of<double, Gemm32d, Gemm64d>(s, buf, size[2] != 0, image, first, rows, scratch);
}
