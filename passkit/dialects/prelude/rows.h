// Reductions of many short rows: each row stores its lanes, and those of sixteen rows are combined at
// a time.
#ifndef PK_ROWS_H
#define PK_ROWS_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
#if PK_AVX512
// Lanes 0, 4, 8, 12 of the result are the reductions of the four lanes of block 0, 1, 2, 3 of a, the
// others the same of b, c and d: two shuffles and one f for each pair, where one row alone takes as
// many for itself.
template <class T, class F>
PK_FN simd<T, 16> reduce_blocks(simd<T, 16> a, simd<T, 16> b, simd<T, 16> c, simd<T, 16> d, F f) {
    typedef simd<T, 16> V;
    auto pair = [&](V x, V y) PK_INLINE {
        auto low = __builtin_shufflevector(x.s, y.s, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12,
                                           13, 28, 29);
        auto high = __builtin_shufflevector(x.s, y.s, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27,
                                            14, 15, 30, 31);
        return f(V::of(low), V::of(high));
    };
    V x = pair(a, b), y = pair(c, d);
    auto even = __builtin_shufflevector(x.s, y.s, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14,
                                        28, 30);
    auto odd = __builtin_shufflevector(x.s, y.s, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15,
                                       29, 31);
    return f(V::of(even), V::of(odd));
}
// Four rows of eight lanes, each reduced to the four lanes of a block: block k is that of row k. The
// first two rows lie in a, the others in b.
template <class T, class F> PK_FN simd<T, 16> join_quarters(simd<T, 16> a, simd<T, 16> b, F f) {
    typedef simd<T, 16> V;
    auto even = __builtin_shufflevector(a.s, b.s, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25,
                                        26, 27);
    auto odd = __builtin_shufflevector(a.s, b.s, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29,
                                       30, 31);
    return f(V::of(even), V::of(odd));
}
// Two rows of sixteen lanes, each reduced to eight: that of a is the lower half of the result.
template <class T, class F> PK_FN simd<T, 16> join_halves(simd<T, 16> a, simd<T, 16> b, F f) {
    typedef simd<T, 16> V;
    auto low = __builtin_shufflevector(a.s, b.s, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22,
                                       23);
    auto high = __builtin_shufflevector(a.s, b.s, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28,
                                        29, 30, 31);
    return f(V::of(low), V::of(high));
}
// The reductions of sixteen rows, each in the order of reduce(). A row has 16 lanes, or the eight that
// are left behind its first step.
template <int each, class T, class F>
PK_FN simd<T, 16> reduce_sixteen(const T *rows, F f, all_of<each>) {
    auto two = [&](int k) PK_INLINE {
        if constexpr (each == 8) return load(rows + 16 * k, all_of<16>{});
        else
            return join_halves(load(rows + 32 * k, all_of<16>{}),
                               load(rows + 32 * k + 16, all_of<16>{}), f);
    };
    auto four = [&](int k) PK_INLINE { return join_quarters(two(2 * k), two(2 * k + 1), f); };
    auto r = reduce_blocks(four(0), four(1), four(2), four(3), f).s;  // of rows 0, 4, 8, 12, 1, ...
    return simd<T, 16>::of(
        __builtin_shufflevector(r, r, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}
#endif

// The reductions of up to `most` rows, a multiple of PK_LANES. The accumulator of a row is a copy of
// `first`; `each` of its lanes are stored.
template <int most, class Reduction, int each = 16> struct row_reductions {
    typedef typename Reduction::value T;
    static constexpr bool together = whole<T, 16> && sizeof(T) == 4 && PK_LANES == 16;
    Reduction first;
    alignas(64) T lanes[most * (together ? each : 1)];

    PK_MEMBER row_reductions(Reduction first) : first(first) {}
    PK_MEMBER Reduction begin() const { return first.fresh(); }
    PK_MEMBER void end(int64_t row, const Reduction &f) {
        if constexpr (!together) lanes[row] = f.result();
        else if constexpr (each == 16) store(lanes + 16 * row, f.joined(), all_of<16>{});
        else {
            auto all = f.joined();
            store(lanes + 8 * row, first.combine()(lower(all), upper(all)), all_of<8>{});
        }
    }
    // Writes the results of the first rows, and up to 15 elements more.
    PK_MEMBER void results(T *to, int64_t rows) const {
        if constexpr (together) {
            for (int64_t r = 0; r < rows; r += 16)
                store(to + r, reduce_sixteen(lanes + each * r, first.combine(), all_of<each>{}),
                      all_of<16>{});
        } else
            for (int64_t r = 0; r < rows; r++) to[r] = lanes[r];
    }
};
template <int most, class Reduction>
PK_FN row_reductions<most, Reduction> reductions_of_rows(Reduction first) {
    return {first};
}
}  // namespace pk
#endif
