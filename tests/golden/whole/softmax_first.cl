__kernel void softmax_first(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  __local float *const s1 = (__local float *)((__local uchar *)scratch + 2048);
  for (long tile = get_group_id(0); tile < n2; tile += get_num_groups(0)) {
    const long low = tile * 512;
    const long high = low + 512 < n0 ? low + 512 : n0;
    {
      const long i1_vectors = (high - low + 7) / 8;
      for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
        const long i1_first = low + i1_vector * 8;
        const long i1_left = high - i1_first;
        put_local_float8(s0 + i1_first - low, (float8)(-INFINITY), i1_left);
      }
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      {
        const long i1_vectors = (high - low + 7) / 8;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = low + i1_vector * 8;
          const long i1_left = high - i1_first;
          const float8 s0_vector = take_local_float8(s0 + i1_first - low, i1_left);
          const float8 x0_vector = take_global_float8(x0 + i1_first + i0 * n0, i1_left);
          put_local_float8(s0 + i1_first - low, maximum_float8(s0_vector, x0_vector), i1_left);
        }
      }
    }
    {
      const long i1_vectors = (high - low + 7) / 8;
      for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
        const long i1_first = low + i1_vector * 8;
        const long i1_left = high - i1_first;
        put_local_float8(s1 + i1_first - low, (float8)(0.0f), i1_left);
      }
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      {
        const long i1_vectors = (high - low + 7) / 8;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = low + i1_vector * 8;
          const long i1_left = high - i1_first;
          const float8 x0_vector = take_global_float8(x0 + i1_first + i0 * n0, i1_left);
          const float8 s0_vector = take_local_float8(s0 + i1_first - low, i1_left);
          const float8 s1_vector = take_local_float8(s1 + i1_first - low, i1_left);
          const float8 exp_1 = exp(x0_vector - s0_vector);
          put_local_float8(s1 + i1_first - low, s1_vector + exp_1, i1_left);
          put_global_float8(y0 + i1_first + i0 * n0, exp_1, i1_left);
        }
      }
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      {
        const long i1_vectors = (high - low + 7) / 8;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = low + i1_vector * 8;
          const long i1_left = high - i1_first;
          const float8 y0_vector = take_global_float8(y0 + i1_first + i0 * n0, i1_left);
          const float8 s1_vector = take_local_float8(s1 + i1_first - low, i1_left);
          put_global_float8(y0 + i1_first + i0 * n0, y0_vector / s1_vector, i1_left);
        }
      }
    }
  }
}
