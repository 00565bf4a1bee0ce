__kernel void layer_norm_first(__global const float *restrict x0, __global const float *restrict x1, __global const float *restrict x2, __global float *restrict y0, const long n0, const long n1, const long n2, __local ulong2 *scratch, __local ulong2 *joined) {
  __local float *const s0 = (__local float *)((__local uchar *)scratch + 0);
  __local float *const s1 = (__local float *)((__local uchar *)scratch + 2048);
  __local float *const s2 = (__local float *)((__local uchar *)scratch + 4096);
  __local float *const s3 = (__local float *)((__local uchar *)scratch + 6144);
  for (long tile = get_group_id(0); tile < n2; tile += get_num_groups(0)) {
    const long low = tile * 512;
    const long high = low + 512 < n0 ? low + 512 : n0;
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
          vstore4(take_global_float4(x0 + i1_first + i0 * n0, high - i1_first), 0, x0_vector);
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
          reduce_mean_1_total = reduce_mean_1_total + x0[i1 + i0 * n0];
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
        float s1_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const long i1 = i1_first + i1_k;
          if (i1 < high) {
            s1_vector[i1_k] = s0_vector[i1_k] / (float)(n1);
          }
        }
        put_local_float4(s1 + i1_first - low, vload4(0, s1_vector), high - i1_first);
      }
      const long i1_rest = i1_vectors ? high : low;
      for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        s1[i1 - low] = s0[i1 - low] / (float)(n1);
      }
    }
    {
      const long i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
        const long i1_first = low + i1_vector * 4;
        float s2_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const long i1 = i1_first + i1_k;
          if (i1 < high) {
            s2_vector[i1_k] = 0.0f;
          }
        }
        #pragma unroll 4
        for (long i0 = 0; i0 < n1; ++i0) {
          float x0_vector[4];
          vstore4(take_global_float4(x0 + i1_first + i0 * n0, high - i1_first), 0, x0_vector);
          float s1_vector[4];
          vstore4(take_local_float4(s1 + i1_first - low, high - i1_first), 0, s1_vector);
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const long i1 = i1_first + i1_k;
            if (i1 < high) {
              const float sub_1 = x0_vector[i1_k] - s1_vector[i1_k];
              s2_vector[i1_k] = s2_vector[i1_k] + sub_1 * sub_1;
            }
          }
        }
        put_local_float4(s2 + i1_first - low, vload4(0, s2_vector), high - i1_first);
      }
      const long i1_rest = i1_vectors ? high : low;
      for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        float reduce_mean_2_total = 0.0f;
        #pragma unroll 4
        for (long i0 = 0; i0 < n1; ++i0) {
          const float sub_1 = x0[i1 + i0 * n0] - s1[i1 - low];
          reduce_mean_2_total = reduce_mean_2_total + sub_1 * sub_1;
        }
        s2[i1 - low] = reduce_mean_2_total;
      }
    }
    {
      const long i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
      for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
        const long i1_first = low + i1_vector * 4;
        float s2_vector[4];
        vstore4(take_local_float4(s2 + i1_first - low, high - i1_first), 0, s2_vector);
        float s3_vector[4];
        #pragma unroll
        for (int i1_k = 0; i1_k < 4; ++i1_k) {
          const long i1 = i1_first + i1_k;
          if (i1 < high) {
            s3_vector[i1_k] = rsqrt(s2_vector[i1_k] / (float)(n1) + 0.00001f);
          }
        }
        put_local_float4(s3 + i1_first - low, vload4(0, s3_vector), high - i1_first);
      }
      const long i1_rest = i1_vectors ? high : low;
      for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
        s3[i1 - low] = rsqrt(s2[i1 - low] / (float)(n1) + 0.00001f);
      }
    }
    for (long i0 = 0; i0 < n1; ++i0) {
      const float x1_5 = x1[i0];
      const float x2_7 = x2[i0];
      {
        const long i1_vectors = n0 % 4 == 0 ? (high - low + 3) / 4 : 0;
        for (long i1_vector = get_local_id(0); i1_vector < i1_vectors; i1_vector += get_local_size(0)) {
          const long i1_first = low + i1_vector * 4;
          float x0_vector[4];
          vstore4(take_global_float4(x0 + i1_first + i0 * n0, high - i1_first), 0, x0_vector);
          float s1_vector[4];
          vstore4(take_local_float4(s1 + i1_first - low, high - i1_first), 0, s1_vector);
          float s3_vector[4];
          vstore4(take_local_float4(s3 + i1_first - low, high - i1_first), 0, s3_vector);
          float y0_vector[4];
          #pragma unroll
          for (int i1_k = 0; i1_k < 4; ++i1_k) {
            const long i1 = i1_first + i1_k;
            if (i1 < high) {
              const float mul_2 = (x0_vector[i1_k] - s1_vector[i1_k]) * s3_vector[i1_k];
              y0_vector[i1_k] = mul_2 * x1_5 + x2_7;
            }
          }
          put_global_float4(y0 + i1_first + i0 * n0, vload4(0, y0_vector), high - i1_first);
        }
        const long i1_rest = i1_vectors ? high : low;
        for (long i1 = i1_rest + get_local_id(0); i1 < high; i1 += get_local_size(0)) {
          const float mul_2 = (x0[i1 + i0 * n0] - s1[i1 - low]) * s3[i1 - low];
          y0[i1 + i0 * n0] = mul_2 * x1_5 + x2_7;
        }
      }
    }
  }
}
