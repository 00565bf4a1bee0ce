// Concatenation of many arrays: a loop over a table of parts, whose code does not grow with them.
//
// Part p is a matrix of `outer` rows, each of size[2 + p] elements. Row r of the result is row r of
// every part, one after the other.
#ifndef PK_CONCAT_H
#define PK_CONCAT_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
// Write the elements from `from` to `until` of one row of the result, of parts' row `row`.
template <class T>
PK_FN void concat_row(void *const *buf, const int64_t *length, int64_t parts, int64_t row,
                      int64_t from, int64_t until, T *y) {
    int64_t start = 0;
    for (int64_t p = 0; p < parts && start < until; start += length[p], ++p) {
        const int64_t low = from > start ? from - start : 0;
        const int64_t high = until - start < length[p] ? until - start : length[p];
        if (low >= high) continue;
        const T *const x = (const T *)buf[p] + row * length[p];
        __builtin_memcpy(y + start + low, x + low, (high - low) * sizeof(T));
    }
}

// Tiles `begin` to `end` of `size[parts + 2]`; each has an equal share of the result's elements.
// size: parts, outer, then the length of a row of each part, then the number of tiles.
template <class T>
PK_FN void concat_parts(void *const *buf, const int64_t *size, int64_t begin, int64_t end) {
    const int64_t parts = size[0], outer = size[1], tiles = size[parts + 2];
    int64_t width = 0;
    for (int64_t p = 0; p < parts; ++p) width += size[2 + p];
    const int64_t total = outer * width;
    const int64_t first = total / tiles * begin + total % tiles * begin / tiles;
    const int64_t last = total / tiles * end + total % tiles * end / tiles;
    T *const y = (T *)buf[parts];
    for (int64_t row = width ? first / width : 0; row * width < last; ++row) {
        const int64_t from = first > row * width ? first - row * width : 0;
        const int64_t until = last < (row + 1) * width ? last - row * width : width;
        concat_row(buf, size + 2, parts, row, from, until, y + row * width);
    }
}
} // namespace pk
#endif
