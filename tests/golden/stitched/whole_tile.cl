__kernel void whole_tile(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local uchar *scratch, __local void *joined) {
  __local float *const s0 = (__local float *)(scratch + 0);
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    float most_lanes = -INFINITY;
    for (long item = get_local_id(0); item < 1000; item += get_local_size(0)) {
      const float most_term = x0[tile * 1000 + item];
      most_lanes = maximum_float(most_lanes, most_term);
    }
    __local float *most_all = (__local float *)joined;
    most_all[get_local_id(0)] = most_lanes;
    for (uint o = get_local_size(0) / 2; o; o >>= 1) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (get_local_id(0) < o) {
        const float a = most_all[get_local_id(0)];
        const float b = most_all[get_local_id(0) + o];
        most_all[get_local_id(0)] = maximum_float(a, b);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float most = most_all[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) s0[0] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long item = get_local_id(0); item < 1000; item += get_local_size(0)) {
      y0[tile * 1000 + item] = x0[tile * 1000 + item] / s0[0];
    }
  }
}
