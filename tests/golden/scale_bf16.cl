__kernel void scale_bf16(__global const ushort *restrict x0, __global const uchar *restrict x1, __global ushort *restrict y0, const long n0, const long n1, __local uchar *scratch, __local void *joined) {
  for (long tile = get_group_id(0); tile < n1; tile += get_num_groups(0)) {
    const long low = tile * 8192;
    const long high = low + 8192 < n0 ? low + 8192 : n0;
    for (long i0 = low + get_local_id(0); i0 < high; i0 += get_local_size(0)) {
      y0[i0] = narrow_bf16(rounded_bf16(widen_bf16(x0[i0]) * 3.0f) + (float)(x1[i0]));
    }
  }
}
