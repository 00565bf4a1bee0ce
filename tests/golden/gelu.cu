extern "C" __global__ void __launch_bounds__(128, 16) gelu(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0_arg) {
  const int64_t n0 = (int64_t)n0_arg;
  __align__(16) float x0_r[8];
  __align__(16) float y0_v0[4];
  const int64_t block = blockIdx.x;
  const int64_t tx = threadIdx.x;
  const int64_t first = block * 1024;
  if (first + 1024 <= n0 & (((uint64_t)x0 | (uint64_t)y0) & 15) == 0) {
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      load_stream<4>(x0_r + u * 4, x0 + (tx * 4 + first) + u * 512);
    }
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      #pragma unroll
      for (int64_t k = 0; k < 4; ++k) {
        const float x0_0 = x0_r[u * 4 + k];
        y0_v0[k] = x0_0 * 0.5f * (erf_near(x0_0 * 0.70710677f) + 1.0f);
      }
      store_vector<4>(y0 + (tx * 4 + first) + u * 512, y0_v0);
    }
  } else {
    const int64_t end = first + 1024 < n0 ? first + 1024 : n0;
    #pragma unroll 1
    for (int64_t point = first + tx; point < end; point += 128) {
      const float x0_0 = x0[point];
      y0[point] = x0_0 * 0.5f * (erf_near(x0_0 * 0.70710677f) + 1.0f);
    }
  }
}
