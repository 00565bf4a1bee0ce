// Small images with few filters: vectorized over filters, and PIXELS results share the loads of the
// filter. A tile is an image; where windows extend beyond it, it is first copied to scratch with a border
// of zeros.
//
// Taps that are adjacent in memory are a run: those of a line without dilation, else one tap.
struct SmallImages {
  int64_t extent[3];                                  // of the image with its border
  bool padded;
  int64_t pixels;                                     // results of an image
  int64_t row;                                        // filters, rounded up to full vectors
  int64_t run, runs;                                  // elements of a run; runs of a window
};

// Return the derived sizes of a convolution; `lanes` are the elements of a cache line.
static SmallImages small_images_of(const Shape &s, int64_t lanes) {
  SmallImages f;
  f.padded = false;
  for (int d = 0; d < 3; d++) {
    const int64_t reach = (s.result[d] - 1) * s.stride[d] + (s.window[d] - 1) * s.dilation[d] + 1;
    f.padded |= s.before[d] != 0 || reach > s.size[d];
    f.extent[d] = reach;
  }
  if (!f.padded) memcpy(f.extent, s.size, sizeof f.extent);
  f.pixels = s.result[0] * s.result[1] * s.result[2];
  f.row = (s.filters + lanes - 1) / lanes * lanes;
  f.run = s.channels * (s.dilation[2] == 1 ? s.window[2] : 1);
  f.runs = s.window[0] * s.window[1] * s.window[2] * s.channels / f.run;
  return f;
}

// Fill in the offset of each result's window, and of each run of a window from its begin.
static void small_images_offsets(const Shape &s, const SmallImages &f, int64_t *pixel, int64_t *run) {
  const int64_t line = f.extent[2] * s.channels, plane = f.extent[1] * line;
  for (int64_t z = 0; z < s.result[0]; z++)
    for (int64_t y = 0; y < s.result[1]; y++)
      for (int64_t x = 0; x < s.result[2]; x++)
        *pixel++ = z * s.stride[0] * plane + y * s.stride[1] * line + x * s.stride[2] * s.channels;
  const int64_t across = s.window[2] * s.channels / f.run;
  for (int64_t a = 0; a < s.window[0]; a++)
    for (int64_t b = 0; b < s.window[1]; b++)
      for (int64_t c = 0; c < across; c++)
        *run++ = a * s.dilation[0] * plane + b * s.dilation[1] * line + c * s.dilation[2] * s.channels;
}

