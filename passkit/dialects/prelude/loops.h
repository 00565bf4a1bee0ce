// Loops over the lanes of vectors, and reductions of a vector to a scalar.
#ifndef PK_LOOPS_H
#define PK_LOOPS_H
#ifndef PK_MEMORY_H
#include "memory.h"
#endif

namespace pk {
// All lanes of a vector combined by f, in the order of a tree: i with i + 32, then 16, 8, 4, 2 and 1.
template <int n, class T, int L> PK_FN simd<T, L> shift_lanes(simd<T, L> x) {
    typedef simd<T, L> R;
    if constexpr (!whole<T, L>) {
        if constexpr (n == L / 2) return R::of(x.s.hi, x.s.hi);
        else return R::of(shift_lanes<n>(x.s.lo), x.s.hi);
    } else if constexpr (L == 16)  // i ^ n: one shuffle instruction without a constant in memory
        return R::of(__builtin_shufflevector(x.s, x.s, n, 1 ^ n, 2 ^ n, 3 ^ n, 4 ^ n, 5 ^ n, 6 ^ n,
                                             7 ^ n, 8 ^ n, 9 ^ n, 10 ^ n, 11 ^ n, 12 ^ n, 13 ^ n,
                                             14 ^ n, 15 ^ n));
    else if constexpr (L == 8)
        return R::of(
            __builtin_shufflevector(x.s, x.s, n, 1 ^ n, 2 ^ n, 3 ^ n, 4 ^ n, 5 ^ n, 6 ^ n, 7 ^ n));
    else if constexpr (L == 4)
        return R::of(__builtin_shufflevector(x.s, x.s, n, 1 ^ n, 2 ^ n, 3 ^ n));
    else return R::of(__builtin_shufflevector(x.s, x.s, n, n));
}
// The first steps of `reduce` for a longer vector: its lanes combined to sixteen.
template <class T, int L, class F> PK_FN simd<T, 16> sixteen(simd<T, L> v, F f) {
    if constexpr (L > 16) return sixteen(f(v.s.lo, v.s.hi), f);
    else return v;
}
template <class T, int L, class F> PK_FN T reduce(simd<T, L> v, F f) {
    if constexpr (L > 16) return reduce(sixteen(v, f), f);
    else {
        v = f(v, shift_lanes<8>(v));
        v = f(v, shift_lanes<4>(v));
        v = f(v, shift_lanes<2>(v));
        v = f(v, shift_lanes<1>(v));
        return v[0];
    }
}
template <int n> PK_FN mask_t<16> shift_lanes(mask_t<16> v) {
    return shift_lanes<n>(mask_bytes(v)) != u8x16(0);
}
template <int L, class F> PK_FN bool reduce(mask_t<L> v, F f) {
    if constexpr (L > 16) return reduce(f(lower(v), upper(v)), f);
    else {
        v = f(v, shift_lanes<8>(v));
        v = f(v, shift_lanes<4>(v));
        v = f(v, shift_lanes<2>(v));
        return f(v, shift_lanes<1>(v))[0];
    }
}

// The first lanes of a value that has as many or more.
template <int N, class T, int L> PK_FN simd<T, N> front(simd<T, L> x) {
    if constexpr (N == L) return x;
    else return front<N>(lower(x));
}
template <int N, int L> PK_FN mask_t<N> front(mask_t<L> x) {
    if constexpr (N == L) return x;
    else return front<N>(lower(x));
}
template <class V> PK_FN V with_front(V, V front) { return front; }
template <class V, class W> PK_FN V with_front(V x, W front) {
    return join(with_front(lower(x), front), upper(x));
}

#if !PK_AVX512
// Vector k of the lanes of a pack.
template <int k, class T, int L> PK_FN simd<T, PK_LANES> &part_of(simd<T, L> &x) {
    constexpr int half = L / (2 * PK_LANES);
    if constexpr (L == PK_LANES) return x;
    else if constexpr (k < half) return part_of<k>(x.s.lo);
    else return part_of<k - half>(x.s.hi);
}
#endif

// The halves of a, and behind them those of b, whose lanes are turned by eight, joined.
template <class V, class F> PK_FN V join_turned(V a, V b, F f) {
    auto low = __builtin_shufflevector(a.s, b.s, 0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30,
                                       31);
    auto high = __builtin_shufflevector(a.s, b.s, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                                        21, 22, 23);
    return f(V::of(low), V::of(high));
}

// An accumulator of L lanes, which are independent until result() combines them. take() adds a
// vector; one shorter than L goes into the first lanes.
template <class T, int L, class F> struct reduction_by {
    typedef T value;
    vec<T, L> lanes;
    F f;
    template <int N> PK_MEMBER void take(vec<T, N> x, all_of<N>) {
        lanes = with_front(lanes, f(front<N>(lanes), x));
    }
    template <int N> PK_MEMBER void take(vec<T, N> x, mask_t<N> m) {
        auto old = front<N>(lanes);
        lanes = with_front(lanes, select(m, f(old, x), old));
    }
#if !PK_AVX512
    template <int k> PK_MEMBER void take(vec<T> x, part_of_pack<k>) {
        if constexpr (__is_same(T, bool)) {
            auto &part = part_of<k>(lanes.m);
            part = f(mask::of(part), x).m;
        } else {
            auto &part = part_of<k>(lanes);
            part = f(part, x);
        }
    }
#endif
    // Vector k of a row that is printed without a loop.
    template <class V, class M, class K> PK_MEMBER void take(V x, M m, K) { take(x, m); }
    PK_MEMBER reduction_by fresh() const { return *this; }
    PK_MEMBER F combine() const { return f; }
    static PK_MEMBER auto join_pair(const reduction_by &a, const reduction_by &b) {
        return join_turned(a.lanes, b.lanes, a.f);
    }
    PK_MEMBER auto joined() const { return sixteen(lanes, f); }
    PK_MEMBER T result() const { return reduce(lanes, f); }
};
template <class T, int L = PK_LANES, class F>
PK_FN reduction_by<T, L, F> reduction(T identity, F f) {
    return {identity, f};
}
// The functions of reductions by one operator: a type of their own, so that all reductions by it are
// one instance of a template.
struct adding {
    template <class A, class B> PK_MEMBER auto operator()(A a, B b) const { return a + b; }
};
struct multiplying {
    template <class A, class B> PK_MEMBER auto operator()(A a, B b) const { return a * b; }
};

// m where neither a nor b is NaN.
template <class T, int L> PK_FN mask_t<L> and_ordered(mask_t<L> m, simd<T, L> a, simd<T, L> b) {
#if PK_AVX512
    if constexpr (!whole<T, L>)
        return join(and_ordered(lower(m), a.s.lo, b.s.lo), and_ordered(upper(m), a.s.hi, b.s.hi));
    else if constexpr (sizeof(T) == 4)
        return mask_t<L>::of((uint16_t)__builtin_ia32_cmpps512_mask(a.s, b.s, 7, (short)m.k, 4));
    else return mask_t<L>::of((uint8_t)__builtin_ia32_cmppd512_mask(a.s, b.s, 7, (char)m.k, 4));
#else
    return m & (a == a) & (b == b);
#endif
}
// The same for the greatest or least float. One instruction takes a vector, one tests two for NaN:
// a single NaN makes the result NaN.
template <class T, int L, bool most> struct extreme {
    typedef T value;
    static constexpr T bound = T(most ? -__builtin_inf() : __builtin_inf());
    simd<T, L> lanes = bound;
    mask_t<(L > 16 ? L / 2 : L)> ordered = true;
    bool tested = true;  // or the last vector's NaN are in the lanes

    template <class V> static PK_MEMBER V better(V a, V b) {
        if constexpr (most) return greater(a, b);
        else return lesser(a, b);
    }
    template <int N> PK_MEMBER void take(simd<T, N> x, all_of<N>) {
        lanes = with_front(lanes, better(front<N>(lanes), x));
        if constexpr (N > 16)
            ordered = with_front(ordered, and_ordered(front<N / 2>(ordered), lower(x), upper(x)));
        else ordered = with_front(ordered, and_ordered(front<N>(ordered), x, x));
    }
#if !PK_AVX512
    template <int k> PK_MEMBER void take(simd<T, PK_LANES> x, part_of_pack<k>) {
        auto &part = part_of<k>(lanes);
        auto &on = part_of<k % (L / (2 * PK_LANES))>(ordered.m);
        part = better(part, x);
        on = on & (x == x).m;
    }
#endif
    template <int N> PK_MEMBER void take(simd<T, N> x, mask_t<N> m) {
        take(choose(m, x, simd<T, N>(bound)), all_of<N>{});
    }
    // Vector k of one row that is printed without a loop; the first is the initial value. The
    // lanes have a NaN of vector k - 1 still, as `better` gives its second operand then: every
    // other k tests both.
    template <class M, class K> PK_MEMBER void take(simd<T, L> x, M m, K) {
        if constexpr (L > 16) take(x, m);
        else {
            x = select(m, x, simd<T, L>(bound));
            if constexpr (K::index % 2) ordered = and_ordered(ordered, lanes, x);
            lanes = K::index ? better(lanes, x) : x;
            tested = K::index % 2;
        }
    }
    static PK_MEMBER extreme fresh() { return {}; }  // of constants, not of copied memory
    static PK_MEMBER auto combine() {
        return [](auto a, auto b) PK_INLINE { return better(a, b); };
    }
    PK_MEMBER bool is_ordered() const {
        if constexpr (L > 16) return all(ordered);
        else return all(tested ? ordered : and_ordered(ordered, lanes, lanes));
    }
    PK_MEMBER simd<T, 16> joined() const {
        return is_ordered() ? sixteen(lanes, combine()) : simd<T, 16>(T(__builtin_nan("")));
    }
    static PK_MEMBER simd<T, 16> join_pair(const extreme &a, const extreme &b) {
        auto best = join_turned(a.lanes, b.lanes, combine());
        auto ordered = a.ordered & b.ordered;
        if (!a.tested | !b.tested)
            ordered = and_ordered(ordered, a.tested ? b.lanes : a.lanes,
                                  b.tested ? a.lanes : b.lanes);
        if (__builtin_expect(!all(ordered), 0)) {
            simd<T, 16> nan = T(__builtin_nan(""));
            if (!a.is_ordered()) best = choose(first(8), nan, best);
            if (!b.is_ordered()) best = choose(first(8), best, nan);
        }
        return best;
    }
    PK_MEMBER T result() const {
        T best = reduce(lanes, combine());
        return is_ordered() ? best : T(__builtin_nan(""));
    }
};
template <class T, int L = PK_LANES> using largest = extreme<T, L, true>;
template <class T, int L = PK_LANES> using smallest = extreme<T, L, false>;

// A pack of L lanes from i on: all of it at once where there are registers for that, else vector by
// vector. Reductions have the same bits either way.
template <int L, int k = 0, class F> PK_FN void pack(int64_t i, F body) {
#if PK_AVX512
    body(i, all_of<L>{});
#else
    body(i + PK_LANES * k, part_of_pack<k>{});
    if constexpr (PK_LANES * k + PK_LANES < L) pack<L, k + 1>(i, body);
#endif
}

// The tiles of a call are not negative and far fewer than 2^63: a tile's first element plus an offset
// does not wrap around, so that the compiler knows how often loops over a tile run.
PK_FN void assume_tiles(int64_t begin, int64_t end) {
    if (begin < 0 || end > int64_t(1) << 40) __builtin_unreachable();
}

// body(i, all_of<L>{}) for each full vector or pack of [begin, end), then vectors:
// body(i, first(rest)).
template <int L = PK_LANES, class F> PK_FN void lanes(int64_t begin, int64_t end, F body) {
    int64_t i = begin;
    for (; i + L <= end; i += L)
        if constexpr (L > PK_LANES) pack<L>(i, body);
        else body(i, all_of<L>{});
    if constexpr (L == PK_LANES) {
        if (i < end) body(i, first_few(end - i));
    } else
        for (; i < end; i += PK_LANES) body(i, first(end - i));
}

// The same of vectors alone, where no lanes are left behind them.
template <class F> PK_FN void whole_lanes(int64_t begin, int64_t end, const F &body) {
    for (int64_t i = begin; i < end; i += PK_LANES) body(i, all_lanes{});
}

// The same, with the lanes up to a cache line of p, where element `begin` will lie, going first, so
// that all full vectors can be streamed.
template <int L = PK_LANES, class T, class F>
PK_FN void aligned_lanes(const T *p, int64_t begin, int64_t end, F body) {
    int64_t head = (uintptr_t(0) - (uintptr_t)p) % 64 / sizeof(T);
    if (head > end - begin) head = end - begin;
    if constexpr (sizeof(T) < 4)
        for (int64_t i = 0; i < head; i += PK_LANES) body(begin + i, first(head - i));
    else if (head > 0) body(begin, first_few(head));
    lanes<L>(begin + head, end, body);
}

// The vectors of a row of n elements, n known: body(i, m, lane_set<k>{}) with no loop, so that
// values of vector k can stay in a register of their own.
template <int k> struct lane_set {
    static constexpr int index = k;
    PK_MEMBER constexpr operator int() const { return k; }
};
template <int n, class = numbers_to<n / PK_LANES>> struct fixed_lanes;
template <int n, int... k> struct fixed_lanes<n, numbers<k...>> {
    template <class F> PK_MEMBER fixed_lanes(const F &body) {
        constexpr int rest = n % PK_LANES;
        (body(int64_t(PK_LANES * k), all_lanes{}, lane_set<k>{}), ...);
        if constexpr (rest) body(int64_t(n - rest), first(rest), lane_set<n / PK_LANES>{});
    }
};
// The same where no value is kept: a loop over two vectors at a time, of which the compiler sees
// one copy. Their numbers are 2, as there is one before, and 1.
template <int n, class F> PK_FN void paired_lanes(const F &body) {
    constexpr int pair = 2 * PK_LANES, pairs = n / pair * pair, whole = n / PK_LANES * PK_LANES;
#pragma GCC unroll 1
    for (int64_t i = 0; i < pairs; i += pair) {
        body(i, all_lanes{}, lane_set<2>{});
        body(i + PK_LANES, all_lanes{}, lane_set<1>{});
    }
    if constexpr (pairs < whole) body(int64_t(pairs), all_lanes{}, lane_set<2>{});
    if constexpr (whole < n) body(int64_t(whole), first(n - whole), lane_set<1 + (pairs == whole)>{});
}
}  // namespace pk
#endif
