// CUDA C for a C++ compiler: what kernels see. What runs them is machine.cpp.
//
// Compiled with -fsanitize=thread, whose calls before every load and store the machine answers: so
// the text runs as it was printed, and no access escapes. Source: CUDA C++ Programming Guide.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <utility>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ thread_local  // block scope, with extern and without: blocks run on one thread
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

struct uint3 { unsigned x, y, z; };
using dim3 = uint3;
#define EMULATED_VECTORS(T, name, n)                          \
  struct alignas(2 * n) name##2 { T x, y; };                  \
  struct alignas(4 * n > 16 ? 16 : 4 * n) name##4 { T x, y, z, w; };
EMULATED_VECTORS(float, float, 4)
EMULATED_VECTORS(double, double, 8)
EMULATED_VECTORS(int, int, 4)
EMULATED_VECTORS(unsigned, uint, 4)

namespace emulated {
// What a thread asks its machine. A line is the kernel's; a thread's place never changes.
__attribute__((const)) uint3 thread();
__attribute__((const)) uint3 block();
__attribute__((const)) uint3 threads();
__attribute__((const)) uint3 blocks();
void wait_of_block(int line);
void wait_of_warp(int line, unsigned mask);
void wait_of_part(int line, unsigned group, unsigned count);
void fence();
void touch_atomically(void *at);
[[noreturn]] void fail(const char *what, ...);
enum Way { HERE, XOR, UP, DOWN };
uint64_t exchange(int line, Way way, unsigned mask, uint64_t bits, int lane, int width);

template <class T>
__attribute__((no_sanitize_thread)) inline T shuffle(
    int line, Way way, unsigned mask, T value, int lane, int width = 32) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = exchange(line, way, mask, bits, lane, width);
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T> __attribute__((no_sanitize_thread)) inline T add(T *at, T value) {
  touch_atomically(at);
  const T before = *at;
  *at = T(before + value);
  return before;
}

// What a driver does with the addresses of arguments; without them it only asks for the file's
// variables that are shared.
static thread_local volatile char anchor;
template <class... P, size_t... K>
__attribute__((no_sanitize_thread)) inline void call(
    void (*kernel)(P...), void **args, std::index_sequence<K...>) {
  kernel(*static_cast<std::remove_const_t<P> *>(args[K])...);
}
template <class... P>
__attribute__((no_sanitize_thread)) inline void call(void (*kernel)(P...), void **args) {
  if (args) call(kernel, args, std::index_sequence_for<P...>{});
  else anchor = 0;
}

template <class To, class From> inline To bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}

// The instructions of PTX that texts name. Where they do, the one operand is x, the other u.
template <class X> inline void ptx(const char *text, X &x, uint16_t &u) {
  const auto is = [&](const char *name) { return !strncmp(text + 1, name, strlen(name)); };
  if (is("cvt.f32.f16 ") && sizeof x == 4) {
    x = bits<_Float16>(u);
  } else if (is(sizeof x == 4 ? "cvt.rn.f16.f32 " : "cvt.rn.f16.f64 ")) {
    u = bits<uint16_t>(_Float16(x));
  } else {
    fail("has an instruction that the emulator does not know: %s", text);
  }
}
}  // namespace emulated

// CUDA's own overloads: what is narrower comes as an int.
#define EMULATED_SHUFFLE(name, way, T)                                                             \
  inline T name(int line, unsigned mask, T x, int lane, int width = 32) {                          \
    return emulated::shuffle(line, emulated::way, mask, x, lane, width);                           \
  }
#define EMULATED_SHUFFLES(name, way)                                                               \
  EMULATED_SHUFFLE(name, way, int) EMULATED_SHUFFLE(name, way, unsigned)                           \
  EMULATED_SHUFFLE(name, way, long) EMULATED_SHUFFLE(name, way, unsigned long)                     \
  EMULATED_SHUFFLE(name, way, long long) EMULATED_SHUFFLE(name, way, unsigned long long)           \
  EMULATED_SHUFFLE(name, way, float) EMULATED_SHUFFLE(name, way, double)
EMULATED_SHUFFLES(emulated_shfl, HERE)
EMULATED_SHUFFLES(emulated_shfl_xor, XOR)
EMULATED_SHUFFLES(emulated_shfl_up, UP)
EMULATED_SHUFFLES(emulated_shfl_down, DOWN)
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned emulated_ballot(int line, unsigned mask, int vote) {
  unsigned votes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    votes |= unsigned(emulated_shfl(line, mask, vote != 0, lane)) << lane;
  }
  return votes & mask;
}
#define __ballot_sync(...) emulated_ballot(__LINE__, __VA_ARGS__)
#define __shfl_sync(...) emulated_shfl(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) emulated_shfl_xor(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) emulated_shfl_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) emulated_shfl_down(__LINE__, __VA_ARGS__)
#define __syncthreads() emulated::wait_of_block(__LINE__)
#define wait_of_group(group, count) emulated::wait_of_part(__LINE__, group, count)
#define __syncwarp(...) emulated::wait_of_warp(__LINE__, 0xffffffffu __VA_OPT__(&) __VA_ARGS__)
#define __threadfence() emulated::fence()
#define __grid_constant__
#define __constant__
#define threadIdx (emulated::thread())
#define blockIdx (emulated::block())
#define blockDim (emulated::threads())
#define gridDim (emulated::blocks())

// Threads have no time of their own: it passes as they ask for it.
__attribute__((no_sanitize_thread)) inline long long clock64() {
  static long long cycles;
  return cycles += 100000;
}
inline unsigned atomicAdd(unsigned *at, unsigned value) { return emulated::add(at, value); }
inline int atomicAdd(int *at, int value) { return emulated::add(at, value); }

inline float __uint_as_float(unsigned x) { return emulated::bits<float>(x); }
inline float __int_as_float(int x) { return emulated::bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulated::bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return emulated::bits<double>(x); }
inline long long __double_as_longlong(double x) { return emulated::bits<long long>(x); }
// Where glibc is further from what is true than CUDA is, or has no such function.
#define tanhf(x) float(tanhl(x))
#define tanh(x) double(tanhl(x))
#define cbrt(x) double(cbrtl(x))
inline float rsqrtf(float x) { return float(1 / sqrt(double(x))); }
inline double rsqrt(double x) { return 1 / sqrt(x); }

namespace emulated {
// By Newton's steps from what is near; p is erfc of it, q is erf.
inline long double inverse(long double p, long double q) {
  if (p < 0 || p > 2 || p != p) return NAN;
  if (p == 0 || p == 2) return p == 0 ? INFINITY : -INFINITY;
  if (p > 1) return -inverse(2 - p, -q);
  const long double t = sqrtl(-2 * logl(p / 2)), slope = 1.12837916709551257390L;
  long double x = (t - (2.30753L + t * 0.27061L) / (1 + t * (0.99229L + t * 0.04481L))) * M_SQRT1_2;
  if (q < 0.5L) x = q / slope;
  for (int k = 0; k < 6; ++k)
    x += (q < 0.5L ? q - erfl(x) : erfcl(x) - p) / (slope * expl(-x * x));
  return x;
}
}  // namespace emulated
inline double erfinv(double q) { return double(emulated::inverse(1 - (long double)q, q)); }
inline double erfcinv(double p) { return double(emulated::inverse(p, 1 - (long double)p)); }
inline float erfinvf(float q) { return float(erfinv(double(q))); }
inline float erfcinvf(float p) { return float(erfcinv(double(p))); }

#define asm(...) emulated::ptx(#__VA_ARGS__, x, u)
