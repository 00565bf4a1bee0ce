__kernel void softmax_last(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, const long n3, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  for (long tile = get_group_id(0); tile < n3; tile += get_num_groups(0)) {
    const long i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (long i0 = tile * n1; i0 < i0_end; ++i0) {
      float reduce_max_1_lanes = -INFINITY;
      {
        const long i1_vectors = (n2 + 7) / 8;
        float8 reduce_max_1_partial = (float8)(-INFINITY);
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 8;
          const long i1_left = n2 - i1_first;
          const float8 x0_vector = take_global_float8(x0 + i0 * n2 + i1_first, i1_left);
          const float8 reduce_max_1_term = x0_vector;
          reduce_max_1_partial = keep_float8(reduce_max_1_partial, maximum_float8(reduce_max_1_partial, reduce_max_1_term), i1_left);
        }
        float reduce_max_1_partial_each[8];
        vstore8(reduce_max_1_partial, 0, reduce_max_1_partial_each);
        for (int k = 0; k < 8; ++k) {
          const float b = reduce_max_1_partial_each[k];
          reduce_max_1_lanes = maximum_float(reduce_max_1_lanes, b);
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
        const long i1_vectors = (n2 + 7) / 8;
        float8 reduce_sum_1_partial = (float8)(0.0f);
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 8;
          const long i1_left = n2 - i1_first;
          const float8 x0_vector = take_global_float8(x0 + i0 * n2 + i1_first, i1_left);
          const float8 exp_1 = exp(x0_vector - reduce_max_1);
          const float8 reduce_sum_1_term = exp_1;
          reduce_sum_1_partial = keep_float8(reduce_sum_1_partial, reduce_sum_1_partial + reduce_sum_1_term, i1_left);
          put_local_float8(s0 + i1_first, exp_1, i1_left);
        }
        float reduce_sum_1_partial_each[8];
        vstore8(reduce_sum_1_partial, 0, reduce_sum_1_partial_each);
        for (int k = 0; k < 8; ++k) {
          const float b = reduce_sum_1_partial_each[k];
          reduce_sum_1_lanes = reduce_sum_1_lanes + b;
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
        const long i1_vectors = (n2 + 7) / 8;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 8;
          const long i1_left = n2 - i1_first;
          const float8 s0_vector = take_local_float8(s0 + i1_first, i1_left);
          put_global_float8(y0 + i0 * n2 + i1_first, s0_vector / reduce_sum_1, i1_left);
        }
      }
    }
  }
}
