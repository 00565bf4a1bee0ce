extern "C" __global__ void short_rows(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 128);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t first = tile * 32;
    const int64_t last = tile * 32 + 32 < n0 ? tile * 32 + 32 : n0;
    for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y) {
      float total_lanes = 0.0f;
      for (int64_t col = 0 + threadIdx.x; col < n2; col += blockDim.x) {
        const float total_term = x0[row * n2 + col];
        total_lanes = total_lanes + total_term;
      }
      float total = total_lanes;
      for (int o = 16; o; o >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, total, o);
        const float a = threadIdx.x & o ? other : total, b = threadIdx.x & o ? total : other;
        total = a + b;
      }
      if (threadIdx.x == 0) s0[row - first] = total;
    }
    __syncthreads();
    for (int64_t row = first + threadIdx.y * blockDim.x + threadIdx.x; row < last; row += blockDim.x * blockDim.y) {
      s1[row - first] = 1.0f / s0[row - first];
    }
    __syncthreads();
    for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y) {
      for (int64_t col = 0 + threadIdx.x; col < n2; col += blockDim.x) {
        y0[row * n2 + col] = x0[row * n2 + col] * s1[row - first];
      }
    }
  }
}
