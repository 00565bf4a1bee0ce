// The prelude of every C++ kernel: vectors of 16 lanes and the functions on them, in namespace pk.
//
// A kernel needs core.h and the sections whose names it uses, included by path or pasted in this
// order (each has its own guard):
//   prelude/core.h      all of these five:
//     types.h           vec<T> and its names f32x16 ... u64x16
//     masks.h           mask; lane_index first all_of splat any all select
//     memory.h          load load_one store stream prefetch load_strided store_strided gather
//     loops.h           lanes whole_lanes aligned_lanes fixed_lanes paired_lanes; reduce
//                       reduction largest smallest
//     arithmetic.h      convert; abs sqrt rsqrt floor ceil trunc rint maximum minimum
//                       max_ignore_nan min_ignore_nan fma copysign isnan isinf isfinite signbit
//   prelude/math_f32.h  float: exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sigmoid erf
//                       erfc sinh cosh asin acos atan asinh acosh atanh pow atan2; exp_nonpositive
//   prelude/math_f64.h  double: the same names
//   prelude/special.h   of both: cbrt hypot lgamma tgamma digamma trigamma erfinv erfcinv
//   prelude/incomplete.h  of both: igamma igammac betainc zeta
//   prelude/bits.h      left_shift right_shift; nextafter ldexp
//   prelude/integer.h   floor_divide remainder fmod of integers and floats; gcd whole_power
//   prelude/random.h    philox_low philox_high of int64
//   prelude/divisor.h   divisor<T> known_divisor<T> divisors_of_rows<T, most>
//   prelude/rows.h      reductions_of_rows<most>
//   prelude/pairs.h     pairs_of_rows<n> reductions_of_pairs<most> groups_of_rows<n> load_apart
//                       store_apart
//   prelude/strided.h   load_second load_back load_columns<elements>
//   prelude/turn.h      turn turn_rows
//   prelude/dot.h       dot matrix
//   prelude/mixed_dot.h the same of half and bfloat
//   prelude/narrow.h    columns_apart<elements> columns_together<elements>
//   prelude/sums.h      summing<lanes>
//   prelude/scans.h     running<type, exclusive, down> lanes_down
// All are overloaded for scalars, which give the bits that a lane gives. Every function of floats
// gives the same bits in every lane, at every width and on every instruction set, and is right on
// NaN, infinities, zeros and denormals; nothing here reads or writes the rounding mode.
// Compile with -std=c++17 -ffp-contract=off -fno-math-errno -fno-trapping-math.
#ifndef PK_PRELUDE_H
#define PK_PRELUDE_H
#include "prelude/core.h"
#include "prelude/math_f32.h"
#include "prelude/math_f64.h"
#include "prelude/special.h"
#include "prelude/incomplete.h"
#include "prelude/bits.h"
#include "prelude/integer.h"
#include "prelude/random.h"
#include "prelude/divisor.h"
#include "prelude/rows.h"
#include "prelude/pairs.h"
#include "prelude/half.h"
#include "prelude/sums.h"
#include "prelude/scans.h"
#endif
