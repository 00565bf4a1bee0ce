extern "C" __global__ void column_means(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    {
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8 + threadIdx.y; row < row_end; row += blockDim.y) {
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
                s0_vector[col_k] = x0_vector[col_k];
              }
              put_any(s0 + (row - tile * 8) * 64 + col_first, s0_vector);
            }
          }
          const int64_t col_rest = col_vectors * 4;
          for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
            s0[(row - tile * 8) * 64 + col] = x0[row * 64 + col];
          }
        }
      }
    }
    {
      __syncthreads();
      {
        const int64_t col_vectors = 64 / 4;
        for (int64_t col_vector = threadIdx.y * blockDim.x + threadIdx.x; col_vector < col_vectors; col_vector += blockDim.x * blockDim.y) {
          const int64_t col_first = col_vector * 4;
          __align__(16) float s1_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            s1_vector[col_k] = 0.0f;
          }
          #pragma unroll 4
          for (int64_t item = 0; item < 8; ++item) {
            __align__(16) float s0_vector[4];
            take_any(s0_vector, s0 + item * 64 + col_first);
            #pragma unroll
            for (int col_k = 0; col_k < 4; ++col_k) {
              s1_vector[col_k] = s1_vector[col_k] + s0_vector[col_k];
            }
          }
          put_any(s1 + col_first, s1_vector);
        }
        const int64_t col_rest = col_vectors * 4;
        for (int64_t col = col_rest + threadIdx.y * blockDim.x + threadIdx.x; col < 64; col += blockDim.x * blockDim.y) {
          float sum_total = 0.0f;
          #pragma unroll 4
          for (int64_t item = 0; item < 8; ++item) {
            sum_total = sum_total + s0[item * 64 + col];
          }
          s1[col] = sum_total;
        }
      }
    }
    {
      __syncthreads();
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8 + threadIdx.y; row < row_end; row += blockDim.y) {
        {
          const int64_t col_vectors = 64 / 4;
          for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += 2 * blockDim.x) {
            __align__(16) float s0_vector_ahead[2][4];
            __align__(16) float s1_vector_ahead[2][4];
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              const int64_t col_first = col_here * 4;
              if (col_here < col_vectors) take_any(s0_vector_ahead[col_step], s0 + (row - tile * 8) * 64 + col_first);
              if (col_here < col_vectors) take_any(s1_vector_ahead[col_step], s1 + col_first);
            }
            #pragma unroll
            for (int col_step = 0; col_step < 2; ++col_step) {
              const int64_t col_here = col_vector + col_step * blockDim.x;
              if (col_here >= col_vectors) break;
              const int64_t col_first = col_here * 4;
              float (&s0_vector)[4] = s0_vector_ahead[col_step];
              float (&s1_vector)[4] = s1_vector_ahead[col_step];
              __align__(16) float y0_vector[4];
              #pragma unroll
              for (int col_k = 0; col_k < 4; ++col_k) {
                y0_vector[col_k] = s0_vector[col_k] - s1_vector[col_k] / 8.0f;
              }
              put_any(y0 + row * 64 + col_first, y0_vector);
            }
          }
          const int64_t col_rest = col_vectors * 4;
          for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
            y0[row * 64 + col] = s0[(row - tile * 8) * 64 + col] - s1[col] / 8.0f;
          }
        }
      }
    }
  }
}
