// One exported loop per function of the prelude, for test_prelude.py and
// benchmarks/vector_functions.py.
#include "prelude.h"
#include "prelude/strided.h"

using namespace pk;

#define PLAIN(name, T)                                                                             \
    extern "C" void name##_##T(const T *x, T *y, int64_t n) {                                      \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE { store(y + i, name(load(x + i, m)), m); });  \
    }
#define UNARY(name, T)                                                                             \
    PLAIN(name, T)                                                                                 \
    extern "C" void name##_##T##_packs(const T *x, T *y, int64_t n) {                              \
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE {                                         \
            store(y + i, name(load(x + i, m)), m);                                                 \
        });                                                                                        \
    }                                                                                              \
    extern "C" T name##_##T##_scalar(T x) { return name(x); }
#if defined(PK_CHECK_PLAIN)
#define WAYS PLAIN
#else
#define WAYS UNARY
#endif
#define BINARY(name, T)                                                                            \
    extern "C" void name##_##T(const T *x, const T *z, T *y, int64_t n) {                          \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            store(y + i, name(load(x + i, m), load(z + i, m)), m);                                 \
        });                                                                                        \
    }                                                                                              \
    extern "C" T name##_##T##_scalar(T x, T y) { return name(x, y); }
#define EACH_FUNCTION(f, T)                                                                        \
    f(exp, T) f(exp2, T) f(expm1, T) f(log, T) f(log2, T) f(log10, T) f(log1p, T) f(sin, T)        \
        f(cos, T) f(tan, T) f(tanh, T) f(sigmoid, T) f(erf, T) f(erfc, T) f(sinh, T) f(cosh, T)    \
            f(asin, T) f(acos, T) f(atan, T) f(asinh, T) f(acosh, T) f(atanh, T) f(sqrt, T)        \
                f(rsqrt, T) f(abs, T) f(floor, T) f(ceil, T) f(trunc, T) f(rint, T)
#define EACH_PAIR_FUNCTION(f, T) f(pow, T) f(atan2, T) f(maximum, T) f(minimum, T) f(copysign, T)

#if defined(PK_CHECK_FLOAT)
EACH_FUNCTION(WAYS, float)
UNARY(exp_nonpositive, float)
EACH_PAIR_FUNCTION(BINARY, float)
#endif
#if defined(PK_CHECK_DOUBLE)
EACH_FUNCTION(WAYS, double)
EACH_PAIR_FUNCTION(BINARY, double)
#endif

#define EACH_SPECIAL(f, T)                                                                         \
    f(cbrt, T) f(lgamma, T) f(tgamma, T) f(digamma, T) f(trigamma, T) f(erfinv, T) f(erfcinv, T)
#define EACH_SPECIAL_PAIR(f, T) f(hypot, T) f(nextafter, T) f(ldexp, T)
#if defined(PK_CHECK_SPECIAL)
EACH_SPECIAL(UNARY, float)
EACH_SPECIAL(UNARY, double)
EACH_SPECIAL_PAIR(BINARY, float)
EACH_SPECIAL_PAIR(BINARY, double)
#endif

#if defined(PK_CHECK_CORE) || defined(PK_CHECK_CONVERT)
typedef float float32;
typedef double float64;
typedef int8_t int8;
typedef int16_t int16;
typedef int32_t int32;
typedef int64_t int64;
typedef uint8_t uint8;
typedef uint16_t uint16;
typedef uint32_t uint32;
typedef uint64_t uint64;
#define EACH_INTEGER(f) f(int8) f(int16) f(int32) f(int64) f(uint8) f(uint16) f(uint32) f(uint64)
#define EACH_NUMBER(f) EACH_INTEGER(f) f(float32) f(float64)
#endif

#if defined(PK_CHECK_CONVERT)
#define CONVERT(A, B)                                                                              \
    extern "C" void convert_##A##_##B(const A *x, B *y, int64_t n) {                               \
        lanes(0, n,                                                                                \
              [&](int64_t i, auto m) PK_INLINE { store(y + i, convert<B>(load(x + i, m)), m); });  \
    }
#define CONVERT_FROM(A)                                                                            \
    CONVERT(A, bool)                                                                               \
    CONVERT(A, int8) CONVERT(A, int16) CONVERT(A, int32) CONVERT(A, int64) CONVERT(A, uint8)       \
        CONVERT(A, uint16) CONVERT(A, uint32) CONVERT(A, uint64) CONVERT(A, float32)               \
            CONVERT(A, float64)
EACH_NUMBER(CONVERT_FROM)
CONVERT_FROM(bool)
#endif

