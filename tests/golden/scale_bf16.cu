extern "C" __global__ void scale_bf16(const uint16_t *__restrict__ x0, const uint8_t *__restrict__ x1, uint16_t *__restrict__ y0, const int64_t n0, const int64_t n1) {
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    const int64_t low = tile * 8192;
    const int64_t high = low + 8192 < n0 ? low + 8192 : n0;
    for (int64_t i0 = low + threadIdx.x; i0 < high; i0 += blockDim.x) {
      y0[i0] = narrow_bf16(rounded_bf16(widen_bf16(x0[i0]) * 3.0f) + convert<float>(x1[i0]));
    }
  }
}
