extern "C" void center_f16(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const half *const x0 = (const half *)buf[0];
  half *const y0 = (half *)buf[1];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  const int64_t n2 = size[2];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (int64_t i0 = tile * n1; i0 < i0_end; ++i0) {
      auto reduce_mean_1_lanes = summing<64>();
      lanes<64>(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        reduce_mean_1_lanes.take(widen(load(x0 + i0 * n2 + i1, m)), m);
      });
      const float reduce_mean_1 = reduce_mean_1_lanes.result();
      const float reduce_mean_1_row = rounded<half>(reduce_mean_1 / convert<float>(n2));
      lanes(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        store(y0 + i0 * n2 + i1, narrow<half>(widen(load(x0 + i0 * n2 + i1, m)) - reduce_mean_1_row), m);
        prefetch(x0 + i0 * n2 + i1 + n2, m);
      });
    }
  }
}
