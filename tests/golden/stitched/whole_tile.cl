__kernel void whole_tile(__global const float *restrict x0, __global float *restrict y0, const long n0, const long n1, const long n2, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    float most_lanes = -INFINITY;
    {
      const long item_vectors = 1000 / 4;
      for (long item_vector = get_local_id(0); item_vector < item_vectors; item_vector += get_local_size(0)) {
        const long item_first = item_vector * 4;
        float x0_vector[4];
        vstore4(vload4(0, x0 + tile * 1000 + item_first), 0, x0_vector);
        #pragma unroll
        for (int item_k = 0; item_k < 4; ++item_k) {
          const float most_term = x0_vector[item_k];
          most_lanes = maximum_float(most_lanes, most_term);
        }
      }
      const long item_rest = item_vectors * 4;
      for (long item = item_rest + get_local_id(0); item < 1000; item += get_local_size(0)) {
        const float most_term = x0[tile * 1000 + item];
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
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) s0[0] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    {
      const long item_vectors = (size_t)(x0 + tile * 1000) % sizeof(float4) == 0 && (size_t)(y0 + tile * 1000) % sizeof(float4) == 0 ? 1000 / 4 : 0;
      for (long item_vector = get_local_id(0); item_vector < item_vectors; item_vector += get_local_size(0)) {
        const long item_first = item_vector * 4;
        float x0_vector[4];
        vstore4(*(__global const float4 *)(x0 + tile * 1000 + item_first), 0, x0_vector);
        float y0_vector[4];
        #pragma unroll
        for (int item_k = 0; item_k < 4; ++item_k) {
          y0_vector[item_k] = x0_vector[item_k] / s0[0];
        }
        *(__global float4 *)(y0 + tile * 1000 + item_first) = vload4(0, y0_vector);
      }
      const long item_rest = item_vectors * 4;
      for (long item = item_rest + get_local_id(0); item < 1000; item += get_local_size(0)) {
        y0[tile * 1000 + item] = x0[tile * 1000 + item] / s0[0];
      }
    }
  }
}
