extern "C" void one_place(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  const int64_t n0 = size[0];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 256);
  float *const s2 = (float *)(scratch + 0);
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t row_end = tile * 4 + 4 < n0 ? tile * 4 + 4 : n0;
    for (int64_t row = tile * 4; row < row_end; ++row) {
      fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
        store(s0 + col, load(x0 + row * 64 + col, m), m);
      });
      fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
        store(s1 + col, load_back(s0 + 63 - col, m), m);
      });
      fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
        store(s2 + col, load_back(s1 + 63 - col, m), m);
      });
      fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
        store(y0 + row * 64 + col, load_back(s2 + 63 - col, m), m);
      });
    }
  }
}
