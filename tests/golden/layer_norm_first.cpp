extern "C" void layer_norm_first(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  const float *const x1 = (const float *)buf[1];
  const float *const x2 = (const float *)buf[2];
  float *const y0 = (float *)buf[3];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  float *const s2 = (float *)(scratch + 4096);
  float *const s3 = (float *)(scratch + 6144);
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 512;
    const int64_t high = low + 512 < n0 ? low + 512 : n0;
    lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s0 + i1 - low, splat<float>(0.0f, m), m);
    });
    for (int64_t i0_low = 0; i0_low < n1; i0_low += 16) {
      const int64_t i0_high = i0_low + 16 < n1 ? i0_low + 16 : n1;
      lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
        auto reduce_mean_1 = splat<float>(0.0f, m);
        for (int64_t i0 = i0_low; i0 < i0_high; ++i0) {
          reduce_mean_1 = reduce_mean_1 + load(x0 + i1 + i0 * n0, m);
        }
        store(s0 + i1 - low, load(s0 + i1 - low, m) + reduce_mean_1, m);
      });
    }
    const divisor<float> by0(convert<float>(n1));
    lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s1 + i1 - low, load(s0 + i1 - low, m) / by0, m);
    });
    lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s2 + i1 - low, splat<float>(0.0f, m), m);
    });
    for (int64_t i0_low = 0; i0_low < n1; i0_low += 16) {
      const int64_t i0_high = i0_low + 16 < n1 ? i0_low + 16 : n1;
      lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
        auto reduce_mean_2 = splat<float>(0.0f, m);
        for (int64_t i0 = i0_low; i0 < i0_high; ++i0) {
          const auto sub_1 = load(x0 + i1 + i0 * n0, m) - load(s1 + i1 - low, m);
          reduce_mean_2 = reduce_mean_2 + sub_1 * sub_1;
        }
        store(s2 + i1 - low, load(s2 + i1 - low, m) + reduce_mean_2, m);
      });
    }
    const divisor<float> by1(convert<float>(n1));
    lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s3 + i1 - low, rsqrt(load(s2 + i1 - low, m) / by1 + 0.00001f), m);
    });
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      const float x1_5 = x1[i0];
      const float x2_7 = x2[i0];
      lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
        const auto mul_2 = (load(x0 + i1 + i0 * n0, m) - load(s1 + i1 - low, m)) * load(s3 + i1 - low, m);
        store(y0 + i1 + i0 * n0, mul_2 * x1_5 + x2_7, m);
      });
    }
  }
}
