extern "C" void layer_norm_last(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  const float *const x1 = (const float *)buf[1];
  const float *const x2 = (const float *)buf[2];
  float *const y0 = (float *)buf[3];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  const int64_t n2 = size[2];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (int64_t i0 = tile * n1; i0 < i0_end; ++i0) {
      auto reduce_mean_1_lanes = summing<64>();
      lanes<64>(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        reduce_mean_1_lanes.take(load(x0 + i0 * n2 + i1, m), m);
      });
      const float reduce_mean_1 = reduce_mean_1_lanes.result();
      const float reduce_mean_1_row = reduce_mean_1 / convert<float>(n2);
      auto reduce_mean_2_lanes = summing<64>();
      lanes<64>(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        const auto sub_1 = load(x0 + i0 * n2 + i1, m) - reduce_mean_1_row;
        reduce_mean_2_lanes.take(sub_1 * sub_1, m);
        prefetch(x0 + i0 * n2 + i1 + n2, m);
      });
      const float reduce_mean_2 = reduce_mean_2_lanes.result();
      const float reduce_mean_2_row = reduce_mean_2 / convert<float>(n2);
      const float add_1 = reduce_mean_2_row + 0.00001f;
      const float rsqrt_1 = rsqrt(add_1);
      lanes(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        const auto mul_3 = (load(x0 + i0 * n2 + i1, m) - reduce_mean_1_row) * rsqrt_1 * load(x1 + i1, m);
        store(y0 + i0 * n2 + i1, mul_3 + load(x2 + i1, m), m);
      });
    }
  }
}
