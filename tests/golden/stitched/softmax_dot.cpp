extern "C" void softmax_dot(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {
  const float *const x0 = (const float *)buf[0];
  const float *const x1 = (const float *)buf[1];
  float *const y0 = (float *)buf[2];
  const int64_t n0 = size[0];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = begin; tile < end; ++tile) {
    {
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8; row < row_end; ++row) {
        auto most_lanes = largest<float, 16>();
        fixed_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
          most_lanes.take(load(x0 + row * 64 + col, m), m, k);
        });
        const float most = most_lanes.result();
        auto total_lanes = reduction<float, 16>(0.0f, adding{});
        paired_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
          const auto e = exp(load(x0 + row * 64 + col, m) - most);
          store(s0 + (row - tile * 8) * 64 + col, e, m);
          total_lanes.take(e, m, k);
        });
        const float total = total_lanes.result();
        const divisor<float> by0(total);
        paired_lanes<64>([&](int64_t col, auto m, auto k) PK_INLINE {
          store(s0 + (row - tile * 8) * 64 + col, load(s0 + (row - tile * 8) * 64 + col, m) / by0.among(m, k), m);
        });
      }
    }
    {
      dot(matrix{s1, 16, 1}, matrix{s0, 64, 1}, matrix{x1, 16, 1}, 8, 16, 64);
    }
    {
      paired_lanes<128>([&](int64_t item, auto m, auto k) PK_INLINE {
        store(y0 + tile * 128 + item, load(s1 + item, m) * 2.0f, m);
      });
    }
  }
}
