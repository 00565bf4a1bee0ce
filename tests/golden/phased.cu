struct phased_words {
  const float *x0;
  float *y0, *y1;
  int64_t n0, n1, n2, n3, n4, n5, n6;
};
// A cooperative launch: blocks wait for each other here, so that all must run at once.
__device__ uint32_t phased_gate;
PK_FN void phased_0_0(const phased_words &words, const int phase_block, unsigned char *const pack_shared) {
  const float *const x0 = (const float *)words.x0;
  float *const y0 = (float *)words.y1;
  const int64_t n0 = (int64_t)words.n0;
  const int pack_x = threadIdx.x % 32;
  const int pack_y = threadIdx.x / 32 % 8;
  const int pack_block = (int)phase_block - (int)words.n1;
  __align__(16) float reduce_mean_1_sum[4];
  __align__(16) float x0_r[32];
  float *const reduce_mean_1_sums = (float *)(pack_shared + 0);
  __align__(16) float y0_v0[4];
  if ((((uint64_t)x0 | (uint64_t)y0) & 15) == 0) {
    const int64_t block = pack_block;
    const int64_t ty = pack_y;
    const int64_t tx = pack_x;
    const int64_t column = block % 3 * 128 + tx * 4;
    const int64_t whole = n0 / 64 * 64;
    #pragma unroll
    for (int64_t k = 0; k < 4; ++k) {
      reduce_mean_1_sum[k] = 0.0f;
    }
    if (column < 300) {
      #pragma unroll 1
      for (int64_t base = 0; base < whole; base += 64) {
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          load_stream<4>(x0_r + u * 4, x0 + (base * 300 + ty * 300 + column) + u * 2400);
        }
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          #pragma unroll
          for (int64_t k = 0; k < 4; ++k) {
            reduce_mean_1_sum[k] = reduce_mean_1_sum[k] + x0_r[u * 4 + k];
          }
        }
      }
      #pragma unroll 1
      for (int64_t base = whole; base < n0; base += 64) {
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          if (base + ty + u * 8 < n0) {
            load_stream<4>(x0_r + u * 4, x0 + (base * 300 + ty * 300 + column) + u * 2400);
          }
        }
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          if (base + ty + u * 8 < n0) {
            #pragma unroll
            for (int64_t k = 0; k < 4; ++k) {
              reduce_mean_1_sum[k] = reduce_mean_1_sum[k] + x0_r[u * 4 + k];
            }
          }
        }
      }
    }
    store_vector<4>(reduce_mean_1_sums + ty * 128 + tx * 4, reduce_mean_1_sum);
    __syncthreads();
    if (ty == 0) {
      #pragma unroll
      for (int64_t y = 1; y < 8; ++y) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          reduce_mean_1_sum[k] = reduce_mean_1_sum[k] + reduce_mean_1_sums[tx * 4 + y * 128 + k];
        }
      }
    }
    if (ty == 0 & column < 300) {
      #pragma unroll
      for (int64_t k = 0; k < 4; ++k) {
        y0_v0[k] = reduce_mean_1_sum[k] / convert<float>((int64_t)n0);
      }
      store_vector<4>(y0 + column, y0_v0);
    }
  } else {
    const int64_t block = pack_block;
    const int64_t ty = pack_y;
    const int64_t tx = pack_x;
    const int64_t column = block % 3 * 128 + tx * 4;
    const int64_t whole = n0 / 64 * 64;
    #pragma unroll
    for (int64_t k = 0; k < 4; ++k) {
      reduce_mean_1_sum[k] = 0.0f;
    }
    if (column < 300) {
      #pragma unroll 1
      for (int64_t base = 0; base < whole; base += 64) {
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          #pragma unroll
          for (int64_t element = 0; element < 4; ++element) {
            load_stream<1>(x0_r + u * 4 + element, x0 + (base * 300 + ty * 300 + column + u * 2400) + element);
          }
        }
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          #pragma unroll
          for (int64_t k = 0; k < 4; ++k) {
            reduce_mean_1_sum[k] = reduce_mean_1_sum[k] + x0_r[u * 4 + k];
          }
        }
      }
      #pragma unroll 1
      for (int64_t base = whole; base < n0; base += 64) {
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          if (base + ty + u * 8 < n0) {
            #pragma unroll
            for (int64_t element = 0; element < 4; ++element) {
              load_stream<1>(x0_r + u * 4 + element, x0 + (base * 300 + ty * 300 + column + u * 2400) + element);
            }
          }
        }
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          if (base + ty + u * 8 < n0) {
            #pragma unroll
            for (int64_t k = 0; k < 4; ++k) {
              reduce_mean_1_sum[k] = reduce_mean_1_sum[k] + x0_r[u * 4 + k];
            }
          }
        }
      }
    }
    store_vector<4>(reduce_mean_1_sums + ty * 128 + tx * 4, reduce_mean_1_sum);
    __syncthreads();
    if (ty == 0) {
      #pragma unroll
      for (int64_t y = 1; y < 8; ++y) {
        #pragma unroll
        for (int64_t k = 0; k < 4; ++k) {
          reduce_mean_1_sum[k] = reduce_mean_1_sum[k] + reduce_mean_1_sums[tx * 4 + y * 128 + k];
        }
      }
    }
    if (ty == 0 & column < 300) {
      #pragma unroll
      for (int64_t k = 0; k < 4; ++k) {
        y0_v0[k] = reduce_mean_1_sum[k] / convert<float>((int64_t)n0);
      }
      #pragma unroll
      for (int64_t element = 0; element < 4; ++element) {
        store_vector<1>(y0 + column + element, y0_v0 + element);
      }
    }
  }
}
PK_FN void phased_1_0(const phased_words &words, const int phase_block) {
  const float *const x0 = (const float *)words.x0;
  const float *const x1 = (const float *)words.y1;
  float *const y0 = (float *)words.y0;
  const int64_t n0 = (int64_t)words.n3;
  const int pack_x = threadIdx.x % 32;
  const int pack_y = threadIdx.x / 32 % 4;
  const int pack_group = threadIdx.x / 128;
  const int pack_block = ((int)phase_block - (int)words.n4) * 2 + pack_group;
  if (pack_block < (int)words.n5) {
    __align__(16) float x0_r[12];
    __align__(16) float x1_v0[4];
    __align__(16) float x1_v1[4];
    __align__(16) float y0_v0[4];
    __align__(16) float dividend0[4];
    __align__(16) float quotient0[4];
    if ((((uint64_t)x0 | (uint64_t)x1 | (uint64_t)y0) & 15) == 0) {
      const int64_t block = pack_block;
      const int64_t ty = pack_y;
      const int64_t tx = pack_x;
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
          load_changing<4>(x1_v0, x1 + tx * 4 + u * 128);
          #pragma unroll
          for (int64_t k = 0; k < 4; ++k) {
            reduce_max_1 = maximum(reduce_max_1, fabsf(x0_r[u * 4 + k] - x1_v0[k]));
          }
        }
      }
      #pragma unroll
      for (int o = 16; o; o /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, reduce_max_1, o);
        const float lower = pack_x & o ? other : reduce_max_1;
        const float upper = pack_x & o ? reduce_max_1 : other;
        reduce_max_1 = maximum(lower, upper);
      }
      const divisor by_reduce_max_1(reduce_max_1);
      #pragma unroll
      for (int64_t u = 0; u < 3; ++u) {
        if (tx * 4 + u * 128 < 300) {
          load_changing<4>(x1_v1, x1 + tx * 4 + u * 128);
          #pragma unroll
          for (int64_t k = 0; k < 4; ++k) {
            dividend0[k] = x0_r[u * 4 + k] - x1_v1[k];
          }
          over(quotient0, dividend0, by_reduce_max_1);
          #pragma unroll
          for (int64_t k = 0; k < 4; ++k) {
            y0_v0[k] = quotient0[k];
          }
          store_vector<4>(y0 + (row * 300 + tx * 4) + u * 128, y0_v0);
        }
      }
    } else {
      const int64_t block = pack_block;
      const int64_t ty = pack_y;
      const int64_t tx = pack_x;
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
          for (int64_t element = 0; element < 4; ++element) {
            load_changing<1>(x1_v0 + element, x1 + (tx * 4 + u * 128) + element);
          }
          #pragma unroll
          for (int64_t k = 0; k < 4; ++k) {
            reduce_max_1 = maximum(reduce_max_1, fabsf(x0_r[u * 4 + k] - x1_v0[k]));
          }
        }
      }
      #pragma unroll
      for (int o = 16; o; o /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, reduce_max_1, o);
        const float lower = pack_x & o ? other : reduce_max_1;
        const float upper = pack_x & o ? reduce_max_1 : other;
        reduce_max_1 = maximum(lower, upper);
      }
      const divisor by_reduce_max_1(reduce_max_1);
      #pragma unroll
      for (int64_t u = 0; u < 3; ++u) {
        if (tx * 4 + u * 128 < 300) {
          #pragma unroll
          for (int64_t element = 0; element < 4; ++element) {
            load_changing<1>(x1_v1 + element, x1 + (tx * 4 + u * 128) + element);
          }
          #pragma unroll
          for (int64_t k = 0; k < 4; ++k) {
            dividend0[k] = x0_r[u * 4 + k] - x1_v1[k];
          }
          over(quotient0, dividend0, by_reduce_max_1);
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
}
extern "C" __global__ void __launch_bounds__(256, 2) phased(const __grid_constant__ phased_words words) {
  __shared__ __align__(16) unsigned char pack_shared[4096];
  for (int phase_block = blockIdx.x; phase_block < (int)words.n2; phase_block += gridDim.x) {
    phased_0_0(words, phase_block, pack_shared);
    __syncthreads();
  }
  wait_of_grid(&phased_gate);
  for (int phase_block = blockIdx.x; phase_block < (int)words.n6; phase_block += gridDim.x) {
    phased_1_0(words, phase_block);
  }
}
