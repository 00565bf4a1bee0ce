extern "C" void gelu(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  float *const y0 = (float *)buf[1];
  const int64_t n0 = size[0];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    lanes(low, high, [&](int64_t i0, auto m) PK_INLINE {
      const auto x0_0 = load(x0 + i0, m);
      store(y0 + i0, x0_0 * 0.5f * (erf(x0_0 * 0.70710677f) + 1.0f), m);
    });
  }
}
