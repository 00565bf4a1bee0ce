// Gradients of filters. A tile is a range of images, or of lines of an image, and computes an array of
// the filter's shape; these are added in the order of the parts. filter_gradients.py builds the table.
enum {                                                // the record of a part; GRADIENT_PART is its length
  GRADIENT_PRIMITIVE, GRADIENT_SOURCE, GRADIENT_RESULT, GRADIENT_FILTER, GRADIENT_SCRATCH,
  GRADIENT_REORDER, GRADIENT_SOURCE_OFFSET, GRADIENT_RESULT_OFFSET, GRADIENT_SCRATCH_NBYTES,
  FIRST_IMAGE, IMAGES, FIRST_LINE, LINES,
  GRADIENT_PART,
};

enum { DIFF_RESULT_ARGUMENT = 145, DIFF_FILTER_ARGUMENT = 161, TRANSPOSED = 112 };

// to = left^T right + beta to, for row-major matrices left (rows, m) and right (rows, n).
static void add_product(void *gemm, bool wide, int64_t m, int64_t n, int64_t rows,
                        const float *left, const float *right, float beta, float *to) {
  if (gemm && wide) {
    ((Gemm64)gemm)(ROW_MAJOR, TRANSPOSED, AS_IS, m, n, rows, 1, left, m, right, n, beta, to, n);
    return;
  }
  if (gemm) {
    ((Gemm32)gemm)(ROW_MAJOR, TRANSPOSED, AS_IS, (int32_t)m, (int32_t)n, (int32_t)rows, 1, left,
                   (int32_t)m, right, (int32_t)n, beta, to, (int32_t)n);
    return;
  }
  if (beta == 0) memset(to, 0, m * n * sizeof(float));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) to[i * n + j] += left[r * m + i] * right[r * n + j];
}

// Compute a part by im2col, with the windows of `height` lines at a time.
static void gradient_by_im2col(const Shape &s, const int64_t *part, void *const *buf, bool wide,
                                int64_t height, float *to, unsigned char *scratch) {
  const int64_t m = s.window[0] * s.window[1] * s.window[2] * s.channels, n = s.filters;
  const int64_t image = s.size[0] * s.size[1] * s.size[2] * s.channels;
  const int64_t lines = s.result[0] * s.result[1], across = s.result[2];
  float *patches = (float *)scratch, beta = 0;
  if (part[IMAGES] <= 0 || part[LINES] <= 0) memset(to, 0, m * n * sizeof(float));
  for (int64_t i = part[FIRST_IMAGE]; i < part[FIRST_IMAGE] + part[IMAGES]; i++)
    for (int64_t done = 0; done < part[LINES]; done += height, beta = 1) {
      const int64_t first = part[FIRST_LINE] + done;
      const int64_t rows = part[LINES] - done < height ? part[LINES] - done : height;
      for (int64_t r = 0; r < rows; r++)
        gather(s, (const float *)buf[2] + i * image, first + r, 0, across, 0,
               patches + r * across * m);
      add_product(buf[1], wide, m, n, rows * across, patches,
                  (const float *)buf[3] + (i * lines + first) * across * n, beta, to);
    }
}

// Compute a part by the library, and convert it from its layout; return whether it succeeded.
static bool gradient_by_onednn(const int64_t *part, void *const *buf, float *to,
                                unsigned char *scratch) {
  int64_t *table = (int64_t *)buf[0];
  if (!__atomic_load_n(&table[FILTER], __ATOMIC_RELAXED)) return false;
  unsigned char *own = scratch + part[GRADIENT_SCRATCH_NBYTES];
  const int which[4] = {SOURCE_ARGUMENT, DIFF_RESULT_ARGUMENT, DIFF_FILTER_ARGUMENT, SCRATCH_ARGUMENT};
  void *const data[4] = {(float *)buf[2] + part[GRADIENT_SOURCE_OFFSET],
                         (float *)buf[3] + part[GRADIENT_RESULT_OFFSET], own, scratch};
  int status = run_primitive(table, part[GRADIENT_PRIMITIVE], 4, which, part + GRADIENT_SOURCE,
                             data);
  if (!status) {
    const int both[2] = {SOURCE_ARGUMENT, RESULT_ARGUMENT};
    const int64_t descriptors[2] = {part[GRADIENT_FILTER], table[FILTER]};
    void *const arrays[2] = {own, to};
    status = run_primitive(table, part[GRADIENT_REORDER], 2, both, descriptors, arrays);
  }
  if (status) disable_library(table, status);
  return status == 0;
}

// Compute a part of a filter's gradient.
static void filter_gradient(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                            unsigned char *scratch) {
  const int64_t *part = (const int64_t *)buf[0] + FIRST + tile * GRADIENT_PART;
  const int64_t count = s.window[0] * s.window[1] * s.window[2] * s.channels * s.filters;
  float *to = (float *)buf[4] + tile * count;
  if (!gradient_by_onednn(part, buf, to, scratch))
    gradient_by_im2col(s, part, buf, size[2] != 0, size[3], to, scratch);
}

// Add a block of the parts' gradients.
static void sum_gradient_parts(const Shape &s, const int64_t *size, void *const *buf, int64_t tile) {
  const int64_t count = s.window[0] * s.window[1] * s.window[2] * s.channels * s.filters;
  const int64_t first = tile * SUM_BLOCK, rest = count - first, n = rest < SUM_BLOCK ? rest : SUM_BLOCK;
  const float *from = (const float *)buf[4] + first;
  float *to = (float *)buf[5] + first;
  memcpy(to, from, n * sizeof(float));
  for (int64_t p = 1; p < size[3]; p++)
    for (int64_t k = 0; k < n; k++) to[k] += from[p * count + k];
}
