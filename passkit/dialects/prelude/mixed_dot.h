// Products of matrices of 16-bit floats, which may have float among them: a chain of fma in float,
// rounded once. Tiles of both factors are widened on the way.
#ifndef PK_MIXED_DOT_H
#define PK_MIXED_DOT_H
#ifndef PK_DOT_H
#include "dot.h"
#endif
#ifndef PK_HALF_H
#include "half.h"
#endif

namespace pk {
PK_FN float widened(float x) { return x; }
template <int L> PK_FN simd<float, L> widened(simd<float, L> x) { return x; }
template <class V> PK_FN auto widened(V x) { return widen(x); }

// A tile, row by row, as floats.
template <class T>
__attribute__((noinline)) static void widen_tile(float *to, int64_t down, matrix<const T> from,
                                                 int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++, to += down, from.at += from.down)
        if (from.along == 1)
            lanes(0, columns, [&](int64_t j, auto m) PK_INLINE {
                store(to + j, widened(load(from.at + j, m)), m);
            });
        else
            for (int64_t j = 0; j < columns; j++) to[j] = widened(from.at[j * from.along]);
}
template <class T>
__attribute__((noinline)) static void narrow_tile(matrix<T> to, const float *from, int64_t down,
                                                  int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++, to.at += to.down, from += down)
        for (int64_t j = 0; j < columns; j++)
            if constexpr (__is_same(T, float)) to.at[j * to.along] = from[j];
            else to.at[j * to.along] = narrow<T>(from[j]);
}

template <class C, class A, class B>
static void mixed_dot(matrix<C> c, matrix<const A> a, matrix<const B> b, int64_t m, int64_t n,
                      int64_t k) {
    typedef dot_shape<float> shape;
    constexpr int64_t height = 4 * shape::rows, width = shape::width, depth = shape::depth;
    alignas(64) float sums[height * width], left[height * depth], right[depth * width];
    for (int64_t i = 0; i < m; i += height)
        for (int64_t j = 0; j < n; j += width) {
            const int64_t rows = m - i < height ? m - i : height;
            const int64_t columns = n - j < width ? n - j : width;
            const int64_t vectors = (columns + shape::lanes - 1) / shape::lanes;
            int64_t low = 0;
            do {
                const int64_t steps = k - low < depth ? k - low : depth;
                widen_tile<A>(left, depth, {a.at + i * a.down + low * a.along, a.down, a.along},
                              rows, steps);
                widen_tile<B>(right, width, {b.at + low * b.down + j * b.along, b.down, b.along},
                              steps, columns);
                const dot_work<float> w{right, width, steps, columns - shape::lanes * (vectors - 1),
                                        low == 0};
                dot_vectors<float>({sums, width, 1}, {left, depth, 1}, rows, w, vectors);
                low += steps;
            } while (low < k);
            narrow_tile<C>({c.at + i * c.down + j * c.along, c.down, c.along}, sums, width, rows,
                           columns);
        }
}
}  // namespace pk
#endif
