__kernel void layer_norm_first(__global const float *restrict x0, __global const float *restrict x1, __global const float *restrict x2, __global float *restrict y0, const long n0, const long n1, const long n2, __local uchar *scratch, __local void *joined) {
  __local float *const s0 = (__local float *)(scratch + 0);
  __local float *const s1 = (__local float *)(scratch + 2048);
  __local float *const s2 = (__local float *)(scratch + 4096);
  __local float *const s3 = (__local float *)(scratch + 6144);
  for (long tile = get_group_id(0); tile < n2; tile += get_num_groups(0)) {
    const long low = tile * 512;
    const long high = low + 512 < n0 ? low + 512 : n0;
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      s0[i1 - low] = 0.0f;
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        s0[i1 - low] = s0[i1 - low] + x0[i1 + i0 * n0];
      }
    }
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      s1[i1 - low] = s0[i1 - low] / (float)(n1);
    }
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      s2[i1 - low] = 0.0f;
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        const float sub_1 = x0[i1 + i0 * n0] - s1[i1 - low];
        s2[i1 - low] = s2[i1 - low] + sub_1 * sub_1;
      }
    }
    for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
      s3[i1 - low] = rsqrt(s2[i1 - low] / (float)(n1) + 0.00001f);
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      const float x1_5 = x1[i0];
      const float x2_7 = x2[i0];
      for (long i1 = low + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        const float mul_2 = (x0[i1 + i0 * n0] - s1[i1 - low]) * s3[i1 - low];
        y0[i1 + i0 * n0] = mul_2 * x1_5 + x2_7;
      }
    }
  }
}
