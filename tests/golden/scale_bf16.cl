__kernel void scale_bf16(__global const ushort *restrict x0, __global const uchar *restrict x1, __global ushort *restrict y0, const long n0, const long n1, __local ulong2 *scratch, __local ulong2 *joined) {
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long low = tile * 8192;
    const long high = low + 8192 < n0 ? low + 8192 : n0;
    {
      const long i0_vectors = (size_t)(x0 + low) % sizeof(ushort16) == 0 && (size_t)(x1 + low) % sizeof(uchar16) == 0 && (size_t)(y0 + low) % sizeof(ushort16) == 0 ? (high - low) / 16 : 0;
      for (long i0_vector = get_local_id(0); i0_vector < i0_vectors; i0_vector += get_local_size(0)) {
        const long i0_first = low + i0_vector * 16;
        ushort x0_vector[16];
        vstore16(*(__global const ushort16 *)(x0 + i0_first), 0, x0_vector);
        uchar x1_vector[16];
        vstore16(*(__global const uchar16 *)(x1 + i0_first), 0, x1_vector);
        ushort y0_vector[16];
        #pragma unroll
        for (int i0_k = 0; i0_k < 16; ++i0_k) {
          y0_vector[i0_k] = narrow_bf16(rounded_bf16(widen_bf16(x0_vector[i0_k]) * 3.0f) + (float)(x1_vector[i0_k]));
        }
        *(__global ushort16 *)(y0 + i0_first) = vload16(0, y0_vector);
      }
      const long i0_rest = low + i0_vectors * 16;
      for (long i0 = i0_rest + get_local_id(0); i0 < high; i0 += get_local_size(0)) {
        y0[i0] = narrow_bf16(rounded_bf16(widen_bf16(x0[i0]) * 3.0f) + (float)(x1[i0]));
      }
    }
  }
}