#if defined(PK_CHECK_CORE)
// Arithmetic of one element type; the results of one call lie behind each other, n elements each.
#define ARITHMETIC(T)                                                                              \
    extern "C" void arithmetic_##T(const T *x, const T *z, T *y, int64_t n) {                      \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            auto a = load(x + i, m), b = load(z + i, m);                                           \
            store(y + i, a + b, m);                                                                \
            store(y + n + i, a - b, m);                                                            \
            store(y + 2 * n + i, a * b, m);                                                        \
            store(y + 3 * n + i, -a, m);                                                           \
            store(y + 4 * n + i, maximum(a, b), m);                                                \
            store(y + 5 * n + i, minimum(a, b), m);                                                \
            store(y + 6 * n + i, abs(a), m);                                                       \
            store(y + 7 * n + i, select(a < b, a, b), m);                                          \
            store(y + 8 * n + i, floor_divide(a, b), m);                                           \
            store(y + 9 * n + i, remainder(a, b), m);                                              \
            store(y + 10 * n + i, a * T(3) + T(1), m);                                             \
        });                                                                                        \
    }                                                                                              \
    extern "C" void compare_##T(const T *x, const T *z, bool *y, int64_t n) {                      \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            auto a = load(x + i, m), b = load(z + i, m);                                           \
            store(y + i, a < b, m);                                                                \
            store(y + n + i, a <= b, m);                                                           \
            store(y + 2 * n + i, a > b, m);                                                        \
            store(y + 3 * n + i, a >= b, m);                                                       \
            store(y + 4 * n + i, a == b, m);                                                       \
            store(y + 5 * n + i, a != b, m);                                                       \
            store(y + 6 * n + i, (a < b) | (~(a == b) & (b < a)), m);                              \
        });                                                                                        \
    }                                                                                              \
    extern "C" void sum_##T(const T *x, T *y, int64_t n) {                                         \
        auto s = reduction<T, 64>(T(0), [](auto a, auto b) PK_INLINE { return a + b; });             \
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE { s.take(load(x + i, m), m); });          \
        *y = s.result();                                                                           \
    }                                                                                              \
    extern "C" void strided_##T(const T *x, int64_t stride, T *y, int64_t n) {                     \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            store(y + i, load_strided(x + i * stride, stride, m), m);                              \
        });                                                                                        \
    }                                                                                              \
    /* every third, and the same with one in four left out */                                      \
    extern "C" void thirds_##T(const T *x, T *y, int64_t n) {                                      \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            store(y + i, load_strided(x + i * 3, 3, m), m);                                        \
            auto on = m & ((lane_index(m) & int64_t(3)) != int64_t(0));                            \
            store(y + n + i, load_strided(x + i * 3, 3, on), m);                                   \
        });                                                                                        \
    }                                                                                              \
    extern "C" void gather_##T(const T *x, const int64_t *index, T *y, int64_t n) {                \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            store(y + i, gather<T>([&](int k) PK_INLINE { return x[index[i + k]]; }, m), m);       \
        });                                                                                        \
    }
#define BITS(T)                                                                                    \
    extern "C" void bits_##T(const T *x, const T *z, T *y, int64_t n) {                            \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            auto a = load(x + i, m), b = load(z + i, m);                                           \
            store(y + i, a & b, m);                                                                \
            store(y + n + i, a | b, m);                                                            \
            store(y + 2 * n + i, a ^ b, m);                                                        \
            store(y + 3 * n + i, ~a, m);                                                           \
            store(y + 4 * n + i, a << b, m);                                                       \
            store(y + 5 * n + i, a >> b, m);                                                       \
        });                                                                                        \
    }
