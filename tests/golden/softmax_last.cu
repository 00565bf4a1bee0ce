extern "C" __global__ void __launch_bounds__(128, 10) softmax_last(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0_arg) {
  const int64_t n0 = (int64_t)n0_arg;
  __align__(16) float x0_r[12];
  __align__(16) float r3[12];
  __align__(16) float y0_v0[4];
  __align__(16) float dividend0[4];
  __align__(16) float quotient0[4];
  if ((((uint64_t)x0 | (uint64_t)y0) & 15) == 0) {
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
    float reduce_max_1 = -__int_as_float(0x7f800000);
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          reduce_max_1 = fmaxf(reduce_max_1, x0_r[u * 4 + k]);
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_max_1, o);
      const float lower = threadIdx.x & o ? other : reduce_max_1;
      const float upper = threadIdx.x & o ? reduce_max_1 : other;
      reduce_max_1 = fmaxf(lower, upper);
    }
    float reduce_sum_1 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          const float exp_1 = expf(x0_r[u * 4 + k] - reduce_max_1);
          reduce_sum_1 = reduce_sum_1 + exp_1;
          r3[u * 4 + k] = exp_1;
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_sum_1, o);
      reduce_sum_1 = reduce_sum_1 + other;
    }
    const divisor by_reduce_sum_1(reduce_sum_1);
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          dividend0[k] = r3[u * 4 + k];
        }
        over(quotient0, dividend0, by_reduce_sum_1);
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          y0_v0[k] = quotient0[k];
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
    float reduce_max_1 = -__int_as_float(0x7f800000);
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          reduce_max_1 = fmaxf(reduce_max_1, x0_r[u * 4 + k]);
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_max_1, o);
      const float lower = threadIdx.x & o ? other : reduce_max_1;
      const float upper = threadIdx.x & o ? reduce_max_1 : other;
      reduce_max_1 = fmaxf(lower, upper);
    }
    float reduce_sum_1 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          const float exp_1 = expf(x0_r[u * 4 + k] - reduce_max_1);
          reduce_sum_1 = reduce_sum_1 + exp_1;
          r3[u * 4 + k] = exp_1;
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_sum_1, o);
      reduce_sum_1 = reduce_sum_1 + other;
    }
    const divisor by_reduce_sum_1(reduce_sum_1);
    #pragma unroll
    for (int64_t u = 0; u < 3; ++u) {
      if (tx * 4 + u * 128 < 300) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          dividend0[k] = r3[u * 4 + k];
        }
        over(quotient0, dividend0, by_reduce_sum_1);
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          y0_v0[k] = quotient0[k];
        }
        #pragma unroll
        for (int64_t element = 0; element < 4; ++element) {
          store_vector<1>(y0 + (row * 300 + tx * 4 + u * 128) + element, y0_v0 + element);
        }
      }
    }
  }
}
