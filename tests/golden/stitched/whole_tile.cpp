extern "C" void whole_tile(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  float *const s0 = (float *)(scratch + 0);
  for (int64_t tile = begin; tile < end; ++tile) {
    auto most_lanes = largest<float, 64>();
    lanes<64>(0, 1000, [&](int64_t item, auto m) PK_INLINE {
      most_lanes.take(load(x0 + tile * 1000 + item, m), m);
    });
    const float most = most_lanes.result();
    s0[0] = most;
    const divisor<float> by0(s0[0]);
    lanes<64>(0, 1000, [&](int64_t item, auto m) PK_INLINE {
      store(y0 + tile * 1000 + item, load(x0 + tile * 1000 + item, m) / by0, m);
    });
  }
}
