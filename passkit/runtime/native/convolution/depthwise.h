// Depthwise convolutions, one filter per channel: rows of results, vectorized over channels. Pixels away
// from the borders have all taps inside the row, so that PIXELS of them share the loads of the filter.

// Store a vector of results. Streamed results, which exceed the caches, bypass them where they are
// entire registers.
template <class L, class T>
static inline void put(T *to, const typename L::type &v, bool streamed) {
#ifdef __AVX__
  if (L::COUNT > 1 && streamed) {
    Register all = {};
    static_assert(L::COUNT == 1 || sizeof all == sizeof v, "a vector of results is a register");
    memcpy(&all, &v, sizeof v);
#ifdef __AVX512F__
    return __builtin_ia32_movntps512((float *)to, all);
#else
    return __builtin_ia32_movntps256((float *)to, all);
#endif
  }
#endif
  *(typename L::type *)to = v;
}

// Prefetch the source rows that the next row of results reads first. Pixels are too far apart for the
// prefetchers of processors: without this, two thirds of the time are spent waiting for memory. For
// strides above 2 most of the prefetched lines would not be read.
template <class L, int PIXELS, int WIDE, class T>
__attribute__((always_inline)) static inline void prefetch_next_row(const Shape &s, const T *x,
                                                            const int64_t (&top)[2],
                                                            int64_t first) {
  enum { BYTES = WIDE * L::COUNT * sizeof(T) };
  if (s.stride[1] > 2 || s.stride[2] > 2) return;
  const int64_t left = first * s.stride[2] - s.before[2];
  const int64_t below = top[0] * s.size[1] + top[1] + (s.window[1] - 1) * s.dilation[1] + 1;
  for (int64_t b = 0; b < s.stride[1]; b++)
    for (int64_t p = 0; p < PIXELS * s.stride[2]; p++) {
      const T *at = x + ((below + b) * s.size[2] + left + p) * s.channels;
      for (int k = 0; k < BYTES; k += CACHE_LINE) __builtin_prefetch((const char *)at + k);
    }
}

// Compute PIXELS adjacent results of a row for WIDE vectors of channels, from taps `from` to `to` along
// the row.
template <class L, int PIXELS, int WIDE, class T>
static inline void depthwise_pixels(const Shape &s, const T *x, const T *w, T *y, const int64_t (&top)[2],
                          int64_t first, int64_t from, int64_t to, bool streamed) {
  typedef typename L::type V;  // as a template argument it would lose its alignment
  V sum[PIXELS][WIDE];
  UNROLL for (int p = 0; p < PIXELS; p++)
    UNROLL for (int v = 0; v < WIDE; v++) sum[p][v] = V{};
  const int64_t step = s.stride[2] * s.channels;
  for (int64_t a = 0; a < s.window[0]; a++) {
    const int64_t d = top[0] + a * s.dilation[0];
    if (d < 0 || d >= s.size[0]) continue;
    for (int64_t b = 0; b < s.window[1]; b++) {
      const int64_t h = top[1] + b * s.dilation[1];
      if (h < 0 || h >= s.size[1]) continue;
      const int64_t left = first * s.stride[2] - s.before[2];
      const T *line = x + ((d * s.size[1] + h) * s.size[2] + left) * s.channels;
      const T *taps = w + (a * s.window[1] + b) * s.window[2] * s.filters;
      for (int64_t c = from; c < to; c++) {
        V factor[WIDE];
        UNROLL for (int v = 0; v < WIDE; v++)
          factor[v] = *(const V *)(taps + c * s.filters + v * L::COUNT);
        const T *at = line + c * s.dilation[2] * s.channels;
        UNROLL for (int p = 0; p < PIXELS; p++)
          UNROLL for (int v = 0; v < WIDE; v++)
            sum[p][v] += factor[v] * *(const V *)(at + p * step + v * L::COUNT);
      }
    }
  }
  UNROLL for (int p = 0; p < PIXELS; p++)
    UNROLL for (int v = 0; v < WIDE; v++)
      put<L>(y + p * s.filters + v * L::COUNT, sum[p][v], streamed);
}

// A row of the source, and the weights of the taps along it.
struct TapRow {
  const float *source, *weights;
};

