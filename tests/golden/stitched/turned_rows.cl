__kernel void turned_rows(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  __local float *const s1 = (__local float *)((__local uchar *)scratch + 256);
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long row_end = tile * 4 + 4 < n0 ? tile * 4 + 4 : n0;
    for (long row = tile * 4; row < row_end; ++row) {
      {
        const long col_vectors = 64 / 4;
        for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
          const long col_first = col_vector * 4;
          float x0_vector[4];
          vstore4(vload4(0, x0 + row * 64 + col_first), 0, x0_vector);
          float s0_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            s0_vector[col_k] = x0_vector[col_k];
          }
          vstore4(vload4(0, s0_vector), 0, s0 + col_first);
        }
        const long col_rest = col_vectors * 4;
        for (long col = col_rest + get_local_id(0); col < 64; col += get_local_size(0)) {
          s0[col] = x0[row * 64 + col];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      {
        const long col_vectors = (size_t)(s1) % sizeof(float4) == 0 ? 64 / 4 : 0;
        for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
          const long col_first = col_vector * 4;
          float s1_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            const long col = col_first + col_k;
            s1_vector[col_k] = s0[63 - col];
          }
          *(__local float4 *)(s1 + col_first) = vload4(0, s1_vector);
        }
        const long col_rest = col_vectors * 4;
        for (long col = col_rest + get_local_id(0); col < 64; col += get_local_size(0)) {
          s1[col] = s0[63 - col];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      {
        const long col_vectors = 64 / 4;
        for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
          const long col_first = col_vector * 4;
          float s0_vector[4];
          vstore4(vload4(0, s0 + col_first), 0, s0_vector);
          float y0_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            const long col = col_first + col_k;
            y0_vector[col_k] = s1[63 - col] + s0_vector[col_k];
          }
          vstore4(vload4(0, y0_vector), 0, y0 + row * 64 + col_first);
        }
        const long col_rest = col_vectors * 4;
        for (long col = col_rest + get_local_id(0); col < 64; col += get_local_size(0)) {
          y0[row * 64 + col] = s1[63 - col] + s0[col];
        }
      }
    }
  }
}
