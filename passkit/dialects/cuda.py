"""CUDA C. Source: CUDA C++ Programming Guide, language extensions.

Kernels are loop IR, see `passkit.dialects.c_printer`. The barrier of a grid is that of cooperative
groups, whose headers NVRTC does not have.
"""

from pathlib import Path

from passkit.ast import FUNCTIONS
from passkit.dialects.base import NARROW_CASTS, SCALARS, Dialect, register_dialect
from passkit.dialects.loop_templates import LoopTemplates
from passkit.dialects.philox import PHILOX
from passkit.dialects.scalar_special import GAMMA, SERIES
from passkit.dialects.templates import QuotientTemplates
from passkit.ir.features import MAXIMUM_NUMBER
from passkit.ir.loop import BarrierScope, Bind, CachePolicy, StorageScope

REAL = {"float32": "float", "float64": "double"}
SPECIAL = ("digamma", "trigamma", "igamma", "igammac", "betainc", "zeta")
OWN = ("abs", "maximum", "minimum", "sigmoid", "ldexp", *SPECIAL)
FLOATS = [f for f in FUNCTIONS if f not in OWN]
MATH = (Path(__file__).parent / "prelude/device_math.h").read_text("utf-8")

PREAMBLE = """\
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif
#define PK_FN __device__ __forceinline__

PK_FN float bits_f32(uint32_t x) { return __uint_as_float(x); }
PK_FN double bits_f64(uint64_t x) { return __longlong_as_double((long long)x); }

// Floats of 16 bits are stored as uint16_t and computed in float; NaN stays NaN.
PK_FN float widen_f16(uint16_t u) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(u));
  return x;
}
PK_FN uint16_t narrow_f16(float x) {
  uint16_t u;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(u) : "f"(x));
  return u;
}
PK_FN uint16_t narrow_f16(double x) {
  uint16_t u;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(u) : "d"(x));
  return u;
}
PK_FN float widen_bf16(uint16_t u) { return __uint_as_float((uint32_t)u << 16); }
PK_FN uint16_t narrow_bf16(float x) {
  const uint32_t u = __float_as_uint(x);
  return uint16_t((x != x ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
PK_FN float rounded_f16(float x) { return widen_f16(narrow_f16(x)); }
PK_FN float rounded_bf16(float x) { return widen_bf16(narrow_bf16(x)); }

template <class T> struct is_bool { static const bool value = false; };
template <> struct is_bool<bool> { static const bool value = true; };

// Out-of-range float to integer saturates, NaN gives 0; to bool is "not 0".
template <class T, class U> PK_FN T convert(U x) {
  if constexpr (is_bool<T>::value) {
    return x != U(0);
  } else if constexpr (!is_bool<U>::value && T(0.5) == T(0) && U(0.5) != U(0)) {
    constexpr bool has_sign = T(-1) < T(0);
    constexpr T highest = T(~0ull >> (64 - 8 * sizeof(T) + has_sign));
    constexpr T lowest = has_sign ? T(-highest - 1) : T(0);
    return x != x ? T(0) : x >= U(highest) ? highest : x <= U(lowest) ? lowest : T(x);
  } else {
    return T(x);
  }
}

// All blocks of a cooperative launch come so far: the first one adds what the others leave of the
// highest bit, which changes when all have come. Between launches the rest is 0.
PK_FN void wait_of_grid(uint32_t *gate) {
  __syncthreads();
  if (threadIdx.x + threadIdx.y == 0) {
    __threadfence();
    const uint32_t own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
    const uint32_t before = atomicAdd(gate, own);
    while ((before ^ *(volatile uint32_t *)gate) >> 31 == 0) {}
    __threadfence();
  }
  __syncthreads();
}

// Elements that follow each other, as one word.
template <int nbytes> struct word_of { typedef uint4 type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<4> { typedef uint32_t type; };
template <> struct word_of<2> { typedef uint16_t type; };
template <> struct word_of<1> { typedef uint8_t type; };
// Vector accesses of loop IR: N elements at a multiple of their bytes, as one word. Loads of device
// code are volatile: otherwise the compiler moves each to its first use, and few are in flight.
#ifdef __CUDA_ARCH__
#define PK_WORD_LOADS(name, how)                                                              \
  PK_FN void name(uint4 &w, const void *at) {                                                 \
    asm volatile("ld.global" how ".v4.u32 {%0,%1,%2,%3}, [%4];"                               \
                 : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w) : "l"(at));                     \
  }                                                                                           \
  PK_FN void name(uint2 &w, const void *at) {                                                 \
    asm volatile("ld.global" how ".v2.u32 {%0,%1}, [%2];" : "=r"(w.x), "=r"(w.y) : "l"(at));  \
  }                                                                                           \
  PK_FN void name(uint32_t &w, const void *at) {                                              \
    asm volatile("ld.global" how ".u32 %0, [%1];" : "=r"(w) : "l"(at));                       \
  }                                                                                           \
  PK_FN void name(uint16_t &w, const void *at) {                                              \
    asm volatile("ld.global" how ".u16 %0, [%1];" : "=h"(w) : "l"(at));                       \
  }                                                                                           \
  PK_FN void name(uint8_t &w, const void *at) {                                               \
    uint32_t wide;                                                                            \
    asm volatile("ld.global" how ".u8 %0, [%1];" : "=r"(wide) : "l"(at));                     \
    w = uint8_t(wide);                                                                        \
  }
PK_WORD_LOADS(load_word_stream, ".nc.L1::no_allocate")
PK_WORD_LOADS(load_word_changing, "")
template <class W> PK_FN void load_word_kept(W &w, const W *at) { w = __ldg(at); }
template <class W> PK_FN void store_word_stream(W *at, W w) { __stcs(at, w); }
#else
template <class W> PK_FN void load_word_stream(W &w, const W *at) { w = *at; }
template <class W> PK_FN void load_word_changing(W &w, const W *at) { w = *at; }
template <class W> PK_FN void load_word_kept(W &w, const W *at) { w = *at; }
template <class W> PK_FN void store_word_stream(W *at, W w) { *at = w; }
#endif
template <int N, class T> struct words {
  typedef typename word_of<N * sizeof(T)>::type type;
};
// Elements that are read once: past the first-level cache.
template <int N, class T> PK_FN void load_stream(T *to, const T *from) {
  typename words<N, T>::type w;
  load_word_stream(w, (const typename words<N, T>::type *)from);
  *(typename words<N, T>::type *)to = w;
}
// Elements that other threads read, too.
template <int N, class T> PK_FN void load_kept(T *to, const T *from) {
  typename words<N, T>::type w;
  load_word_kept(w, (const typename words<N, T>::type *)from);
  *(typename words<N, T>::type *)to = w;
}
// Elements of a buffer that the kernel may write.
template <int N, class T> PK_FN void load_changing(T *to, const T *from) {
  typename words<N, T>::type w;
  load_word_changing(w, (const typename words<N, T>::type *)from);
  *(typename words<N, T>::type *)to = w;
}
// Elements in shared memory.
template <int N, class T> PK_FN void load_shared(T *to, const T *from) {
  *(typename words<N, T>::type *)to = *(const typename words<N, T>::type *)from;
}
template <int N, class T> PK_FN void store_vector(T *to, const T *from) {
  *(typename words<N, T>::type *)to = *(const typename words<N, T>::type *)from;
}
// Elements that no kernel reads soon: the caches evict them first.
template <int N, class T> PK_FN void store_stream(T *to, const T *from) {
  typedef typename words<N, T>::type word;
  store_word_stream((word *)to, *(const word *)from);
}
template <class T> PK_FN void store_one(T *to, T value) {
  __align__(16) T held[1] = {value};
  store_stream<1>(to, held);
}

// Packs of loop nests: so many threads of a block, by their number, wait for each other. Barrier 0
// is that of all threads of the block.
#ifdef __CUDA_ARCH__
#define wait_of_group(group, count) \
  asm volatile("bar.sync %0, %1;" : : "r"((group) + 1), "n"(count) : "memory")
#endif
// The part of a block, the last of N whose first block is not behind it.
template <int N> PK_FN int part_of(const uint64_t *first, int block) {
  int part = 0;
  #pragma unroll
  for (int n = N; n > 1; n -= n / 2)
    if ((int)first[part + n / 2] <= block) part += n / 2;
  return part;
}

// NaN propagates.
template <class T> PK_FN T maximum(T a, T b) { return a != a || a > b ? a : b; }
template <class T> PK_FN T minimum(T a, T b) { return a != a || a < b ? a : b; }
// Integers wrap.
template <class T> PK_FN T wrapped_add(T a, T b) { return T((uint64_t)a + (uint64_t)b); }
template <class T> PK_FN T wrapped_sub(T a, T b) { return T((uint64_t)a - (uint64_t)b); }
template <class T> PK_FN T wrapped_mul(T a, T b) { return T((uint64_t)a * (uint64_t)b); }
template <class T> PK_FN T magnitude(T x) {
  if constexpr (T(0.5) == T(0)) {
    return x < T(0) ? wrapped_sub(T(0), x) : x;
  } else {
    return x < T(0) ? -x : x;
  }
}
// Of a number below 0 by a power that does not overflow: what is left of it may be denormal.
template <class T> PK_FN T sigmoid(T x) {
  const T power = exp(-magnitude(x));
  return (x < T(0) ? power : T(1)) / (T(1) + power);
}

// Integers: towards zero; division by 0 gives 0, the lowest over -1 wraps.
template <class T> PK_FN T cut_divide(T a, T b) {
  return b == 0 ? T(0) : T(-1) < T(0) && b == T(-1) ? T(0u - (uint64_t)a) : T(a / b);
}
template <class T> PK_FN T fmod(T a, T b) {
  return b == 0 || (T(-1) < T(0) && b == T(-1)) ? T(0) : T(a % b);
}
template <class T> PK_FN T gcd(T a, T b) {
  uint64_t u = a < T(0) ? 0 - (uint64_t)a : (uint64_t)a;
  uint64_t v = b < T(0) ? 0 - (uint64_t)b : (uint64_t)b;
  while (v) {
    const uint64_t rest = u % v;
    u = v;
    v = rest;
  }
  return T(u);
}
template <class T> PK_FN T whole_power(T a, T n) {
  if (n < T(0)) return a == T(1) || a == T(-1) ? (n & 1 ? a : T(1)) : T(0);
  uint64_t out = 1, factor = (uint64_t)a;
  for (uint64_t k = (uint64_t)n; k; k >>= 1) {
    if (k & 1) out *= factor;
    factor *= factor;
  }
  return T(out);
}
// A count below 0 or of the width moves all bits out.
template <class T> PK_FN T left_shift(T a, T n) {
  return n < T(0) || n >= T(8 * sizeof(T)) ? T(0) : T((uint64_t)a << n);
}
template <class T> PK_FN T right_shift(T a, T n) {
  return n < T(0) || n >= T(8 * sizeof(T)) ? (a < T(0) ? T(-1) : T(0)) : T(a >> n);
}
template <class T> PK_FN T scaled(T x, T n) {
  return ldexp(x, n > T(5000) ? 5000 : n < T(-5000) ? -5000 : int(n));
}
"""

