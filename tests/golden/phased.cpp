static void phased_phase0(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y1 = (float *)buf[2];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  float *const s0 = (float *)(scratch + 0);
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 64;
    const int64_t high = low + 64 < n0 ? low + 64 : n0;
    lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s0 + i1 - low, splat<float>(0.0f, m), m);
    });
    for (int64_t i0_low = 0; i0_low < n1; i0_low += 16) {
      const int64_t i0_high = i0_low + 16 < n1 ? i0_low + 16 : n1;
      lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
        auto reduce_mean_1 = splat<float>(0.0f, m);
        for (int64_t i0 = i0_low; i0 < i0_high; ++i0) {
          reduce_mean_1 = reduce_mean_1 + load(x0 + i0 * n0 + i1, m);
        }
        store(s0 + i1 - low, load(s0 + i1 - low, m) + reduce_mean_1, m);
      });
    }
    const divisor<float> by0(convert<float>(n1));
    lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(y1 + i1, load(s0 + i1 - low, m) / by0, m);
    });
  }
}
static void phased_phase1(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  const float *const y1 = (const float *)buf[2];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  const int64_t n3 = size[3];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t i0_end = tile * n3 + n3 < n1 ? tile * n3 + n3 : n1;
    for (int64_t i0 = tile * n3; i0 < i0_end; ++i0) {
      auto reduce_max_1_lanes = largest<float, 64>();
      lanes<64>(0, n0, [&](int64_t i1, auto m) PK_INLINE {
        reduce_max_1_lanes.take(abs(load(x0 + i0 * n0 + i1, m) - load(y1 + i1, m)), m);
      });
      const float reduce_max_1 = reduce_max_1_lanes.result();
      const divisor<float> by0(reduce_max_1);
      lanes<64>(0, n0, [&](int64_t i1, auto m) PK_INLINE {
        store(y0 + i0 * n0 + i1, (load(x0 + i0 * n0 + i1, m) - load(y1 + i1, m)) / by0, m);
        prefetch(x0 + i0 * n0 + i1 + n0, m);
      });
    }
  }
}
extern "C" void phased(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  if (size[5] == 0) phased_phase0(buf, size, begin, end, scratch);
  if (size[5] == 1) phased_phase1(buf, size, begin, end, scratch);
}
