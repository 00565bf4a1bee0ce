// Matrix products with the interface of kernels: a tile is a block of one matrix of a batch.
//
// buf:  cblas_?gemm or null, or oneDNN's table; A, B, C
// size: m, n, k, trans_a, trans_b, lda, ldb, ldc, batch, stride_a, stride_b, stride_c,
//       rows_per_tile, columns_per_tile, kind (0: cblas, 1: cblas with 64-bit integers, 2: a table
//       of oneDNN's functions, and of cblas in case they fail; 4 and 5: cblas_?gemv instead of
//       gemm, for tiles of one row or one column)
//
// Sums of products, A1 B1 + A2 B2 + ...: a tile is a block of the result, to which all pairs are added
// one after the other while it is in the caches.
//
// buf:  as above, A1, B1, A2, B2, ..., C
// size: m, n, trans_a, trans_b, pairs, rows_per_tile, columns_per_tile, kind, then for each pair
//       k, lda, ldb
//
// Products that sum over many rows, A of shape (k, m) or (m, k) with a small m n: a tile multiplies a
// range of the k rows, and another kernel adds the results.
//
// buf:  as above, A, B, the results of the tiles (tiles, m, n)
// size: m, n, k, trans_a, trans_b, lda, ldb, rows_per_tile, kind
//
// buf:  the results of the tiles, C
// size: tiles, m n, elements_per_tile
//
// There is one library call per tile and pair, whichever thread runs the tile: the bits of the result
// do not depend on the number of threads.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };
enum { WIDE = 1, ONEDNN = 2, GEMV = 4 };  // kinds; GEMV or GEMV + WIDE
enum { SGEMM, GET_THREADS, SET_THREADS, CBLAS, CBLAS_KIND, REPORTED };  // oneDNN's table

typedef struct {
    void *library;
    int64_t trans_a, trans_b, kind;
} Product;

typedef int (*DnnlSgemm)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t,
                         const float *, int64_t, float, float *, int64_t);

// Multiply by oneDNN on this thread; return whether it succeeded. After a failure the product uses BLAS.
static int by_onednn(Product *p, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                     const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
    int64_t *table = (int64_t *)p->library;
    void (*set_threads)(int) = (void (*)(int))table[SET_THREADS];
    int before = ((int (*)(void))table[GET_THREADS])();
    if (before != 1) set_threads(1);
    int status = ((DnnlSgemm)table[SGEMM])(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', m, n, k,
                                           1, a, lda, b, ldb, beta, c, ldc);
    if (before != 1) set_threads(before);
    if (!status) return 1;
    if (!__atomic_exchange_n(&table[REPORTED], 1, __ATOMIC_RELAXED))
        fprintf(stderr, "passkit: oneDNN failed with status %d in a product of matrices, which "
                        "BLAS computes instead\n", status);
    p->library = (void *)table[CBLAS];
    p->kind = table[CBLAS_KIND];
    return 0;
}

