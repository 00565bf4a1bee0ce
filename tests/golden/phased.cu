// A cooperative launch: blocks wait for each other here, so that all must run at once.
__device__ uint32_t phased_gate;
extern "C" __global__ void phased(const float *__restrict__ x0, float *__restrict__ y0, float *y1, const int64_t n0, const int64_t n1, const int64_t n2, const int64_t n3, const int64_t n4) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  for (int64_t tile = blockIdx.x; tile < n2; tile += gridDim.x) {
    const int64_t low = tile * 300;
    const int64_t high = low + 300 < n0 ? low + 300 : n0;
    {
      const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_vector = threadIdx.y * blockDim.x + threadIdx.x; i1_vector < i1_vectors; i1_vector += blockDim.x * blockDim.y) {
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
          take_some(x0_vector, x0 + i0 * n0 + i1_first, high - i1_first);
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
      for (int64_t i1 = i1_rest + threadIdx.y * blockDim.x + threadIdx.x; i1 < high; i1 += blockDim.x * blockDim.y) {
        float reduce_mean_1_total = 0.0f;
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          reduce_mean_1_total = reduce_mean_1_total + x0[i0 * n0 + i1];
        }
        s0[i1 - low] = reduce_mean_1_total;
      }
    }
    {
      const int64_t i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_vector = threadIdx.y * blockDim.x + threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x * blockDim.y) {
        __align__(16) float s0_vector_ahead[2][4];
        #pragma unroll
        for (int i1_step = 0; i1_step < 2; ++i1_step) {
          const int64_t i1_here = i1_vector + i1_step * (blockDim.x * blockDim.y);
          const int64_t i1_first = low + i1_here * 4;
          if (i1_here < i1_vectors) take_some(s0_vector_ahead[i1_step], s0 + i1_first - low, high - i1_first);
        }
        #pragma unroll
        for (int i1_step = 0; i1_step < 2; ++i1_step) {
          const int64_t i1_here = i1_vector + i1_step * (blockDim.x * blockDim.y);
          if (i1_here >= i1_vectors) break;
          const int64_t i1_first = low + i1_here * 4;
          float (&s0_vector)[4] = s0_vector_ahead[i1_step];
          __align__(16) float y1_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              y1_vector[i1_k] = s0_vector[i1_k] / convert<float>(n1);
            }
          }
          put_some(y1 + i1_first, y1_vector, high - i1_first);
        }
      }
      const int64_t i1_rest = i1_vectors ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.y * blockDim.x + threadIdx.x; i1 < high; i1 += blockDim.x * blockDim.y) {
        y1[i1] = s0[i1 - low] / convert<float>(n1);
      }
    }
  }
  wait_of_grid(&phased_gate);
  for (int64_t tile = blockIdx.x; tile < n4; tile += gridDim.x) {
    const int64_t i0_end = tile * n3 + n3 < n1 ? tile * n3 + n3 : n1;
    for (int64_t i0 = tile * n3 + threadIdx.y; i0 < i0_end; i0 += blockDim.y) {
      float reduce_max_1_lanes = -__int_as_float(0x7f800000);
      {
        const int64_t i1_vectors = n0 % 4 == 0 ? n0 / 4 : 0;
        for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x) {
          __align__(16) float x0_vector_ahead[2][4];
          __align__(16) float y1_vector_ahead[2][4];
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * blockDim.x;
            const int64_t i1_first = i1_here * 4;
            if (i1_here < i1_vectors) take_any(x0_vector_ahead[i1_step], x0 + i0 * n0 + i1_first);
            if (i1_here < i1_vectors) take_any(y1_vector_ahead[i1_step], y1 + i1_first);
          }
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * blockDim.x;
            if (i1_here >= i1_vectors) break;
            const int64_t i1_first = i1_here * 4;
            float (&x0_vector)[4] = x0_vector_ahead[i1_step];
            float (&y1_vector)[4] = y1_vector_ahead[i1_step];
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              const float reduce_max_1_term = fabsf(x0_vector[i1_k] - y1_vector[i1_k]);
              reduce_max_1_lanes = maximum(reduce_max_1_lanes, reduce_max_1_term);
            }
          }
        }
        const int64_t i1_rest = i1_vectors * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n0; i1 += blockDim.x) {
          const float reduce_max_1_term = fabsf(x0[i0 * n0 + i1] - y1[i1]);
          reduce_max_1_lanes = maximum(reduce_max_1_lanes, reduce_max_1_term);
        }
      }
      float reduce_max_1 = reduce_max_1_lanes;
      #pragma unroll
      for (unsigned o = 16; o; o >>= 1) {
        if (o >= blockDim.x) continue;
        const float other = __shfl_xor_sync(threads_of_row(), reduce_max_1, o);
        const float a = threadIdx.x & o ? other : reduce_max_1, b = threadIdx.x & o ? reduce_max_1 : other;
        reduce_max_1 = maximum(a, b);
      }
      const divisor by0(reduce_max_1);
      {
        const int64_t i1_vectors = aligned<4>(x0 + i0 * n0) && aligned<4>(y1) && aligned<4>(y0 + i0 * n0) ? n0 / 4 : 0;
        for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x) {
          __align__(16) float x0_vector_ahead[2][4];
          __align__(16) float y1_vector_ahead[2][4];
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * blockDim.x;
            const int64_t i1_first = i1_here * 4;
            if (i1_here < i1_vectors) take(x0_vector_ahead[i1_step], x0 + i0 * n0 + i1_first);
            if (i1_here < i1_vectors) take(y1_vector_ahead[i1_step], y1 + i1_first);
          }
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * blockDim.x;
            if (i1_here >= i1_vectors) break;
            const int64_t i1_first = i1_here * 4;
            float (&x0_vector)[4] = x0_vector_ahead[i1_step];
            float (&y1_vector)[4] = y1_vector_ahead[i1_step];
            __align__(16) float y0_vector[4];
            __align__(16) float i1_quotient_of[4];
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              i1_quotient_of[i1_k] = x0_vector[i1_k] - y1_vector[i1_k];
            }
            __align__(16) float i1_quotient[4];
            over(i1_quotient, i1_quotient_of, by0);
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              y0_vector[i1_k] = i1_quotient[i1_k];
            }
            put(y0 + i0 * n0 + i1_first, y0_vector);
          }
        }
        const int64_t i1_rest = i1_vectors * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n0; i1 += blockDim.x) {
          y0[i0 * n0 + i1] = over(x0[i0 * n0 + i1] - y1[i1], by0);
        }
      }
    }
  }
}
