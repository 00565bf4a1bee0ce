// Convolutions behind the kernel ABI: a tile is a block of rows, or of results, of one image.
//
// Made of the files of this folder in the order: shape, windows, channels, few, library, filters,
// run.
//
// buf:  table of a library's functions or null, cblas_?gemm or null, source, filter as the caller
//       has it, filter as the library wants it or in doubles or null, result
//       (for products of windows what belongs to each in place of the filter, and then what the
//       parts make)
// size: what to do (see below), bytes of an element, 1 where cblas takes 64-bit integers, rows of a
//       tile (results where it multiplies windows; or the number of parts that are added up), then a
//       Shape
// How tiles are cut depends on shapes only, and each tile is computed by one thread: the bits of
// the result do not depend on the number of threads.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace convolution {

enum { REORDER = 0, LIBRARY = 1, WINDOWS = 2, CHANNELS = 3, FEW = 4, CHANNELS_STREAMED = 5,
       WINDOW_PRODUCTS = 6, SUM_OF_PARTS = 7, ZEROS = 8, WIDEN = 9, SIGNALS = 10 };

struct Shape {
  int64_t batch, size[3], channels, filters, window[3], result[3], stride[3], before[3];
  int64_t dilation[3], groups;
};

// A vector is a register; of sums in vectors as many as stay in registers are carried at a time.
#ifdef __AVX512F__
enum { LINE = 64, REGISTER = 64 };
#else
enum { LINE = 64, REGISTER = 32 };
#endif
typedef float Line __attribute__((vector_size(REGISTER)));

template <class T> struct Lane {
  typedef T type;
  enum { COUNT = 1 };
};
template <class T> struct Vector {
  typedef T type __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));
  enum { COUNT = REGISTER / sizeof(T) };
};
