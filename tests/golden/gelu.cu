extern "C" __global__ void gelu(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1) {
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    for (int64_t i0 = low + threadIdx.x; i0 < high; i0 += blockDim.x) {
      const float x0_0 = x0[i0];
      y0[i0] = x0_0 * 0.5f * (erff(x0_0 * 0.70710677f) + 1.0f);
    }
  }
}