// Compute P adjacent results of a row for one vector of channels, for a window of WINDOW taps along the
// row and a STRIDE that are compile-time constants. Each pixel of the source is loaded once and used
// for all results that read it. At a BORDER only pixels `low` to `high` are inside the image.
template <int WINDOW, int STRIDE, int P, bool BORDER>
static inline void neighbours(const TapRow *rows, int64_t count, int64_t offset, int64_t channel,
                              int64_t channels, int64_t low, int64_t high, bool streamed, float *y) {
  typedef Vector<float> L;
  typedef L::type V;
  enum { LAST = (P - 1) * STRIDE };
  V sum[P];
  UNROLL for (int p = 0; p < P; p++) sum[p] = V{};
  for (const TapRow *row = rows; row < rows + count; row++) {
    const float *at = row->source + offset, *taps = row->weights + channel;
    V factor[WINDOW];
    UNROLL for (int c = 0; c < WINDOW; c++) factor[c] = *(const V *)(taps + c * channels);
    UNROLL for (int k = 0; k < LAST + WINDOW; k++, at += channels) {
      if (BORDER && ((k < WINDOW && k < low) || (k >= LAST && k >= high))) continue;
      const V value = *(const V *)at;
      UNROLL for (int c = 0; c < WINDOW; c++)
        if (k >= c && (k - c) % STRIDE == 0 && (k - c) / STRIDE < P)
          sum[(k - c) / STRIDE] += factor[c] * value;
    }
  }
  UNROLL for (int p = 0; p < P; p++) put<L>(y + p * channels, sum[p], streamed);
}

// Compute P adjacent results of a row for all full vectors of channels, and prefetch the rows `below`
// for the next row of results.
template <int WINDOW, int STRIDE, int P>
static void neighbours_of(const Shape &s, const TapRow *rows, int64_t count, const float *below,
                          int64_t i, bool streamed, float *y) {
  enum { COUNT = Vector<float>::COUNT, CACHE_LINE_FLOATS = CACHE_LINE / sizeof(float) };
  const int64_t left = i * STRIDE - s.before[2], channels = s.channels, line = s.size[2] * channels;
  const int64_t low = -left, high = s.size[2] - left;
  const bool border = low > 0 || high < (P - 1) * STRIDE + WINDOW;
  for (int64_t c = 0; c + COUNT <= channels; c += COUNT) {
    const int64_t offset = left * channels + c;
    if (c % CACHE_LINE_FLOATS == 0)
      for (int64_t b = 0; b < s.stride[1] && b < 2; b++)
        UNROLL for (int p = 0; p < P * STRIDE; p++)
          __builtin_prefetch(below + b * line + offset + p * channels);
    if (border)
      neighbours<WINDOW, STRIDE, P, true>(rows, count, offset, c, channels, low, high, streamed, y + c);
    else
      neighbours<WINDOW, STRIDE, P, false>(rows, count, offset, c, channels, low, high, streamed,
                                           y + c);
  }
}

// Compute a row of results for all full vectors of channels.
template <int WINDOW, int STRIDE>
static void common_window_row(const Shape &s, const TapRow *rows, int64_t count, const float *below,
                       bool streamed, float *y) {
  for (int64_t i = 0, size; i < s.result[2]; i += size, y += size * s.channels) {
    const int64_t left = s.result[2] - i;
    size = left >= 7 ? 7 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    switch (size) {
      case 7: neighbours_of<WINDOW, STRIDE, 7>(s, rows, count, below, i, streamed, y); break;
      case 4: neighbours_of<WINDOW, STRIDE, 4>(s, rows, count, below, i, streamed, y); break;
      case 2: neighbours_of<WINDOW, STRIDE, 2>(s, rows, count, below, i, streamed, y); break;
      default: neighbours_of<WINDOW, STRIDE, 1>(s, rows, count, below, i, streamed, y);
    }
  }
}

// Compute a row of results for all full vectors of channels, if the window has 3 or 5 taps along the
// row and the stride is 1 or 2. Return the number of channels computed, else 0.
static int64_t common_window_channels(const Shape &s, const float *x, const float *w, int64_t row,
                               bool streamed, float *y) {
  enum { MAX_WINDOW_ROWS = 32 };
  TapRow rows[MAX_WINDOW_ROWS];
  const int64_t window = s.window[2], step = s.stride[2];
  const int64_t after = (s.result[2] - 1) * step + window - s.before[2] - s.size[2];
  const bool common = (window == 3 || window == 5) && (step == 1 || step == 2);
  if (!common || s.dilation[2] != 1 || s.window[0] * s.window[1] > MAX_WINDOW_ROWS) return 0;
  if (s.before[2] < 0 || s.before[2] >= window || after >= window) return 0;
  const int64_t top[2] = {row / s.result[1] * s.stride[0] - s.before[0],
                          row % s.result[1] * s.stride[1] - s.before[1]};
  const int64_t line = s.size[2] * s.channels;
  int64_t count = 0;
  for (int64_t a = 0; a < s.window[0]; a++)
    for (int64_t b = 0; b < s.window[1]; b++) {
      const int64_t d = top[0] + a * s.dilation[0], h = top[1] + b * s.dilation[1];
      if (d < 0 || d >= s.size[0] || h < 0 || h >= s.size[1]) continue;
      rows[count++] = {x + (d * s.size[1] + h) * line, w + (a * s.window[1] + b) * window * s.filters};
    }
  const float *below =
      x + (top[0] * s.size[1] + top[1] + (s.window[1] - 1) * s.dilation[1] + 1) * line;
  if (window == 3 && step == 1)
    common_window_row<3, 1>(s, rows, count, below, streamed, y);
  else if (window == 3)
    common_window_row<3, 2>(s, rows, count, below, streamed, y);
  else if (step == 1)
    common_window_row<5, 1>(s, rows, count, below, streamed, y);
  else
    common_window_row<5, 2>(s, rows, count, below, streamed, y);
  return s.channels / Vector<float>::COUNT * Vector<float>::COUNT;
}

