extern "C" __global__ void column_means(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    {
      const int64_t row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (int64_t row = tile * 8 + threadIdx.y; row < row_end; row += blockDim.y) {
        {
          const int64_t col_bundles = 64 / 4;
          for (int64_t col_bundle = threadIdx.x; col_bundle < col_bundles; col_bundle += 2 * blockDim.x) {
            __align__(16) float x0_bundle_ahead[2][4];
            #pragma unroll
            for (int col_turn = 0; col_turn < 2; ++col_turn) {
              const int64_t col_here = col_bundle + col_turn * blockDim.x;
              const int64_t col_first = col_here * 4;
              if (col_here < col_bundles) take_any(x0_bundle_ahead[col_turn], x0 + row * 64 + col_first);
            }
            #pragma unroll
            for (int col_turn = 0; col_turn < 2; ++col_turn) {
              const int64_t col_here = col_bundle + col_turn * blockDim.x;
              if (col_here >= col_bundles) break;
              const int64_t col_first = col_here * 4;
              float (&x0_bundle)[4] = x0_bundle_ahead[col_turn];
              __align__(16) float s0_bundle[4];
              #pragma unroll
              for (int col_k = 0; col_k < 4; ++col_k) {
                s0_bundle[col_k] = x0_bundle[col_k];
              }
              put_any(s0 + (row - tile * 8) * 64 + col_first, s0_bundle);
            }
          }
          const int64_t col_rest = col_bundles * 4;
          for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
            s0[(row - tile * 8) * 64 + col] = x0[row * 64 + col];
          }
        }
      }
    }
    {
      __syncthreads();
      {
        const int64_t col_bundles = 64 / 4;
        for (int64_t col_bundle = threadIdx.y * blockDim.x + threadIdx.x; col_bundle < col_bundles; col_bundle += blockDim.x * blockDim.y) {
          const int64_t col_first = col_bundle * 4;
          __align__(16) float s1_bundle[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            s1_bundle[col_k] = 0.0f;
          }
          #pragma unroll 4
          for (int64_t item = 0; item < 8; ++item) {
            __align__(16) float s0_bundle[4];
            take_any(s0_bundle, s0 + item * 64 + col_first);
            #pragma unroll
            for (int col_k = 0; col_k < 4; ++col_k) {
              s1_bundle[col_k] = s1_bundle[col_k] + s0_bundle[col_k];
            }
          }
          put_any(s1 + col_first, s1_bundle);
        }
        const int64_t col_rest = col_bundles * 4;
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
          const int64_t col_bundles = 64 / 4;
          for (int64_t col_bundle = threadIdx.x; col_bundle < col_bundles; col_bundle += 2 * blockDim.x) {
            __align__(16) float s0_bundle_ahead[2][4];
            __align__(16) float s1_bundle_ahead[2][4];
            #pragma unroll
            for (int col_turn = 0; col_turn < 2; ++col_turn) {
              const int64_t col_here = col_bundle + col_turn * blockDim.x;
              const int64_t col_first = col_here * 4;
              if (col_here < col_bundles) take_any(s0_bundle_ahead[col_turn], s0 + (row - tile * 8) * 64 + col_first);
              if (col_here < col_bundles) take_any(s1_bundle_ahead[col_turn], s1 + col_first);
            }
            #pragma unroll
            for (int col_turn = 0; col_turn < 2; ++col_turn) {
              const int64_t col_here = col_bundle + col_turn * blockDim.x;
              if (col_here >= col_bundles) break;
              const int64_t col_first = col_here * 4;
              float (&s0_bundle)[4] = s0_bundle_ahead[col_turn];
              float (&s1_bundle)[4] = s1_bundle_ahead[col_turn];
              __align__(16) float y0_bundle[4];
              #pragma unroll
              for (int col_k = 0; col_k < 4; ++col_k) {
                y0_bundle[col_k] = s0_bundle[col_k] - s1_bundle[col_k] / 8.0f;
              }
              put_any(y0 + row * 64 + col_first, y0_bundle);
            }
          }
          const int64_t col_rest = col_bundles * 4;
          for (int64_t col = col_rest + threadIdx.x; col < 64; col += blockDim.x) {
            y0[row * 64 + col] = s0[(row - tile * 8) * 64 + col] - s1[col] / 8.0f;
          }
        }
      }
    }
  }
}
