extern "C" __global__ void whole_tile(const float *__restrict__ x0, float *__restrict__ y0, const int64_t n0, const int64_t n1, const int64_t n2) {
  extern __shared__ __align__(64) unsigned char scratch[];
  float *const s0 = (float *)(scratch + 0);
  for (int64_t tile = blockIdx.x; tile < n1; tile += gridDim.x) {
    float most_lanes = -__int_as_float(0x7f800000);
    {
      const int64_t item_vectors = 1000 / 4;
      for (int64_t item_vector = threadIdx.x; item_vector < item_vectors; item_vector += 2 * blockDim.x) {
        __align__(16) float x0_vector_ahead[2][4];
        #pragma unroll
        for (int item_step = 0; item_step < 2; ++item_step) {
          const int64_t item_here = item_vector + item_step * blockDim.x;
          const int64_t item_first = item_here * 4;
          if (item_here < item_vectors) take_any(x0_vector_ahead[item_step], x0 + tile * 1000 + item_first);
        }
        #pragma unroll
        for (int item_step = 0; item_step < 2; ++item_step) {
          const int64_t item_here = item_vector + item_step * blockDim.x;
          if (item_here >= item_vectors) break;
          const int64_t item_first = item_here * 4;
          float (&x0_vector)[4] = x0_vector_ahead[item_step];
          #pragma unroll
          for (int item_k = 0; item_k < 4; ++item_k) {
            const float most_term = x0_vector[item_k];
            most_lanes = maximum(most_lanes, most_term);
          }
        }
      }
      const int64_t item_rest = item_vectors * 4;
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
      const int64_t item_vectors = aligned<4>(x0 + tile * 1000) && aligned<4>(y0 + tile * 1000) ? 1000 / 4 : 0;
      for (int64_t item_vector = threadIdx.x; item_vector < item_vectors; item_vector += 2 * blockDim.x) {
        __align__(16) float x0_vector_ahead[2][4];
        #pragma unroll
        for (int item_step = 0; item_step < 2; ++item_step) {
          const int64_t item_here = item_vector + item_step * blockDim.x;
          const int64_t item_first = item_here * 4;
          if (item_here < item_vectors) take(x0_vector_ahead[item_step], x0 + tile * 1000 + item_first);
        }
        #pragma unroll
        for (int item_step = 0; item_step < 2; ++item_step) {
          const int64_t item_here = item_vector + item_step * blockDim.x;
          if (item_here >= item_vectors) break;
          const int64_t item_first = item_here * 4;
          float (&x0_vector)[4] = x0_vector_ahead[item_step];
          __align__(16) float y0_vector[4];
          #pragma unroll
          for (int item_k = 0; item_k < 4; ++item_k) {
            y0_vector[item_k] = x0_vector[item_k] / s0[0];
          }
          put(y0 + tile * 1000 + item_first, y0_vector);
        }
      }
      const int64_t item_rest = item_vectors * 4;
      for (int64_t item = item_rest + threadIdx.x; item < 1000; item += blockDim.x) {
        y0[tile * 1000 + item] = x0[tile * 1000 + item] / s0[0];
      }
    }
  }
}
