extern "C" __global__ void layer_norm_last(const float *__restrict__ x0, const float *__restrict__ x1, const float *__restrict__ x2, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2, const int64_t n3) {
  for (int64_t tile = blockIdx.x; tile < n3; tile += gridDim.x) {
    const int64_t i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (int64_t i0 = tile * n1 + threadIdx.y; i0 < i0_end; i0 += blockDim.y) {
      float reduce_mean_1_lanes = 0.0f;
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
              const float reduce_mean_1_term = x0_bundle[i1_k];
              reduce_mean_1_lanes = reduce_mean_1_lanes + reduce_mean_1_term;
            }
          }
        }
        const int64_t i1_rest = i1_bundles * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          const float reduce_mean_1_term = x0[i0 * n2 + i1];
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
      const float reduce_mean_1_row = reduce_mean_1 / convert<float>(n2);
      float reduce_mean_2_lanes = 0.0f;
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
              const float sub_1 = x0_bundle[i1_k] - reduce_mean_1_row;
              const float reduce_mean_2_term = sub_1 * sub_1;
              reduce_mean_2_lanes = reduce_mean_2_lanes + reduce_mean_2_term;
            }
          }
        }
        const int64_t i1_rest = i1_bundles * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          const float sub_1 = x0[i0 * n2 + i1] - reduce_mean_1_row;
          const float reduce_mean_2_term = sub_1 * sub_1;
          reduce_mean_2_lanes = reduce_mean_2_lanes + reduce_mean_2_term;
        }
      }
      float reduce_mean_2 = reduce_mean_2_lanes;
      #pragma unroll
      for (unsigned o = 16; o; o >>= 1) {
        if (o >= blockDim.x) continue;
        const float other = __shfl_xor_sync(threads_of_row(), reduce_mean_2, o);
        const float a = threadIdx.x & o ? other : reduce_mean_2, b = threadIdx.x & o ? reduce_mean_2 : other;
        reduce_mean_2 = a + b;
      }
      const float reduce_mean_2_row = reduce_mean_2 / convert<float>(n2);
      const float add_1 = reduce_mean_2_row + 0.00001f;
      const float rsqrt_1 = rsqrtf(add_1);
      {
        const int64_t i1_bundles = aligned<4>(x0 + i0 * n2) && aligned<4>(x1) && aligned<4>(x2) && aligned<4>(y0 + i0 * n2) ? n2 / 4 : 0;
        for (int64_t i1_bundle = threadIdx.x; i1_bundle < i1_bundles; i1_bundle += blockDim.x) {
          const int64_t i1_first = i1_bundle * 4;
          __align__(16) float x0_bundle[4];
          take(x0_bundle, x0 + i0 * n2 + i1_first);
          __align__(16) float x1_bundle[4];
          take(x1_bundle, x1 + i1_first);
          __align__(16) float x2_bundle[4];
          take(x2_bundle, x2 + i1_first);
          __align__(16) float y0_bundle[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const float mul_3 = (x0_bundle[i1_k] - reduce_mean_1_row) * rsqrt_1 * x1_bundle[i1_k];
            y0_bundle[i1_k] = mul_3 + x2_bundle[i1_k];
          }
          put(y0 + i0 * n2 + i1_first, y0_bundle);
        }
        const int64_t i1_rest = i1_bundles * 4;
        for (int64_t i1 = i1_rest + threadIdx.x; i1 < n2; i1 += blockDim.x) {
          const float mul_3 = (x0[i0 * n2 + i1] - reduce_mean_1_row) * rsqrt_1 * x1[i1];
          y0[i0 * n2 + i1] = mul_3 + x2[i1];
        }
      }
    }
  }
}
