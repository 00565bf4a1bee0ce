__kernel void short_rows(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local uchar *scratch, __local void *joined) {
  __local float *const s0 = (__local float *)(scratch + 0);
  __local float *const s1 = (__local float *)(scratch + 128);
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long first = tile * 32;
    const long last = tile * 32 + 32 < n0 ? tile * 32 + 32 : n0;
    for (long row = first; row < last; ++row) {
      float total_lanes = 0.0f;
      for (long col = get_local_id(0); col < n2; col += get_local_size(0)) {
        const float total_term = x0[row * n2 + col];
        total_lanes = total_lanes + total_term;
      }
      __local float *total_all = (__local float *)joined;
      total_all[get_local_id(0)] = total_lanes;
      for (uint o = get_local_size(0) / 2; o; o >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < o) {
          const float a = total_all[get_local_id(0)];
          const float b = total_all[get_local_id(0) + o];
          total_all[get_local_id(0)] = a + b;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const float total = total_all[0];
      barrier(CLK_LOCAL_MEM_FENCE);
      if (get_local_id(0) == 0) s0[row - first] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long row = first + get_local_id(0); row < last; row += get_local_size(0)) {
      s1[row - first] = 1.0f / s0[row - first];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long row = first; row < last; ++row) {
      for (long col = get_local_id(0); col < n2; col += get_local_size(0)) {
        y0[row * n2 + col] = x0[row * n2 + col] * s1[row - first];
      }
    }
  }
}
