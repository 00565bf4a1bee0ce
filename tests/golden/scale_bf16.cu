extern "C" __global__ void scale_bf16(const uint16_t *__restrict__ x0, const uint8_t *__restrict__ x1, uint16_t *__restrict__ y0, const int64_t n0, const int64_t n1) {
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    {
      const int64_t i0_bundles = aligned<16>(x0 + low) && aligned<16>(x1 + low) && aligned<16>(y0 + low) ? (high - low) / 16 : 0;
      for (int64_t i0_bundle = threadIdx.x; i0_bundle < i0_bundles; i0_bundle += blockDim.x) {
        const int64_t i0_first = low + i0_bundle * 16;
        __align__(16) uint16_t x0_bundle[16];
        take(x0_bundle, x0 + i0_first);
        __align__(16) uint8_t x1_bundle[16];
        take(x1_bundle, x1 + i0_first);
        __align__(16) uint16_t y0_bundle[16];
        #pragma unroll
        for (int i0_k = 0; i0_k < 16; ++i0_k) {
          y0_bundle[i0_k] = narrow_bf16(rounded_bf16(widen_bf16(x0_bundle[i0_k]) * 3.0f) + convert<float>(x1_bundle[i0_k]));
        }
        put(y0 + i0_first, y0_bundle);
      }
      const int64_t i0_rest = low + i0_bundles * 16;
      for (int64_t i0 = i0_rest + threadIdx.x; i0 < high; i0 += blockDim.x) {
        y0[i0] = narrow_bf16(rounded_bf16(widen_bf16(x0[i0]) * 3.0f) + convert<float>(x1[i0]));
      }
    }
  }
}
