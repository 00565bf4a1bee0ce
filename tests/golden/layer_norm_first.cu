extern "C" __global__ void layer_norm_first(const float *__restrict__ x0, const float *__restrict__ x1, const float *__restrict__ x2, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  float *const s2 = (float *)(scratch + 4096);
  float *const s3 = (float *)(scratch + 6144);
  for (int64_t tile = blockIdx.x; tile < n2; tile += gridDim.x) {
    const int64_t low = tile * 512;
    const int64_t high = low + 512 < n0 ? low + 512 : n0;
    for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
      s0[i1 - low] = 0.0f;
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
        s0[i1 - low] = s0[i1 - low] + x0[i1 + i0 * n0];
      }
    }
    for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
      s1[i1 - low] = s0[i1 - low] / convert<float>(n1);
    }
    for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
      s2[i1 - low] = 0.0f;
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
        const float sub_1 = x0[i1 + i0 * n0] - s1[i1 - low];
        s2[i1 - low] = s2[i1 - low] + sub_1 * sub_1;
      }
    }
    for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
      s3[i1 - low] = rsqrtf(s2[i1 - low] / convert<float>(n1) + 0.00001f);
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      const float x1_5 = x1[i0];
      const float x2_7 = x2[i0];
      for (int64_t i1 = low + threadIdx.x; i1 < high; i1 += blockDim.x) {
        const float mul_2 = (x0[i1 + i0 * n0] - s1[i1 - low]) * s3[i1 - low];
        y0[i1 + i0 * n0] = mul_2 * x1_5 + x2_7;
      }
    }
  }
}
