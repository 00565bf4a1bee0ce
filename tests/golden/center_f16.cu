extern "C" __global__ void __launch_bounds__(128, 12) center_f16(const uint16_t *__restrict__ x0, uint16_t *__restrict__ y0, const int64_t n0_arg) {
  const int64_t n0 = (int64_t)n0_arg;
  __align__(16) uint16_t x0_r[16];
  __align__(16) uint16_t y0_v0[8];
  if ((((uint64_t)x0 | (uint64_t)y0) & 15) == 0) {
    const int64_t block = blockIdx.x;
    const int64_t ty = threadIdx.y;
    const int64_t tx = threadIdx.x;
    const int64_t row = block * 4 + ty;
    if (row >= n0) return;
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      if (tx * 8 + u * 256 < 304) {
        load_stream<8>(x0_r + u * 8, x0 + (row * 304 + tx * 8) + u * 256);
      }
    }
    float reduce_mean_1 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      if (tx * 8 + u * 256 < 304) {
        #pragma unroll
        for (int64_t k = 0; k < 8; ++k) {
          reduce_mean_1 = reduce_mean_1 + widen_f16(x0_r[u * 8 + k]);
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_mean_1, o);
      reduce_mean_1 = reduce_mean_1 + other;
    }
    const float reduce_mean_1_row = rounded_f16(reduce_mean_1 / convert<float>(304));
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      if (tx * 8 + u * 256 < 304) {
        #pragma unroll
        for (int64_t k = 0; k < 8; ++k) {
          y0_v0[k] = narrow_f16(widen_f16(x0_r[u * 8 + k]) - reduce_mean_1_row);
        }
        store_vector<8>(y0 + (row * 304 + tx * 8) + u * 256, y0_v0);
      }
    }
  } else {
    const int64_t block = blockIdx.x;
    const int64_t ty = threadIdx.y;
    const int64_t tx = threadIdx.x;
    const int64_t row = block * 4 + ty;
    if (row >= n0) return;
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      if (tx * 8 + u * 256 < 304) {
        #pragma unroll
        for (int64_t element = 0; element < 8; ++element) {
          load_stream<1>(x0_r + u * 8 + element, x0 + (row * 304 + tx * 8 + u * 256) + element);
        }
      }
    }
    float reduce_mean_1 = 0.0f;
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      if (tx * 8 + u * 256 < 304) {
        #pragma unroll
        for (int64_t k = 0; k < 8; ++k) {
          reduce_mean_1 = reduce_mean_1 + widen_f16(x0_r[u * 8 + k]);
        }
      }
    }
    #pragma unroll
    for (int o = 16; o; o /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, reduce_mean_1, o);
      reduce_mean_1 = reduce_mean_1 + other;
    }
    const float reduce_mean_1_row = rounded_f16(reduce_mean_1 / convert<float>(304));
    #pragma unroll
    for (int64_t u = 0; u < 2; ++u) {
      if (tx * 8 + u * 256 < 304) {
        #pragma unroll
        for (int64_t k = 0; k < 8; ++k) {
          y0_v0[k] = narrow_f16(widen_f16(x0_r[u * 8 + k]) - reduce_mean_1_row);
        }
        #pragma unroll
        for (int64_t element = 0; element < 8; ++element) {
          store_vector<1>(y0 + (row * 304 + tx * 8 + u * 256) + element, y0_v0 + element);
        }
      }
    }
  }
}
