extern "C" __global__ void softmax_first(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
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
            s0_vector[i1_k] = -__int_as_float(0x7f800000);
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
              s0_vector[i1_k] = maximum(s0_vector[i1_k], x0_vector[i1_k]);
            }
          }
        }
        put_some(s0 + i1_first - low, s0_vector, high - i1_first);
      }
      const int64_t i1_rest = i1_vectors ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        float reduce_max_1_total = -__int_as_float(0x7f800000);
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          reduce_max_1_total = maximum(reduce_max_1_total, x0[i1 + i0 * n0]);
        }
        s0[i1 - low] = reduce_max_1_total;
      }
    }
    {
      const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += blockDim.x) {
        const int64_t i1_first = low + i1_vector * 4;
        __align__(16) float s1_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const int64_t i1 = i1_first + i1_k;
          if (i1 < high) {
            s1_vector[i1_k] = 0.0f;
          }
        }
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          __align__(16) float x0_vector[4];
          take_some(x0_vector, x0 + i1_first + i0 * n0, high - i1_first);
          __align__(16) float s0_vector[4];
          take_some(s0_vector, s0 + i1_first - low, high - i1_first);
          __align__(16) float y0_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              const float exp_1 = expf(x0_vector[i1_k] - s0_vector[i1_k]);
              s1_vector[i1_k] = s1_vector[i1_k] + exp_1;
              y0_vector[i1_k] = exp_1;
            }
          }
          put_some(y0 + i1_first + i0 * n0, y0_vector, high - i1_first);
        }
        put_some(s1 + i1_first - low, s1_vector, high - i1_first);
      }
      const int64_t i1_rest = i1_vectors ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        float reduce_sum_1_total = 0.0f;
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          const float exp_1 = expf(x0[i1 + i0 * n0] - s0[i1 - low]);
          reduce_sum_1_total = reduce_sum_1_total + exp_1;
          y0[i1 + i0 * n0] = exp_1;
        }
        s1[i1 - low] = reduce_sum_1_total;
      }
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      {
        const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
        for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x) {
          __align__(16) float y0_vector_ahead[2][4];
          __align__(16) float s1_vector_ahead[2][4];
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * blockDim.x;
            const int64_t i1_first = low + i1_here * 4;
            if (i1_here < i1_vectors) take_some(y0_vector_ahead[i1_step], y0 + i1_first + i0 * n0, high - i1_first);
            if (i1_here < i1_vectors) take_some(s1_vector_ahead[i1_step], s1 + i1_first - low, high - i1_first);
          }
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * blockDim.x;
            if (i1_here >= i1_vectors) break;
            const int64_t i1_first = low + i1_here * 4;
            float (&y0_vector)[4] = y0_vector_ahead[i1_step];
            float (&s1_vector)[4] = s1_vector_ahead[i1_step];
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              const int64_t i1 = i1_first + i1_k;
              if (i1 < high) {
                y0_vector[i1_k] = y0_vector[i1_k] / s1_vector[i1_k];
              }
            }
            put_some(y0 + i1_first + i0 * n0, y0_vector, high - i1_first);
          }
        }
        const int64_t i1_rest = i1_vectors ? high : low;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
          y0[i1 + i0 * n0] = y0[i1 + i0 * n0] / s1[i1 - low];
        }
      }
    }
  }
}
