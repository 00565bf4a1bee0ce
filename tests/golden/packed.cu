extern "C" __global__ void packed(const float *__restrict__ x0, const float *__restrict__ x1, const double *__restrict__ x2, const float *__restrict__ x3, const float *__restrict__ x4, float *__restrict__ y0, float *__restrict__ y1, double *__restrict__ y2, float *__restrict__ y3, float *__restrict__ y4, const int64_t n0, const int64_t n1, const int64_t n2, const int64_t n3, const int64_t n4, const int64_t n5, const int64_t n6, const int64_t n7, const int64_t n8, const int64_t n9, const int64_t n10, const int64_t n11) {
  extern __shared__ __align__(64) unsigned char scratch[];
  double *const s0 = (double *)(scratch + 0);
  for (int64_t block = blockIdx.x; block < n11; block += gridDim.x) {
    if (block < n1) {
      const int64_t tile = block;
      const int64_t low = tile * 8192;
      const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
      for (int64_t i0 = low + threadIdx.y * blockDim.x + threadIdx.x; i0 < high; i0 += blockDim.x * blockDim.y) {
        y0[i0] = x0[i0] + 1.0f;
      }
    } else if (block < n4) {
      const int64_t tile = block - n1;
      const int64_t i0_end = tile * n3 + n3 < n2 ? tile * n3 + n3 : n2;
      for (int64_t i0 = tile * n3 + threadIdx.y; i0 < i0_end; i0 += blockDim.y) {
        float reduce_sum_1_lanes = 0.0f;
        for (int64_t i1 = 0 + threadIdx.x; i1 < n0; i1 += blockDim.x) {
          const float reduce_sum_1_term = x1[i0 * n0 + i1];
          reduce_sum_1_lanes = reduce_sum_1_lanes + reduce_sum_1_term;
        }
        float reduce_sum_1 = reduce_sum_1_lanes;
        for (int o = 16; o; o >>= 1) {
          const float other = __shfl_xor_sync(0xffffffffu, reduce_sum_1, o);
          const float a = threadIdx.x & o ? other : reduce_sum_1, b = threadIdx.x & o ? reduce_sum_1 : other;
          reduce_sum_1 = a + b;
        }
        if (threadIdx.x == 0) y1[i0] = reduce_sum_1;
      }
    } else if (block < n7) {
      const int64_t tile = block - n4;
      const int64_t low = tile * 512;
      const int64_t high = low + 512 < n5 ? low + 512 : n5;
      for (int64_t i1 = low + threadIdx.y * blockDim.x + threadIdx.x; i1 < high; i1 += blockDim.x * blockDim.y) {
        s0[i1 - low] = 0.0;
      }
      for (int64_t i0 = 0; i0 < n6; ++i0) {
        for (int64_t i1 = low + threadIdx.y * blockDim.x + threadIdx.x; i1 < high; i1 += blockDim.x * blockDim.y) {
          s0[i1 - low] = s0[i1 - low] + x2[i1 + i0 * n5];
        }
      }
      for (int64_t i1 = low + threadIdx.y * blockDim.x + threadIdx.x; i1 < high; i1 += blockDim.x * blockDim.y) {
        y2[i1] = s0[i1 - low];
      }
    } else if (block < n9) {
      const int64_t tile = block - n7;
      const int64_t low = tile * 8192;
      const int64_t high = low + 8192 < n8 ? low + 8192 : n8;
      for (int64_t i0 = low + threadIdx.y * blockDim.x + threadIdx.x; i0 < high; i0 += blockDim.x * blockDim.y) {
        y3[i0] = x3[i0] + 1.0f;
      }
    } else {
      const int64_t tile = block - n9;
      const int64_t low = tile * 8192;
      const int64_t high = low + 8192 < n10 ? low + 8192 : n10;
      for (int64_t i0 = low + threadIdx.y * blockDim.x + threadIdx.x; i0 < high; i0 += blockDim.x * blockDim.y) {
        const float x0_0 = x4[i0];
        y4[i0] = x0_0 - expf(x0_0);
      }
    }
  }
}
