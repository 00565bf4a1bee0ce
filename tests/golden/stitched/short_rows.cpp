extern "C" void short_rows(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  const int64_t n0 = size[0];
  const int64_t n2 = size[2];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 128);
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t first = tile * 32;
    const int64_t last = tile * 32 + 32 < n0 ? tile * 32 + 32 : n0;
    auto total_rows = reductions_of_rows<32>(reduction<float, 64>(0.0f, adding{}));
    for (int64_t row = first; row < last; ++row) {
      auto total_lanes = total_rows.begin();
      lanes<64>(0, n2, [&](int64_t col, auto m) PK_INLINE {
        total_lanes.take(load(x0 + row * n2 + col, m), m);
      });
      total_rows.end(row - first, total_lanes);
    }
    total_rows.results(s0, last - first);
    lanes(first, last, [&](int64_t row, auto m) PK_INLINE {
      store(s1 + row - first, 1.0f / load(s0 + row - first, m), m);
    });
    for (int64_t row = first; row < last; ++row) {
      lanes(0, n2, [&](int64_t col, auto m) PK_INLINE {
        store(y0 + row * n2 + col, load(x0 + row * n2 + col, m) * s1[row - first], m);
      });
    }
  }
}
