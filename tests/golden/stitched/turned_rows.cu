extern "C" __global__ void turned_rows(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0 + threadIdx.y * (512));
  float *const s1 = (float *)(scratch + 256 + threadIdx.y * (512));
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t row_end = tile * 4 + 4 < n0 ? tile * 4 + 4 : n0;
    for (int64_t row = tile * 4 + threadIdx.y; row < row_end; row += blockDim.y) {
      for (int64_t col = 0 + threadIdx.x; col < 64; col += blockDim.x) {
        s0[col] = x0[row * 64 + col];
      }
      __syncwarp();
      for (int64_t col = 0 + threadIdx.x; col < 64; col += blockDim.x) {
        s1[col] = s0[63 - col];
      }
      __syncwarp();
      for (int64_t col = 0 + threadIdx.x; col < 64; col += blockDim.x) {
        y0[row * 64 + col] = s1[63 - col] + s0[col];
      }
    }
  }
}
