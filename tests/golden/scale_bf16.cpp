extern "C" void scale_bf16(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const bfloat *const x0 = (const bfloat *)buf[0];
  const uint8_t *const x1 = (const uint8_t *)buf[1];
  bfloat *const y0 = (bfloat *)buf[2];
  const int64_t n0 = size[0];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    lanes(low, high, [&](int64_t i0, auto m) PK_INLINE {
      store(y0 + i0, narrow<bfloat>(rounded<bfloat>(widen(load(x0 + i0, m)) * 3.0f) + convert<float>(load(x1 + i0, m))), m);
    });
  }
}
