// Updates of rows that data names: each row of the result takes its updates in their order.
//
// A call takes a part of all rows, or, where rows are long, of their columns; it goes through all
// updates and drops those that are not for it. So bits do not depend on how the work is shared out.
#ifndef PK_SCATTER_H
#define PK_SCATTER_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
#define PK_JOIN(name, value)                                                                       \
    struct name {                                                                                  \
        template <class A> PK_MEMBER A operator()(A a, A b) const { return A(value); }             \
    };
PK_JOIN(join_update, b)
PK_JOIN(join_add, a + b)
PK_JOIN(join_sub, a - b)
PK_JOIN(join_mul, a *b)
PK_JOIN(join_min, minimum(a, b))
PK_JOIN(join_max, maximum(a, b))
#undef PK_JOIN

// Columns from `first` to `last` of a row.
template <class T, class F> PK_FN void join_row(T *y, const T *u, int64_t first, int64_t last, F f) {
    lanes(first, last, [&](int64_t j, auto m) PK_INLINE {
        store(y + j, f(load(y + j, m), load(u + j, m)), m);
    });
}
template <class T> PK_FN void copy_part(T *y, const T *x, int64_t count) {
    if (y != x && count > 0) __builtin_memcpy(y, x, count * sizeof(T));
}

// x, y: (outer, middle, rows, length); at: (outer, count); u: (outer, middle, count, length)
struct scattered {
    int64_t outer, middle, rows, count, length, tiles;
};
// Rows from `from` to `until`, counted through all images.
template <class T, class F>
PK_FN void scatter_rows(const T *x, const int64_t *at, const T *u, T *y, scattered s, int64_t from,
                        int64_t until, F f) {
    copy_part(y + from * s.length, x + from * s.length, (until - from) * s.length);
    for (int64_t b = s.rows ? from / s.rows : 0; b * s.rows < until; ++b) {
        const int64_t low = from > b * s.rows ? from - b * s.rows : 0;
        const int64_t high = until < (b + 1) * s.rows ? until - b * s.rows : s.rows;
        const int64_t *const named = at + b / s.middle * s.count;
        const T *const mine = u + b * s.count * s.length;
        T *const rows = y + b * s.rows * s.length;
        for (int64_t k = 0; k < s.count; ++k) {
            if (named[k] < low || named[k] >= high) continue;
            if (s.length == 1) rows[named[k]] = f(rows[named[k]], mine[k]);
            else join_row(rows + named[k] * s.length, mine + k * s.length, 0, s.length, f);
        }
    }
}
template <class T, class F>
PK_FN void scatter_columns(const T *x, const int64_t *at, const T *u, T *y, scattered s,
                           int64_t begin, int64_t end, F f) {
    const int64_t first = s.length * begin / s.tiles / 16 * 16;
    const int64_t last = end == s.tiles ? s.length : s.length * end / s.tiles / 16 * 16;
    for (int64_t b = 0; b < s.outer * s.middle; ++b) {
        for (int64_t r = b * s.rows; r < (b + 1) * s.rows; ++r)
            copy_part(y + r * s.length + first, x + r * s.length + first, last - first);
        const int64_t *const named = at + b / s.middle * s.count;
        for (int64_t k = 0; k < s.count; ++k)
            if (named[k] >= 0 && named[k] < s.rows)
                join_row(y + (b * s.rows + named[k]) * s.length,
                         u + (b * s.count + k) * s.length, first, last, f);
    }
}
template <class T, class F>
PK_FN void scatter(void *const *buf, const int64_t *size, int64_t begin, int64_t end) {
    const scattered s = {size[0], size[1], size[2], size[3], size[4], size[5]};
    const T *const x = (const T *)buf[0], *const u = (const T *)buf[2];
    const int64_t *const at = (const int64_t *)buf[1];
    // Which thread an update is for cannot be predicted: half of the guesses are wrong. So threads
    // share the columns of long rows, and short rows, which cost no more than a guess, by images.
    const int64_t images = s.outer * s.middle, each = s.length < 16 ? s.rows : 1;
    const int64_t units = images * (s.length < 16 ? 1 : s.rows);
    if (s.length >= 512) scatter_columns(x, at, u, (T *)buf[3], s, begin, end, F());
    else
        scatter_rows(x, at, u, (T *)buf[3], s, units * begin / s.tiles * each,
                     units * end / s.tiles * each, F());
}
} // namespace pk
#endif
