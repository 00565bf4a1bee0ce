// Convolutions behind the kernel ABI: a tile is a block of rows, or of results, of one image.
//
// Made of the files of this folder in the order: shape, windows, channels, few, library, filters,
// direct, run.
//
// buf:  table of a library's functions or null, cblas_?gemm or null, source, filter as the caller
//       has it, filter as the library wants it or in doubles or null, result
//       (for products of windows what belongs to each in place of the filter, and then what the
//       parts make)
// size: what to do (see below), bytes of an element, 1 where cblas takes 64-bit integers, rows of a
//       tile (results where it multiplies windows; or the number of parts that are added up), then a
//       Shape, the panels of a tile and the terms of a block of direct convolutions, and what there is
//       to know of an epilogue (see there)
// How tiles are cut depends on shapes only, and each tile is computed by one thread: the bits of
// the result do not depend on the number of threads.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace convolution {

enum { REORDER = 0, LIBRARY = 1, WINDOWS = 2, CHANNELS = 3, FEW = 4, CHANNELS_STREAMED = 5,
       WINDOW_PRODUCTS = 6, SUM_OF_PARTS = 7, ZEROS = 8, WIDEN = 9, SIGNALS = 10,
       PACK = 11, DIRECT = 12, PANEL_FILTERS = 13 };

struct Shape {
  int64_t batch, size[3], channels, filters, window[3], result[3], stride[3], before[3];
  int64_t dilation[3], groups;
};

// Where size has what follows the Shape. At EPILOGUE is 0 where there is none.
enum { TILE_PANELS = 4 + sizeof(Shape) / sizeof(int64_t), DEPTH, EPILOGUE };

// A vector is a register. A register tile has up to PIXELS results for two vectors of channels, whose
// sums stay in registers.
#ifdef __AVX512F__
enum { LINE = 64, REGISTER = 64, PIXELS = 12 };
#else
enum { LINE = 64, REGISTER = 32, PIXELS = 6 };
#endif
typedef float Line __attribute__((vector_size(REGISTER)));

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// In front of loops over the vectors of a register tile, which must not stay loops.
#define UNROLL _Pragma("GCC unroll 32")

template <class T> struct Lane {
  typedef T type;
  enum { COUNT = 1 };
};
template <class T> struct Vector {
  typedef T type __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));
  enum { COUNT = REGISTER / sizeof(T) };
};

// An epilogue is a kernel that computes row by row, a row being all filters of a result. It runs on the
// rows that have just been stored, while they are in the caches. buf has it behind the result, and then
// its arrays. size has from EPILOGUE on how many arrays, which of the kernel's sizes are its rows and
// the rows of a tile (-1 where its text has those), the rows of a tile if the text has them, the rows
// of the kernel that a row here is, how many sizes, for each array the bytes from a row here to the
// next or 0, and the sizes.
enum {
  EPILOGUE_ARRAYS, EPILOGUE_ROWS, EPILOGUE_TILE, EPILOGUE_TILE_ROWS, EPILOGUE_PARTS, EPILOGUE_SIZES,
  EPILOGUE_STEPS,
};
enum { MOST_ARRAYS = 32, MOST_SIZES = 32 };
typedef void (*Kernel)(void *const *, const int64_t *, int64_t, int64_t, unsigned char *);

static void run_epilogue(const int64_t *size, void *const *buf, int64_t row, int64_t count) {
  const int64_t *epilogue = size + EPILOGUE;
  const int64_t arrays = epilogue[EPILOGUE_ARRAYS];
  if (arrays == 0) return;
  void *moved[MOST_ARRAYS];
  int64_t sizes[MOST_SIZES];
  for (int64_t k = 0; k < arrays; k++)
    moved[k] = (char *)buf[7 + k] + row * epilogue[EPILOGUE_STEPS + k];
  memcpy(sizes, epilogue + EPILOGUE_STEPS + arrays, epilogue[EPILOGUE_SIZES] * sizeof *sizes);
  const int64_t rows = count * epilogue[EPILOGUE_PARTS], tile = epilogue[EPILOGUE_TILE];
  sizes[epilogue[EPILOGUE_ROWS]] = rows;
  if (tile >= 0) sizes[tile] = rows;
  const int64_t tiles = tile >= 0 ? 1 : ceil_div(rows, epilogue[EPILOGUE_TILE_ROWS]);
  ((Kernel)buf[6])(moved, sizes, 0, tiles, nullptr);
}
