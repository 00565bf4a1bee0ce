// Convolutions behind the kernel ABI: a tile is a block of rows of one image.
//
// buf:  table of a library's functions or null, cblas_?gemm or null, source, filter as the caller
//       has it, filter as the library wants it or null, result
// size: what to do (see below), bytes of an element, 1 where cblas takes 64-bit integers, rows of a
//       tile, then a Shape
// How tiles are cut depends on shapes only, and each tile is computed by one thread: the bits of
// the result do not depend on the number of threads.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace convolution {

enum { REORDER = 0, LIBRARY = 1, WINDOWS = 2, CHANNELS = 3 };

enum {
  MEMORY_CREATE, MEMORY_DESTROY, EXECUTE, GET_THREADS, SET_THREADS, ENGINE, STREAM, FILTER,
  PARTS,                                              // of an image; their records begin at FIRST
  FIRST,
};

enum {                                                // the record of a part
  PRIMITIVE, SOURCE_KIND, RESULT_KIND, SCRATCH_KIND, SOURCE_OFFSET, RESULT_OFFSET, FIRST_ROW, ROWS,
  PART,
};

enum { SOURCE_ARGUMENT = 1, RESULT_ARGUMENT = 17, FILTER_ARGUMENT = 33, SCRATCH_ARGUMENT = 80 };

struct Argument {
  int which;
  void *memory;
};

typedef int (*Create)(void **memory, const void *kind, void *engine, void *data);
typedef int (*Destroy)(void *memory);
typedef int (*Execute)(const void *primitive, void *stream, int count, const Argument *arguments);

// One primitive on arrays of these kinds; 0, or what the library says is wrong.
static int run_primitive(const int64_t *table, int64_t primitive, int count, const int *which,
                         const int64_t *kinds, void *const *data) {
  Argument arguments[4];
  int made = 0, status = 0;
  for (; made < count && !status; made++) {
    arguments[made].which = which[made];
    status = ((Create)table[MEMORY_CREATE])(&arguments[made].memory, (const void *)kinds[made],
                                            (void *)table[ENGINE], data[made]);
    if (status) break;
  }
  if (!status) {
    // The library's own threads stay out of it: the caller's setting is put back afterwards.
    int before = ((int (*)(void))table[GET_THREADS])();
    ((void (*)(int))table[SET_THREADS])(1);
    status = ((Execute)table[EXECUTE])((const void *)primitive, (void *)table[STREAM], count,
                                       arguments);
    ((void (*)(int))table[SET_THREADS])(before);
  }
  while (made-- > 0) ((Destroy)table[MEMORY_DESTROY])(arguments[made].memory);
  return status;
}

// The library refused: from now on these convolutions are products of windows, and that is said.
static void give_up(int64_t *table, int status) {
  if (__atomic_exchange_n(&table[FILTER], 0, __ATOMIC_RELAXED))
    fprintf(stderr, "passkit: oneDNN failed with status %d in a convolution, which from now on is "
                    "computed as matrix products\n", status);
}

struct Shape {
  int64_t batch, size[3], channels, filters, window[3], result[3], stride[3], before[3];
  int64_t dilation[3], groups;
};

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

// One channel of source to each filter: rows of results, lanes of filters at a time. The taps of the
// middle pixels are all inside the row, so that PIXELS of them share the loads of the filter.
template <class T> struct Lane {
  typedef T type;
  enum { COUNT = 1 };
};
template <class T> struct Lanes;
template <> struct Lanes<float> {
  typedef float type __attribute__((vector_size(64), aligned(4), may_alias));
  enum { COUNT = 16 };
};
template <> struct Lanes<double> {
  typedef double type __attribute__((vector_size(64), aligned(8), may_alias));
  enum { COUNT = 8 };
};

template <class L, int PIXELS, int WIDE, class T>
static inline void pixels(const Shape &s, const T *x, const T *w, T *y, int64_t row, int64_t first,
                          int64_t from, int64_t to) {
  typedef typename L::type V;  // as an argument it would lose its alignment
  V sum[PIXELS][WIDE];
  for (int p = 0; p < PIXELS; p++)
    for (int v = 0; v < WIDE; v++) sum[p][v] = V{};
  const int64_t step = s.stride[2] * s.channels;
  for (int64_t a = 0; a < s.window[0]; a++) {
    const int64_t d = row / s.result[1] * s.stride[0] - s.before[0] + a * s.dilation[0];
    if (d < 0 || d >= s.size[0]) continue;
    for (int64_t b = 0; b < s.window[1]; b++) {
      const int64_t h = row % s.result[1] * s.stride[1] - s.before[1] + b * s.dilation[1];
      if (h < 0 || h >= s.size[1]) continue;
      const int64_t left = first * s.stride[2] - s.before[2];
      const T *line = x + ((d * s.size[1] + h) * s.size[2] + left) * s.channels;
      const T *taps = w + (a * s.window[1] + b) * s.window[2] * s.filters;
      for (int64_t c = from; c < to; c++) {
        V factor[WIDE];
        for (int v = 0; v < WIDE; v++)
          factor[v] = *(const V *)(taps + c * s.filters + v * L::COUNT);
        const T *at = line + c * s.dilation[2] * s.channels;
        for (int p = 0; p < PIXELS; p++)
          for (int v = 0; v < WIDE; v++)
            sum[p][v] += factor[v] * *(const V *)(at + p * step + v * L::COUNT);
      }
    }
  }
  for (int p = 0; p < PIXELS; p++)
    for (int v = 0; v < WIDE; v++) *(V *)(y + p * s.filters + v * L::COUNT) = sum[p][v];
}

