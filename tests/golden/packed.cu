struct packed_words {
  const float *x0, *x1;
  const double *x2;
  const float *x3, *x4;
  float *y0, *y1;
  double *y2;
  float *y3, *y4;
  int64_t n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14;
};
extern "C" __global__ void __launch_bounds__(256, 3) packed(const __grid_constant__ packed_words words) {
  const uint64_t *const pack_words = (const uint64_t *)&words;
  __shared__ __align__(16) unsigned char pack_shared[2048];
  if ((int)blockIdx.x < (int)words.n8) {
    const int pack_part = part_of<2>(pack_words + 16, blockIdx.x);
    const float *const x0 = (const float *)pack_words[pack_part * 3 + 0];
    float *const y0 = (float *)pack_words[pack_part * 3 + 5];
    const int n0 = (int)pack_words[pack_part + 10];
    const int pack_x = threadIdx.x % 128;
    const int pack_group = threadIdx.x / 128;
    const int pack_block = ((int)blockIdx.x - (int)pack_words[pack_part + 16]) * 2 + pack_group;
    if (pack_block < (int)pack_words[pack_part + 21]) {
      __align__(16) float x0_r[8];
      __align__(16) float y0_v0[4];
      const int block = pack_block;
      const int tx = pack_x;
      const int first = block * 1024;
      if (first + 1024 <= n0 & (((uint64_t)x0 | (uint64_t)y0) & 15) == 0) {
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          load_stream<4>(x0_r + u * 4, x0 + (tx * 4 + first) + u * 512);
        }
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          #pragma unroll
          for (int k = 0; k < 4; ++k) {
            y0_v0[k] = x0_r[u * 4 + k] + 1.0f;
          }
          store_vector<4>(y0 + (tx * 4 + first) + u * 512, y0_v0);
        }
      } else {
        const int end = first + 1024 < n0 ? first + 1024 : n0;
        #pragma unroll 1
        for (int point = first + tx; point < end; point += 128) {
          y0[point] = x0[point] + 1.0f;
        }
      }
    }
  } else if ((int)blockIdx.x < (int)words.n9) {
    const float *const x0 = (const float *)words.x1;
    float *const y0 = (float *)words.y1;
    const int64_t n0 = (int64_t)words.n2;
    const int pack_x = threadIdx.x % 32;
    const int pack_y = threadIdx.x / 32 % 4;
    const int pack_group = threadIdx.x / 128;
    const int pack_block = ((int)blockIdx.x - (int)words.n8) * 2 + pack_group;
    if (pack_block < (int)words.n13) {
      __align__(16) float x0_r[12];
      if ((((uint64_t)x0) & 15) == 0) {
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
        float reduce_sum_1 = 0.0f;
        #pragma unroll
        for (int64_t u = 0; u < 3; ++u) {
          if (tx * 4 + u * 128 < 300) {
            #pragma unroll
            for (int64_t k = 0; k < 4; ++k) {
              reduce_sum_1 = reduce_sum_1 + x0_r[u * 4 + k];
            }
          }
        }
        #pragma unroll
        for (int o = 16; o; o /= 2) {
          const float other = __shfl_xor_sync(0xffffffffu, reduce_sum_1, o);
          reduce_sum_1 = reduce_sum_1 + other;
        }
        if (tx == 0) {
          y0[row] = reduce_sum_1;
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
        float reduce_sum_1 = 0.0f;
        #pragma unroll
        for (int64_t u = 0; u < 3; ++u) {
          if (tx * 4 + u * 128 < 300) {
            #pragma unroll
            for (int64_t k = 0; k < 4; ++k) {
              reduce_sum_1 = reduce_sum_1 + x0_r[u * 4 + k];
            }
          }
        }
        #pragma unroll
        for (int o = 16; o; o /= 2) {
          const float other = __shfl_xor_sync(0xffffffffu, reduce_sum_1, o);
          reduce_sum_1 = reduce_sum_1 + other;
        }
        if (tx == 0) {
          y0[row] = reduce_sum_1;
        }
      }
    }
  } else if ((int)blockIdx.x < (int)words.n10) {
    const double *const x0 = (const double *)words.x2;
    double *const y0 = (double *)words.y2;
    const int64_t n0 = (int64_t)words.n3;
    const int64_t n1 = (int64_t)words.n4;
    const int pack_x = threadIdx.x % 32;
    const int pack_y = threadIdx.x / 32 % 8;
    const int pack_block = (int)blockIdx.x - (int)words.n9;
    __align__(16) double reduce_sum_1_sum[1];
    __align__(16) double x0_r[8];
    double *const reduce_sum_1_sums = (double *)(pack_shared + 0);
    const int64_t block = pack_block;
    const int64_t ty = pack_y;
    const int64_t tx = pack_x;
    const int64_t column = block % n0 * 32 + tx;
    const int64_t whole = 128;
    reduce_sum_1_sum[0] = 0.0;
    if (column < n1) {
      #pragma unroll 1
      for (int64_t base = 0; base < whole; base += 64) {
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          load_stream<1>(x0_r + u, x0 + (base + ty + u * 8) * n1 + column);
        }
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          reduce_sum_1_sum[0] = reduce_sum_1_sum[0] + x0_r[u];
        }
      }
      #pragma unroll 1
      for (int64_t base = whole; base < 150; base += 64) {
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          if (base + ty + u * 8 < 150) {
            load_stream<1>(x0_r + u, x0 + (base + ty + u * 8) * n1 + column);
          }
        }
        #pragma unroll
        for (int64_t u = 0; u < 8; ++u) {
          if (base + ty + u * 8 < 150) {
            reduce_sum_1_sum[0] = reduce_sum_1_sum[0] + x0_r[u];
          }
        }
      }
    }
    store_vector<1>(reduce_sum_1_sums + ty * 32 + tx, reduce_sum_1_sum);
    __syncthreads();
    if (ty == 0) {
      #pragma unroll
      for (int64_t y = 1; y < 8; ++y) {
        reduce_sum_1_sum[0] = reduce_sum_1_sum[0] + reduce_sum_1_sums[tx + y * 32];
      }
    }
    if (ty == 0 & column < n1) {
      y0[column] = reduce_sum_1_sum[0];
    }
  } else {
    const float *const x0 = (const float *)words.x4;
    float *const y0 = (float *)words.y4;
    const int n0 = (int)words.n5;
    const int pack_x = threadIdx.x % 128;
    const int pack_group = threadIdx.x / 128;
    const int pack_block = ((int)blockIdx.x - (int)words.n10) * 2 + pack_group;
    if (pack_block < (int)words.n14) {
      __align__(16) float x0_r[8];
      __align__(16) float y0_v0[4];
      const int block = pack_block;
      const int tx = pack_x;
      const int first = block * 1024;
      if (first + 1024 <= n0 & (((uint64_t)x0 | (uint64_t)y0) & 15) == 0) {
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          load_stream<4>(x0_r + u * 4, x0 + (tx * 4 + first) + u * 512);
        }
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          #pragma unroll
          for (int k = 0; k < 4; ++k) {
            const float x0_0 = x0_r[u * 4 + k];
            y0_v0[k] = x0_0 - expf(x0_0);
          }
          store_vector<4>(y0 + (tx * 4 + first) + u * 512, y0_v0);
        }
      } else {
        const int end = first + 1024 < n0 ? first + 1024 : n0;
        #pragma unroll 1
        for (int point = first + tx; point < end; point += 128) {
          const float x0_0 = x0[point];
          y0[point] = x0_0 - expf(x0_0);
        }
      }
    }
  }
}
