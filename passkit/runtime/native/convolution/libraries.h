// The unit of kernels that call BLAS or oneDNN, and of what all units need.

// Compute a part of an image by oneDNN, or by im2col where that fails.
static void onednn_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                        unsigned char *scratch) {
  const int64_t *table = (const int64_t *)buf[0];
  const int64_t *part = table + FIRST + tile % table[PARTS] * PART;
  const int64_t image = tile / table[PARTS], height = size[3];
  const int64_t results = results_of(s);
  const int64_t first = part[FIRST_ROW] * s.result[2], count = part[ROWS] * s.result[2];
  const bool computed = by_onednn(s, part, image, buf, scratch);
  for (int64_t done = 0; !computed && done < count; done += height)
    im2col(s, size, buf, image, first + done, count - done < height ? count - done : height, scratch);
  run_epilogue(size, buf, image * results + first, count);
}

// Compute a block of results of an image by im2col, or by signal filters.
static void im2col_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                        unsigned char *scratch) {
  const int64_t results = results_of(s), height = size[3];
  const int64_t blocks = ceil_div(results, height), image = tile / blocks;
  const int64_t first = tile % blocks * height;
  const int64_t count = results - first < height ? results - first : height;
  if (size[0] == SIGNAL_FILTERS) return signal_filters(s, size, buf, image, first, count, scratch);
  im2col(s, size, buf, image, first, count, scratch);
  run_epilogue(size, buf, image * results + first, count);
}

// Run the task of a tile.
static void run_by_libraries(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                             unsigned char *scratch) {
  switch (size[0]) {
    case ZERO_RESULT: {
      const int64_t nbytes = results_of(s) * s.filters * size[1];
      memset((char *)buf[5] + tile * nbytes, 0, nbytes);
      break;
    }
    case REORDER_FILTER: reorder_filter(buf, tile); break;
    case FILTER_GRADIENT: filter_gradient(s, size, buf, tile, scratch); break;
    case SUM_GRADIENT_PARTS: sum_gradient_parts(s, size, buf, tile); break;
    case ONEDNN: onednn_tile(s, size, buf, tile, scratch); break;
    case WIDEN_FILTER: widen_filter(s, buf); break;
    default: im2col_tile(s, size, buf, tile, scratch);
  }
}
}  // namespace convolution

extern "C" void convolve_libraries(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                      unsigned char *scratch) {
  using namespace convolution;
  if (size[0] == QUERY_PANEL_WIDTH) {
    *(int64_t *)buf[5] = HAS_VECTOR_REGISTERS ? PANEL : 0;
    return;
  }
  run_tiles(size, buf, begin, end, scratch, run_by_libraries);
}
