extern "C" void softmax_first(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 512;
    const int64_t high = low + 512 < n0 ? low + 512 : n0;
    lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s0 + i1 - low, splat<float>(-__builtin_inff(), m), m);
    });
    for (int64_t i0_low = 0; i0_low < n1; i0_low += 16) {
      const int64_t i0_high = i0_low + 16 < n1 ? i0_low + 16 : n1;
      lanes<64>(low, high, [&](int64_t i1, auto m) PK_INLINE {
        auto reduce_max_1 = splat<float>(-__builtin_inff(), m);
        for (int64_t i0 = i0_low; i0 < i0_high; ++i0) {
          reduce_max_1 = maximum(reduce_max_1, load(x0 + i1 + i0 * n0, m));
        }
        store(s0 + i1 - low, maximum(load(s0 + i1 - low, m), reduce_max_1), m);
      });
    }
    lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s1 + i1 - low, splat<float>(0.0f, m), m);
    });
    for (int64_t i0_low = 0; i0_low < n1; i0_low += 4) {
      const int64_t i0_high = i0_low + 4 < n1 ? i0_low + 4 : n1;
      lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
        auto reduce_sum_1 = splat<float>(0.0f, m);
        for (int64_t i0 = i0_low; i0 < i0_high; ++i0) {
          const auto exp_1 = exp_nonpositive(load(x0 + i1 + i0 * n0, m) - load(s0 + i1 - low, m));
          reduce_sum_1 = reduce_sum_1 + exp_1;
          store(y0 + i1 + i0 * n0, exp_1, m);
        }
        store(s1 + i1 - low, load(s1 + i1 - low, m) + reduce_sum_1, m);
      });
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
        store(y0 + i1 + i0 * n0, load(y0 + i1 + i0 * n0, m) / load(s1 + i1 - low, m), m);
      });
    }
  }
}
