extern "C" __global__ void gelu(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1) {
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    {
      const int64_t i0_bundles = aligned<4>(x0 + low) && aligned<4>(y0 + low) ? (high - low) / 4 : 0;
      for (int64_t i0_bundle = threadIdx.x; i0_bundle < i0_bundles; i0_bundle += 2 * blockDim.x) {
        __align__(16) float x0_bundle_ahead[2][4];
        #pragma unroll
        for (int i0_turn = 0; i0_turn < 2; ++i0_turn) {
          const int64_t i0_here = i0_bundle + i0_turn * blockDim.x;
          const int64_t i0_first = low + i0_here * 4;
          if (i0_here < i0_bundles) take(x0_bundle_ahead[i0_turn], x0 + i0_first);
        }
        #pragma unroll
        for (int i0_turn = 0; i0_turn < 2; ++i0_turn) {
          const int64_t i0_here = i0_bundle + i0_turn * blockDim.x;
          if (i0_here >= i0_bundles) break;
          const int64_t i0_first = low + i0_here * 4;
          float (&x0_bundle)[4] = x0_bundle_ahead[i0_turn];
          __align__(16) float y0_bundle[4];
          #pragma unroll
          for (int i0_k = 0; i0_k < 4; ++i0_k) {
            const float x0_0 = x0_bundle[i0_k];
            y0_bundle[i0_k] = x0_0 * 0.5f * (erf_near(x0_0 * 0.70710677f) + 1.0f);
          }
          put(y0 + i0_first, y0_bundle);
        }
      }
      const int64_t i0_rest = low + i0_bundles * 4;
      for (int64_t i0 = i0_rest + threadIdx.x; i0 < high; i0 += blockDim.x) {
        const float x0_0 = x0[i0];
        y0[i0] = x0_0 * 0.5f * (erf_near(x0_0 * 0.70710677f) + 1.0f);
      }
    }
  }
}
