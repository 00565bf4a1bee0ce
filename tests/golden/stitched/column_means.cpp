extern "C" void column_means(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  const int64_t n0 = size[0];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = begin; tile < end; ++tile) {
    {
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8; row < row_end; ++row) {
        fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
          store(s0 + (row - tile * 8) * 64 + col, load(x0 + row * 64 + col, m), m);
        });
      }
    }
    {
      fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
        store(s1 + col, splat<float>(0.0f, m), m);
      });
      for (int64_t item_low = 0; item_low < 8; item_low += 16) {
        const int64_t item_high = item_low + 16 < 8 ? item_low + 16 : 8;
        fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
          auto sum = splat<float>(0.0f, m);
          for (int64_t item = item_low; item < item_high; ++item) {
            sum = sum + load(s0 + item * 64 + col, m);
          }
          store(s1 + col, load(s1 + col, m) + sum, m);
        });
      }
    }
    {
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8; row < row_end; ++row) {
        paired_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
          store(y0 + row * 64 + col, load(s0 + (row - tile * 8) * 64 + col, m) - load(s1 + col, m) / 8.0f, m);
        });
      }
    }
  }
}
