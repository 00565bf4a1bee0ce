// A chain of kernels that runs block by block: each member processes the rows of a block before any
// processes the next one, so that what one member reads or stores is in the caches for the others.
//
// buf:  for each member its function, then its arrays
// size: the number of members; for each member its number of arrays, its number of size arguments, the
//       tiles of a block, all its tiles, and its size arguments
#pragma once
#include <stdint.h>

static void row_chain(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                      unsigned char *scratch) {
    for (int64_t block = begin; block < end; block++) {
        void *const *arrays = buf;
        const int64_t *member = size + 1;
        for (int64_t k = 0; k < size[0]; k++) {
            int64_t first = block * member[2], last = first + member[2];
            if (last > member[3]) last = member[3];
            if (first < last) ((Kernel)arrays[0])(arrays + 1, member + 4, first, last, scratch);
            arrays += 1 + member[0];
            member += 4 + member[1];
        }
    }
}
