// Random words: Philox4x32-10, which turns a counter and a key into bits.
// Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, section 3.3.
#ifndef PK_RANDOM_H
#define PK_RANDOM_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
PK_FN uint64_t upper_word(uint64_t x) { return x >> 32; }
PK_FN uint64_t raised_word(uint64_t x) { return x << 32; }
template <int L> PK_FN simd<uint64_t, L> upper_word(simd<uint64_t, L> x) {
    return shift_right<32>(x);
}
template <int L> PK_FN simd<uint64_t, L> raised_word(simd<uint64_t, L> x) {
    return shift_left<32>(x);
}

// The counter's words are those of n (a, b) and of stream (c, d); so are the results'. Each word
// lies in the lower half of 64 bits, where a product needs no second register.
template <class U> struct philox_block {
    U low, high;
};
template <class U> PK_FN philox_block<U> philox(U n, U stream, U key) {
    const U word = U(0xffffffffu);
    U a = n & word, b = upper_word(n), c = stream & word, d = upper_word(stream);
    U k = key & word, l = upper_word(key);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        const U p = a * U(0xd2511f53u), q = c * U(0xcd9e8d57u);
        a = upper_word(q) ^ b ^ k, b = q & word;
        c = upper_word(p) ^ d ^ l, d = p & word;
        k = (k + U(0x9e3779b9u)) & word, l = (l + U(0xbb67ae85u)) & word;
    }
    return {a | raised_word(b), c | raised_word(d)};
}

PK_FN int64_t philox_low(int64_t n, int64_t stream, int64_t key) {
    return int64_t(philox<uint64_t>(n, stream, key).low);
}
PK_FN int64_t philox_high(int64_t n, int64_t stream, int64_t key) {
    return int64_t(philox<uint64_t>(n, stream, key).high);
}
typedef int64_t word_t;
template <int L>
PK_FN simd<word_t, L> philox_low(simd<word_t, L> n, simd<word_t, L> stream, simd<word_t, L> key) {
    return bits<word_t>(
        philox(bits<uint64_t>(n), bits<uint64_t>(stream), bits<uint64_t>(key)).low);
}
template <int L>
PK_FN simd<word_t, L> philox_high(simd<word_t, L> n, simd<word_t, L> stream, simd<word_t, L> key) {
    return bits<word_t>(
        philox(bits<uint64_t>(n), bits<uint64_t>(stream), bits<uint64_t>(key)).high);
}
}  // namespace pk
#endif
