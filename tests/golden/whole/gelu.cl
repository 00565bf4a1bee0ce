__kernel void gelu(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, __local ulong2 *scratch, __local ulong2 *joined) {
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long low = tile * 8192;
    const long high = low + 8192 < n0 ? low + 8192 : n0;
    {
      const long i0_vectors = (high - low + 7) / 8;
      for (long i0_vector = get_local_id(0); i0_vector < i0_vectors; i0_vector += get_local_size(0)) {
        const long i0_first = low + i0_vector * 8;
        const long i0_left = high - i0_first;
        const float8 x0_vector = take_global_float8(x0 + i0_first, i0_left);
        const float8 x0_0 = x0_vector;
        put_global_float8(y0 + i0_first, x0_0 * 0.5f * (erf(x0_0 * 0.70710677f) + 1.0f), i0_left);
      }
    }
  }
}
