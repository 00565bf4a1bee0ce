extern "C" __global__ void column_means(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    {
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8 + threadIdx.y; row < row_end; row += blockDim.y) {
        for (int64_t col = 0 + threadIdx.x; col < 64; col += blockDim.x) {
          s0[(row - tile * 8) * 64 + col] = x0[row * 64 + col];
        }
      }
    }
    {
      __syncthreads();
      for (int64_t col = 0 + threadIdx.y * blockDim.x + threadIdx.x; col < 64; col += blockDim.x * blockDim.y) {
        s1[col] = 0.0f;
      }
      for (int64_t item = 0; item < 8; ++item) {
        for (int64_t col = 0 + threadIdx.y * blockDim.x + threadIdx.x; col < 64; col += blockDim.x * blockDim.y) {
          s1[col] = s1[col] + s0[item * 64 + col];
        }
      }
    }
    {
      __syncthreads();
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8 + threadIdx.y; row < row_end; row += blockDim.y) {
        for (int64_t col = 0 + threadIdx.x; col < 64; col += blockDim.x) {
          y0[row * 64 + col] = s0[(row - tile * 8) * 64 + col] - s1[col] / 8.0f;
        }
      }
    }
  }
}
