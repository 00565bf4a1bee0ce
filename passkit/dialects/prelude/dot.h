// Products of matrices, c = a b: each element is a chain of fma in the order of k, from 0 on, so
// that how a product is cut into blocks never shows in its bits. Integers wrap.
#ifndef PK_DOT_H
#define PK_DOT_H
#ifndef PK_ARITHMETIC_H
#include "arithmetic.h"
#endif
#ifndef PK_TURN_H
#include "turn.h"
#endif

namespace pk {
// Element (i, j) is at[i * down + j * along].
template <class T> struct matrix {
    T *at;
    int64_t down, along;
};
template <class T> matrix(T *, int64_t, int64_t) -> matrix<T>;

// Blocks of `rows` × `vectors` sums stay in registers, with a row of vectors of b and one element
// of a: 24 of 32 registers, or 12 of 16. Where b cannot be read as vectors, or where its ends would
// need masks that the machine lacks, `depth` rows of its columns are copied to a panel.
template <class T> struct dot_shape {
    static constexpr int registers = PK_BYTES == 64 ? 32 : 16;
    static constexpr int lanes = PK_BYTES / sizeof(T) < 16 ? PK_BYTES / sizeof(T) : 16;
    static constexpr int rows = registers == 32 ? 8 : 6, vectors = registers == 32 ? 3 : 2;
    static constexpr int depth = 64, width = lanes * vectors;
    typedef simd<T, lanes> vector;
    typedef mask_t<lanes> mask;
};
template <class T, int L>
PK_FN simd<T, L> dot_step(simd<T, L> x, simd<T, L> y, simd<T, L> sum) {
    if constexpr (traits<T>::is_float) return fma(x, y, sum);
    else return sum + x * y;
}

// What a block is given: its vectors, of which the last one has `last` elements; the rows of b; the
// steps of k, and whether sums begin with them or go on from what c has.
template <class T> struct dot_work {
    const T *b;
    int64_t b_down, steps, last;
    bool begins;
};

// A block of c, whose rows are vectors; the first `done` of them are there already.
template <int R, int V, class T>
PK_FN void dot_block(matrix<T> c, matrix<const T> a, const dot_work<T> &w, int64_t done) {
    typedef typename dot_shape<T>::vector vector;
    constexpr int L = dot_shape<T>::lanes;
#if PK_AVX512
    const mask_t<L> on = first_of<L>(w.last);
#else
    const all_of<L> on;
#endif
    vector sum[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 3
        for (int v = 0; v < V; v++) sum[r][v] = T(0);
    if (!w.begins)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
#pragma GCC unroll 3
            for (int v = 0; v < V; v++) {
                const T *p = c.at + r * c.down + v * L;
                sum[r][v] = v + 1 < V ? load_whole<T, L>(p) : load(p, on);
            }
    const T *x = a.at, *y = w.b;
    for (int64_t k = 0; k < w.steps; k++, x += a.along, y += w.b_down) {
        vector row[V];
#pragma GCC unroll 3
        for (int v = 0; v < V; v++)
            row[v] = v + 1 < V ? load_whole<T, L>(y + v * L) : load(y + v * L, on);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const vector factor = x[r * a.down];
#pragma GCC unroll 3
            for (int v = 0; v < V; v++) sum[r][v] = dot_step(factor, row[v], sum[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
        if (r >= done)
#pragma GCC unroll 3
            for (int v = 0; v < V; v++) {
                T *p = c.at + r * c.down + v * L;
                if (v + 1 < V) store_whole(p, sum[r][v]);
                else store(p, sum[r][v], on);
            }
}

// Copies a few rows and columns, element by element.
template <class T, class From>
__attribute__((noinline)) static void dot_copy(matrix<T> to, matrix<From> from, int64_t rows,
                                               int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
#pragma GCC unroll 1
        for (int64_t j = 0; j < columns; j++)
            to.at[i * to.down + j * to.along] = from.at[i * from.down + j * from.along];
}

// All rows of a few columns, block by block. The last block reaches back over rows that are done.
// Where c has no vectors in memory, or ends that no mask can keep apart, a block is put together
// elsewhere.
template <int V, class T>
__attribute__((noinline)) static void dot_columns(matrix<T> c, matrix<const T> a, int64_t m,
                                                  const dot_work<T> &w) {
    constexpr int L = dot_shape<T>::lanes, R = dot_shape<T>::rows, H = R / 2;
    const int64_t height = m >= R ? R : m >= H ? H : 1, columns = (V - 1) * L + w.last;
    const bool straight = c.along == 1 && (PK_BYTES == 64 || w.last == L);
    alignas(64) T held[R * V * L];
    const matrix<T> tile{held, V * L, 1};
    for (int64_t i = 0; i < m; i += height) {
        const int64_t done = i + height > m ? i + height - m : 0;
        const matrix<T> to{c.at + (i - done) * c.down, c.down, c.along};
        const matrix<const T> from{a.at + (i - done) * a.down, a.down, a.along};
        if (!straight && !w.begins) dot_copy(tile, to, height, columns);
        const matrix<T> block = straight ? to : tile;
        if (height == R) dot_block<R, V>(block, from, w, done);
        else if (height == H) dot_block<H, V>(block, from, w, done);
        else dot_block<1, V>(block, from, w, done);
        if (!straight)
            dot_copy(matrix{to.at + done * c.down, c.down, c.along},
                     matrix{held + done * V * L, V * L, 1}, height - done, columns);
    }
}

// The columns of so many vectors.
template <class T>
PK_FN void dot_vectors(matrix<T> c, matrix<const T> a, int64_t m, const dot_work<T> &w,
                       int64_t vectors) {
    if (vectors == 1) dot_columns<1, T>(c, a, m, w);
    else if (vectors == 2) dot_columns<2, T>(c, a, m, w);
    else if constexpr (dot_shape<T>::vectors == 3) dot_columns<3, T>(c, a, m, w);
}

// A panel: columns of b as rows of vectors. Where those lie in memory, squares of them are turned;
// the last square has some of the one before once more.
template <class T>
__attribute__((noinline)) static void dot_panel(T *to, matrix<const T> b, int64_t depth,
                                                int64_t width) {
    constexpr int L = dot_shape<T>::lanes, stride = dot_shape<T>::width;
    if (b.down != 1 || depth < L || width < L)
        return dot_copy(matrix{to, stride, 1}, b, depth, width);
    for (int64_t j = 0, at = 0; j < width; j += L, at = j + L < width ? j : width - L)
        for (int64_t k = 0, low = 0; k < depth; k += L, low = k + L < depth ? k : depth - L) {
            simd<T, L> v[L];
#pragma GCC unroll 16
            for (int i = 0; i < L; i++) v[i] = load_whole<T, L>(b.at + low + (at + i) * b.along);
            turn_square<L>(v);
#pragma GCC unroll 16
            for (int i = 0; i < L; i++) store_whole(to + (low + i) * stride + at, v[i]);
        }
}

template <class T>
static void dot_blocks(matrix<T> c, matrix<const T> a, matrix<const T> b, int64_t m, int64_t n,
                       int64_t k) {
    typedef dot_shape<T> shape;
    constexpr int L = shape::lanes;
    alignas(64) T panel[shape::depth * shape::width];
    int64_t vectors = (n + L - 1) / L, blocks = (vectors + shape::vectors - 1) / shape::vectors;
    for (int64_t j = 0; blocks > 0; blocks--) {  // blocks as equal as can be
        const int64_t some = (vectors + blocks - 1) / blocks;
        const int64_t width = n - j < L * some ? n - j : L * some;
        const bool direct = b.along == 1 && (PK_BYTES == 64 || width == L * some);
        const int64_t depth = direct ? k : shape::depth;
        int64_t low = 0;
        do {
            const int64_t steps = k - low < depth ? k - low : depth;
            const matrix<const T> part{b.at + low * b.down + j * b.along, b.down, b.along};
            if (!direct) dot_panel<T>(panel, part, steps, width);
            const dot_work<T> w{direct ? part.at : panel, direct ? b.down : shape::width, steps,
                                width - L * (some - 1), low == 0};
            const matrix<T> to{c.at + j * c.along, c.down, c.along};
            const matrix<const T> from{a.at + low * a.along, a.down, a.along};
            dot_vectors<T>(to, from, m, w, some);
            low += steps;
        } while (low < k);
        vectors -= some;
        j += width;
    }
}

// c = a b of (m, k) and (k, n). The lanes go along the rows of c, or down its columns where those
// are what lies in memory, or where rows are short. Other types than c's need mixed_dot.h.
template <class T> struct dot_element {
    typedef T type;
};
template <class T> struct dot_element<const T> {
    typedef T type;
};
template <class C, class A, class B>
PK_FN void dot(matrix<C> c, matrix<A> a, matrix<B> b, int64_t m, int64_t n, int64_t k) {
    typedef typename dot_element<A>::type TA;
    typedef typename dot_element<B>::type TB;
    const matrix<const TA> x{a.at, a.down, a.along};
    const matrix<const TB> y{b.at, b.down, n == 1 ? 1 : b.along};
    if constexpr (__is_class(C) || !__is_same(TA, C) || !__is_same(TB, C))
        mixed_dot(c, x, y, m, n, k);
    else {
        const bool short_rows = n < dot_shape<C>::lanes && n < m && a.down == 1;
        if ((c.along != 1 && c.down == 1) || short_rows)
            dot_blocks<C>({c.at, c.along, c.down}, {y.at, y.along, y.down}, {x.at, x.along, x.down},
                          n, m, k);
        else dot_blocks<C>(c, x, y, m, n, k);
    }
}
}  // namespace pk
#endif
