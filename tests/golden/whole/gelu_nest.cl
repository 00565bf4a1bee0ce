__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void gelu(__global const float *restrict x0, __global const float *restrict x1, __global float *restrict y0, const long n0_arg) {
  const int n0 = (int)n0_arg;
  float x0_r[8];
  float y0_v0[4];
  const int block = (int)get_group_id(0);
  const int tx = (int)get_local_id(0);
  const int first = block * 1024;
  if (first + 1024 <= n0 & (((ulong)x0 | (ulong)y0) & 15) == 0) {
    #pragma unroll
    for (int u = 0; u < 2; ++u) {
      vstore4(*(__global const float4 *)(x0 + (tx * 4 + first) + u * 512), 0, x0_r + u * 4);
    }
    #pragma unroll
    for (int u = 0; u < 2; ++u) {
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float x1_1 = x1[0];
        const float add_1 = x0_r[u * 4 + k] + x1_1;
        y0_v0[k] = add_1 * 0.5f * (erf(add_1 * 0.70710677f) + 1.0f);
      }
      *(__global float4 *)(y0 + (tx * 4 + first) + u * 512) = vload4(0, y0_v0);
    }
  } else {
    const int end = first + 1024 < n0 ? first + 1024 : n0;
    #pragma unroll 1
    for (int point = first + tx; point < end; point += 128) {
      const float x1_1 = x1[0];
      const float add_1 = x0[point] + x1_1;
      y0[point] = add_1 * 0.5f * (erf(add_1 * 0.70710677f) + 1.0f);
    }
  }
}
