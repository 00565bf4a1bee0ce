static void packed_part0(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  float *const b0 = (float *)buf[0];
  const float *const b1 = (const float *)buf[1];
  const int64_t n0 = size[0];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    lanes(low, high, [&](int64_t i0, auto m) PK_INLINE {
      store(b0 + i0, load(b1 + i0, m) + 1.0f, m);
    });
  }
}

static void packed_part1(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const b0 = (const float *)buf[0];
  float *const b1 = (float *)buf[1];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  const int64_t n2 = size[2];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t i0_end = tile * n0 + n0 < n1 ? tile * n0 + n0 : n1;
    for (int64_t i0 = tile * n0; i0 < i0_end; ++i0) {
      auto reduce_sum_1_lanes = summing<64>();
      lanes<64>(0, n2, [&](int64_t i1, auto m) PK_INLINE {
        reduce_sum_1_lanes.take(load(b0 + i0 * n2 + i1, m), m);
      });
      const float reduce_sum_1 = reduce_sum_1_lanes.result();
      b1[i0] = reduce_sum_1;
    }
  }
}

static void packed_part2(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const double *const b0 = (const double *)buf[0];
  double *const b1 = (double *)buf[1];
  const int64_t n0 = size[0];
  const int64_t n1 = size[1];
  double *const s0 = (double *)(scratch + 0);
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 512;
    const int64_t high = low + 512 < n0 ? low + 512 : n0;
    lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(s0 + i1 - low, splat<double>(0.0, m), m);
    });
    for (int64_t i0_low = 0; i0_low < n1; i0_low += 16) {
      const int64_t i0_high = i0_low + 16 < n1 ? i0_low + 16 : n1;
      lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
        auto reduce_sum_1 = splat<double>(0.0, m);
        for (int64_t i0 = i0_low; i0 < i0_high; ++i0) {
          reduce_sum_1 = reduce_sum_1 + load(b0 + i1 + i0 * n0, m);
        }
        store(s0 + i1 - low, load(s0 + i1 - low, m) + reduce_sum_1, m);
      });
    }
    lanes(low, high, [&](int64_t i1, auto m) PK_INLINE {
      store(b1 + i1, load(s0 + i1 - low, m), m);
    });
  }
}

static void packed_part3(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const b0 = (const float *)buf[0];
  float *const b1 = (float *)buf[1];
  const int64_t n0 = size[0];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    lanes(low, high, [&](int64_t i0, auto m) PK_INLINE {
      const auto x0_0 = load(b0 + i0, m);
      store(b1 + i0, x0_0 - exp(x0_0), m);
    });
  }
}

extern "C" void packed(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  if (begin < size[1] && end > 0) {
    void *const bufs[] = {buf[5], buf[0]};
    const int64_t sizes[] = {size[0]};
    packed_part0(bufs, sizes, begin, end < size[1] ? end : size[1], scratch);
  }
  if (begin < size[4] && end > size[1]) {
    void *const bufs[] = {buf[1], buf[6]};
    const int64_t sizes[] = {size[3], size[2], size[0]};
    packed_part1(bufs, sizes, begin > size[1] ? begin - size[1] : 0, (end < size[4] ? end : size[4]) - size[1], scratch);
  }
  if (begin < size[7] && end > size[4]) {
    void *const bufs[] = {buf[2], buf[7]};
    const int64_t sizes[] = {size[5], size[6]};
    packed_part2(bufs, sizes, begin > size[4] ? begin - size[4] : 0, (end < size[7] ? end : size[7]) - size[4], scratch);
  }
  if (begin < size[9] && end > size[7]) {
    void *const bufs[] = {buf[8], buf[3]};
    const int64_t sizes[] = {size[8]};
    packed_part0(bufs, sizes, begin > size[7] ? begin - size[7] : 0, (end < size[9] ? end : size[9]) - size[7], scratch);
  }
  if (begin < size[11] && end > size[9]) {
    void *const bufs[] = {buf[4], buf[9]};
    const int64_t sizes[] = {size[10]};
    packed_part3(bufs, sizes, begin > size[9] ? begin - size[9] : 0, (end < size[11] ? end : size[11]) - size[9], scratch);
  }
}
