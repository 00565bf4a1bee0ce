__kernel __attribute__((reqd_work_group_size(8, 16, 1))) void softmax(__global const float *restrict x0, __global float *restrict y0, const long n0_arg) {
  const long n0 = (long)n0_arg;
  float x0_r[8];
  float r3[8];
  float y0_v0[4];
  __local float exchanged0_f32[128] __attribute__((aligned(16)));
  __local float exchanged1_f32[128] __attribute__((aligned(16)));
  if ((((ulong)x0 | (ulong)y0) & 15) == 0) {
    const long block = (int)get_group_id(0);
    const long ty = (int)get_local_id(1);
    const long tx = (int)get_local_id(0);
    const long row = block * 16 + ty;
    const long row_read = row < n0 ? row : n0 - 1;
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      vstore4(*(__global const float4 *)(x0 + (row_read * 64 + tx * 4) + u * 32), 0, x0_r + u * 4);
    }
    float reduce_max_1 = -INFINITY;
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      #pragma unroll
      for (long k = 0; k < 4; ++k) {
        reduce_max_1 = fmax(reduce_max_1, x0_r[u * 4 + k]);
      }
    }
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_max_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other1 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 4)];
    const float lower2 = (long)(int)get_local_id(0) % 8 >= 4 ? other1 : reduce_max_1;
    const float upper3 = (long)(int)get_local_id(0) % 8 >= 4 ? reduce_max_1 : other1;
    reduce_max_1 = fmax(lower2, upper3);
    exchanged1_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_max_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other4 = exchanged1_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 2)];
    const float lower5 = (long)(int)get_local_id(0) % 4 >= 2 ? other4 : reduce_max_1;
    const float upper6 = (long)(int)get_local_id(0) % 4 >= 2 ? reduce_max_1 : other4;
    reduce_max_1 = fmax(lower5, upper6);
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_max_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other7 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 1)];
    const float lower8 = (long)(int)get_local_id(0) % 2 >= 1 ? other7 : reduce_max_1;
    const float upper9 = (long)(int)get_local_id(0) % 2 >= 1 ? reduce_max_1 : other7;
    reduce_max_1 = fmax(lower8, upper9);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    float reduce_sum_1 = 0.0f;
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      #pragma unroll
      for (long k = 0; k < 4; ++k) {
        const float exp_1 = exp(x0_r[u * 4 + k] - reduce_max_1);
        reduce_sum_1 = reduce_sum_1 + exp_1;
        r3[u * 4 + k] = exp_1;
      }
    }
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_sum_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other10 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 4)];
    reduce_sum_1 = reduce_sum_1 + other10;
    exchanged1_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_sum_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other11 = exchanged1_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 2)];
    reduce_sum_1 = reduce_sum_1 + other11;
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_sum_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other12 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 1)];
    reduce_sum_1 = reduce_sum_1 + other12;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      #pragma unroll
      for (long k = 0; k < 4; ++k) {
        y0_v0[k] = r3[u * 4 + k] / reduce_sum_1;
      }
      if (row < n0) {
        *(__global float4 *)(y0 + (row_read * 64 + tx * 4) + u * 32) = vload4(0, y0_v0);
      }
    }
  } else {
    const long block = (int)get_group_id(0);
    const long ty = (int)get_local_id(1);
    const long tx = (int)get_local_id(0);
    const long row = block * 16 + ty;
    const long row_read = row < n0 ? row : n0 - 1;
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      #pragma unroll
      for (long element = 0; element < 4; ++element) {
        *(x0_r + u * 4 + element) = *(x0 + (row_read * 64 + tx * 4 + u * 32) + element);
      }
    }
    float reduce_max_1 = -INFINITY;
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      #pragma unroll
      for (long k = 0; k < 4; ++k) {
        reduce_max_1 = fmax(reduce_max_1, x0_r[u * 4 + k]);
      }
    }
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_max_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other13 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 4)];
    const float lower14 = (long)(int)get_local_id(0) % 8 >= 4 ? other13 : reduce_max_1;
    const float upper15 = (long)(int)get_local_id(0) % 8 >= 4 ? reduce_max_1 : other13;
    reduce_max_1 = fmax(lower14, upper15);
    exchanged1_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_max_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other16 = exchanged1_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 2)];
    const float lower17 = (long)(int)get_local_id(0) % 4 >= 2 ? other16 : reduce_max_1;
    const float upper18 = (long)(int)get_local_id(0) % 4 >= 2 ? reduce_max_1 : other16;
    reduce_max_1 = fmax(lower17, upper18);
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_max_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other19 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 1)];
    const float lower20 = (long)(int)get_local_id(0) % 2 >= 1 ? other19 : reduce_max_1;
    const float upper21 = (long)(int)get_local_id(0) % 2 >= 1 ? reduce_max_1 : other19;
    reduce_max_1 = fmax(lower20, upper21);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    float reduce_sum_1 = 0.0f;
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      #pragma unroll
      for (long k = 0; k < 4; ++k) {
        const float exp_1 = exp(x0_r[u * 4 + k] - reduce_max_1);
        reduce_sum_1 = reduce_sum_1 + exp_1;
        r3[u * 4 + k] = exp_1;
      }
    }
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_sum_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other22 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 4)];
    reduce_sum_1 = reduce_sum_1 + other22;
    exchanged1_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_sum_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other23 = exchanged1_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 2)];
    reduce_sum_1 = reduce_sum_1 + other23;
    exchanged0_f32[(int)get_local_id(1) * 8 + (int)get_local_id(0)] = reduce_sum_1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float other24 = exchanged0_f32[(int)get_local_id(1) * 8 + ((int)get_local_id(0) ^ 1)];
    reduce_sum_1 = reduce_sum_1 + other24;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    #pragma unroll
    for (long u = 0; u < 2; ++u) {
      #pragma unroll
      for (long k = 0; k < 4; ++k) {
        y0_v0[k] = r3[u * 4 + k] / reduce_sum_1;
      }
      if (row < n0) {
        #pragma unroll
        for (long element = 0; element < 4; ++element) {
          *(y0 + (row_read * 64 + tx * 4 + u * 32) + element) = *(y0_v0 + element);
        }
      }
    }
  }
}
