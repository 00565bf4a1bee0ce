extern "C" __global__ void __launch_bounds__(256, 8) scale_bf16(const uint16_t *__restrict__ x0, const uint8_t *__restrict__ x1, uint16_t *__restrict__ y0, const int64_t n0_arg) {
  const int64_t n0 = (int64_t)n0_arg;
  __align__(16) uint16_t x0_r[8];
  __align__(16) uint8_t x1_r[8];
  __align__(16) uint16_t y0_v0[8];
  const int64_t block = blockIdx.x;
  const int64_t tx = threadIdx.x;
  const int64_t first = block * 2048;
  if (first + 2048 <= n0 & (((uint64_t)x0 | (uint64_t)x1 | (uint64_t)y0) & 15) == 0) {
    const int64_t e1 = tx * 8 + first;
    load_stream<8>(x0_r, x0 + e1);
    const int64_t e2 = tx * 8 + first;
    load_stream<8>(x1_r, x1 + e2);
    const int64_t e3 = tx * 8 + first;
    #pragma unroll
    for (int64_t k = 0; k < 8; ++k) {
      y0_v0[k] = narrow_bf16(rounded_bf16(widen_bf16(x0_r[k]) * 3.0f) + convert<float>(x1_r[k]));
    }
    store_vector<8>(y0 + e3, y0_v0);
  } else {
    const int64_t end = first + 2048 < n0 ? first + 2048 : n0;
    #pragma unroll 1
    for (int64_t point = first + tx; point < end; point += 256) {
      y0[point] = narrow_bf16(rounded_bf16(widen_bf16(x0[point]) * 3.0f) + convert<float>(x1[point]));
    }
  }
}
