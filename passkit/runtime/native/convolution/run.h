}  // namespace convolution

extern "C" void convolve(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                         unsigned char *scratch) {
  using namespace convolution;
  Shape s;
  memcpy(&s, size + 4, sizeof s);
  if (size[0] == FEW)
    return size[1] == 4 ? few<float>(s, buf, begin, end, scratch)
                        : few<double>(s, buf, begin, end, scratch);
  const int64_t lines = s.result[0] * s.result[1], height = size[3];
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
      if (by_library(s, part, image, buf, scratch)) continue;
      const int64_t first = part[FIRST_ROW] * s.result[2], count = part[ROWS] * s.result[2];
      for (int64_t done = 0; done < count; done += height)
        windows(s, size, buf, image, first + done, count - done < height ? count - done : height,
                scratch);
    } else if (size[0] == WIDEN) {
      widen(s, buf);
    } else if (size[0] == WINDOWS || size[0] == SIGNALS) {
      const int64_t results = lines * s.result[2], blocks = (results + height - 1) / height;
      const int64_t first = tile % blocks * height;
      const int64_t count = results - first < height ? results - first : height;
      (size[0] == SIGNALS ? signals : windows)(s, size, buf, tile / blocks, first, count, scratch);
    } else {
      const int64_t blocks = (lines + height - 1) / height, first = tile % blocks * height;
      const int64_t rows = lines - first < height ? lines - first : height;
      if (size[1] == 4)
        channels<float>(s, buf, tile / blocks, first, rows, size[0] == CHANNELS_STREAMED);
      else
        channels<double>(s, buf, tile / blocks, first, rows, size[0] == CHANNELS_STREAMED);
    }
  }
}
