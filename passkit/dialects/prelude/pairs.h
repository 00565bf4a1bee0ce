// Short rows two at a time: two rows of n elements, n = 8 mod 16, that follow each other are whole
// vectors, the middle one of which has a half of each row. Rows without reductions come in groups,
// which are whole vectors for more lengths.
#ifndef PK_PAIRS_H
#define PK_PAIRS_H
#ifndef PK_ROWS_H
#include "rows.h"
#endif

namespace pk {
// Vector k of two rows of n elements.
template <int n, int k> struct pair_set {
    static constexpr int index = k, middle = n / 16;
    PK_MEMBER constexpr operator int() const { return k; }
};
PK_LAZY mask half_of_first() { return first(8); }
PK_LAZY mask half_of_second() { return ~first(8); }

// A value of each of two rows, as vector k of the pair.
template <class T, int n, int k> PK_FN vec<T> either(T a, T b, pair_set<n, k>) {
    if constexpr (k < n / 16) return a;
    else if constexpr (k > n / 16) return b;
    else return choose(half_of_first(), vec<T>(a), vec<T>(b));
}
template <class T> struct pair_of_values {
    T a, b;
    template <class K> PK_MEMBER vec<T> at(K k) const { return either(a, b, k); }
};
template <class D> struct pair_of_divisors {
    D a, b;
    template <class M, class K> PK_MEMBER auto among(M m, K k) const {
        typename D::of_lanes d(either(a.s, b.s, k), either(a.high, b.high, k),
                               either(a.low, b.low, k));
        return d.among(m, k);
    }
};
// Accumulators of two rows. The lanes of b are rotated by eight: its first elements are in the upper
// half of the middle vector.
template <class Reduction> struct pair_of_reductions {
    Reduction a, b;
    template <class V, class M, int n, int k> PK_MEMBER void take(V x, M, pair_set<n, k>) {
        constexpr int middle = n / 16;
        if constexpr (k < middle) a.take(x, all_lanes{}, lane_set<k>{});
        else if constexpr (k > middle) b.take(x, all_lanes{}, lane_set<k - middle>{});
        else {
            a.take(x, half_of_first(), lane_set<k>{});
            b.take(x, half_of_second(), lane_set<0>{});
        }
    }
};

// How a loop over rows takes them: one, or a pair.
template <int n> struct single_row {
    template <class Reduction> static PK_MEMBER Reduction reductions(Reduction first) {
        return first;
    }
    template <class D> static PK_MEMBER auto divisors(const D &d, int64_t row) { return d[row]; }
    template <class T> struct value {
        T a;
        template <class K> PK_MEMBER vec<T> at(K) const { return a; }
    };
    template <class T> static PK_MEMBER value<T> values(const T *p) { return {*p}; }
};
template <int n> struct row_pair {
    template <class Reduction>
    static PK_MEMBER pair_of_reductions<Reduction> reductions(Reduction first) {
        return {first, first};
    }
    template <class D> static PK_MEMBER auto divisors(const D &d, int64_t row) {
        return pair_of_divisors<decltype(d[row])>{d[row], d[row + 1]};
    }
    template <class T> static PK_MEMBER pair_of_values<T> values(const T *p) {
        return {p[0], p[1]};
    }
};

// body(i, row_pair<n>{}) for two rows at a time from `first` on, body(i, single_row<n>{}) for one that
// is left, or for all where masks cost more. None is left if their number is known to be even.
template <int n, bool even = false, class F>
PK_FN void pairs_of_rows(int64_t first, int64_t rows, F body) {
    int64_t r = 0;
#if PK_AVX512 && PK_LANES == 16
    for (; r + 2 <= rows; r += 2) body(first + r, row_pair<n>{});
    if constexpr (!even)
#endif
        for (; r < rows; r++) body(first + r, single_row<n>{});
}
template <int n, class F> PK_FN void lanes_of_rows(single_row<n>, const F &body) {
    fixed_lanes<n>{body};
}
template <int n, class F, int... k> PK_FN void each_of_pair(const F &body, numbers<k...>) {
    (body(int64_t(16 * k), all_lanes{}, pair_set<n, k>{}), ...);
}
template <int n, class F> PK_FN void lanes_of_rows(row_pair<n>, const F &body) {
    each_of_pair<n>(body, numbers_to<2 * n / 16>{});
}

// Vector k where a row begins so many elements behind the one before; p is its place in the first.
template <class T, class M, int k>
PK_FN auto load_apart(const T *p, int64_t, M m, lane_set<k>) {
    return load(p, m);
}
template <class T, class M, int n, int k>
PK_FN auto load_apart(const T *p, int64_t stride, M m, pair_set<n, k>) {
    const T *second = p + (stride - n);
    if constexpr (k < n / 16) return load(p, m);
    else if constexpr (k > n / 16) return load(second, m);
    else {
        auto upper = m & half_of_second();
        return select(upper, load(second, upper), load(p, m & half_of_first()));
    }
}
template <class T, class V, class M, int k>
PK_FN void store_apart(T *p, int64_t, V v, M m, lane_set<k>) {
    store(p, v, m);
}
template <class T, class V, class M, int n, int k>
PK_FN void store_apart(T *p, int64_t stride, V v, M m, pair_set<n, k>) {
    T *second = p + (stride - n);
    if constexpr (k < n / 16) store(p, v, m);
    else if constexpr (k > n / 16) store(second, v, m);
    else store(p, v, m & half_of_first()), store(second, v, m & half_of_second());
}

// Rows of n elements, n known and no multiple of 16, as many as are whole vectors where they follow
// each other: 4 rows of 20, or 8 of 10.
constexpr int common_with_vectors(int n) { return n % 2 ? 1 : 2 * (n % 4 ? 1 : 2 * (n % 8 ? 1 : 2)); }
template <int n> struct row_group {
    static constexpr int vectors = n / common_with_vectors(n), rows = 16 / common_with_vectors(n);
};
template <int n, int k> struct vector_of_group {
    static constexpr int index = k;
    PK_MEMBER constexpr operator int() const { return k; }
};

// body(i, row_group<n>{}) for so many rows at a time, body(i, single_row<n>{}) for those left.
template <int n, class F> PK_FN void groups_of_rows(int64_t first, int64_t rows, F body) {
    int64_t r = 0;
#if PK_AVX512 && PK_LANES == 16
    constexpr int step = row_group<n>::rows;
    for (; r + step <= rows; r += step) body(first + r, row_group<n>{});
#endif
    for (; r < rows; r++) body(first + r, single_row<n>{});
}
template <int n, class F, int... k> PK_FN void each_of_group(const F &body, numbers<k...>) {
    (body(int64_t(16 * k), all_lanes{}, vector_of_group<n, k>{}), ...);
}
template <int n, class F> PK_FN void lanes_of_rows(row_group<n>, const F &body) {
    each_of_group<n>(body, numbers_to<row_group<n>::vectors>{});
}

// The lanes of vector k that belong to row r of a group.
template <int n, int k, int r> PK_FN mask lanes_of_row() {
    constexpr int begin = r * n - 16 * k, end = begin + n;
    mask before = first(end < 16 ? end : 16);
    if constexpr (begin > 0) return before & ~first(begin);
    else return before;
}
template <int r, class T, class M, int n, int k>
PK_FN auto load_rows(const T *p, int64_t gap, M m, vector_of_group<n, k> set) {
    if constexpr ((r + 1) * n >= 16 * k + 16) {
        if constexpr (r * n <= 16 * k) return load(p + r * gap, m);
        else return load(p + r * gap, m & lanes_of_row<n, k, r>());
    } else {
        auto own = m & lanes_of_row<n, k, r>();
        return select(own, load(p + r * gap, own), load_rows<r + 1>(p, gap, m, set));
    }
}
template <int r, class T, class V, class M, int n, int k>
PK_FN void store_rows(T *p, int64_t gap, V v, M m, vector_of_group<n, k> set) {
    store(p + r * gap, v, m & lanes_of_row<n, k, r>());
    if constexpr ((r + 1) * n < 16 * k + 16) store_rows<r + 1>(p, gap, v, m, set);
}
template <class T, class M, int n, int k>
PK_FN auto load_apart(const T *p, int64_t stride, M m, vector_of_group<n, k> set) {
    return load_rows<16 * k / n>(p, stride - n, m, set);
}
template <class T, class V, class M, int n, int k>
PK_FN void store_apart(T *p, int64_t stride, V v, M m, vector_of_group<n, k> set) {
    store_rows<16 * k / n>(p, stride - n, v, m, set);
}

// The reductions of up to `most` rows that come in pairs: each stores eight lanes, two rows a vector.
template <int most, class Reduction> struct paired_reductions : row_reductions<most, Reduction, 8> {
    typedef row_reductions<most, Reduction, 8> base;
    PK_MEMBER paired_reductions(Reduction first) : base(first) {}
    template <class Rows> PK_MEMBER auto begin(Rows rows) const {
        return rows.reductions(base::begin());
    }
    PK_MEMBER void end(int64_t row, const Reduction &f) { base::end(row, f); }
    PK_MEMBER void end(int64_t row, const pair_of_reductions<Reduction> &f) {
        store(this->lanes + 8 * row, Reduction::join_pair(f.a, f.b), all_lanes{});
    }
};
template <int most, class Reduction>
PK_FN paired_reductions<most, Reduction> reductions_of_pairs(Reduction first) {
    return {first};
}
}  // namespace pk
#endif
