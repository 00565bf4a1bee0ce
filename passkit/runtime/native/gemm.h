// Matrix products behind the kernel ABI: a tile is a block of rows of one matrix of a batch.
//
// buf:  cblas_?gemm or null, A, B, C
// size: m, n, k, trans_a, trans_b, lda, ldb, ldc, batch, stride_a, stride_b, stride_c,
//       rows_per_tile, ilp64 (1 where cblas takes 64-bit integers)
// There is one cblas call for each tile, however tiles are shared out: the bits of the result do
// not depend on the number of threads.
#pragma once
#include <stdint.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

// The entry for one element type: NAME(buf, size, begin, end, scratch).
#define DEFINE_GEMM(NAME, T)                                                                       \
    static void NAME##_plain(const int64_t *size, int64_t rows, const T *a, const T *b, T *c) {    \
        int64_t n = size[1], k = size[2], lda = size[5], ldb = size[6], ldc = size[7];             \
        int64_t a_row = size[3] ? 1 : lda, a_step = size[3] ? lda : 1;                             \
        int64_t b_row = size[4] ? 1 : ldb, b_step = size[4] ? ldb : 1;                             \
        for (int64_t i = 0; i < rows; i++) {                                                       \
            T *row = c + i * ldc;                                                                  \
            memset(row, 0, (size_t)n * sizeof(T));                                                 \
            for (int64_t p = 0; p < k; p++) {                                                      \
                T x = a[i * a_row + p * a_step];                                                   \
                const T *y = b + p * b_row;                                                        \
                for (int64_t j = 0; j < n; j++) row[j] += x * y[j * b_step];                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    typedef void (*NAME##_32)(int, int, int, int32_t, int32_t, int32_t, T, const T *, int32_t,     \
                              const T *, int32_t, T, T *, int32_t);                                \
    typedef void (*NAME##_64)(int, int, int, int64_t, int64_t, int64_t, T, const T *, int64_t,     \
                              const T *, int64_t, T, T *, int64_t);                                \
    static void NAME(void *const *buf, const int64_t *size, int64_t begin, int64_t end,            \
                     unsigned char *scratch) {                                                     \
        (void)scratch;                                                                             \
        int64_t m = size[0], n = size[1], k = size[2], lda = size[5], ldb = size[6];               \
        int64_t ldc = size[7], height = size[12];                                                  \
        int trans_a = size[3] ? TRANSPOSED : AS_IS, trans_b = size[4] ? TRANSPOSED : AS_IS;        \
        if (m <= 0 || n <= 0 || height <= 0) return;                                               \
        int64_t blocks = (m + height - 1) / height;                                                \
        for (int64_t tile = begin; tile < end; tile++) {                                           \
            int64_t index = tile / blocks, first = tile % blocks * height;                         \
            int64_t rows = m - first < height ? m - first : height;                                \
            const T *a = (const T *)buf[1] + index * size[9] + first * (size[3] ? 1 : lda);        \
            const T *b = (const T *)buf[2] + index * size[10];                                     \
            T *c = (T *)buf[3] + index * size[11] + first * ldc;                                   \
            if (k <= 0 || !buf[0])                                                                 \
                NAME##_plain(size, rows, a, b, c);                                                 \
            else if (size[13])                                                                     \
                ((NAME##_64)buf[0])(ROW_MAJOR, trans_a, trans_b, rows, n, k, 1, a, lda, b, ldb, 0, \
                                    c, ldc);                                                       \
            else                                                                                   \
                ((NAME##_32)buf[0])(ROW_MAJOR, trans_a, trans_b, (int32_t)rows, (int32_t)n,        \
                                    (int32_t)k, 1, a, (int32_t)lda, b, (int32_t)ldb, 0, c,         \
                                    (int32_t)ldc);                                                 \
        }                                                                                          \
    }

DEFINE_GEMM(gemm_f32, float)
DEFINE_GEMM(gemm_f64, double)
