__kernel void layer_norm_last(__global const float *restrict x0, __global const float *restrict x1, __global const float *restrict x2, __global float *restrict y0, const long n0, const long n1, const long n2, const long n3, __local ulong2 *scratch, __local ulong2 *joined) {
  for (long tile = get_group_id(0); tile < n3; tile += get_num_groups(0)) {
    const long i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (long i0 = tile * n1; i0 < i0_end; ++i0) {
      float reduce_mean_1_lanes = 0.0f;
      {
        const long i1_vectors = n2 % 4 == 0 ? n2 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float x0_vector[4];
          vstore4(vload4(0, x0 + i0 * n2 + i1_first), 0, x0_vector);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const float reduce_mean_1_term = x0_vector[i1_k];
            reduce_mean_1_lanes = reduce_mean_1_lanes + reduce_mean_1_term;
          }
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          const float reduce_mean_1_term = x0[i0 * n2 + i1];
          reduce_mean_1_lanes = reduce_mean_1_lanes + reduce_mean_1_term;
        }
      }
      __local float *reduce_mean_1_all = (__local float *)joined;
      reduce_mean_1_all[get_local_id(0)] = reduce_mean_1_lanes;
      for (uint o = get_local_size(0) / 2; o; o >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < o) {
          const float a = reduce_mean_1_all[get_local_id(0)];
          const float b = reduce_mean_1_all[get_local_id(0) + o];
          reduce_mean_1_all[get_local_id(0)] = a + b;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const float reduce_mean_1 = reduce_mean_1_all[0];
      barrier(CLK_LOCAL_MEM_FENCE);
      const float reduce_mean_1_row = reduce_mean_1 / (float)(n2);
      float reduce_mean_2_lanes = 0.0f;
      {
        const long i1_vectors = n2 % 4 == 0 ? n2 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float x0_vector[4];
          vstore4(vload4(0, x0 + i0 * n2 + i1_first), 0, x0_vector);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const float sub_1 = x0_vector[i1_k] - reduce_mean_1_row;
            const float reduce_mean_2_term = sub_1 * sub_1;
            reduce_mean_2_lanes = reduce_mean_2_lanes + reduce_mean_2_term;
          }
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          const float sub_1 = x0[i0 * n2 + i1] - reduce_mean_1_row;
          const float reduce_mean_2_term = sub_1 * sub_1;
          reduce_mean_2_lanes = reduce_mean_2_lanes + reduce_mean_2_term;
        }
      }
      __local float *reduce_mean_2_all = (__local float *)joined;
      reduce_mean_2_all[get_local_id(0)] = reduce_mean_2_lanes;
      for (uint o = get_local_size(0) / 2; o; o >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < o) {
          const float a = reduce_mean_2_all[get_local_id(0)];
          const float b = reduce_mean_2_all[get_local_id(0) + o];
          reduce_mean_2_all[get_local_id(0)] = a + b;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const float reduce_mean_2 = reduce_mean_2_all[0];
      barrier(CLK_LOCAL_MEM_FENCE);
      const float reduce_mean_2_row = reduce_mean_2 / (float)(n2);
      const float add_1 = reduce_mean_2_row + 0.00001f;
      const float rsqrt_1 = rsqrt(add_1);
      {
        const long i1_vectors = (size_t)(x0 + i0 * n2) % sizeof(float4) == 0 && (size_t)(x1) % sizeof(float4) == 0 && (size_t)(x2) % sizeof(float4) == 0 && (size_t)(y0 + i0 * n2) % sizeof(float4) == 0 ? n2 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float x0_vector[4];
          vstore4(*(__global const float4 *)(x0 + i0 * n2 + i1_first), 0, x0_vector);
          float x1_vector[4];
          vstore4(*(__global const float4 *)(x1 + i1_first), 0, x1_vector);
          float x2_vector[4];
          vstore4(*(__global const float4 *)(x2 + i1_first), 0, x2_vector);
          float y0_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const float mul_3 = (x0_vector[i1_k] - reduce_mean_1_row) * rsqrt_1 * x1_vector[i1_k];
            y0_vector[i1_k] = mul_3 + x2_vector[i1_k];
          }
          *(__global float4 *)(y0 + i0 * n2 + i1_first) = vload4(0, y0_vector);
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          const float mul_3 = (x0[i0 * n2 + i1] - reduce_mean_1_row) * rsqrt_1 * x1[i1];
          y0[i0 * n2 + i1] = mul_3 + x2[i1];
        }
      }
    }
  }
}