template <class L, int PIXELS, int WIDE, class T>
static void channel_row(const Shape &s, const T *x, const T *w, T *y, int64_t row) {
  const int64_t n = s.result[2];
  for (int64_t i = 0; i < n;) {
    const int64_t left = i * s.stride[2] - s.before[2];
    const int64_t reach = (s.window[2] - 1) * s.dilation[2];
    const bool inside = left >= 0 && i + PIXELS <= n &&
                        left + (PIXELS - 1) * s.stride[2] + reach < s.size[2];
    if (inside) {
      pixels<L, PIXELS, WIDE>(s, x, w, y + i * s.filters, row, i, 0, s.window[2]);
      i += PIXELS;
      continue;
    }
    int64_t from = 0, to = s.window[2];
    while (from < to && left + from * s.dilation[2] < 0) from++;
    while (to > from && left + (to - 1) * s.dilation[2] >= s.size[2]) to--;
    pixels<L, 1, WIDE>(s, x, w, y + i * s.filters, row, i, from, to);
    i++;
  }
}

template <class T>
static void channels_of(const Shape &s, void *const *buf, int64_t image, int64_t first,
                        int64_t rows) {
  const int64_t lines = s.result[0] * s.result[1];
  const T *x = (const T *)buf[2] + image * s.size[0] * s.size[1] * s.size[2] * s.channels;
  const T *w = (const T *)buf[3];
  enum { COUNT = Lanes<T>::COUNT };
  for (int64_t r = first; r < first + rows; r++) {
    T *y = (T *)buf[5] + (image * lines + r) * s.result[2] * s.filters;
    int64_t c = 0;
    for (; c + 4 * COUNT <= s.channels; c += 4 * COUNT)
      channel_row<Lanes<T>, 4, 4>(s, x + c, w + c, y + c, r);
    for (; c + 2 * COUNT <= s.channels; c += 2 * COUNT)
      channel_row<Lanes<T>, 8, 2>(s, x + c, w + c, y + c, r);
    for (; c + COUNT <= s.channels; c += COUNT)
      channel_row<Lanes<T>, 8, 1>(s, x + c, w + c, y + c, r);
    for (; c < s.channels; c++) channel_row<Lane<T>, 4, 1>(s, x + c, w + c, y + c, r);
  }
}

// A part of the filter into the layout of the library.
static void reorder(void *const *buf, int64_t tile) {
  int64_t *table = (int64_t *)buf[0];
  const int64_t *part = table + FIRST + table[PARTS] * PART + tile * 3;
  const int which[2] = {SOURCE_ARGUMENT, RESULT_ARGUMENT};
  void *const data[2] = {buf[3], buf[4]};
  const int status = run_primitive(table, part[0], 2, which, part + 1, data);
  if (status) give_up(table, status);
}

// Whether the library computed the tile.
static bool by_library(const Shape &s, const int64_t *part, int64_t image, void *const *buf,
                       unsigned char *scratch) {
  int64_t *table = (int64_t *)buf[0];
  if (!__atomic_load_n(&table[FILTER], __ATOMIC_RELAXED)) return false;
  const int64_t in = s.size[0] * s.size[1] * s.size[2] * s.channels * image;
  const int64_t out = s.result[0] * s.result[1] * s.result[2] * s.filters * image;
  const int which[4] = {SOURCE_ARGUMENT, FILTER_ARGUMENT, RESULT_ARGUMENT, SCRATCH_ARGUMENT};
  const int64_t kinds[4] = {part[SOURCE_KIND], table[FILTER], part[RESULT_KIND],
                            part[SCRATCH_KIND]};
  void *const data[4] = {(float *)buf[2] + in + part[SOURCE_OFFSET], buf[4],
                         (float *)buf[5] + out + part[RESULT_OFFSET], scratch};
  const int status = run_primitive(table, part[PRIMITIVE], 4, which, kinds, data);
  if (status) give_up(table, status);
  return status == 0;
}

}  // namespace convolution

extern "C" void convolve(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                         unsigned char *scratch) {
  using namespace convolution;
  Shape s;
  memcpy(&s, size + 4, sizeof s);
  const int64_t lines = s.result[0] * s.result[1], height = size[3];
  for (int64_t tile = begin; tile < end; tile++) {
    if (size[0] == REORDER) {
      reorder(buf, tile);
    } else if (size[0] == LIBRARY) {
      const int64_t *table = (const int64_t *)buf[0];
      const int64_t *part = table + FIRST + tile % table[PARTS] * PART;
      const int64_t image = tile / table[PARTS];
      if (by_library(s, part, image, buf, scratch)) continue;
      for (int64_t r = 0; r < part[ROWS]; r++)
        windows(s, size, buf, image, part[FIRST_ROW] + r, 1, scratch);
    } else {
      const int64_t blocks = (lines + height - 1) / height, first = tile % blocks * height;
      const int64_t rows = lines - first < height ? lines - first : height;
      if (size[0] == WINDOWS)
        windows(s, size, buf, tile / blocks, first, rows, scratch);
      else if (size[1] == 4)
        channels_of<float>(s, buf, tile / blocks, first, rows);
      else
        channels_of<double>(s, buf, tile / blocks, first, rows);
    }
  }
}
