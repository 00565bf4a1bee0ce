__kernel void softmax_dot(__global const float *restrict x0, __global const float *restrict x1, __global float *restrict y0, const long n0, const long n1, const long n2, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  __local float *const s1 = (__local float *)((__local uchar *)scratch + 2048);
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    {
      const long row_end = tile * 8 + 8 < n0 ? tile * 8 + 8 : n0;
      for (long row = tile * 8; row < row_end; ++row) {
        float most_lanes = -INFINITY;
        {
          const long col_vectors = 64 / 4;
          for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
            const long col_first = col_vector * 4;
            float x0_vector[4];
            vstore4(vload4(0, x0 + row * 64 + col_first), 0, x0_vector);
            #pragma unroll
            for (int col_k = 0; col_k < 4; ++col_k) {
              const float most_term = x0_vector[col_k];
              most_lanes = maximum_float(most_lanes, most_term);
            }
          }
          const long col_rest = col_vectors * 4;
          for (long col = col_rest + get_local_id(0); col < 64; col += get_local_size(0)) {
            const float most_term = x0[row * 64 + col];
            most_lanes = maximum_float(most_lanes, most_term);
          }
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
        float total_lanes = 0.0f;
        {
          const long col_vectors = 64 / 4;
          for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
            const long col_first = col_vector * 4;
            float x0_vector[4];
            vstore4(vload4(0, x0 + row * 64 + col_first), 0, x0_vector);
            float s0_vector[4];
            #pragma unroll
            for (int col_k = 0; col_k < 4; ++col_k) {
              const float e = exp(x0_vector[col_k] - most);
              s0_vector[col_k] = e;
              total_lanes = total_lanes + e;
            }
            vstore4(vload4(0, s0_vector), 0, s0 + (row - tile * 8) * 64 + col_first);
          }
          const long col_rest = col_vectors * 4;
          for (long col = col_rest + get_local_id(0); col < 64; col += get_local_size(0)) {
            const float e = exp(x0[row * 64 + col] - most);
            s0[(row - tile * 8) * 64 + col] = e;
            total_lanes = total_lanes + e;
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
        {
          const long col_vectors = 64 / 4;
          for (long col_vector = get_local_id(0); col_vector < col_vectors; col_vector += get_local_size(0)) {
            const long col_first = col_vector * 4;
            float s0_vector[4];
            vstore4(vload4(0, s0 + (row - tile * 8) * 64 + col_first), 0, s0_vector);
            #pragma unroll
            for (int col_k = 0; col_k < 4; ++col_k) {
              s0_vector[col_k] = s0_vector[col_k] / total;
            }
            vstore4(vload4(0, s0_vector), 0, s0 + (row - tile * 8) * 64 + col_first);
          }
          const long col_rest = col_vectors * 4;
          for (long col = col_rest + get_local_id(0); col < 64; col += get_local_size(0)) {
            s0[(row - tile * 8) * 64 + col] = s0[(row - tile * 8) * 64 + col] / total;
          }
        }
      }
    }
    {
      barrier(CLK_LOCAL_MEM_FENCE);
      {
        for (long dot_block = get_local_id(0); dot_block < 4 * 8; dot_block += get_local_size(0)) {
          const long dot_i0 = dot_block / 8;
          const long dot_i1 = dot_i0 + 4;
          const long dot_j0 = dot_block % 8;
          const long dot_j1 = dot_j0 + 8;
          float dot_00 = 0.0f;
          float dot_01 = 0.0f;
          float dot_10 = 0.0f;
          float dot_11 = 0.0f;
          for (long dot_k = 0; dot_k < 64; ++dot_k) {
            const float dot_a0 = s0[dot_i0 * 64 + dot_k];
            const float dot_a1 = s0[dot_i1 * 64 + dot_k];
            const float dot_b0 = x1[dot_k * 16 + dot_j0];
            const float dot_b1 = x1[dot_k * 16 + dot_j1];
            dot_00 = fma(dot_a0, dot_b0, dot_00);
            dot_01 = fma(dot_a0, dot_b1, dot_01);
            dot_10 = fma(dot_a1, dot_b0, dot_10);
            dot_11 = fma(dot_a1, dot_b1, dot_11);
          }
          s1[dot_i0 * 16 + dot_j0] = dot_00;
          s1[dot_i0 * 16 + dot_j1] = dot_01;
          s1[dot_i1 * 16 + dot_j0] = dot_10;
          s1[dot_i1 * 16 + dot_j1] = dot_11;
        }
      }
    }
    {
      barrier(CLK_LOCAL_MEM_FENCE);
      {
        const long item_vectors = (size_t)(s1) % sizeof(float4) == 0 && (size_t)(y0 + tile * 128) % sizeof(float4) == 0 ? 128 / 4 : 0;
        for (long item_vector = get_local_id(0); item_vector < item_vectors; item_vector += get_local_size(0)) {
          const long item_first = item_vector * 4;
          float s1_vector[4];
          vstore4(*(__local const float4 *)(s1 + item_first), 0, s1_vector);
          float y0_vector[4];
          #pragma unroll
          for (int item_k = 0; item_k < 4; ++item_k) {
            y0_vector[item_k] = s1_vector[item_k] * 2.0f;
          }
          *(__global float4 *)(y0 + tile * 128 + item_first) = vload4(0, y0_vector);
        }
        const long item_rest = item_vectors * 4;
        for (long item = item_rest + get_local_id(0); item < 128; item += get_local_size(0)) {
          y0[tile * 128 + item] = s1[item] * 2.0f;
        }
      }
    }
  }
}
