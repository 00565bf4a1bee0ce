extern "C" __global__ void softmax_first(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  float *const s1 = (float *)(scratch + 2048);
  for (int64_t tile = blockIdx.x; tile < n2; tile += gridDim.x) {
    const int64_t low = tile * 512;
    const int64_t high = low + 512 < n0 ? low + 512 : n0;
    {
      const int64_t i1_bundles = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += blockDim.x) {
        const int64_t i1_first = low + i1_bundle * 4;
        __align__(16) float s0_bundle[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const int64_t i1 = i1_first + i1_k;
          if (i1 < high) {
            s0_bundle[i1_k] = -__int_as_float(0x7f800000);
          }
        }
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          __align__(16) float x0_bundle[4];
          take_some(x0_bundle, x0 + i1_first + i0 * n0, high - i1_first);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              s0_bundle[i1_k] = maximum(s0_bundle[i1_k], x0_bundle[i1_k]);
            }
          }
        }
        put_some(s0 + i1_first - low, s0_bundle, high - i1_first);
      }
      const int64_t i1_rest = i1_bundles ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        float reduce_max_1_total = -__int_as_float(0x7f800000);
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          reduce_max_1_total = maximum(reduce_max_1_total, x0[i1 + i0 * n0]);
        }
        s0[i1 - low] = reduce_max_1_total;
      }
    }
    {
      const int64_t i1_bundles = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += blockDim.x) {
        const int64_t i1_first = low + i1_bundle * 4;
        __align__(16) float s1_bundle[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const int64_t i1 = i1_first + i1_k;
          if (i1 < high) {
            s1_bundle[i1_k] = 0.0f;
          }
        }
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          __align__(16) float x0_bundle[4];
          take_some(x0_bundle, x0 + i1_first + i0 * n0, high - i1_first);
          __align__(16) float s0_bundle[4];
          take_some(s0_bundle, s0 + i1_first - low, high - i1_first);
          __align__(16) float y0_bundle[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const int64_t i1 = i1_first + i1_k;
            if (i1 < high) {
              const float exp_1 = expf(x0_bundle[i1_k] - s0_bundle[i1_k]);
              s1_bundle[i1_k] = s1_bundle[i1_k] + exp_1;
              y0_bundle[i1_k] = exp_1;
            }
          }
          put_some(y0 + i1_first + i0 * n0, y0_bundle, high - i1_first);
        }
        put_some(s1 + i1_first - low, s1_bundle, high - i1_first);
      }
      const int64_t i1_rest = i1_bundles ? high : low;
      for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
        float reduce_sum_1_total = 0.0f;
        #pragma unroll 4
        for (int64_t i0 = 0; i0 < n1; ++i0) {
          const float exp_1 = expf(x0[i1 + i0 * n0] - s0[i1 - low]);
          reduce_sum_1_total = reduce_sum_1_total + exp_1;
          y0[i1 + i0 * n0] = exp_1;
        }
        s1[i1 - low] = reduce_sum_1_total;
      }
    }
    for (int64_t i0 = 0; i0 < n1; ++i0) {
      {
        const int64_t i1_bundles = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
        for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += 2 * blockDim.x) {
          __align__(16) float y0_bundle_ahead[2][4];
          __align__(16) float s1_bundle_ahead[2][4];
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            const int64_t i1_first = low + i1_here * 4;
            if (i1_here < i1_bundles) take_some(y0_bundle_ahead[i1_turn], y0 + i1_first + i0 * n0, high - i1_first);
            if (i1_here < i1_bundles) take_some(s1_bundle_ahead[i1_turn], s1 + i1_first - low, high - i1_first);
          }
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            if (i1_here >= i1_bundles) break;
            const int64_t i1_first = low + i1_here * 4;
            float (&y0_bundle)[4] = y0_bundle_ahead[i1_turn];
            float (&s1_bundle)[4] = s1_bundle_ahead[i1_turn];
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              const int64_t i1 = i1_first + i1_k;
              if (i1 < high) {
                y0_bundle[i1_k] = y0_bundle[i1_k] / s1_bundle[i1_k];
              }
            }
            put_some(y0 + i1_first + i0 * n0, y0_bundle, high - i1_first);
          }
        }
        const int64_t i1_rest = i1_bundles ? high : low;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < high; i1 += blockDim.x) {
          y0[i1 + i0 * n0] = y0[i1 + i0 * n0] / s1[i1 - low];
        }
      }
    }
  }
}
