// Matrix products behind the kernel ABI: a tile is a block of rows of one matrix of a batch.
//
// buf:  cblas_?gemm or null, A, B, C
// size: m, n, k, trans_a, trans_b, lda, ldb, ldc, batch, stride_a, stride_b, stride_c,
//       rows_per_tile, ilp64 (1 where cblas takes 64-bit integers)
//
// And sums of products, A1 B1 + A2 B2 + ...: a tile is a block of the one result, to which each
// pair adds in turn while it lies in the caches.
//
// buf:  cblas_?gemm or null, A1, B1, A2, B2, ..., C
// size: m, n, trans_a, trans_b, pairs, rows_per_tile, columns_per_tile, ilp64, then for each pair
//       k, lda, ldb
//
// There is one cblas call for each tile and pair, however tiles are shared out: the bits of the
// result do not depend on the number of threads.
#pragma once
#include <stdint.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

typedef struct {
    void *cblas;
    int64_t trans_a, trans_b, ilp64;
} Product;

// For one element type the entries NAME(buf, size, begin, end, scratch) and NAME##_sum(...).
#define DEFINE_GEMM(NAME, T)                                                                       \
    static void NAME##_plain(const Product *p, int64_t m, int64_t n, int64_t k, const T *a,        \
                             int64_t lda, const T *b, int64_t ldb, T beta, T *c, int64_t ldc) {    \
        int64_t a_row = p->trans_a ? 1 : lda, a_step = p->trans_a ? lda : 1;                       \
        int64_t b_row = p->trans_b ? 1 : ldb, b_step = p->trans_b ? ldb : 1;                       \
        for (int64_t i = 0; i < m; i++) {                                                          \
            T *row = c + i * ldc;                                                                  \
            if (beta == 0) memset(row, 0, (size_t)n * sizeof(T));                                  \
            for (int64_t q = 0; q < k; q++) {                                                      \
                T x = a[i * a_row + q * a_step];                                                   \
                const T *y = b + q * b_row;                                                        \
                for (int64_t j = 0; j < n; j++) row[j] += x * y[j * b_step];                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    typedef void (*NAME##_32)(int, int, int, int32_t, int32_t, int32_t, T, const T *, int32_t,     \
                              const T *, int32_t, T, T *, int32_t);                                \
    typedef void (*NAME##_64)(int, int, int, int64_t, int64_t, int64_t, T, const T *, int64_t,     \
                              const T *, int64_t, T, T *, int64_t);                                \
    /* c = a b + beta c, beta being 0 or 1 */                                                      \
    static void NAME##_block(const Product *p, int64_t m, int64_t n, int64_t k, const T *a,        \
                             int64_t lda, const T *b, int64_t ldb, T beta, T *c, int64_t ldc) {    \
        int trans_a = p->trans_a ? TRANSPOSED : AS_IS, trans_b = p->trans_b ? TRANSPOSED : AS_IS;  \
        if (k <= 0 || !p->cblas)                                                                   \
            NAME##_plain(p, m, n, k, a, lda, b, ldb, beta, c, ldc);                                \
        else if (p->ilp64)                                                                         \
            ((NAME##_64)p->cblas)(ROW_MAJOR, trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, beta,   \
                                  c, ldc);                                                         \
        else                                                                                       \
            ((NAME##_32)p->cblas)(ROW_MAJOR, trans_a, trans_b, (int32_t)m, (int32_t)n, (int32_t)k, \
                                  1, a, (int32_t)lda, b, (int32_t)ldb, beta, c, (int32_t)ldc);     \
    }                                                                                              \
    static void NAME(void *const *buf, const int64_t *size, int64_t begin, int64_t end,            \
                     unsigned char *scratch) {                                                     \
        (void)scratch;                                                                             \
        int64_t m = size[0], n = size[1], k = size[2], lda = size[5], ldb = size[6];               \
        int64_t ldc = size[7], height = size[12];                                                  \
        Product p = {buf[0], size[3], size[4], size[13]};                                          \
        if (m <= 0 || n <= 0 || height <= 0) return;                                               \
        int64_t blocks = (m + height - 1) / height;                                                \
        for (int64_t tile = begin; tile < end; tile++) {                                           \
            int64_t index = tile / blocks, first = tile % blocks * height;                         \
            int64_t rows = m - first < height ? m - first : height;                                \
            const T *a = (const T *)buf[1] + index * size[9] + first * (p.trans_a ? 1 : lda);      \
            const T *b = (const T *)buf[2] + index * size[10];                                     \
            T *c = (T *)buf[3] + index * size[11] + first * ldc;                                   \
            NAME##_block(&p, rows, n, k, a, lda, b, ldb, 0, c, ldc);                               \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_sum(void *const *buf, const int64_t *size, int64_t begin, int64_t end,      \
                           unsigned char *scratch) {                                               \
        (void)scratch;                                                                             \
        int64_t m = size[0], n = size[1], pairs = size[4], height = size[5], width = size[6];      \
        Product p = {buf[0], size[2], size[3], size[7]};                                           \
        if (m <= 0 || n <= 0 || height <= 0 || width <= 0) return;                                 \
        int64_t across = (n + width - 1) / width;                                                  \
        for (int64_t tile = begin; tile < end; tile++) {                                           \
            int64_t top = tile / across * height, left = tile % across * width;                    \
            int64_t rows = m - top < height ? m - top : height;                                    \
            int64_t columns = n - left < width ? n - left : width;                                 \
            T *c = (T *)buf[1 + 2 * pairs] + top * n + left;                                       \
            for (int64_t k = 0; k < pairs; k++) {                                                  \
                const int64_t *own = size + 8 + 3 * k;                                             \
                const T *a = (const T *)buf[1 + 2 * k] + top * (p.trans_a ? 1 : own[1]);           \
                const T *b = (const T *)buf[2 + 2 * k] + left * (p.trans_b ? own[2] : 1);          \
                NAME##_block(&p, rows, columns, own[0], a, own[1], b, own[2], k > 0, c, n);        \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_GEMM(gemm_f32, float)
DEFINE_GEMM(gemm_f64, double)
