__kernel void short_rows(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  __local float *const s1 = (__local float *)((__local uchar *)scratch + 128);
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long first = tile * 32;
    const long last = tile * 32 + 32 < n0 ? tile * 32 + 32 : n0;
    for (long row = first; row < last; ++row) {
      float total_lanes = 0.0f;
      {
        const long col_vectors = n2 % 4 == 0 ? n2 / 4 : 0;
        for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
          const long col_first = col_vector * 4;
          float x0_vector[4];
          vstore4(vload4(0, x0 + row * n2 + col_first), 0, x0_vector);
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            const float total_term = x0_vector[col_k];
            total_lanes = total_lanes + total_term;
          }
        }
        const long col_rest = col_vectors * 4;
        for (long col = col_rest + get_local_id(0); col < n2; col += get_local_size(0)) {
          const float total_term = x0[row * n2 + col];
          total_lanes = total_lanes + total_term;
        }
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
    {
      const long row_vectors = (size_t)(s0) % sizeof(float4) == 0 && (size_t)(s1) % sizeof(float4) == 0 ? (last - first) / 4 : 0;
      for (long row_vector = get_local_id(0); row_vector < row_vectors; row_vector += get_local_size(0)) {
        const long row_first = first + row_vector * 4;
        float s0_vector[4];
        vstore4(*(__local const float4 *)(s0 + row_first - first), 0, s0_vector);
        float s1_vector[4];
        #pragma unroll
        for (int row_k = 0; row_k < 4; ++row_k) {
          s1_vector[row_k] = 1.0f / s0_vector[row_k];
        }
        *(__local float4 *)(s1 + row_first - first) = vload4(0, s1_vector);
      }
      const long row_rest = first + row_vectors * 4;
      for (long row = row_rest + get_local_id(0); row < last; row += get_local_size(0)) {
        s1[row - first] = 1.0f / s0[row - first];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long row = first; row < last; ++row) {
      {
        const long col_vectors = (size_t)(x0 + row * n2) % sizeof(float4) == 0 && (size_t)(y0 + row * n2) % sizeof(float4) == 0 ? n2 / 4 : 0;
        for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
          const long col_first = col_vector * 4;
          float x0_vector[4];
          vstore4(*(__global const float4 *)(x0 + row * n2 + col_first), 0, x0_vector);
          float y0_vector[4];
          #pragma unroll
          for (int col_k = 0; col_k < 4; ++col_k) {
            y0_vector[col_k] = x0_vector[col_k] * s1[row - first];
          }
          *(__global float4 *)(y0 + row * n2 + col_first) = vload4(0, y0_vector);
        }
        const long col_rest = col_vectors * 4;
        for (long col = col_rest + get_local_id(0); col < n2; col += get_local_size(0)) {
          y0[row * n2 + col] = x0[row * n2 + col] * s1[row - first];
        }
      }
    }
  }
}
