__kernel void gelu(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, __local uchar *scratch, __local void *joined) {
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long low = tile * 8192;
    const long high = low + 8192 < n0 ? low + 8192 : n0;
    for (long i0 = low + get_local_id(0); i0 < high; i0 += get_local_size(0)) {
      const float x0_0 = x0[i0];
      y0[i0] = x0_0 * 0.5f * (erf(x0_0 * 0.70710677f) + 1.0f);
    }
  }
}
