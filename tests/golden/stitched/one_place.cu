extern "C" __global__ void one_place(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0 + threadIdx.y * (512));
  float *const s1 = (float *)(scratch + 256 + threadIdx.y * (512));
  float *const s2 = (float *)(scratch + 0 + threadIdx.y * (512));
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t row_end = tile * 4 + 4 < n0 ? tile * 4 + 4 : n0;
    for (int64_t row = tile * 4 + threadIdx.y; row < row_end; row += blockDim.y) {
      __syncwarp(threads_of_row());
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
            put_any(s0 + col_first, s0_vector);
          }
        }
        const int64_t col_rest = col_vectors * 4;
        for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
          s0[col] = x0[row * 64 + col];
        }
      }
      __syncwarp(threads_of_row());
      {
        const int64_t col_vectors = aligned<4>(s1) ? 64 / 4 : 0;
        for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += blockDim.x) {
          const int64_t col_first = col_vector * 4;
          __align__(16) float s1_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            const int64_t col = col_first + col_k;
            s1_vector[col_k] = s0[63 - col];
          }
          put(s1 + col_first, s1_vector);
        }
        const int64_t col_rest = col_vectors * 4;
        for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
          s1[col] = s0[63 - col];
        }
      }
      __syncwarp(threads_of_row());
      {
        const int64_t col_vectors = aligned<4>(s2) ? 64 / 4 : 0;
        for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += blockDim.x) {
          const int64_t col_first = col_vector * 4;
          __align__(16) float s2_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            const int64_t col = col_first + col_k;
            s2_vector[col_k] = s1[63 - col];
          }
          put(s2 + col_first, s2_vector);
        }
        const int64_t col_rest = col_vectors * 4;
        for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
          s2[col] = s1[63 - col];
        }
      }
      __syncwarp(threads_of_row());
      {
        const int64_t col_vectors = 64 / 4;
        for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += blockDim.x) {
          const int64_t col_first = col_vector * 4;
          __align__(16) float y0_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            const int64_t col = col_first + col_k;
            y0_vector[col_k] = s2[63 - col];
          }
          put_any(y0 + row * 64 + col_first, y0_vector);
        }
        const int64_t col_rest = col_vectors * 4;
        for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
          y0[row * 64 + col] = s2[63 - col];
        }
      }
    }
  }
}
