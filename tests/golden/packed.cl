__kernel void packed(__global const float *restrict x0, __global const float *restrict x1, __global const double *restrict x2, __global const float *restrict x3, __global const float *restrict x4, __global float *restrict y0, __global float *restrict y1, __global double *restrict y2, __global float *restrict y3, __global float *restrict y4, const long n0, const long n1, const long n2, const long n3, const long n4, const long n5, const long n6, const long n7, const long n8, const long n9, const long n10, const long n11, __local ulong2 *scratch, __local ulong2 *joined) {
  __local double *const s0 = (__local double *)((__local uchar *)scratch + 0);
  for (long block = get_group_id(0); block < n11; block += get_num_groups(0)) {
    if (block < n1) {
      const long tile = block;
      const long low = tile * 8192;
      const long high = low + 8192 < n0 ? low + 8192 : n0;
      {
        const long i0_vectors = (size_t)(x0 + low) % sizeof(float4) == 0 && (size_t)(y0 + low) % sizeof(float4) == 0 ? (high - low) / 4 : 0;
        for (long i0_vector = get_local_id(0); i0_vector < i0_vectors; i0_vector += get_local_size(0)) {
          const long i0_first = low + i0_vector * 4;
          float x0_vector[4];
          vstore4(*(__global const float4 *)(x0 + i0_first), 0, x0_vector);
          float y0_vector[4];
          #pragma unroll
          for (int i0_k = 0; i0_k < 4; ++i0_k) {
            y0_vector[i0_k] = x0_vector[i0_k] + 1.0f;
          }
          *(__global float4 *)(y0 + i0_first) = vload4(0, y0_vector);
        }
        const long i0_rest = low + i0_vectors * 4;
        for (long i0 = i0_rest + get_local_id(0); i0 < high; i0 += get_local_size(0)) {
          y0[i0] = x0[i0] + 1.0f;
        }
      }
    } else if (block < n4) {
      const long tile = block - n1;
      const long i0_end = tile * n3 + n3 < n2 ? tile * n3 + n3 : n2;
      for (long i0 = tile * n3; i0 < i0_end; ++i0) {
        float reduce_sum_1_lanes = 0.0f;
        {
          const long i1_vectors = n0 % 4 == 0 ? n0 / 4 : 0;
          for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
            const long i1_first = i1_vector * 4;
            float x1_vector[4];
            vstore4(vload4(0, x1 + i0 * n0 + i1_first), 0, x1_vector);
            #pragma unroll
            for (int i1_k = 0; i1_k < 4; ++i1_k) {
              const float reduce_sum_1_term = x1_vector[i1_k];
              reduce_sum_1_lanes = reduce_sum_1_lanes + reduce_sum_1_term;
            }
          }
          const long i1_rest = i1_vectors * 4;
          for (long i1 = i1_rest + get_local_id(0); i1 < n0; i1 += get_local_size(0)) {
            const float reduce_sum_1_term = x1[i0 * n0 + i1];
            reduce_sum_1_lanes = reduce_sum_1_lanes + reduce_sum_1_term;
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
        if (get_local_id(0) == 0) y1[i0] = reduce_sum_1;
      }
    } else if (block < n7) {
      const long tile = block - n4;
      const long low = tile * 512;
      const long high = low + 512 < n5 ? low + 512 : n5;
      {
        const long i1_vectors = n5 % 2 == 0 ? (high - low + 1) / 2 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = low + i1_vector * 2;
          double s0_vector[2];
          #pragma unroll
          for (int i1_k = 0; i1_k < 2; ++i1_k) {
            const long i1 = i1_first + i1_k;
            if (i1 < high) {
              s0_vector[i1_k] = 0.0;
            }
          }
          #pragma unroll 4
          for (long i0 = 0; i0 < n6; ++i0) {
            double x2_vector[2];
            vstore2(take_global_double2(x2 + i1_first + i0 * n5, high - i1_first), 0, x2_vector);
            #pragma unroll
            for (int i1_k = 0; i1_k < 2; ++i1_k) {
              const long i1 = i1_first + i1_k;
              if (i1 < high) {
                s0_vector[i1_k] = s0_vector[i1_k] + x2_vector[i1_k];
              }
            }
          }
          put_local_double2(s0 + i1_first - low, vload2(0, s0_vector), high - i1_first);
        }
        const long i1_rest = i1_vectors ? high : low;
        for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
          double reduce_sum_1_total = 0.0;
          #pragma unroll 4
          for (long i0 = 0; i0 < n6; ++i0) {
            reduce_sum_1_total = reduce_sum_1_total + x2[i1 + i0 * n5];
          }
          s0[i1 - low] = reduce_sum_1_total;
        }
      }
      {
        const long i1_vectors = n5 % 2 == 0 ? (high - low + 1) / 2 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = low + i1_vector * 2;
          double s0_vector[2];
          vstore2(take_local_double2(s0 + i1_first - low, high - i1_first), 0, s0_vector);
          double y2_vector[2];
          #pragma unroll
          for (int i1_k = 0; i1_k < 2; ++i1_k) {
            const long i1 = i1_first + i1_k;
            if (i1 < high) {
              y2_vector[i1_k] = s0_vector[i1_k];
            }
          }
          put_global_double2(y2 + i1_first, vload2(0, y2_vector), high - i1_first);
        }
        const long i1_rest = i1_vectors ? high : low;
        for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
          y2[i1] = s0[i1 - low];
        }
      }
    } else if (block < n9) {
      const long tile = block - n7;
      const long low = tile * 8192;
      const long high = low + 8192 < n8 ? low + 8192 : n8;
      {
        const long i0_vectors = (size_t)(x3 + low) % sizeof(float4) == 0 && (size_t)(y3 + low) % sizeof(float4) == 0 ? (high - low) / 4 : 0;
        for (long i0_vector = get_local_id(0); i0_vector < i0_vectors; i0_vector += get_local_size(0)) {
          const long i0_first = low + i0_vector * 4;
          float x3_vector[4];
          vstore4(*(__global const float4 *)(x3 + i0_first), 0, x3_vector);
          float y3_vector[4];
          #pragma unroll
          for (int i0_k = 0; i0_k < 4; ++i0_k) {
            y3_vector[i0_k] = x3_vector[i0_k] + 1.0f;
          }
          *(__global float4 *)(y3 + i0_first) = vload4(0, y3_vector);
        }
        const long i0_rest = low + i0_vectors * 4;
        for (long i0 = i0_rest + get_local_id(0); i0 < high; i0 += get_local_size(0)) {
          y3[i0] = x3[i0] + 1.0f;
        }
      }
    } else {
      const long tile = block - n9;
      const long low = tile * 8192;
      const long high = low + 8192 < n10 ? low + 8192 : n10;
      {
        const long i0_vectors = (size_t)(x4 + low) % sizeof(float4) == 0 && (size_t)(y4 + low) % sizeof(float4) == 0 ? (high - low) / 4 : 0;
        for (long i0_vector = get_local_id(0); i0_vector < i0_vectors; i0_vector += get_local_size(0)) {
          const long i0_first = low + i0_vector * 4;
          float x4_vector[4];
          vstore4(*(__global const float4 *)(x4 + i0_first), 0, x4_vector);
          float y4_vector[4];
          #pragma unroll
          for (int i0_k = 0; i0_k < 4; ++i0_k) {
            const float x0_0 = x4_vector[i0_k];
            y4_vector[i0_k] = x0_0 - exp(x0_0);
          }
          *(__global float4 *)(y4 + i0_first) = vload4(0, y4_vector);
        }
        const long i0_rest = low + i0_vectors * 4;
        for (long i0 = i0_rest + get_local_id(0); i0 < high; i0 += get_local_size(0)) {
          const float x0_0 = x4[i0];
          y4[i0] = x0_0 - exp(x0_0);
        }
      }
    }
  }
}