SERIES_HEAD = """\
#define PK_SCALAR static __device__
#define PK_TABLE static __device__ const
#define PK_INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define PK_NAN __longlong_as_double(0x7ff8000000000000ll)
"""

QUOTIENTS = QuotientTemplates(
    known_divisor="known_divisor({value}, {high}, {low})",
    measured="divisor({value})",
    prepare="const divisor {name}({value});",
    over="over({x}, {divisor})",
    over_array="over({name}, {x}, {divisor});",
    near_over="near_over({x}, {divisor})",
    reciprocal="reciprocal({x})",
    near_reciprocal="near_reciprocal({x})",
)

LOOPS = LoopTemplates(
    kernel=('extern "C" __global__ void __launch_bounds__({threads}, {blocks}) {name}({params})'),
    size="const int64_t {name}_arg",
    index_types={32: "int", 64: "int64_t"},
    threads={
        Bind.GRID: "blockIdx.x",
        Bind.THREAD_Y: "threadIdx.y",
        Bind.THREAD_X: "threadIdx.x",
    },
    arrays={
        StorageScope.SHARED: "__shared__ __align__(16) {type} {name}[{extent}];",
        StorageScope.REGISTER: "__align__(16) {type} {name}[{extent}];",
    },
    spaces=dict.fromkeys(StorageScope, ""),
    loads={
        CachePolicy.STREAM: "load_stream<{width}>({to}, {at});",
        CachePolicy.KEEP: "load_kept<{width}>({to}, {at});",
        CachePolicy.CHANGING: "load_changing<{width}>({to}, {at});",
        CachePolicy.SHARED: "load_shared<{width}>({to}, {at});",
    },
    store="store_vector<{width}>({at}, {source});",
    store_stream="store_stream<{width}>({at}, {source});",
    stream_one="store_one({at}, {value});",
    barriers={BarrierScope.WARP: "__syncwarp();", BarrierScope.BLOCK: "__syncthreads();"},
    shuffle="__shfl_xor_sync(0xffffffffu, {name}, {o})",
    address="(uint64_t){name}",
    fence="if (threadIdx.x == 0 && threadIdx.y == 0) __threadfence();",
    counters="unsigned *counters",
    last_block=(
        "__shared__ bool is_last;\n"
        "if (threadIdx.x == 0 && threadIdx.y == 0) {{\n"
        "  is_last = atomicAdd(counters + {counter}, 1u) == {count};\n"
        "  if (is_last) counters[{counter}] = 0;\n"
        "  __threadfence();\n"
        "}}\n"
        "__syncthreads();\n"
        "if (!is_last) return;"
    ),
)

