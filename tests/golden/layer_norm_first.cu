extern "C" __global__ void layer_norm_first(const float *__restrict__ x0, const float *__restrict__ x1, const float *__restrict__ x2, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  float *const s2 = (float *)(scratch + 4096);
  float *const s3 = (float *)(scratch + 6144);
  for (int64_t tile = blockIdx.x; tile < n2; tile += gridDim.x) {
    const int64_t low = tile * 512;
    const int64_t high = low + 512 < n0 ? low + 512 : n0;
    {
      const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += blockDim.x) {
        const int64_t i1_first = low + i1_vector * 4;
        __align__(16) float s0_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const int64_t i1 = i1_first + i1_k;
          if (i1 < high) {
            s0_vector[i1_k] = 0.0f;
          }
        }
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          __align__(16) float x0_vector[4];
          take_some(x0_vector, x0 + i1_first + i0 * n0, high - i1_first);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              s0_vector[i1_k] = s0_vector[i1_k] + x0_vector[i1_k];
            }
          }
        }
        put_some(s0 + i1_first - low, s0_vector, high - i1_first);
      }
      const int64_t i1_rest = i1_vectors ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        float reduce_mean_1_total = 0.0f;
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          reduce_mean_1_total = reduce_mean_1_total + x0[i1 + i0 * n0];
        }
        s0[i1 - low] = reduce_mean_1_total;
      }
    }
    {
      const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x) {
        __align__(16) float s0_vector_ahead[2][4];
        #pragma unroll
        for (int i1_step = 0; i1_step < 2; ++i1_step) {
          const int64_t i1_here = i1_vector + i1_step * blockDim.x;
          const int64_t i1_first = low + i1_here * 4;
          if (i1_here < i1_vectors) take_some(s0_vector_ahead[i1_step], s0 + i1_first - low, high - i1_first);
        }
        #pragma unroll
        for (int i1_step = 0; i1_step < 2; ++i1_step) {
          const int64_t i1_here = i1_vector + i1_step * blockDim.x;
          if (i1_here >= i1_vectors) break;
          const int64_t i1_first = low + i1_here * 4;
          float (&s0_vector)[4] = s0_vector_ahead[i1_step];
          __align__(16) float s1_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              s1_vector[i1_k] = s0_vector[i1_k] / convert<float>(n1);
            }
          }
          put_some(s1 + i1_first - low, s1_vector, high - i1_first);
        }
      }
      const int64_t i1_rest = i1_vectors ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        s1[i1 - low] = s0[i1 - low] / convert<float>(n1);
      }
    }
    {
      const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += blockDim.x) {
        const int64_t i1_first = low + i1_vector * 4;
        __align__(16) float s2_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const int64_t i1 = i1_first + i1_k;
          if (i1 < high) {
            s2_vector[i1_k] = 0.0f;
          }
        }
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          __align__(16) float x0_vector[4];
          take_some(x0_vector, x0 + i1_first + i0 * n0, high - i1_first);
          __align__(16) float s1_vector[4];
          take_some(s1_vector, s1 + i1_first - low, high - i1_first);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              const float sub_1 = x0_vector[i1_k] - s1_vector[i1_k];
              s2_vector[i1_k] = s2_vector[i1_k] + sub_1 * sub_1;
            }
          }
        }
        put_some(s2 + i1_first - low, s2_vector, high - i1_first);
      }
      const int64_t i1_rest = i1_vectors ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        float reduce_mean_2_total = 0.0f;
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          const float sub_1 = x0[i1 + i0 * n0] - s1[i1 - low];
          reduce_mean_2_total = reduce_mean_2_total + sub_1 * sub_1;
        }
        s2[i1 - low] = reduce_mean_2_total;
      }
    }
    {
      const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x) {
        __align__(16) float s2_vector_ahead[2][4];
        #pragma unroll
        for (int i1_step = 0; i1_step < 2; ++i1_step) {
          const int64_t i1_here = i1_vector + i1_step * blockDim.x;
          const int64_t i1_first = low + i1_here * 4;
          if (i1_here < i1_vectors) take_some(s2_vector_ahead[i1_step], s2 + i1_first - low, high - i1_first);
        }
        #pragma unroll
        for (int i1_step = 0; i1_step < 2; ++i1_step) {
          const int64_t i1_here = i1_vector + i1_step * blockDim.x;
          if (i1_here >= i1_vectors) break;
          const int64_t i1_first = low + i1_here * 4;
          float (&s2_vector)[4] = s2_vector_ahead[i1_step];
          __align__(16) float s3_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              s3_vector[i1_k] = rsqrtf(s2_vector[i1_k] / convert<float>(n1) + 0.00001f);
            }
          }
          put_some(s3 + i1_first - low, s3_vector, high - i1_first);
        }
      }
      const int64_t i1_rest = i1_vectors ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        s3[i1 - low] = rsqrtf(s2[i1 - low] / convert<float>(n1) + 0.00001f);
      }
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      const float x1_5 = x1[i0];
      const float x2_7 = x2[i0];
      {
        const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
        for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += blockDim.x) {
          const int64_t i1_first = low + i1_vector * 4;
          __align__(16) float x0_vector[4];
          take_some(x0_vector, x0 + i1_first + i0 * n0, high - i1_first);
          __align__(16) float s1_vector[4];
          take_some(s1_vector, s1 + i1_first - low, high - i1_first);
          __align__(16) float s3_vector[4];
          take_some(s3_vector, s3 + i1_first - low, high - i1_first);
          __align__(16) float y0_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              const float mul_2 = (x0_vector[i1_k] - s1_vector[i1_k]) * s3_vector[i1_k];
              y0_vector[i1_k] = mul_2 * x1_5 + x2_7;
            }
          }
          put_some(y0 + i1_first + i0 * n0, y0_vector, high - i1_first);
        }
        const int64_t i1_rest = i1_vectors ? high : low;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
          const float mul_2 = (x0[i1 + i0 * n0] - s1[i1 - low]) * s3[i1 - low];
          y0[i1 + i0 * n0] = mul_2 * x1_5 + x2_7;
        }
      }
    }
  }
}
