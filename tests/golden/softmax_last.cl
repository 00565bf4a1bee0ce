__kernel void softmax_last(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, const long n3, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  for (long tile = get_group_id(0); tile < n3; tile += get_num_groups(0)) {
    const long i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (long i0 = tile * n1; i0 < i0_end; ++i0) {
      float reduce_max_1_lanes = -INFINITY;
      {
        const long i1_vectors = n2 % 4 == 0 ? n2 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float x0_vector[4];
          vstore4(vload4(0, x0 + i0 * n2 + i1_first), 0, x0_vector);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const float reduce_max_1_term = x0_vector[i1_k];
            reduce_max_1_lanes = maximum_float(reduce_max_1_lanes, reduce_max_1_term);
          }
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          const float reduce_max_1_term = x0[i0 * n2 + i1];
          reduce_max_1_lanes = maximum_float(reduce_max_1_lanes, reduce_max_1_term);
        }
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
      float reduce_sum_1_lanes = 0.0f;
      {
        const long i1_vectors = n2 % 4 == 0 ? n2 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float x0_vector[4];
          vstore4(vload4(0, x0 + i0 * n2 + i1_first), 0, x0_vector);
          float s0_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const float exp_1 = exp(x0_vector[i1_k] - reduce_max_1);
            reduce_sum_1_lanes = reduce_sum_1_lanes + exp_1;
            s0_vector[i1_k] = exp_1;
          }
          vstore4(vload4(0, s0_vector), 0, s0 + i1_first);
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          const float exp_1 = exp(x0[i0 * n2 + i1] - reduce_max_1);
          reduce_sum_1_lanes = reduce_sum_1_lanes + exp_1;
          s0[i1] = exp_1;
        }
      }
      __local float *reduce_sum_1_all = (__local float *)joined;
      reduce_sum_1_all[get_local_id(0)] = reduce_sum_1_lanes;
      for (uint o = get_local_size(0) / 2; o; o >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < o) {
          const float a = reduce_sum_1_all[get_local_id(0)];
          const float b = reduce_sum_1_all[get_local_id(0) + o];
          reduce_sum_1_all[get_local_id(0)] = a + b;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const float reduce_sum_1 = reduce_sum_1_all[0];
      barrier(CLK_LOCAL_MEM_FENCE);
      {
        const long i1_vectors = n2 % 4 == 0 ? n2 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float s0_vector[4];
          vstore4(vload4(0, s0 + i1_first), 0, s0_vector);
          float y0_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            y0_vector[i1_k] = s0_vector[i1_k] / reduce_sum_1;
          }
          vstore4(vload4(0, y0_vector), 0, y0 + i0 * n2 + i1_first);
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          y0[i0 * n2 + i1] = s0[i1] / reduce_sum_1;
        }
      }
    }
  }
}