// Clamp x to the range from low to high.
static int64_t clamp(int64_t low, int64_t x, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Copy an image and surround it with zeros.
template <class T> static void small_images_padded(const Shape &s, const SmallImages &f, const T *image, T *to) {
  const int64_t left = clamp(0, s.before[2], f.extent[2]);
  const int64_t right = clamp(left, s.before[2] + s.size[2], f.extent[2]);
  for (int64_t d = -s.before[0]; d < f.extent[0] - s.before[0]; d++)
    for (int64_t h = -s.before[1]; h < f.extent[1] - s.before[1]; h++) {
      T *line = to;
      to += f.extent[2] * s.channels;
      int64_t from = left, end = right;
      if (d < 0 || d >= s.size[0] || h < 0 || h >= s.size[1]) from = end = 0;
      memset(line, 0, from * s.channels * sizeof(T));
      memcpy(line + from * s.channels,
             image + ((d * s.size[1] + h) * s.size[2] + from - s.before[2]) * s.channels,
             (end - from) * s.channels * sizeof(T));
      memset(line + end * s.channels, 0, (f.extent[2] - end) * s.channels * sizeof(T));
    }
}

// Compute PIXELS results. Vectors may extend beyond the filters of a result; the next result, which is
// stored later, overwrites the excess, and nothing is stored beyond `end`.
template <class T, int PIXELS, int WIDE>
static void small_images_pixels(const Shape &s, const SmallImages &f, const T *x, const int64_t *pixel,
                       const int64_t *run, const T *w, T *y, const T *end) {
  typedef typename Vector<T>::type V;
  enum { COUNT = Vector<T>::COUNT };
  V sum[PIXELS][WIDE];
  UNROLL for (int p = 0; p < PIXELS; p++)
    UNROLL for (int v = 0; v < WIDE; v++) sum[p][v] = V{};
  for (int64_t r = 0; r < f.runs; r++) {
    const T *at[PIXELS];
    UNROLL for (int p = 0; p < PIXELS; p++) at[p] = x + pixel[p] + run[r];
    for (int64_t k = 0; k < f.run; k++, w += f.row) {
      V factor[WIDE];
      UNROLL for (int v = 0; v < WIDE; v++) factor[v] = *(const V *)(w + v * COUNT);
      UNROLL for (int p = 0; p < PIXELS; p++)
        UNROLL for (int v = 0; v < WIDE; v++) sum[p][v] += factor[v] * at[p][k];
    }
  }
  UNROLL for (int p = 0; p < PIXELS; p++, y += s.filters)
    UNROLL for (int v = 0; v < WIDE; v++) {
      const int64_t rest = s.filters - v * COUNT;
      if (y + v * COUNT + COUNT <= end)
        *(V *)(y + v * COUNT) = sum[p][v];
      else if (rest > 0)
        memcpy(y + v * COUNT, &sum[p][v], (rest < COUNT ? rest : COUNT) * sizeof(T));
    }
}

// Compute all results of an image.
template <class T, int PIXELS, int WIDE>
static void small_images_image(const Shape &s, const SmallImages &f, const T *x, const int64_t *pixel,
                      const int64_t *run, const T *w, T *y) {
  const T *end = y + f.pixels * s.filters;
  if (f.pixels < PIXELS) {
    for (int64_t i = 0; i < f.pixels; i++)
      small_images_pixels<T, 1, WIDE>(s, f, x, pixel + i, run, w, y + i * s.filters, end);
    return;
  }
  for (int64_t i = 0;; i += PIXELS) {
    const bool last = i + PIXELS >= f.pixels;         // some of these were computed before
    if (last) i = f.pixels - PIXELS;
    small_images_pixels<T, PIXELS, WIDE>(s, f, x, pixel + i, run, w, y + i * s.filters, end);
    if (last) return;
  }
}

// Compute images begin to end. Scratch holds offsets, the filter in full vectors, and an image.
template <class T>
static void small_images(const Shape &s, void *const *buf, int64_t begin, int64_t end,
                unsigned char *scratch) {
  const SmallImages f = small_images_of(s, CACHE_LINE / sizeof(T));
  int64_t *pixel = (int64_t *)scratch, *run = pixel + f.pixels;
  T *rows = (T *)(run + f.runs), *image = rows + f.runs * f.run * f.row;
  small_images_offsets(s, f, pixel, run);
  for (int64_t k = 0; k < f.runs * f.run; k++) {
    memcpy(rows + k * f.row, (const T *)buf[3] + k * s.filters, s.filters * sizeof(T));
    memset(rows + k * f.row + s.filters, 0, (f.row - s.filters) * sizeof(T));
  }
  const int64_t in = s.size[0] * s.size[1] * s.size[2] * s.channels, out = f.pixels * s.filters;
  for (int64_t i = begin; i < end; i++) {
    const T *x = (const T *)buf[2] + i * in;
    T *y = (T *)buf[5] + i * out;
    if (f.padded) {
      small_images_padded(s, f, x, image);
      x = image;
    }
    switch (f.row * sizeof(T) / CACHE_LINE) {
#ifdef __AVX512F__
      case 1: small_images_image<T, 8, 1>(s, f, x, pixel, run, rows, y); break;
      case 2: small_images_image<T, 8, 2>(s, f, x, pixel, run, rows, y); break;
      case 3: small_images_image<T, 6, 3>(s, f, x, pixel, run, rows, y); break;
      default: small_images_image<T, 5, 4>(s, f, x, pixel, run, rows, y);
#else
      case 1: small_images_image<T, 6, 2>(s, f, x, pixel, run, rows, y); break;
      case 2: small_images_image<T, 3, 4>(s, f, x, pixel, run, rows, y); break;
      case 3: small_images_image<T, 2, 6>(s, f, x, pixel, run, rows, y); break;
      default: small_images_image<T, 1, 8>(s, f, x, pixel, run, rows, y);
#endif
    }
  }
}
}  // namespace convolution

extern "C" void convolve_small_images(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                      unsigned char *scratch) {
  using namespace convolution;
  Shape s;
  memcpy(&s, size + 4, sizeof s);
  if (size[1] == 4)                                   // one call converts the filter for all images
    small_images<float>(s, buf, begin, end, scratch);
  else
    small_images<double>(s, buf, begin, end, scratch);
  run_epilogue(size, buf, begin * results_of(s), (end - begin) * results_of(s));
}