// Compute a row of results for channels `begin` on, as many as fill WIDE vectors; return one past the
// last channel computed.
template <class L, int PIXELS, int WIDE, class T>
static int64_t depthwise_row(const Shape &s, const T *x, const T *w, T *y, int64_t row, int64_t begin,
                           bool streamed) {
  enum { STEP = WIDE * L::COUNT };
  const int64_t n = s.result[2], end = begin + (s.channels - begin) / STEP * STEP;
  if (begin == end) return begin;
  const int64_t top[2] = {row / s.result[1] * s.stride[0] - s.before[0],
                          row % s.result[1] * s.stride[1] - s.before[1]};
  for (int64_t i = 0; i < n;) {
    const int64_t left = i * s.stride[2] - s.before[2];
    const int64_t reach = (s.window[2] - 1) * s.dilation[2];
    const bool inside = left >= 0 && i + PIXELS <= n &&
                        left + (PIXELS - 1) * s.stride[2] + reach < s.size[2];
    T *to_y = y + i * s.filters;
    if (inside) {
      for (int64_t c = begin; c < end; c += STEP) {
        if (L::COUNT > 1) prefetch_next_row<L, PIXELS, WIDE>(s, x + c, top, i);
        depthwise_pixels<L, PIXELS, WIDE>(s, x + c, w + c, to_y + c, top, i, 0, s.window[2], streamed);
      }
      i += PIXELS;
      continue;
    }
    int64_t from = 0, to = s.window[2];
    while (from < to && left + from * s.dilation[2] < 0) from++;
    while (to > from && left + (to - 1) * s.dilation[2] >= s.size[2]) to--;
    for (int64_t c = begin; c < end; c += STEP)
      depthwise_pixels<L, 1, WIDE>(s, x + c, w + c, to_y + c, top, i, from, to, streamed);
    i++;
  }
  return end;
}

// Compute rows first to first + rows of an image. Results are streamed only where cache lines and
// vectors begin at the same addresses.
template <class T>
static void depthwise(const Shape &s, void *const *buf, int64_t image, int64_t first, int64_t rows,
                     bool streamed) {
  const int64_t lines = s.result[0] * s.result[1];
  const T *x = (const T *)buf[2] + image * s.size[0] * s.size[1] * s.size[2] * s.channels;
  const T *w = (const T *)buf[3];
  streamed &= ((uintptr_t)buf[5] | s.filters * sizeof(T)) % 64 == 0;
  for (int64_t r = first; r < first + rows; r++) {
    T *y = (T *)buf[5] + (image * lines + r) * s.result[2] * s.filters;
    int64_t c = 0;
    if constexpr (sizeof(T) == sizeof(float)) c = common_window_channels(s, x, w, r, streamed, y);
#ifdef __AVX512F__
    c = depthwise_row<Vector<T>, 4, 4>(s, x, w, y, r, c, streamed);
    c = depthwise_row<Vector<T>, 8, 2>(s, x, w, y, r, c, streamed);
#else
    c = depthwise_row<Vector<T>, 6, 2>(s, x, w, y, r, c, streamed);
#endif
    c = depthwise_row<Vector<T>, 8, 1>(s, x, w, y, r, c, streamed);
    depthwise_row<Scalar<T>, 4, 1>(s, x, w, y, r, c, false);
  }
#ifdef __AVX__
  if (streamed) __builtin_ia32_sfence();
#endif
}

// Compute a block of rows of an image by depthwise kernels.
static void depthwise_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                           unsigned char *) {
  const int64_t lines = s.result[0] * s.result[1], height = size[3];
  const int64_t blocks = ceil_div(lines, height), image = tile / blocks;
  const int64_t first = tile % blocks * height;
  const int64_t rows = lines - first < height ? lines - first : height;
  const bool streamed = size[0] == DEPTHWISE_STREAMED;
  if (size[1] == 4)
    depthwise<float>(s, buf, image, first, rows, streamed);
  else
    depthwise<double>(s, buf, image, first, rows, streamed);
  run_epilogue(size, buf, (image * lines + first) * s.result[2], rows * s.result[2]);
}
}  // namespace convolution

extern "C" void convolve_depthwise(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                      unsigned char *scratch) {
  using namespace convolution;
  run_tiles(size, buf, begin, end, scratch, depthwise_tile);
}
