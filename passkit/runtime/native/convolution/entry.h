// The kernel of the unit: the tasks of a tile.

// Compute a part of an image by oneDNN, or by im2col where that fails.
static void onednn_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                        unsigned char *scratch) {
  const int64_t *table = (const int64_t *)buf[0];
  const int64_t *part = table + FIRST + tile % table[PARTS] * PART;
  const int64_t image = tile / table[PARTS], height = size[3];
  const int64_t results = s.result[0] * s.result[1] * s.result[2];
  const int64_t first = part[FIRST_ROW] * s.result[2], count = part[ROWS] * s.result[2];
  const bool computed = by_onednn(s, part, image, buf, scratch);
  for (int64_t done = 0; !computed && done < count; done += height)
    im2col(s, size, buf, image, first + done, count - done < height ? count - done : height, scratch);
  run_epilogue(size, buf, image * results + first, count);
}

// Compute a range of results of an image for a range of panels of filters.
static void direct_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                        unsigned char *scratch) {
  const int64_t results = s.result[0] * s.result[1] * s.result[2], height = size[3];
  const int64_t panels = panels_of(s), tile_panels = size[TILE_PANELS];
  const int64_t ranges = ceil_div(results, height), parts = ceil_div(panels, tile_panels);
  const int64_t range = tile / parts % ranges, image = tile / parts / ranges;
  const int64_t first = range * height, begin = tile % parts * tile_panels;
  const int64_t count = results - first < height ? results - first : height;
  const int64_t end = panels - begin < tile_panels ? panels : begin + tile_panels;
  direct(s, size, buf, image, first, count, begin, end, scratch);
  run_epilogue(size, buf, image * results + first, count);
}

// Compute a block of results of an image by im2col, or by signal filters.
static void im2col_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                        unsigned char *scratch) {
  const int64_t results = s.result[0] * s.result[1] * s.result[2], height = size[3];
  const int64_t blocks = ceil_div(results, height), image = tile / blocks;
  const int64_t first = tile % blocks * height;
  const int64_t count = results - first < height ? results - first : height;
  if (size[0] == SIGNAL_FILTERS) return signal_filters(s, size, buf, image, first, count, scratch);
  im2col(s, size, buf, image, first, count, scratch);
  run_epilogue(size, buf, image * results + first, count);
}

// Compute a block of rows of an image by depthwise kernels.
static void depthwise_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile) {
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

static void run_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                     unsigned char *scratch) {
  const int64_t results = s.result[0] * s.result[1] * s.result[2];
  switch (size[0]) {
    case ZERO_RESULT: {
      const int64_t nbytes = results * s.filters * size[1];
      memset((char *)buf[5] + tile * nbytes, 0, nbytes);
      break;
    }
    case REORDER_FILTER: reorder_filter(buf, tile); break;
    case FILTER_GRADIENT: filter_gradient(s, size, buf, tile, scratch); break;
    case SUM_GRADIENT_PARTS: sum_gradient_parts(s, size, buf, tile); break;
    case ONEDNN: onednn_tile(s, size, buf, tile, scratch); break;
    case PACK_FILTER: pack_filter(s, buf, tile); break;
    case DIRECT: direct_tile(s, size, buf, tile, scratch); break;
    case WIDEN_FILTER: widen_filter(s, buf); break;
    case IM2COL:
    case SIGNAL_FILTERS: im2col_tile(s, size, buf, tile, scratch); break;
    default: depthwise_tile(s, size, buf, tile);
  }
}
}  // namespace convolution

extern "C" void convolve(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                         unsigned char *scratch) {
  using namespace convolution;
  if (size[0] == QUERY_PANEL_WIDTH) {
    *(int64_t *)buf[5] = HAS_VECTOR_REGISTERS ? PANEL : 0;
    return;
  }
  Shape s;
  memcpy(&s, size + 4, sizeof s);
  if (size[0] == SMALL_IMAGES) {                        // one call converts the filter for all images
    const int64_t results = s.result[0] * s.result[1] * s.result[2];
    if (size[1] == 4)
      small_images<float>(s, buf, begin, end, scratch);
    else
      small_images<double>(s, buf, begin, end, scratch);
    return run_epilogue(size, buf, begin * results, (end - begin) * results);
  }
  for (int64_t tile = begin; tile < end; tile++) run_tile(s, size, buf, tile, scratch);
}
