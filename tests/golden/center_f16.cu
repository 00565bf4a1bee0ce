extern "C" __global__ void center_f16(const uint16_t *__restrict__ x0, uint16_t *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2, const int64_t n3) {
  for (int64_t tile = blockIdx.x; tile < n3; tile += gridDim.x) {
    const int64_t i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (int64_t i0 = tile * n1 + threadIdx.y; i0 < i0_end; i0 += blockDim.y) {
      float reduce_mean_1_lanes = 0.0f;
      {
        const int64_t i1_bundles = n2 % 8 == 0 ? n2 / 8 : 0;
        for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += 2 * blockDim.x) {
          __align__(16) uint16_t x0_bundle_ahead[2][8];
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            const int64_t i1_first = i1_here * 8;
            if (i1_here < i1_bundles) take_any(x0_bundle_ahead[i1_turn], x0 + i0 * n2 + i1_first);
          }
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            if (i1_here >= i1_bundles) break;
            const int64_t i1_first = i1_here * 8;
            uint16_t (&x0_bundle)[8] = x0_bundle_ahead[i1_turn];
            #pragma unroll
            for (int i1_k = 0; i1_k < 8; ++i1_k) {
              const float reduce_mean_1_term = widen_f16(x0_bundle[i1_k]);
              reduce_mean_1_lanes = reduce_mean_1_lanes + reduce_mean_1_term;
            }
          }
        }
        const int64_t i1_rest = i1_bundles * 8;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          const float reduce_mean_1_term = widen_f16(x0[i0 * n2 + i1]);
          reduce_mean_1_lanes = reduce_mean_1_lanes + reduce_mean_1_term;
        }
      }
      float reduce_mean_1 = reduce_mean_1_lanes;
      #pragma unroll
      for (unsigned o = 16; o; o >>= 1) {
        if (o >= blockDim.x) continue;
        const float other = __shfl_xor_sync(threads_of_row(), reduce_mean_1, o);
        const float a = threadIdx.x & o ? other : reduce_mean_1, b = threadIdx.x & o ? reduce_mean_1 : other;
        reduce_mean_1 = a + b;
      }
      const float reduce_mean_1_row = rounded_f16(reduce_mean_1 / convert<float>(n2));
      {
        const int64_t i1_bundles = aligned<8>(x0 + i0 * n2) && aligned<8>(y0 + i0 * n2) ? n2 / 8 : 0;
        for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += 2 * blockDim.x) {
          __align__(16) uint16_t x0_bundle_ahead[2][8];
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            const int64_t i1_first = i1_here * 8;
            if (i1_here < i1_bundles) take(x0_bundle_ahead[i1_turn], x0 + i0 * n2 + i1_first);
          }
          #pragma unroll
          for (int i1_turn = 0; i1_turn < 2; ++i1_turn) {
            const int64_t i1_here = i1_bundle + i1_turn * blockDim.x;
            if (i1_here >= i1_bundles) break;
            const int64_t i1_first = i1_here * 8;
            uint16_t (&x0_bundle)[8] = x0_bundle_ahead[i1_turn];
            __align__(16) uint16_t y0_bundle[8];
            #pragma unroll
            for (int i1_k = 0; i1_k < 8; ++i1_k) {
              y0_bundle[i1_k] = narrow_f16(widen_f16(x0_bundle[i1_k]) - reduce_mean_1_row);
            }
            put(y0 + i0 * n2 + i1_first, y0_bundle);
          }
        }
        const int64_t i1_rest = i1_bundles * 8;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          y0[i0 * n2 + i1] = narrow_f16(widen_f16(x0[i0 * n2 + i1]) - reduce_mean_1_row);
        }
      }
    }
  }
}
