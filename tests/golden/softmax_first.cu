extern "C" __global__ void __launch_bounds__(1024, 1) softmax_first(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0_arg, const int64_t n1_arg) {
  const int64_t n0 = (int64_t)n0_arg;
  const int64_t n1 = (int64_t)n1_arg;
  __align__(16) float reduce_max_1_sum[1];
  __align__(16) float x0_r[4];
  __shared__ __align__(16) float reduce_max_1_sums[1024];
  __align__(16) float reduce_sum_1_sum[1];
  __shared__ __align__(16) float reduce_sum_1_sums[1024];
  const int64_t block = blockIdx.x;
  const int64_t ty = threadIdx.y;
  const int64_t tx = threadIdx.x;
  const int64_t column = block % n0 * 16 + tx;
  const int64_t whole = 256;
  reduce_max_1_sum[0] = -__int_as_float(0x7f800000);
  if (column < n1) {
    #pragma unroll 1
    for (int64_t base = 0; base < whole; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        reduce_max_1_sum[0] = maximum(reduce_max_1_sum[0], x0_r[u]);
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
          reduce_max_1_sum[0] = maximum(reduce_max_1_sum[0], x0_r[u]);
        }
      }
    }
  }
  store_vector<1>(reduce_max_1_sums + ty * 16 + tx, reduce_max_1_sum);
  __syncthreads();
  if (ty == 0) {
    #pragma unroll
    for (int64_t y = 1; y < 64; ++y) {
      reduce_max_1_sum[0] = maximum(reduce_max_1_sum[0], reduce_max_1_sums[tx + y * 16]);
    }
    store_vector<1>(reduce_max_1_sums + tx, reduce_max_1_sum);
  }
  __syncthreads();
  load_shared<1>(reduce_max_1_sum, reduce_max_1_sums + tx);
  reduce_sum_1_sum[0] = 0.0f;
  if (column < n1) {
    #pragma unroll 1
    for (int64_t base = 0; base < whole; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        reduce_sum_1_sum[0] = reduce_sum_1_sum[0] + expf(x0_r[u] - reduce_max_1_sum[0]);
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
          reduce_sum_1_sum[0] = reduce_sum_1_sum[0] + expf(x0_r[u] - reduce_max_1_sum[0]);
        }
      }
    }
  }
  store_vector<1>(reduce_sum_1_sums + ty * 16 + tx, reduce_sum_1_sum);
  __syncthreads();
  if (ty == 0) {
    #pragma unroll
    for (int64_t y = 1; y < 64; ++y) {
      reduce_sum_1_sum[0] = reduce_sum_1_sum[0] + reduce_sum_1_sums[tx + y * 16];
    }
    store_vector<1>(reduce_sum_1_sums + tx, reduce_sum_1_sum);
  }
  __syncthreads();
  load_shared<1>(reduce_sum_1_sum, reduce_sum_1_sums + tx);
  if (column < n1) {
    #pragma unroll 1
    for (int64_t base = 0; base < whole; base += 256) {
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        load_stream<1>(x0_r + u, x0 + (base + ty + u * 64) * n1 + column);
      }
      #pragma unroll
      for (int64_t u = 0; u < 4; ++u) {
        const float div_1 = expf(x0_r[u] - reduce_max_1_sum[0]) / reduce_sum_1_sum[0];
        y0[(base + ty + u * 64) * n1 + column] = div_1;
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
          const float div_1 = expf(x0_r[u] - reduce_max_1_sum[0]) / reduce_sum_1_sum[0];
          y0[(base + ty + u * 64) * n1 + column] = div_1;
        }
      }
    }
  }
}
