__kernel void phased_phase0(__global const float *restrict x0, __global const float *restrict y0, __global float *restrict y1, const long n0, const long n1, const long n2, const long n3, const long n4, __local uchar *scratch, __local void *joined) {
  __local float *const s0 = (__local float *)(scratch + 0);
  for (long tile = get_group_id(0); tile < n2; tile += get_num_groups(0)) {
    const long low = tile * 300;
    const long high = low + 300 < n0 ? low + 300 : n0;
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      s0[i1 - low] = 0.0f;
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        s0[i1 - low] = s0[i1 - low] + x0[i0 * n0 + i1];
      }
    }
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      y1[i1] = s0[i1 - low] / (float)(n1);
    }
  }
}
__kernel void phased_phase1(__global const float *restrict x0, __global float *restrict y0, __global const float *restrict y1, const long n0, const long n1, const long n2, const long n3, const long n4, __local uchar *scratch, __local void *joined) {
  for (long tile = get_group_id(0); tile < n4; tile += get_num_groups(0)) {
    const long i0_end = tile * n3 + n3 < n1 ? tile * n3 + n3 : n1;
    for (long i0 = tile * n3; i0 < i0_end; ++i0) {
      float reduce_max_1_lanes = -INFINITY;
      for (long i1 = get_local_id(0); i1 < n0; i1 += get_local_size(0)) {
        const float reduce_max_1_term = fabs(x0[i0 * n0 + i1] - y1[i1]);
        reduce_max_1_lanes = maximum_float(reduce_max_1_lanes, reduce_max_1_term);
      }
      __local float *reduce_max_1_all = (__local float *)joined;
      reduce_max_1_all[get_local_id(0)] = reduce_max_1_lanes;
      for (uint o = get_local_size(0) / 2; o; o >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < o) {
          const float a = reduce_max_1_all[get_local_id(0)];
          const float b = reduce_max_1_all[get_local_id(0) + o];
          reduce_max_1_all[get_local_id(0)] = maximum_float(a, b);
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const float reduce_max_1 = reduce_max_1_all[0];
      barrier(CLK_LOCAL_MEM_FENCE);
      for (long i1 = get_local_id(0); i1 < n0; i1 += get_local_size(0)) {
        y0[i0 * n0 + i1] = (x0[i0 * n0 + i1] - y1[i1]) / reduce_max_1;
      }
    }
  }
}