CUDA = register_dialect(
    Dialect(
        name="cuda",
        language="cuda",
        buffer="{const}{type} *__restrict__ {name}",
        aliased="{const}{type} *{name}",
        loops=LOOPS,
        quotients=QUOTIENTS,
        cast="convert<{type}>({value})",
        casts=NARROW_CASTS,
        rounded="rounded_{short}({value})",
        wraps=True,
        scalars={**SCALARS, "float16": "uint16_t", "bfloat16": "uint16_t"},
        preamble=PREAMBLE
        + MATH
        + GAMMA.format(fn="PK_FN")
        + SERIES_HEAD
        + SERIES
        + PHILOX.format(fn="PK_FN", word="uint64_t", long="int64_t"),
        infinity="__int_as_float(0x7f800000)",
        bits="bits_{short}({bits})",
        calls={
            **{f"{f}/float32": f"{f}f" for f in FLOATS},
            **{f"{f}/{d}": f"{f}_{t}" for f in SPECIAL for d, t in REAL.items()},
            "erf/float32": "erf_near",
            f"{MAXIMUM_NUMBER}/float32": "fmaxf",
            "ldexp": "scaled",
            "abs/float32": "fabsf",
            "abs/float64": "fabs",
            "abs": "magnitude",
        },
    )
)
