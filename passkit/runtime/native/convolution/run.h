}  // namespace convolution

extern "C" void convolve(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                         unsigned char *scratch) {
  using namespace convolution;
  Shape s = {};
  if (size[0] != PANEL_FILTERS) memcpy(&s, size + 4, sizeof s);
  if (size[0] == PANEL_FILTERS) {
    *(int64_t *)buf[5] = USEFUL ? PANEL : 0;
    return;
  }
  const int64_t lines = s.result[0] * s.result[1], height = size[3];
  const int64_t results = lines * s.result[2];
  if (size[0] == FEW) {
    if (size[1] == 4)
      few<float>(s, buf, begin, end, scratch);
    else
      few<double>(s, buf, begin, end, scratch);
    return run_epilogue(size, buf, begin * results, (end - begin) * results);
  }
  for (int64_t tile = begin; tile < end; tile++) {
    if (size[0] == ZEROS) {
      const int64_t nbytes = lines * s.result[2] * s.filters * size[1];
      memset((char *)buf[5] + tile * nbytes, 0, nbytes);
    } else if (size[0] == REORDER) {
      reorder(buf, tile);
    } else if (size[0] == WINDOW_PRODUCTS) {
      window_products(s, size, buf, tile, scratch);
    } else if (size[0] == SUM_OF_PARTS) {
      sum_of_parts(s, size, buf, tile);
    } else if (size[0] == LIBRARY) {
      const int64_t *table = (const int64_t *)buf[0];
      const int64_t *part = table + FIRST + tile % table[PARTS] * PART;
      const int64_t image = tile / table[PARTS];
      const int64_t first = part[FIRST_ROW] * s.result[2], count = part[ROWS] * s.result[2];
      const bool computed = by_library(s, part, image, buf, scratch);
      for (int64_t done = 0; !computed && done < count; done += height)
        windows(s, size, buf, image, first + done, count - done < height ? count - done : height,
                scratch);
      run_epilogue(size, buf, image * results + first, count);
    } else if (size[0] == PACK) {
      pack(s, buf, tile);
    } else if (size[0] == DIRECT) {
      const int64_t panels = panels_of(s);
      const int64_t ranges = ceil_div(results, height), parts = ceil_div(panels, size[TILE_PANELS]);
      const int64_t part = tile % parts, range = tile / parts % ranges;
      const int64_t first = range * height, begin = part * size[TILE_PANELS];
      const int64_t count = results - first < height ? results - first : height;
      const int64_t image = tile / parts / ranges;
      direct(s, size, buf, image, first, count, begin,
             panels - begin < size[TILE_PANELS] ? panels : begin + size[TILE_PANELS], scratch);
      run_epilogue(size, buf, image * results + first, count);
    } else if (size[0] == WIDEN) {
      widen(s, buf);
    } else if (size[0] == WINDOWS || size[0] == SIGNALS) {
      const int64_t blocks = (results + height - 1) / height;
      const int64_t first = tile % blocks * height;
      const int64_t count = results - first < height ? results - first : height;
      (size[0] == SIGNALS ? signals : windows)(s, size, buf, tile / blocks, first, count, scratch);
      if (size[0] == WINDOWS) run_epilogue(size, buf, tile / blocks * results + first, count);
    } else {
      const int64_t blocks = (lines + height - 1) / height, first = tile % blocks * height;
      const int64_t rows = lines - first < height ? lines - first : height;
      if (size[1] == 4)
        channels<float>(s, buf, tile / blocks, first, rows, size[0] == CHANNELS_STREAMED);
      else
        channels<double>(s, buf, tile / blocks, first, rows, size[0] == CHANNELS_STREAMED);
      run_epilogue(size, buf, (tile / blocks * lines + first) * s.result[2], rows * s.result[2]);
    }
  }
}
