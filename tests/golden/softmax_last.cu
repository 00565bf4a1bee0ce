extern "C" __global__ void softmax_last(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2, const int64_t n3) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0 + threadIdx.y * (1216));
  for (int64_t tile = blockIdx.x; tile < n3; tile += gridDim.x) {
    const int64_t i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (int64_t i0 = tile * n1 + threadIdx.y; i0 < i0_end; i0 += blockDim.y) {
      float reduce_max_1_lanes = -__int_as_float(0x7f800000);
      {
        const int64_t i1_bundles = n2 % 4 == 0 ? n2 / 4 : 0;
        for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += 2 * blockDim.x) {
          __align__(16) float x0_bundle_ahead[2][4];
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            const int64_t i1_first = i1_here * 4;
            if (i1_here < i1_bundles) take_any(x0_bundle_ahead[i1_turn], x0 + i0 * n2 + i1_first);
          }
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            if (i1_here >= i1_bundles) break;
            const int64_t i1_first = i1_here * 4;
            float (&x0_bundle)[4] = x0_bundle_ahead[i1_turn];
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              const float reduce_max_1_term = x0_bundle[i1_k];
              reduce_max_1_lanes = fmaxf(reduce_max_1_lanes, reduce_max_1_term);
            }
          }
        }
        const int64_t i1_rest = i1_bundles * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          const float reduce_max_1_term = x0[i0 * n2 + i1];
          reduce_max_1_lanes = fmaxf(reduce_max_1_lanes, reduce_max_1_term);
        }
      }
      float reduce_max_1 = reduce_max_1_lanes;
      #pragma unroll
      for (unsigned o = 16; o; o >>= 1) {
        if (o >= blockDim.x) continue;
        const float other = __shfl_xor_sync(threads_of_row(), reduce_max_1, o);
        const float a = threadIdx.x & o ? other : reduce_max_1, b = threadIdx.x & o ? reduce_max_1 : other;
        reduce_max_1 = fmaxf(a, b);
      }
      float reduce_sum_1_lanes = 0.0f;
      {
        const int64_t i1_bundles = n2 % 4 == 0 ? n2 / 4 : 0;
        for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += 2 * blockDim.x) {
          __align__(16) float x0_bundle_ahead[2][4];
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            const int64_t i1_first = i1_here * 4;
            if (i1_here < i1_bundles) take_any(x0_bundle_ahead[i1_turn], x0 + i0 * n2 + i1_first);
          }
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            if (i1_here >= i1_bundles) break;
            const int64_t i1_first = i1_here * 4;
            float (&x0_bundle)[4] = x0_bundle_ahead[i1_turn];
            __align__(16) float s0_bundle[4];
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              const float exp_1 = expf(x0_bundle[i1_k] - reduce_max_1);
              reduce_sum_1_lanes = reduce_sum_1_lanes + exp_1;
              s0_bundle[i1_k] = exp_1;
            }
            put_any(s0 + i1_first, s0_bundle);
          }
        }
        const int64_t i1_rest = i1_bundles * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          const float exp_1 = expf(x0[i0 * n2 + i1] - reduce_max_1);
          reduce_sum_1_lanes = reduce_sum_1_lanes + exp_1;
          s0[i1] = exp_1;
        }
      }
      float reduce_sum_1 = reduce_sum_1_lanes;
      #pragma unroll
      for (unsigned o = 16; o; o >>= 1) {
        if (o >= blockDim.x) continue;
        const float other = __shfl_xor_sync(threads_of_row(), reduce_sum_1, o);
        const float a = threadIdx.x & o ? other : reduce_sum_1, b = threadIdx.x & o ? reduce_sum_1 : other;
        reduce_sum_1 = a + b;
      }
      const divisor by0(reduce_sum_1);
      {
        const int64_t i1_bundles = n2 % 4 == 0 ? n2 / 4 : 0;
        for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += 2 * blockDim.x) {
          __align__(16) float s0_bundle_ahead[2][4];
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            const int64_t i1_first = i1_here * 4;
            if (i1_here < i1_bundles) take_any(s0_bundle_ahead[i1_turn], s0 + i1_first);
          }
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            if (i1_here >= i1_bundles) break;
            const int64_t i1_first = i1_here * 4;
            float (&s0_bundle)[4] = s0_bundle_ahead[i1_turn];
            __align__(16) float y0_bundle[4];
            __align__(16) float i1_quotient[4];
            over(i1_quotient, s0_bundle, by0);
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              y0_bundle[i1_k] = i1_quotient[i1_k];
            }
            put_any(y0 + i0 * n2 + i1_first, y0_bundle);
          }
        }
        const int64_t i1_rest = i1_bundles * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          y0[i0 * n2 + i1] = over(s0[i1], by0);
        }
      }
    }
  }
}
