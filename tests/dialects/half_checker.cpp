// Exported loops over floats of 16 bits, for test_half.py.
#include "prelude.h"

using namespace pk;

// What memory holds of 16 bits, widened; and floats narrowed, and rounded without being stored.
#define NARROW(H, T)                                                                               \
    extern "C" void narrow_##H##_##T(const T *x, H *y, int64_t n) {                                \
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE {                                         \
            store(y + i, narrow<H>(load(x + i, m)), m);                                            \
        });                                                                                        \
    }                                                                                              \
    extern "C" void narrow_##H##_##T##_one(const T *x, H *y, int64_t n) {                          \
        for (int64_t i = 0; i < n; i++) y[i] = narrow<H>(x[i]);                                    \
    }
#define HALF(H)                                                                                    \
    extern "C" void widen_##H(const H *x, float *y, int64_t n) {                                   \
        lanes<64>(0, n, [&](int64_t i, auto m) PK_INLINE {                                         \
            store(y + i, widen(load(x + i, m)), m);                                                \
        });                                                                                        \
    }                                                                                              \
    extern "C" void widen_##H##_one(const H *x, float *y, int64_t n) {                             \
        for (int64_t i = 0; i < n; i++) y[i] = widen(x[i]);                                        \
    }                                                                                              \
    extern "C" void rounded_##H(const float *x, float *y, int64_t n) {                             \
        lanes(0, n, [&](int64_t i, auto m) PK_INLINE {                                             \
            store(y + i, rounded<H>(load(x + i, m)), m);                                           \
        });                                                                                        \
    }                                                                                              \
    extern "C" void moved_##H(const H *x, H *y, int64_t n) {                                       \
        lanes(0, n / 2, [&](int64_t i, auto m) PK_INLINE {                                         \
            store_strided(y + 2 * i + 1, 2, load_strided(x + 2 * i, 2, m), m);                     \
            auto at = [&](int k) PK_INLINE { return x[2 * (i + k) + 1]; };                         \
            store_strided(y + 2 * i, 2, gather<H>(at, m), m);                                      \
        });                                                                                        \
    }                                                                                              \
    NARROW(H, float)                                                                               \
    NARROW(H, double)
HALF(half)
HALF(bfloat)
