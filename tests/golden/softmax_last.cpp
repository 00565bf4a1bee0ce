extern "C" void softmax_last(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  const int64_t n2 = size[2];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (int64_t i0 = tile * n1; i0 < i0_end; ++i0) {
      auto reduce_max_1_lanes = largest<float, 64>();
      lanes<64>(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        reduce_max_1_lanes.take(load(x0 + i0 * n2 + i1, m), m);
      });
      const float reduce_max_1 = reduce_max_1_lanes.result();
      auto reduce_sum_1_lanes = summing<16>();
      lanes(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        const auto exp_1 = exp_nonpositive(load(x0 + i0 * n2 + i1, m) - reduce_max_1);
        reduce_sum_1_lanes.take(exp_1, m);
        store(y0 + i0 * n2 + i1, exp_1, m);
        prefetch(x0 + i0 * n2 + i1 + n2, m);
      });
      const float reduce_sum_1 = reduce_sum_1_lanes.result();
      const divisor<float> by0(reduce_sum_1);
      lanes<64>(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        store(y0 + i0 * n2 + i1, load(y0 + i0 * n2 + i1, m) / by0, m);
      });
    }
  }
}
