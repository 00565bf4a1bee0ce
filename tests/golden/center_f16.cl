__kernel void center_f16(__global const ushort *restrict x0, __global ushort *restrict y0, const long n0, const long n1, const long n2, const long n3, __local ulong2 *scratch, __local ulong2 *joined) {
  for (long tile = get_group_id(0); tile < n3; tile += get_num_groups(0)) {
    const long i0_end = tile * n1 + n1 < n0 ? tile * n1 + n1 : n0;
    for (long i0 = tile * n1; i0 < i0_end; ++i0) {
      float reduce_mean_1_lanes = 0.0f;
      {
        const long i1_vectors = n2 % 8 == 0 ? n2 / 8 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 8;
          ushort x0_vector[8];
          vstore8(vload8(0, x0 + i0 * n2 + i1_first), 0, x0_vector);
          #pragma unroll
          for (int i1_k = 0; i1_k < 8; ++i1_k) {
            const float reduce_mean_1_term = widen_f16(x0_vector[i1_k]);
            reduce_mean_1_lanes = reduce_mean_1_lanes + reduce_mean_1_term;
          }
        }
        const long i1_rest = i1_vectors * 8;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          const float reduce_mean_1_term = widen_f16(x0[i0 * n2 + i1]);
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
      const float reduce_mean_1_row = rounded_f16(reduce_mean_1 / (float)(n2));
      {
        const long i1_vectors = (size_t)(x0 + i0 * n2) % sizeof(ushort8) == 0 && (size_t)(y0 + i0 * n2) % sizeof(ushort8) == 0 ? n2 / 8 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 8;
          ushort x0_vector[8];
          vstore8(*(__global const ushort8 *)(x0 + i0 * n2 + i1_first), 0, x0_vector);
          ushort y0_vector[8];
          #pragma unroll
          for (int i1_k = 0; i1_k < 8; ++i1_k) {
            y0_vector[i1_k] = narrow_f16(widen_f16(x0_vector[i1_k]) - reduce_mean_1_row);
          }
          *(__global ushort8 *)(y0 + i0 * n2 + i1_first) = vload8(0, y0_vector);
        }
        const long i1_rest = i1_vectors * 8;
        for (long i1 = i1_rest + get_local_id(0); i1 < n2; i1 += get_local_size(0)) {
          y0[i0 * n2 + i1] = narrow_f16(widen_f16(x0[i0 * n2 + i1]) - reduce_mean_1_row);
        }
      }
    }
  }
}
