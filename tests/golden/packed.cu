extern "C" __global__ void packed(const float *__restrict__ x0, const float *__restrict__ x1, const double *__restrict__ x2, const float *__restrict__ x3, const float *__restrict__ x4, float *__restrict__ y0, float *__restrict__ y1, double *__restrict__ y2, float *__restrict__ y3, float *__restrict__ y4, const int64_t n0, const int64_t n1, const int64_t n2, const int64_t n3, const int64_t n4, const int64_t n5, const int64_t n6, const int64_t n7, const int64_t n8, const int64_t n9, const int64_t n10, const int64_t n11) {
  extern __shared__ __align__(64) unsigned char scratch[];
  double *const s0 = (double *)(scratch + 0);
  for (int64_t block = blockIdx.x; block < n11; block += gridDim.x) {
    if (block < n1) {
      const int64_t tile = block;
      const int64_t low = tile * 8192;
      const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
      {
        const int64_t i0_vectors = aligned<4>(x0 + low) && aligned<4>(y0 + low) ? (high - low) / 4 : 0;
        for (int64_t i0_vector = threadIdx.y * blockDim.x + threadIdx.x; i0_vector < i0_vectors; i0_vector += 2 * blockDim.x * blockDim.y) {
          __align__(16) float x0_vector_ahead[2][4];
          #pragma unroll
          for (int i0_step = 0; i0_step < 2; ++i0_step) {
            const int64_t i0_here = i0_vector + i0_step * (blockDim.x * blockDim.y);
            const int64_t i0_first = low + i0_here * 4;
            if (i0_here < i0_vectors) take(x0_vector_ahead[i0_step], x0 + i0_first);
          }
          #pragma unroll
          for (int i0_step = 0; i0_step < 2; ++i0_step) {
            const int64_t i0_here = i0_vector + i0_step * (blockDim.x * blockDim.y);
            if (i0_here >= i0_vectors) break;
            const int64_t i0_first = low + i0_here * 4;
            float (&x0_vector)[4] = x0_vector_ahead[i0_step];
            __align__(16) float y0_vector[4];
            #pragma unroll
            for (int i0_k = 0; i0_k < 4; ++i0_k) {
              y0_vector[i0_k] = x0_vector[i0_k] + 1.0f;
            }
            put(y0 + i0_first, y0_vector);
          }
        }
        const int64_t i0_rest = low + i0_vectors * 4;
        for (int64_t i0 = i0_rest + threadIdx.y * blockDim.x + threadIdx.x; i0 < high; i0 += blockDim.x * blockDim.y) {
          y0[i0] = x0[i0] + 1.0f;
        }
      }
    } else if (block < n4) {
      const int64_t tile = block - n1;
      const int64_t i0_end = tile * n3 + n3 < n2 ? tile * n3 + n3 : n2;
      for (int64_t i0 = tile * n3 + threadIdx.y; i0 < i0_end; i0 += blockDim.y) {
        float reduce_sum_1_lanes = 0.0f;
        {
          const int64_t i1_vectors = n0 % 4 == 0 ? n0 / 4 : 0;
          for (int64_t i1_vector = threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x) {
            __align__(16) float x1_vector_ahead[2][4];
            #pragma unroll
            for (int i1_step = 0; i1_step < 2; ++i1_step) {
              const int64_t i1_here = i1_vector + i1_step * blockDim.x;
              const int64_t i1_first = i1_here * 4;
              if (i1_here < i1_vectors) take_any(x1_vector_ahead[i1_step], x1 + i0 * n0 + i1_first);
            }
            #pragma unroll
            for (int i1_step = 0; i1_step < 2; ++i1_step) {
              const int64_t i1_here = i1_vector + i1_step * blockDim.x;
              if (i1_here >= i1_vectors) break;
              const int64_t i1_first = i1_here * 4;
              float (&x1_vector)[4] = x1_vector_ahead[i1_step];
              #pragma unroll
              for (int i1_k = 0; i1_k < 4; ++i1_k) {
                const float reduce_sum_1_term = x1_vector[i1_k];
                reduce_sum_1_lanes = reduce_sum_1_lanes + reduce_sum_1_term;
              }
            }
          }
          const int64_t i1_rest = i1_vectors * 4;
          for (int64_t i1 = i1_rest + threadIdx.x; i1 < n0; i1 += blockDim.x) {
            const float reduce_sum_1_term = x1[i0 * n0 + i1];
            reduce_sum_1_lanes = reduce_sum_1_lanes + reduce_sum_1_term;
          }
        }
        float reduce_sum_1 = reduce_sum_1_lanes;
        #pragma unroll
        for (unsigned o = 16; o; o >>= 1) {
          if (o >= blockDim.x) continue;
          const float other = __shfl_xor_sync(threads_of_row(), reduce_sum_1, o);
          const float a = threadIdx.x & o ? other : reduce_sum_1, b = threadIdx.x & o ? reduce_sum_1 : other;
          reduce_sum_1 = a + b;
        }
        if (threadIdx.x == 0) y1[i0] = reduce_sum_1;
      }
    } else if (block < n7) {
      const int64_t tile = block - n4;
      const int64_t low = tile * 512;
      const int64_t high = low + 512 < n5 ? low + 512 : n5;
      {
        const int64_t i1_vectors = n5 % 2 == 0 ? (high - low + 1) / 2 : 0;
        for (int64_t i1_vector = threadIdx.y * blockDim.x + threadIdx.x; i1_vector < i1_vectors; i1_vector += blockDim.x * blockDim.y) {
          const int64_t i1_first = low + i1_vector * 2;
          __align__(16) double s0_vector[2];
          #pragma unroll
          for (int i1_k = 0; i1_k < 2; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              s0_vector[i1_k] = 0.0;
            }
          }
          #pragma unroll 4
          for (int64_t i0 = 0; i0 < n6; ++i0) {
            __align__(16) double x2_vector[2];
            take_some(x2_vector, x2 + i1_first + i0 * n5, high - i1_first);
            #pragma unroll
            for (int i1_k = 0; i1_k < 2; ++i1_k) {
              const int64_t i1 = i1_first + i1_k;
              if (i1 < high) {
                s0_vector[i1_k] = s0_vector[i1_k] + x2_vector[i1_k];
              }
            }
          }
          put_some(s0 + i1_first - low, s0_vector, high - i1_first);
        }
        const int64_t i1_rest = i1_vectors ? high : low;
        for (int64_t i1 = i1_rest + threadIdx.y * blockDim.x + threadIdx.x; i1 < high; i1 += blockDim.x * blockDim.y) {
          double reduce_sum_1_total = 0.0;
          #pragma unroll 4
          for (int64_t i0 = 0; i0 < n6; ++i0) {
            reduce_sum_1_total = reduce_sum_1_total + x2[i1 + i0 * n5];
          }
          s0[i1 - low] = reduce_sum_1_total;
        }
      }
      {
        const int64_t i1_vectors = n5 % 2 == 0 ? (high - low + 1) / 2 : 0;
        for (int64_t i1_vector = threadIdx.y * blockDim.x + threadIdx.x; i1_vector < i1_vectors; i1_vector += 2 * blockDim.x * blockDim.y) {
          __align__(16) double s0_vector_ahead[2][2];
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * (blockDim.x * blockDim.y);
            const int64_t i1_first = low + i1_here * 2;
            if (i1_here < i1_vectors) take_some(s0_vector_ahead[i1_step], s0 + i1_first - low, high - i1_first);
          }
          #pragma unroll
          for (int i1_step = 0; i1_step < 2; ++i1_step) {
            const int64_t i1_here = i1_vector + i1_step * (blockDim.x * blockDim.y);
            if (i1_here >= i1_vectors) break;
            const int64_t i1_first = low + i1_here * 2;
            double (&s0_vector)[2] = s0_vector_ahead[i1_step];
            __align__(16) double y2_vector[2];
            #pragma unroll
            for (int i1_k = 0; i1_k < 2; ++i1_k) {
              const int64_t i1 = i1_first + i1_k;
              if (i1 < high) {
                y2_vector[i1_k] = s0_vector[i1_k];
              }
            }
            put_some(y2 + i1_first, y2_vector, high - i1_first);
          }
        }
        const int64_t i1_rest = i1_vectors ? high : low;
        for (int64_t i1 = i1_rest + threadIdx.y * blockDim.x + threadIdx.x; i1 < high; i1 += blockDim.x * blockDim.y) {
          y2[i1] = s0[i1 - low];
        }
      }
    } else if (block < n9) {
      const int64_t tile = block - n7;
      const int64_t low = tile * 8192;
      const int64_t high = low + 8192 < n8 ? low + 8192 : n8;
      {
        const int64_t i0_vectors = aligned<4>(x3 + low) && aligned<4>(y3 + low) ? (high - low) / 4 : 0;
        for (int64_t i0_vector = threadIdx.y * blockDim.x + threadIdx.x; i0_vector < i0_vectors; i0_vector += 2 * blockDim.x * blockDim.y) {
          __align__(16) float x3_vector_ahead[2][4];
          #pragma unroll
          for (int i0_step = 0; i0_step < 2; ++i0_step) {
            const int64_t i0_here = i0_vector + i0_step * (blockDim.x * blockDim.y);
            const int64_t i0_first = low + i0_here * 4;
            if (i0_here < i0_vectors) take(x3_vector_ahead[i0_step], x3 + i0_first);
          }
          #pragma unroll
          for (int i0_step = 0; i0_step < 2; ++i0_step) {
            const int64_t i0_here = i0_vector + i0_step * (blockDim.x * blockDim.y);
            if (i0_here >= i0_vectors) break;
            const int64_t i0_first = low + i0_here * 4;
            float (&x3_vector)[4] = x3_vector_ahead[i0_step];
            __align__(16) float y3_vector[4];
            #pragma unroll
            for (int i0_k = 0; i0_k < 4; ++i0_k) {
              y3_vector[i0_k] = x3_vector[i0_k] + 1.0f;
            }
            put(y3 + i0_first, y3_vector);
          }
        }
        const int64_t i0_rest = low + i0_vectors * 4;
        for (int64_t i0 = i0_rest + threadIdx.y * blockDim.x + threadIdx.x; i0 < high; i0 += blockDim.x * blockDim.y) {
          y3[i0] = x3[i0] + 1.0f;
        }
      }
    } else {
      const int64_t tile = block - n9;
      const int64_t low = tile * 8192;
      const int64_t high = low + 8192 < n10 ? low + 8192 : n10;
      {
        const int64_t i0_vectors = aligned<4>(x4 + low) && aligned<4>(y4 + low) ? (high - low) / 4 : 0;
        for (int64_t i0_vector = threadIdx.y * blockDim.x + threadIdx.x; i0_vector < i0_vectors; i0_vector += 2 * blockDim.x * blockDim.y) {
          __align__(16) float x4_vector_ahead[2][4];
          #pragma unroll
          for (int i0_step = 0; i0_step < 2; ++i0_step) {
            const int64_t i0_here = i0_vector + i0_step * (blockDim.x * blockDim.y);
            const int64_t i0_first = low + i0_here * 4;
            if (i0_here < i0_vectors) take(x4_vector_ahead[i0_step], x4 + i0_first);
          }
          #pragma unroll
          for (int i0_step = 0; i0_step < 2; ++i0_step) {
            const int64_t i0_here = i0_vector + i0_step * (blockDim.x * blockDim.y);
            if (i0_here >= i0_vectors) break;
            const int64_t i0_first = low + i0_here * 4;
            float (&x4_vector)[4] = x4_vector_ahead[i0_step];
            __align__(16) float y4_vector[4];
            #pragma unroll
            for (int i0_k = 0; i0_k < 4; ++i0_k) {
              const float x0_0 = x4_vector[i0_k];
              y4_vector[i0_k] = x0_0 - expf(x0_0);
            }
            put(y4 + i0_first, y4_vector);
          }
        }
        const int64_t i0_rest = low + i0_vectors * 4;
        for (int64_t i0 = i0_rest + threadIdx.y * blockDim.x + threadIdx.x; i0 < high; i0 += blockDim.x * blockDim.y) {
          const float x0_0 = x4[i0];
          y4[i0] = x0_0 - expf(x0_0);
        }
      }
    }
  }
}
