extern "C" __global__ void softmax_dot(const float *__restrict__ x0, const float *__restrict__ x1, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    {
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8 + threadIdx.y; row < row_end; row += blockDim.y) {
        float most_lanes = -__int_as_float(0x7f800000);
        {
          const int64_t col_vectors = 64 / 4;
          for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += 2 * blockDim.x) {
            __align__(16) float x0_vector_ahead[2][4];
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              const int64_t col_first = col_here * 4;
              if (col_here < col_vectors) take_any(x0_vector_ahead[col_step], x0 + row * 64 + col_first);
            }
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              if (col_here >= col_vectors) break;
              const int64_t col_first = col_here * 4;
              float (&x0_vector)[4] = x0_vector_ahead[col_step];
              #pragma unroll
              for (int col_k = 0; col_k < 4; ++col_k) {
                const float most_term = x0_vector[col_k];
                most_lanes = maximum(most_lanes, most_term);
              }
            }
          }
          const int64_t col_rest = col_vectors * 4;
          for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
            const float most_term = x0[row * 64 + col];
            most_lanes = maximum(most_lanes, most_term);
          }
        }
        float most = most_lanes;
        #pragma unroll
        for (unsigned o = 16; o; o >>= 1) {
          if (o >= blockDim.x) continue;
          const float other = __shfl_xor_sync(threads_of_row(), most, o);
          const float a = threadIdx.x & o ? other : most, b = threadIdx.x & o ? most : other;
          most = maximum(a, b);
        }
        float total_lanes = 0.0f;
        {
          const int64_t col_vectors = 64 / 4;
          for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += 2 * blockDim.x) {
            __align__(16) float x0_vector_ahead[2][4];
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              const int64_t col_first = col_here * 4;
              if (col_here < col_vectors) take_any(x0_vector_ahead[col_step], x0 + row * 64 + col_first);
            }
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              if (col_here >= col_vectors) break;
              const int64_t col_first = col_here * 4;
              float (&x0_vector)[4] = x0_vector_ahead[col_step];
              __align__(16) float s0_vector[4];
              #pragma unroll
              for (int col_k = 0; col_k < 4; ++col_k) {
                const float e = expf(x0_vector[col_k] - most);
                s0_vector[col_k] = e;
                total_lanes = total_lanes + e;
              }
              put_any(s0 + (row - tile * 8) * 64 + col_first, s0_vector);
            }
          }
          const int64_t col_rest = col_vectors * 4;
          for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
            const float e = expf(x0[row * 64 + col] - most);
            s0[(row - tile * 8) * 64 + col] = e;
            total_lanes = total_lanes + e;
          }
        }
        float total = total_lanes;
        #pragma unroll
        for (unsigned o = 16; o; o >>= 1) {
          if (o >= blockDim.x) continue;
          const float other = __shfl_xor_sync(threads_of_row(), total, o);
          const float a = threadIdx.x & o ? other : total, b = threadIdx.x & o ? total : other;
          total = a + b;
        }
        const divisor by0(total);
        {
          const int64_t col_vectors = 64 / 4;
          for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += 2 * blockDim.x) {
            __align__(16) float s0_vector_ahead[2][4];
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              const int64_t col_first = col_here * 4;
              if (col_here < col_vectors) take_any(s0_vector_ahead[col_step], s0 + (row - tile * 8) * 64 + col_first);
            }
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              if (col_here >= col_vectors) break;
              const int64_t col_first = col_here * 4;
              float (&s0_vector)[4] = s0_vector_ahead[col_step];
              __align__(16) float col_quotient[4];
              over(col_quotient, s0_vector, by0);
              #pragma unroll
              for (int col_k = 0; col_k < 4; ++col_k) {
                s0_vector[col_k] = col_quotient[col_k];
              }
              put_any(s0 + (row - tile * 8) * 64 + col_first, s0_vector);
            }
          }
          const int64_t col_rest = col_vectors * 4;
          for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
            s0[(row - tile * 8) * 64 + col] = over(s0[(row - tile * 8) * 64 + col], by0);
          }
        }
      }
    }
    {
      __syncthreads();
      {
        for (int64_t dot_block = threadIdx.y * blockDim.x + threadIdx.x; dot_block < 4 * 8; dot_block += blockDim.x * blockDim.y) {
          const int64_t dot_i0 = dot_block / 8;
          const int64_t dot_i1 = dot_i0 + 4;
          const int64_t dot_j0 = dot_block % 8;
          const int64_t dot_j1 = dot_j0 + 8;
          float dot_00 = 0.0f;
          float dot_01 = 0.0f;
          float dot_10 = 0.0f;
          float dot_11 = 0.0f;
          for (int64_t dot_k = 0; dot_k < 64; ++dot_k) {
            const float dot_a0 = s0[dot_i0 * 64 + dot_k];
            const float dot_a1 = s0[dot_i1 * 64 + dot_k];
            const float dot_b0 = x1[dot_k * 16 + dot_j0];
            const float dot_b1 = x1[dot_k * 16 + dot_j1];
            dot_00 = fmaf(dot_a0, dot_b0, dot_00);
            dot_01 = fmaf(dot_a0, dot_b1, dot_01);
            dot_10 = fmaf(dot_a1, dot_b0, dot_10);
            dot_11 = fmaf(dot_a1, dot_b1, dot_11);
          }
          s1[dot_i0 * 16 + dot_j0] = dot_00;
          s1[dot_i0 * 16 + dot_j1] = dot_01;
          s1[dot_i1 * 16 + dot_j0] = dot_10;
          s1[dot_i1 * 16 + dot_j1] = dot_11;
        }
      }
    }
    {
      __syncthreads();
      {
        const int64_t item_vectors = aligned<4>(s1) && aligned<4>(y0 + tile * 128) ? 128 / 4 : 0;
        for (int64_t item_vector = threadIdx.y * blockDim.x + threadIdx.x; item_vector < item_vectors; item_vector += 2 * blockDim.x * blockDim.y) {
          __align__(16) float s1_vector_ahead[2][4];
          #pragma unroll
          for (int item_step = 0; item_step < 2; ++item_step) {
            const int64_t item_here = item_vector + item_step * (blockDim.x * blockDim.y);
            const int64_t item_first = item_here * 4;
            if (item_here < item_vectors) take(s1_vector_ahead[item_step], s1 + item_first);
          }
          #pragma unroll
          for (int item_step = 0; item_step < 2; ++item_step) {
            const int64_t item_here = item_vector + item_step * (blockDim.x * blockDim.y);
            if (item_here >= item_vectors) break;
            const int64_t item_first = item_here * 4;
            float (&s1_vector)[4] = s1_vector_ahead[item_step];
            __align__(16) float y0_vector[4];
            #pragma unroll
            for (int item_k = 0; item_k < 4; ++item_k) {
              y0_vector[item_k] = s1_vector[item_k] * 2.0f;
            }
            put(y0 + tile * 128 + item_first, y0_vector);
          }
        }
        const int64_t item_rest = item_vectors * 4;
        for (int64_t item = item_rest + threadIdx.y * blockDim.x + threadIdx.x; item < 128; item += blockDim.x * blockDim.y) {
          y0[tile * 128 + item] = s1[item] * 2.0f;
        }
      }
    }
  }
}
