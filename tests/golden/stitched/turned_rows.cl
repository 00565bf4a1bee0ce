__kernel void turned_rows(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local uchar *scratch, __local void *joined) {
  __local float *const s0 = (__local float *)(scratch + 0);
  __local float *const s1 = (__local float *)(scratch + 256);
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long row_end = tile * 4 + 4 < n0 ? tile * 4 + 4 : n0;
    for (long row = tile * 4; row < row_end; ++row) {
      for (long col = get_local_id(0); col < 64; col += get_local_size(0)) {
        s0[col] = x0[row * 64 + col];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (long col = get_local_id(0); col < 64; col += get_local_size(0)) {
        s1[col] = s0[63 - col];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (long col = get_local_id(0); col < 64; col += get_local_size(0)) {
        y0[row * 64 + col] = s1[63 - col] + s0[col];
      }
    }
  }
}
