// Rows of a few elements, one behind the other in memory: their columns as vectors, and back.
#ifndef PK_NARROW_H
#define PK_NARROW_H
#ifndef PK_STRIDED_H
#include "strided.h"
#endif
#ifndef PK_TURN_H
#include "turn.h"
#endif

namespace pk {
// Vector k of the rows, right as far as columns before c are concerned, gets those of column c.
template <int C, int c, int k, class T, int L, int... j>
PK_FN simd<T, L> gain_column(simd<T, L> a, simd<T, L> b, places<j...>) {
    return simd<T, L>::of(__builtin_shufflevector(
        a.s, b.s,
        ((L * k + j) % C == c  ? L + (L * k + j) / C
         : (L * k + j) % C > c ? -1
         : c == 1              ? (L * k + j) / C
                               : j)...));
}
template <int C, int c, int k, class T, int L> PK_FN simd<T, L> part_of(const simd<T, L> *v) {
    first_places<L> all;
    if constexpr (c == 1) return gain_column<C, 1, k>(v[0], v[1], all);
    else return gain_column<C, c, k>(part_of<C, c - 1, k>(v), v[c], all);
}
template <int C, class T, int L, int... k>
PK_FN void together_whole(simd<T, L> *to, const simd<T, L> *v, places<k...>) {
    ((to[k] = part_of<C, C - 1, k>(v)), ...);
}

// Of `count` rows that follow each other, L at a time.
template <int C, int L, class T, class M>
PK_FN void apart_rows(T *to, const T *from, int64_t count, M m) {
    if constexpr (!whole<T, L>) {
        apart_rows<C, L / 2>(to, from, count, m);
        apart_rows<C, L / 2>(to + L / 2, from + L / 2 * C, count - L / 2, m);
    } else {
        T room[L * C];
        if (!all_on(m)) {
#pragma GCC unroll 16
            for (int k = 0; k < C; k++) {
                auto on = first_of<L>(count * C - L * k);
                store_whole(room + L * k, load_masked<T, L>(from + L * k, on));
            }
            from = room;
        }
        simd<T, L> column[C];
        load_apart<C>(column, from, first_places<C>{});
#pragma GCC unroll 16
        for (int c = 0; c < C; c++) store_whole(to + PK_LANES * c, column[c]);
    }
}
template <int C, int L, class T, class M>
PK_FN void together_rows(T *to, const T *from, int64_t count, M m) {
    if constexpr (!whole<T, L>) {
        together_rows<C, L / 2>(to, from, count, m);
        together_rows<C, L / 2>(to + L / 2 * C, from + L / 2, count - L / 2, m);
    } else {
        simd<T, L> v[C], w[C];
#pragma GCC unroll 16
        for (int c = 0; c < C; c++) v[c] = load_whole<T, L>(from + PK_LANES * c);
        together_whole<C>(w, v, first_places<C>{});
#pragma GCC unroll 16
        for (int k = 0; k < C; k++)
            if (all_on(m)) store_whole(to + L * k, w[k]);
            else store_masked(to + L * k, w[k], first_of<L>(count * C - L * k));
    }
}

// Row c of the block is lane by lane from[c + lane * C]; and the way back. Lanes that are on are
// the first ones; what belongs to others is not touched.
template <int C, class T, class M> PK_FN void columns_apart(T *to, const T *from, M m) {
    typedef uint_of<T> U;
    apart_rows<C, PK_LANES>((U *)to, (const U *)from, num_on(m), m);
}
template <int C, class T, class M> PK_FN void columns_together(T *to, const T *from, M m) {
    typedef uint_of<T> U;
    together_rows<C, PK_LANES>((U *)to, (const U *)from, num_on(m), m);
}
}  // namespace pk
#endif
