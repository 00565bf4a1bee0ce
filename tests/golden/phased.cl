__kernel void phased_phase0(__global const float *restrict x0, __global const float *restrict y0, __global float *restrict y1, const long n0, const long n1, const long n2, const long n3, const long n4, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  for (long tile = get_group_id(0); tile < n2; tile += get_num_groups(0)) {
    const long low = tile * 300;
    const long high = low + 300 < n0 ? low + 300 : n0;
    {
      const long i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
        const long i1_first = low + i1_vector * 4;
        float s0_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const long i1 = i1_first + i1_k;
          if (i1 < high) {
            s0_vector[i1_k] = 0.0f;
          }
        }
        #pragma unroll 4
        for (long i0 = 0; i0 < n1; ++i0) {
          float x0_vector[4];
          vstore4(take_global_float4(x0 + i0 * n0 + i1_first, high - i1_first), 0, x0_vector);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const long i1 = i1_first + i1_k;
            if (i1 < high) {
              s0_vector[i1_k] = s0_vector[i1_k] + x0_vector[i1_k];
            }
          }
        }
        put_local_float4(s0 + i1_first - low, vload4(0, s0_vector), high - i1_first);
      }
      const long i1_rest = i1_vectors ? high : low;
      for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        float reduce_mean_1_total = 0.0f;
        #pragma unroll 4
        for (long i0 = 0; i0 < n1; ++i0) {
          reduce_mean_1_total = reduce_mean_1_total + x0[i0 * n0 + i1];
        }
        s0[i1 - low] = reduce_mean_1_total;
      }
    }
    {
      const long i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
        const long i1_first = low + i1_vector * 4;
        float s0_vector[4];
        vstore4(take_local_float4(s0 + i1_first - low, high - i1_first), 0, s0_vector);
        float y1_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const long i1 = i1_first + i1_k;
          if (i1 < high) {
            y1_vector[i1_k] = s0_vector[i1_k] / (float)(n1);
          }
        }
        put_global_float4(y1 + i1_first, vload4(0, y1_vector), high - i1_first);
      }
      const long i1_rest = i1_vectors ? high : low;
      for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        y1[i1] = s0[i1 - low] / (float)(n1);
      }
    }
  }
}
__kernel void phased_phase1(__global const float *restrict x0, __global float *restrict y0, __global const float *restrict y1, const long n0, const long n1, const long n2, const long n3, const long n4, __local ulong2 *scratch, __local ulong2 *joined) {
  for (long tile = get_group_id(0); tile < n4; tile += get_num_groups(0)) {
    const long i0_end = tile * n3 + n3 < n1 ? tile * n3 + n3 : n1;
    for (long i0 = tile * n3; i0 < i0_end; ++i0) {
      float reduce_max_1_lanes = -INFINITY;
      {
        const long i1_vectors = n0 % 4 == 0 ? n0 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float x0_vector[4];
          vstore4(vload4(0, x0 + i0 * n0 + i1_first), 0, x0_vector);
          float y1_vector[4];
          vstore4(vload4(0, y1 + i1_first), 0, y1_vector);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const float reduce_max_1_term = absolute_float(x0_vector[i1_k] - y1_vector[i1_k]);
            reduce_max_1_lanes = maximum_float(reduce_max_1_lanes, reduce_max_1_term);
          }
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n0; i1 += get_local_size(0)) {
          const float reduce_max_1_term = absolute_float(x0[i0 * n0 + i1] - y1[i1]);
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
      {
        const long i1_vectors = (size_t)(x0 + i0 * n0) % sizeof(float4) == 0 && (size_t)(y1) % sizeof(float4) == 0 && (size_t)(y0 + i0 * n0) % sizeof(float4) == 0 ? n0 / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = i1_vector * 4;
          float x0_vector[4];
          vstore4(*(__global const float4 *)(x0 + i0 * n0 + i1_first), 0, x0_vector);
          float y1_vector[4];
          vstore4(*(__global const float4 *)(y1 + i1_first), 0, y1_vector);
          float y0_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            y0_vector[i1_k] = (x0_vector[i1_k] - y1_vector[i1_k]) / reduce_max_1;
          }
          *(__global float4 *)(y0 + i0 * n0 + i1_first) = vload4(0, y0_vector);
        }
        const long i1_rest = i1_vectors * 4;
        for (long i1 = i1_rest + get_local_id(0); i1 < n0; i1 += get_local_size(0)) {
          y0[i0 * n0 + i1] = (x0[i0 * n0 + i1] - y1[i1]) / reduce_max_1;
        }
      }
    }
  }
}
