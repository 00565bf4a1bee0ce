__kernel void gelu(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, __local ulong2 *scratch, __local ulong2 *joined) {
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long low = tile * 8192;
    const long high = low + 8192 < n0 ? low + 8192 : n0;
    {
      const long i0_vectors = (size_t)(x0 + low) % sizeof(float4) == 0 && (size_t)(y0 + low) % sizeof(float4) == 0 ? (high - low) / 4 : 0;
      for (long i0_vector = get_local_id(0); i0_vector < i0_vectors; i0_vector += get_local_size(0)) {
        const long i0_first = low + i0_vector * 4;
        float x0_vector[4];
        vstore4(*(__global const float4 *)(x0 + i0_first), 0, x0_vector);
        float y0_vector[4];
        #pragma unroll
        for (int i0_k = 0; i0_k < 4; ++i0_k) {
          const float x0_0 = x0_vector[i0_k];
          y0_vector[i0_k] = x0_0 * 0.5f * (erf(x0_0 * 0.70710677f) + 1.0f);
        }
        *(__global float4 *)(y0 + i0_first) = vload4(0, y0_vector);
      }
      const long i0_rest = low + i0_vectors * 4;
      for (long i0 = i0_rest + get_local_id(0); i0 < high; i0 += get_local_size(0)) {
        const float x0_0 = x0[i0];
        y0[i0] = x0_0 * 0.5f * (erf(x0_0 * 0.70710677f) + 1.0f);
      }
    }
  }
}