#define DIVISOR(T)                                                                                 \
    extern "C" void divisor_##T(const T *x, T *y, int64_t n, const T *s) {                         \
        divisor<T> d(*s);                                                                          \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE { store(y + i, load(x + i, m) / d, m); });    \
    }                                                                                              \
    extern "C" void divisor_of_packs_##T(const T *x, T *y, int64_t n, const T *s) {                \
        divisor<T> d(*s);                                                                          \
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE { store(y + i, load(x + i, m) / d, m); });\
    }                                                                                              \
    extern "C" void divisor_of_rows_##T(const T *x, T *y, int64_t n, const T *s) {                 \
        divisor<T> d(*s);                                                                          \
        for (int64_t r = 0; r < n; r += 40) {                                                      \
            fixed_lanes<40>([&](int64_t i, auto m, auto k) PK_INLINE {                             \
                auto in = m & first(n - r - i);                                                    \
                store(y + r + i, load(x + r + i, in) / d.among(in, k), in);                        \
            });                                                                                    \
        }                                                                                          \
    }                                                                                              \
    extern "C" void divisor_of_pairs_##T(const T *x, T *y, int64_t n, const T *s) {                \
        divisor<T> d(*s);                                                                          \
        for (int64_t r = 0; r < n; r += 90) {                                                      \
            paired_lanes<90>([&](int64_t i, auto m, auto k) PK_INLINE {                            \
                auto in = m & first(n - r - i);                                                    \
                store(y + r + i, load(x + r + i, in) / d.among(in, k), in);                        \
            });                                                                                    \
        }                                                                                          \
    }                                                                                              \
    extern "C" void divide_##T(const T *x, T *y, int64_t n, const T *s) {                          \
        T d = *s;                                                                                  \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE { store(y + i, load(x + i, m) / d, m); });    \
    }                                                                                              \
    extern "C" void maximum_of_##T(const T *x, T *y, int64_t n) {                                  \
        largest<T> s;                                                                              \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE { s.take(load(x + i, m), m); });              \
        *y = s.result();                                                                           \
    }                                                                                              \
    extern "C" void bounds_##T(const T *x, T *y, int64_t n) {                                      \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            auto a = load(x + i, m);                                                               \
            store(y + i, maximum(a, T(0)), m);                                                     \
            store(y + n + i, minimum(a, T(0)), m);                                                 \
            store(y + 2 * n + i, maximum(a, -T(0)), m);                                            \
            store(y + 3 * n + i, minimum(a, -T(0)), m);                                            \
            store(y + 4 * n + i, maximum(a, T(-1)), m);                                            \
            store(y + 5 * n + i, minimum(a, T(6)), m);                                             \
            store(y + 6 * n + i, maximum(a, T(__builtin_nan(""))), m);                             \
            store(y + 7 * n + i, minimum(a, T(__builtin_inf())), m);                               \
        });                                                                                        \
    }                                                                                              \
    extern "C" void least_of_packs_##T(const T *x, T *y, int64_t n) {                              \
        smallest<T, 64> s;                                                                         \
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE { s.take(load(x + i, m), m); });          \
        *y = s.result();                                                                           \
    }                                                                                              \
    extern "C" void known_divisor_##T(const T *x, T *y, int64_t n, const T *s) {                   \
        known_divisor<T> d(s[0], s[1], s[2]);                                                      \
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE { store(y + i, load(x + i, m) / d, m); });\
    }
#define COPY(T)                                                                                    \
    extern "C" void copy_##T(const T *x, T *y, int64_t n) {                                        \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE { store(y + i, load(x + i, m), m); });        \
    }
template <int C, class T> static void columns_of(const T *x, T *y, int64_t n, int64_t count) {
    if (count == C)
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE {
            const auto row = load_columns<C>(x + i * C, m);
            for (int c = 0; c < C; c++) store(y + c * n + i, row[c], m);
        });
    if constexpr (C < 8) columns_of<C + 1>(x, y, n, count);
}
#define COLUMNS(T)                                                                                 \
    extern "C" void columns_##T(const T *x, T *y, int64_t n, int64_t count) {                      \
        columns_of<2>(x, y, n, count);                                                             \
    }
// The lanes that another array turns on, wherever those are.
#define SOME(T)                                                                                    \
    extern "C" void some_##T(const T *x, T *y, int64_t n, const uint8_t *on) {                     \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            const mask chosen = (load(on + i, m) != 0) & m;                                        \
            store(y + i, load(x + i, chosen), chosen);                                             \
        });                                                                                        \
    }
EACH_NUMBER(ARITHMETIC)
EACH_NUMBER(COPY)
EACH_NUMBER(SOME)
EACH_INTEGER(BITS)
COPY(bool)
COLUMNS(float32)
COLUMNS(float64)
DIVISOR(float32)
DIVISOR(float64)

extern "C" void masks(const bool *x, const bool *z, bool *y, int64_t n) {
    lanes(0, n, [&](int64_t i, auto m) PK_INLINE {
        mask a = load(x + i, m), b = load(z + i, m);
        store(y + i, a & b, m);
        store(y + n + i, a | b, m);
        store(y + 2 * n + i, a ^ b, m);
        store(y + 3 * n + i, !a, m);
        store(y + 4 * n + i, select(a, b, !b), m);
        store(y + 5 * n + i, a == b, m);
    });
}
extern "C" bool any_true(const bool *x, int64_t n) {
    mask s = false;
    lanes(0, n, [&](int64_t i, auto m) PK_INLINE { s |= load(x + i, m); });
    return reduce(s, [](auto a, auto b) PK_INLINE { return a | b; });
}
extern "C" void indices(int64_t *y, int64_t n) {
    lanes(0, n, [&](int64_t i, auto m) PK_INLINE { store(y + i, lane_index(m) + i, m); });
}
#endif
