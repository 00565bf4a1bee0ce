extern "C" __global__ void short_rows(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 128);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t first = tile * 32;
    const int64_t last = tile * 32 + 32 < n0 ? tile * 32 + 32 : n0;
    for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y) {
      float total_lanes = 0.0f;
      {
        const int64_t col_vectors = n2 % 4 == 0 ? n2 / 4 : 0;
        for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += 2 * blockDim.x) {
          __align__(16) float x0_vector_ahead[2][4];
          #pragma unroll
          for (int col_step = 0; col_step < 2; ++col_step) {
            const int64_t col_here = col_vector + col_step * blockDim.x;
            const int64_t col_first = col_here * 4;
            if (col_here < col_vectors) take_any(x0_vector_ahead[col_step], x0 + row * n2 + col_first);
          }
          #pragma unroll
          for (int col_step = 0; col_step < 2; ++col_step) {
            const int64_t col_here = col_vector + col_step * blockDim.x;
            if (col_here >= col_vectors) break;
            const int64_t col_first = col_here * 4;
            float (&x0_vector)[4] = x0_vector_ahead[col_step];
            #pragma unroll
            for (int col_k = 0; col_k < 4; ++col_k) {
              const float total_term = x0_vector[col_k];
              total_lanes = total_lanes + total_term;
            }
          }
        }
        const int64_t col_rest = col_vectors * 4;
        for (int64_t col = col_rest + threadIdx.x; col < n2; col += blockDim.x) {
          const float total_term = x0[row * n2 + col];
          total_lanes = total_lanes + total_term;
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
      if (threadIdx.x == 0) s0[row - first] = total;
    }
    __syncthreads();
    {
      const int64_t row_vectors = aligned<4>(s0) && aligned<4>(s1) ? (last - first) / 4 : 0;
      for (int64_t row_vector = threadIdx.y * blockDim.x + threadIdx.x; row_vector < row_vectors; row_vector += 2 * blockDim.x * blockDim.y) {
        __align__(16) float s0_vector_ahead[2][4];
        #pragma unroll
        for (int row_step = 0; row_step < 2; ++row_step) {
          const int64_t row_here = row_vector + row_step * (blockDim.x * blockDim.y);
          const int64_t row_first = first + row_here * 4;
          if (row_here < row_vectors) take(s0_vector_ahead[row_step], s0 + row_first - first);
        }
        #pragma unroll
        for (int row_step = 0; row_step < 2; ++row_step) {
          const int64_t row_here = row_vector + row_step * (blockDim.x * blockDim.y);
          if (row_here >= row_vectors) break;
          const int64_t row_first = first + row_here * 4;
          float (&s0_vector)[4] = s0_vector_ahead[row_step];
          __align__(16) float s1_vector[4];
          #pragma unroll
          for (int row_k = 0; row_k < 4; ++row_k) {
            s1_vector[row_k] = 1.0f / s0_vector[row_k];
          }
          put(s1 + row_first - first, s1_vector);
        }
      }
      const int64_t row_rest = first + row_vectors * 4;
      for (int64_t row = row_rest + threadIdx.y * blockDim.x + threadIdx.x; row < last; row += blockDim.x * blockDim.y) {
        s1[row - first] = 1.0f / s0[row - first];
      }
    }
    __syncthreads();
    for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y) {
      {
        const int64_t col_vectors = aligned<4>(x0 + row * n2) && aligned<4>(y0 + row * n2) ? n2 / 4 : 0;
        for (int64_t col_vector = threadIdx.x; col_vector < col_vectors; col_vector += 2 * blockDim.x) {
          __align__(16) float x0_vector_ahead[2][4];
          #pragma unroll
          for (int col_step = 0; col_step < 2; ++col_step) {
            const int64_t col_here = col_vector + col_step * blockDim.x;
            const int64_t col_first = col_here * 4;
            if (col_here < col_vectors) take(x0_vector_ahead[col_step], x0 + row * n2 + col_first);
          }
          #pragma unroll
          for (int col_step = 0; col_step < 2; ++col_step) {
            const int64_t col_here = col_vector + col_step * blockDim.x;
            if (col_here >= col_vectors) break;
            const int64_t col_first = col_here * 4;
            float (&x0_vector)[4] = x0_vector_ahead[col_step];
            __align__(16) float y0_vector[4];
            #pragma unroll
            for (int col_k = 0; col_k < 4; ++col_k) {
              y0_vector[col_k] = x0_vector[col_k] * s1[row - first];
            }
            put(y0 + row * n2 + col_first, y0_vector);
          }
        }
        const int64_t col_rest = col_vectors * 4;
        for (int64_t col = col_rest + threadIdx.x; col < n2; col += blockDim.x) {
          y0[row * n2 + col] = x0[row * n2 + col] * s1[row - first];
        }
      }
    }
  }
}
