__kernel void softmax_first(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local uchar *scratch, __local void *joined) {
  __local float *const s0 = (__local float *)(scratch + 0);
  __local float *const s1 = (__local float *)(scratch + 2048);
  for (long tile = get_group_id(0); tile < n2; tile += get_num_groups(0)) {
    const long low = tile * 512;
    const long high = low + 512 < n0 ? low + 512 : n0;
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      s0[i1 - low] = -INFINITY;
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        s0[i1 - low] = maximum_float(s0[i1 - low], x0[i1 + i0 * n0]);
      }
    }
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      s1[i1 - low] = 0.0f;
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        const float exp_1 = exp(x0[i1 + i0 * n0] - s0[i1 - low]);
        s1[i1 - low] = s1[i1 - low] + exp_1;
        y0[i1 + i0 * n0] = exp_1;
      }
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        y0[i1 + i0 * n0] = y0[i1 + i0 * n0] / s1[i1 - low];
      }
    }
  }
}
