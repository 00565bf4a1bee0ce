extern "C" __global__ void whole_tile(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    float most_lanes = -__int_as_float(0x7f800000);
    {
      const int64_t item_bundles = 1000 / 4;
      for (int64_t item_bundle = threadIdx.x; item_bundle < item_bundles; item_bundle += 2 * blockDim.x) {
        __align__(16) float x0_bundle_ahead[2][4];
        #pragma unroll
        for (int item_turn = 0; item_turn < 2; ++item_turn) {
          const int64_t item_here = item_bundle + item_turn * blockDim.x;
          const int64_t item_first = item_here * 4;
          if (item_here < item_bundles) take_any(x0_bundle_ahead[item_turn], x0 + tile * 1000 + item_first);
        }
        #pragma unroll
        for (int item_turn = 0; item_turn < 2; ++item_turn) {
          const int64_t item_here = item_bundle + item_turn * blockDim.x;
          if (item_here >= item_bundles) break;
          const int64_t item_first = item_here * 4;
          float (&x0_bundle)[4] = x0_bundle_ahead[item_turn];
          #pragma unroll
          for (int item_k = 0; item_k < 4; ++item_k) {
            const float most_term = x0_bundle[item_k];
            most_lanes = maximum(most_lanes, most_term);
          }
        }
      }
      const int64_t item_rest = item_bundles * 4;
      for (int64_t item = item_rest + threadIdx.x; item < 1000; item += blockDim.x) {
        const float most_term = x0[tile * 1000 + item];
        most_lanes = maximum(most_lanes, most_term);
      }
    }
    __shared__ float most_all[32];
    const unsigned most_thread = threadIdx.y * blockDim.x + threadIdx.x;
    float most = most_lanes;
    for (int o = 16; o; o >>= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, most, o);
      const float a = most_thread & o ? other : most, b = most_thread & o ? most : other;
      most = maximum(a, b);
    }
    if (most_thread % 32 == 0) most_all[most_thread / 32] = most;
    __syncthreads();
    most = most_all[0];
    for (unsigned w = 1; w < blockDim.x * blockDim.y / 32; ++w) {
      const float a = most, b = most_all[w];
      most = maximum(a, b);
    }
    __syncthreads();
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) s0[0] = most;
    __syncthreads();
    {
      const int64_t item_bundles = aligned<4>(x0 + tile * 1000) && aligned<4>(y0 + tile * 1000) ? 1000 / 4 : 0;
      for (int64_t item_bundle = threadIdx.x; item_bundle < item_bundles; item_bundle += 2 * blockDim.x) {
        __align__(16) float x0_bundle_ahead[2][4];
        #pragma unroll
        for (int item_turn = 0; item_turn < 2; ++item_turn) {
          const int64_t item_here = item_bundle + item_turn * blockDim.x;
          const int64_t item_first = item_here * 4;
          if (item_here < item_bundles) take(x0_bundle_ahead[item_turn], x0 + tile * 1000 + item_first);
        }
        #pragma unroll
        for (int item_turn = 0; item_turn < 2; ++item_turn) {
          const int64_t item_here = item_bundle + item_turn * blockDim.x;
          if (item_here >= item_bundles) break;
          const int64_t item_first = item_here * 4;
          float (&x0_bundle)[4] = x0_bundle_ahead[item_turn];
          __align__(16) float y0_bundle[4];
          #pragma unroll
          for (int item_k = 0; item_k < 4; ++item_k) {
            y0_bundle[item_k] = x0_bundle[item_k] / s0[0];
          }
          put(y0 + tile * 1000 + item_first, y0_bundle);
        }
      }
      const int64_t item_rest = item_bundles * 4;
      for (int64_t item = item_rest + threadIdx.x; item < 1000; item += blockDim.x) {
        y0[tile * 1000 + item] = x0[tile * 1000 + item] / s0[0];
      }
    }
  }
}
