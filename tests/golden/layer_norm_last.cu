extern "C" __global__ void __launch_bounds__(128, 10) layer_norm_last(const float *__restrict__ x0, const float *__restrict__ x1, const float *__restrict__ x2, float *__restrict__ y0, const int64_t n0_arg) {
  const int64_t n0 = (int64_t)n0_arg;
  __align__(16) float x0_r[12];
  __align__(16) float x1_v0[4];
  __align__(16) float x2_v0[4];
  __align__(16) float y0_v0[4];
  if ((((uint64_t)x0 | (uint64_t)x1 | (uint64_t)x2 | (uint64_t)y0) & 15) == 0) {
    const int64_t block = blockIdx.x;
    const int64_t ty = threadIdx.y;
    const int64_t tx = threadIdx.x;
    const int64_t row = block * 4 + ty;
    if (row >= n0) return;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        load_stream<4>(x0_r + u * 4, x0 + (row * 300 + tx * 4) + u * 128);
      }
    }
    float reduce_mean_1 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          reduce_mean_1 = reduce_mean_1 + x0_r[u * 4 + k];
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_mean_1, o);
      reduce_mean_1 = reduce_mean_1 + other;
    }
    const float reduce_mean_1_row = reduce_mean_1 / convert<float>(300);
    float reduce_mean_2 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          const float sub_1 = x0_r[u * 4 + k] - reduce_mean_1_row;
          reduce_mean_2 = reduce_mean_2 + sub_1 * sub_1;
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_mean_2, o);
      reduce_mean_2 = reduce_mean_2 + other;
    }
    const float reduce_mean_2_row = reduce_mean_2 / convert<float>(300);
    const float add_1 = reduce_mean_2_row + 0.00001f;
    const float rsqrt_1 = rsqrtf(add_1);
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        load_kept<4>(x1_v0, x1 + tx * 4 + u * 128);
        load_kept<4>(x2_v0, x2 + tx * 4 + u * 128);
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          const float mul_3 = (x0_r[u * 4 + k] - reduce_mean_1_row) * rsqrt_1 * x1_v0[k];
          y0_v0[k] = mul_3 + x2_v0[k];
        }
        store_vector<4>(y0 + (row * 300 + tx * 4) + u * 128, y0_v0);
      }
    }
  } else {
    const int64_t block = blockIdx.x;
    const int64_t ty = threadIdx.y;
    const int64_t tx = threadIdx.x;
    const int64_t row = block * 4 + ty;
    if (row >= n0) return;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t element = 0; element < 4; ++element) {
          load_stream<1>(x0_r + u * 4 + element, x0 + (row * 300 + tx * 4 + u * 128) + element);
        }
      }
    }
    float reduce_mean_1 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          reduce_mean_1 = reduce_mean_1 + x0_r[u * 4 + k];
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_mean_1, o);
      reduce_mean_1 = reduce_mean_1 + other;
    }
    const float reduce_mean_1_row = reduce_mean_1 / convert<float>(300);
    float reduce_mean_2 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          const float sub_1 = x0_r[u * 4 + k] - reduce_mean_1_row;
          reduce_mean_2 = reduce_mean_2 + sub_1 * sub_1;
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_mean_2, o);
      reduce_mean_2 = reduce_mean_2 + other;
    }
    const float reduce_mean_2_row = reduce_mean_2 / convert<float>(300);
    const float add_1 = reduce_mean_2_row + 0.00001f;
    const float rsqrt_1 = rsqrtf(add_1);
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t element = 0; element < 4; ++element) {
          load_kept<1>(x1_v0 + element, x1 + (tx * 4 + u * 128) + element);
        }
        #pragma unroll
        for (int64_t element = 0; element < 4; ++element) {
          load_kept<1>(x2_v0 + element, x2 + (tx * 4 + u * 128) + element);
        }
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          const float mul_3 = (x0_r[u * 4 + k] - reduce_mean_1_row) * rsqrt_1 * x1_v0[k];
          y0_v0[k] = mul_3 + x2_v0[k];
        }
        #pragma unroll
        for (int64_t element = 0; element < 4; ++element) {
          store_vector<1>(y0 + (row * 300 + tx * 4 + u * 128) + element, y0_v0 + element);
        }
      }
    }
  }
}
