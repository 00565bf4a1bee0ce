// Sums of many floats: each lane adds a block of them in float, and the blocks in double.
#ifndef PK_SUMS_H
#define PK_SUMS_H
#ifndef PK_CORE_H
#include "core.h"
#endif

namespace pk {
// A running sum of L lanes, each on its own until result() joins them. No lane adds more than
// `block` floats in float, so the error does not grow with the number of elements. The same bits
// as reduction by a + b where no lane has more.
template <int L> struct summing {
    typedef float value;
    static constexpr int block = 32;
    simd<float, L> lanes = 0.0f;
    simd<double, L> blocks = 0.0;
    int count = 0;
    bool many = false;

    PK_MEMBER void end_block() {
        blocks = blocks + cast<double>(lanes);
        lanes = 0.0f;
        count = 1;
        many = true;
    }
#if !PK_AVX512
    // The first vector of a pack ends a block for all of them.
    template <int k> PK_MEMBER void take(simd<float, PK_LANES> x, part_of_pack<k>) {
        if (k == 0 && __builtin_expect(++count > block, 0)) end_block();
        auto &part = part_of<k>(lanes);
        part = part + x;
    }
#endif
    template <int N> PK_MEMBER void add(simd<float, N> x) {
        if (__builtin_expect(++count > block, 0)) end_block();
        lanes = with_front(lanes, front<N>(lanes) + x);
    }
    template <int N> PK_MEMBER void take(simd<float, N> x, all_of<N>) { add(x); }
    template <int N> PK_MEMBER void take(simd<float, N> x, mask_t<N> m) {
        add(choose(m, x, simd<float, N>(0.0f)));
    }
    PK_MEMBER float result() const {
        auto sum = [](auto a, auto b) PK_INLINE { return a + b; };
        return many ? float(reduce(blocks + cast<double>(lanes), sum)) : reduce(lanes, sum);
    }
};
}  // namespace pk
#endif