// Define the kernels NAME, NAME##_sum, NAME##_rows and NAME##_total for one element type.
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
    typedef void (*NAME##_v32)(int, int, int32_t, int32_t, T, const T *, int32_t, const T *,       \
                               int32_t, T, T *, int32_t);                                          \
    typedef void (*NAME##_v64)(int, int, int64_t, int64_t, T, const T *, int64_t, const T *,       \
                               int64_t, T, T *, int64_t);                                          \
    /* a row: c = a b + beta c */                                                                  \
    static void NAME##_row(const Product *p, int64_t n, int64_t k, const T *a, int64_t lda,        \
                           const T *b, int64_t ldb, T beta, T *c) {                                \
        int trans = p->trans_b ? AS_IS : TRANSPOSED;                                               \
        int64_t rows = p->trans_b ? n : k, columns = p->trans_b ? k : n;                           \
        int64_t step = p->trans_a ? lda : 1;                                                       \
        if (p->kind & WIDE)                                                                        \
            ((NAME##_v64)p->library)(ROW_MAJOR, trans, rows, columns, 1, b, ldb, a, step, beta, c, \
                                     1);                                                           \
        else                                                                                       \
            ((NAME##_v32)p->library)(ROW_MAJOR, trans, (int32_t)rows, (int32_t)columns, 1, b,      \
                                     (int32_t)ldb, a, (int32_t)step, beta, c, 1);                  \
    }                                                                                              \
    /* a column: c = a b + beta c */                                                               \
    static void NAME##_column(const Product *p, int64_t m, int64_t k, const T *a, int64_t lda,     \
                              const T *b, int64_t ldb, T beta, T *c, int64_t ldc) {                \
        int trans = p->trans_a ? TRANSPOSED : AS_IS;                                               \
        int64_t rows = p->trans_a ? k : m, columns = p->trans_a ? m : k;                           \
        int64_t step = p->trans_b ? 1 : ldb;                                                       \
        if (p->kind & WIDE)                                                                        \
            ((NAME##_v64)p->library)(ROW_MAJOR, trans, rows, columns, 1, a, lda, b, step, beta, c, \
                                     ldc);                                                         \
        else                                                                                       \
            ((NAME##_v32)p->library)(ROW_MAJOR, trans, (int32_t)rows, (int32_t)columns, 1, a,      \
                                     (int32_t)lda, b, (int32_t)step, beta, c, (int32_t)ldc);       \
    }                                                                                              \
    /* c = a b + beta c, beta being 0 or 1 */                                                      \
    static void NAME##_block(Product *p, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, \
                             const T *b, int64_t ldb, T beta, T *c, int64_t ldc) {                 \
        int trans_a = p->trans_a ? TRANSPOSED : AS_IS, trans_b = p->trans_b ? TRANSPOSED : AS_IS;  \
        if (k > 0 && p->kind == ONEDNN &&                                                          \
            by_onednn(p, m, n, k, (const float *)a, lda, (const float *)b, ldb, (float)beta,       \
                      (float *)c, ldc))                                                            \
            return;                                                                                \
        if (k > 0 && p->kind & GEMV && m == 1)                                                     \
            NAME##_row(p, n, k, a, lda, b, ldb, beta, c);                                          \
        else if (k > 0 && p->kind & GEMV)                                                          \
            NAME##_column(p, m, k, a, lda, b, ldb, beta, c, ldc);                                  \
        else if (k <= 0 || !p->library)                                                            \
            NAME##_plain(p, m, n, k, a, lda, b, ldb, beta, c, ldc);                                \
        else if (p->kind == WIDE)                                                                  \
            ((NAME##_64)p->library)(ROW_MAJOR, trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, beta, \
                                    c, ldc);                                                       \
        else                                                                                       \
            ((NAME##_32)p->library)(ROW_MAJOR, trans_a, trans_b, (int32_t)m, (int32_t)n,           \
                                    (int32_t)k, 1, a, (int32_t)lda, b, (int32_t)ldb, beta, c,      \
                                    (int32_t)ldc);                                                 \
    }                                                                                              \
    static void NAME(void *const *buf, const int64_t *size, int64_t begin, int64_t end,            \
                     unsigned char *scratch) {                                                     \
        (void)scratch;                                                                             \
        int64_t m = size[0], n = size[1], k = size[2], lda = size[5], ldb = size[6];               \
        int64_t ldc = size[7], height = size[12], width = size[13];                                \
        Product p = {buf[0], size[3], size[4], size[14]};                                          \
        if (m <= 0 || n <= 0 || height <= 0 || width <= 0) return;                                 \
        int64_t down = (m + height - 1) / height, across = (n + width - 1) / width;                \
        for (int64_t tile = begin; tile < end; tile++) {                                           \
            int64_t index = tile / (down * across), block = tile % (down * across);                \
            int64_t top = block / across * height, left = block % across * width;                  \
            int64_t rows = m - top < height ? m - top : height;                                    \
            int64_t columns = n - left < width ? n - left : width;                                 \
            const T *a = (const T *)buf[1] + index * size[9] + top * (p.trans_a ? 1 : lda);        \
            const T *b = (const T *)buf[2] + index * size[10] + left * (p.trans_b ? ldb : 1);      \
            T *c = (T *)buf[3] + index * size[11] + top * ldc + left;                              \
            NAME##_block(&p, rows, columns, k, a, lda, b, ldb, 0, c, ldc);                         \
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
    }                                                                                              \
    static void NAME##_rows(void *const *buf, const int64_t *size, int64_t begin, int64_t end,     \
                            unsigned char *scratch) {                                              \
        (void)scratch;                                                                             \
        int64_t m = size[0], n = size[1], k = size[2], lda = size[5], ldb = size[6];               \
        int64_t height = size[7];                                                                  \
        Product p = {buf[0], size[3], size[4], size[8]};                                           \
        for (int64_t tile = begin; tile < end; tile++) {                                           \
            int64_t first = tile * height, rows = k - first < height ? k - first : height;         \
            const T *a = (const T *)buf[1] + first * (p.trans_a ? lda : 1);                        \
            const T *b = (const T *)buf[2] + first * (p.trans_b ? 1 : ldb);                        \
            T *c = (T *)buf[3] + tile * m * n;                                                     \
            NAME##_block(&p, m, n, rows, a, lda, b, ldb, 0, c, n);                                 \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_total(void *const *buf, const int64_t *size, int64_t begin, int64_t end,    \
                             unsigned char *scratch) {                                             \
        (void)scratch;                                                                             \
        int64_t parts = size[0], length = size[1], width = size[2];                                \
        int64_t first = begin * width, last = end * width < length ? end * width : length;         \
        const T *part = (const T *)buf[0];                                                         \
        T *c = (T *)buf[1];                                                                        \
        for (int64_t j = first; j < last; j++) c[j] = part[j];                                     \
        for (int64_t q = 1; q < parts; q++)                                                        \
            for (int64_t j = first; j < last; j++) c[j] += part[q * length + j];                   \
    }

DEFINE_GEMM(gemm_f32, float)
DEFINE_GEMM(gemm_f64, double)
