extern "C" __global__ void softmax_first(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = blockIdx.x; tile < n2; tile += gridDim.x) {
    const int64_t low = tile * 512;
    const int64_t high = low + 512 < n0 ? low + 512 : n0;
    for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
      s0[i1 - low] = -__int_as_float(0x7f800000);
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
        s0[i1 - low] = maximum(s0[i1 - low], x0[i1 + i0 * n0]);
      }
    }
    for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
      s1[i1 - low] = 0.0f;
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
        const float exp_1 = expf(x0[i1 + i0 * n0] - s0[i1 - low]);
        s1[i1 - low] = s1[i1 - low] + exp_1;
        y0[i1 + i0 * n0] = exp_1;
      }
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
        y0[i1 + i0 * n0] = y0[i1 + i0 * n0] / s1[i1 - low];
      }
    }
  }
}
