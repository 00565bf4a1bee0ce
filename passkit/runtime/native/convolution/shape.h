// Convolutions with the interface of kernels: a tile is a block of rows, or of results, of one image.
//
// A unit is the concatenation of generated constants, this file, and files of one kind of kernels; see
// convolution_unit.py.
//
// buf:  a table of library functions or null; cblas_?gemm or null; source; filter in passkit's layout;
//       filter in the layout of the kernel, or in doubles, or null; result. For filter gradients the
//       gradient of the result replaces the filter, and partial gradients the converted filter. An
//       epilogue's kernel and arrays follow.
// size: a UnitTask; bytes of an element; 1 where cblas takes 64-bit integers; rows of a tile (results
//       of an im2col or direct tile; for SUM_GRADIENT_PARTS the number of parts); a Shape; panels of a
//       tile and terms of a block of direct convolutions; the size arguments of an epilogue.
//
// Tiles depend on shapes only, and each tile is computed by one thread: the bits of the result do not
// depend on the number of threads.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace convolution {

struct Shape {
  int64_t batch, size[3], channels, filters, window[3], result[3], stride[3], before[3];
  int64_t dilation[3], groups;
};

// Return the results of an image.
static int64_t results_of(const Shape &s) { return s.result[0] * s.result[1] * s.result[2]; }

// Positions in size after the Shape. size[EPILOGUE] is 0 without an epilogue.
enum { TILE_PANELS = 4 + sizeof(Shape) / sizeof(int64_t), DEPTH, EPILOGUE };

// A vector is one register. A register tile has up to PIXELS results times two vectors of channels,
// whose sums stay in registers.
#ifdef __AVX512F__
enum { CACHE_LINE = 64, REGISTER = 64, PIXELS = 12 };
#else
enum { CACHE_LINE = 64, REGISTER = 32, PIXELS = 6 };
#endif
typedef float Register __attribute__((vector_size(REGISTER)));

// The filters of a panel of direct convolutions: two vectors.
enum { VECTOR = REGISTER / sizeof(float), PANEL = 2 * VECTOR };
#if defined __AVX2__ || !defined __x86_64__
enum { HAS_VECTOR_REGISTERS = 1 };
#else
enum { HAS_VECTOR_REGISTERS = 0 };                      // too few registers for their sums
#endif

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Unrolls the loops over the vectors of a register tile, so that its sums can be registers.
#define UNROLL _Pragma("GCC unroll 32")

template <class T> struct Scalar {
  typedef T type;
  enum { COUNT = 1 };
};
template <class T> struct Vector {
  typedef T type __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));
  enum { COUNT = REGISTER / sizeof(T) };
};

// An epilogue is a kernel that computes row by row, where a row is all filters of one result. It runs on
// rows that have just been stored, while they are in the caches. Its address and arrays follow the result
// in buf. From size[EPILOGUE] on there are: the number of arrays; the index of the kernel's size argument
// that is the number of rows; that of the rows of a tile, or -1 if they are constant; the constant rows
// of a tile; the kernel's rows per result; the number of size arguments; for each array the bytes from
// one result to the next, or 0; and the size arguments.
enum {
  EPILOGUE_ARRAYS, EPILOGUE_ROWS, EPILOGUE_TILE, EPILOGUE_TILE_ROWS, EPILOGUE_PARTS, EPILOGUE_SIZES,
  EPILOGUE_STEPS,
};
typedef void (*Kernel)(void *const *, const int64_t *, int64_t, int64_t, unsigned char *);

// Run the epilogue, if there is one, on `count` results from number `row` on.
static void run_epilogue(const int64_t *size, void *const *buf, int64_t row, int64_t count) {
  const int64_t *epilogue = size + EPILOGUE;
  const int64_t arrays = epilogue[EPILOGUE_ARRAYS];
  if (arrays == 0) return;
  void *moved[MAX_EPILOGUE_ARRAYS];
  int64_t sizes[MAX_EPILOGUE_SIZES];
  for (int64_t k = 0; k < arrays; k++)
    moved[k] = (char *)buf[7 + k] + row * epilogue[EPILOGUE_STEPS + k];
  memcpy(sizes, epilogue + EPILOGUE_STEPS + arrays, epilogue[EPILOGUE_SIZES] * sizeof *sizes);
  const int64_t rows = count * epilogue[EPILOGUE_PARTS], tile = epilogue[EPILOGUE_TILE];
  sizes[epilogue[EPILOGUE_ROWS]] = rows;
  if (tile >= 0) sizes[tile] = rows;
  const int64_t tiles = tile >= 0 ? 1 : ceil_div(rows, epilogue[EPILOGUE_TILE_ROWS]);
  ((Kernel)buf[6])(moved, sizes, 0, tiles, nullptr);
}

// Run a task on the tiles begin to end: the entry of a unit.
template <class Tile>
static void run_tiles(const int64_t *size, void *const *buf, int64_t begin, int64_t end,
                      unsigned char *scratch, Tile run_tile) {
  Shape s;
  memcpy(&s, size + 4, sizeof s);
  for (int64_t tile = begin; tile < end; tile++) run_tile(s, size, buf, tile, scratch);
}
