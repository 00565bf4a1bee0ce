extern "C" __global__ void __launch_bounds__(1024, 1) layer_norm_first(const float *__restrict__ x0, const float *__restrict__ x1, const float *__restrict__ x2, float *__restrict__ y0, const int64_t n0_arg, const int64_t n1_arg) {
  const int64_t n0 = (int64_t)n0_arg;
  const int64_t n1 = (int64_t)n1_arg;
  __align__(16) float reduce_mean_1_sum[1];
  __align__(16) float x0_r[4];
  __shared__ __align__(16) float reduce_mean_1_sums[1024];
  __align__(16) float s1_column[1];
  __align__(16) float reduce_mean_2_sum[1];
  __shared__ __align__(16) float reduce_mean_2_sums[1024];
  __align__(16) float s3_column[1];
  const int64_t block = blockIdx.x;
  const int64_t ty = threadIdx.y;
  const int64_t tx = threadIdx.x;
  const int64_t column = block % n0 * 16 + tx;
  const int64_t whole = 256;
  reduce_mean_1_sum[0] = 0.0f;
  if (column < n1) {
    #pragma unroll 1
    for (int64_t base = 0; base < whole; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        reduce_mean_1_sum[0] = reduce_mean_1_sum[0] + x0_r[u];
      }
    }
    #pragma unroll 1
    for (int64_t base = whole; base < 300; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        if (base + ty + u * 64 < 300) {
          load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
        }
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        if (base + ty + u * 64 < 300) {
          reduce_mean_1_sum[0] = reduce_mean_1_sum[0] + x0_r[u];
        }
      }
    }
  }
  store_vector<1>(reduce_mean_1_sums + ty * 16 + tx, reduce_mean_1_sum);
  __syncthreads();
  if (ty == 0) {
    #pragma unroll
    for (int64_t y = 1; y < 64; ++y) {
      reduce_mean_1_sum[0] = reduce_mean_1_sum[0] + reduce_mean_1_sums[tx + y * 16];
    }
    store_vector<1>(reduce_mean_1_sums + tx, reduce_mean_1_sum);
  }
  __syncthreads();
  load_shared<1>(reduce_mean_1_sum, reduce_mean_1_sums + tx);
  if (column < n1) {
    s1_column[0] = reduce_mean_1_sum[0] / convert<float>(300);
  }
  reduce_mean_2_sum[0] = 0.0f;
  if (column < n1) {
    #pragma unroll 1
    for (int64_t base = 0; base < whole; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        const float sub_1 = x0_r[u] - s1_column[0];
        reduce_mean_2_sum[0] = reduce_mean_2_sum[0] + sub_1 * sub_1;
      }
    }
    #pragma unroll 1
    for (int64_t base = whole; base < 300; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        if (base + ty + u * 64 < 300) {
          load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
        }
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        if (base + ty + u * 64 < 300) {
          const float sub_1 = x0_r[u] - s1_column[0];
          reduce_mean_2_sum[0] = reduce_mean_2_sum[0] + sub_1 * sub_1;
        }
      }
    }
  }
  store_vector<1>(reduce_mean_2_sums + ty * 16 + tx, reduce_mean_2_sum);
  __syncthreads();
  if (ty == 0) {
    #pragma unroll
    for (int64_t y = 1; y < 64; ++y) {
      reduce_mean_2_sum[0] = reduce_mean_2_sum[0] + reduce_mean_2_sums[tx + y * 16];
    }
    store_vector<1>(reduce_mean_2_sums + tx, reduce_mean_2_sum);
  }
  __syncthreads();
  load_shared<1>(reduce_mean_2_sum, reduce_mean_2_sums + tx);
  if (column < n1) {
    s3_column[0] = rsqrtf(reduce_mean_2_sum[0] / convert<float>(300) + 0.00001f);
  }
  if (column < n1) {
    #pragma unroll 1
    for (int64_t base = 0; base < whole; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        const float mul_2 = (x0_r[u] - s1_column[0]) * s3_column[0];
        const float x1_5 = x1[base + ty + u * 64];
        const float x2_7 = x2[base + ty + u * 64];
        y0[(base + ty + u * 64) * n1 + column] = mul_2 * x1_5 + x2_7;
      }
    }
    #pragma unroll 1
    for (int64_t base = whole; base < 300; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        if (base + ty + u * 64 < 300) {
          load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
        }
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        if (base + ty + u * 64 < 300) {
          const float mul_2 = (x0_r[u] - s1_column[0]) * s3_column[0];
          const float x1_5 = x1[base + ty + u * 64];
          const float x2_7 = x2[base + ty + u * 64];
          y0[(base + ty + u * 64) * n1 + column] = mul_2 * x1_5 + x2_7;
        }
      }
    }
  }
}
