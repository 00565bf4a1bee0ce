// Direct convolutions by register tiles: up to PIXELS results times two vectors of filters accumulate in
// registers. A work tile is a range of an image's results times a range of panels of filters.
//
// The filter is packed in panels of PANEL filters: for each tap and channel the weights of a panel are
// contiguous, padded with 0 after the last filter. The reduction over taps and channels is split into
// blocks of DEPTH terms, so that a block of a panel stays in the first-level cache while all results of
// the range read it. Each block is summed from 0 and added to the result, in the order of blocks: the
// bits depend on the shape only.

// Round a size up to full cache lines.
static int64_t round_to_cache_lines(int64_t nbytes) { return ceil_div(nbytes, CACHE_LINE) * CACHE_LINE; }

// The window of a result: the offset of its first element, and a bit for each tap outside the image.
struct WindowStart {
  int64_t offset;
  uint64_t outside;
};

// `count` consecutive register tiles of `size` results each, from result `first` on.
struct TileRun {
  int32_t first, size, count;
};

static_assert(sizeof(WindowStart) == 16 && sizeof(TileRun) == 12, "WINDOW_NBYTES and RUN_NBYTES of register_tiles.py");

// A block of the reduction, terms first to last, for a range of results in one group of channels.
struct Block {
  const float *source, *zeros;
  const int64_t *taps;                                // their offsets from the first tap
  const WindowStart *windows_at;
  int64_t own;                                        // channels of the group
  int64_t first, last;
  int64_t tap, channel;                               // of the first term
};

// Accumulate the terms of a block for P results and W vectors of filters.
template <int P, int W>
__attribute__((always_inline)) static inline void sum_terms(
    const Block &b, const WindowStart *window, const float *weights,
    typename Vector<float>::type (&sum)[P][W]) {
  typedef typename Vector<float>::type V;
  uint64_t outside = 0, unread = ~(uint64_t)0;           // taps of any result, of all results
  UNROLL for (int p = 0; p < P; p++) outside |= window[p].outside, unread &= window[p].outside;
  int64_t tap = b.tap, channel = b.channel;
  for (int64_t left = b.last - b.first; left > 0; tap++, channel = 0) {
    const int64_t count = b.own - channel < left ? b.own - channel : left;
    left -= count;
    if (unread >> tap & 1) {
      weights += count * PANEL;
      continue;
    }
    const float *at[P];
    UNROLL for (int p = 0; p < P; p++) at[p] = b.source + window[p].offset + b.taps[tap] + channel;
    if (outside >> tap & 1)
      UNROLL for (int p = 0; p < P; p++) at[p] = window[p].outside >> tap & 1 ? b.zeros : at[p];
    for (int64_t i = 0; i < count; i++, weights += PANEL) {
      V factor[W];
      UNROLL for (int v = 0; v < W; v++) factor[v] = *(const V *)(weights + v * VECTOR);
      UNROLL for (int p = 0; p < P; p++)
        UNROLL for (int v = 0; v < W; v++) sum[p][v] += factor[v] * at[p][i];
    }
  }
}

// Store or add the first `count` sums of a vector that extends beyond the filters.
__attribute__((noinline)) static void store_partial(const float *sum, int64_t count, bool begun,
                                              float *to) {
  for (int64_t r = 0; r < count; r++) to[r] = begun ? to[r] + sum[r] : sum[r];
}

// Add a block of terms of a panel to the results of a run. Meanwhile `lines` rows of the weights `next`
// are prefetched per register tile.
template <int P, int W>
__attribute__((noinline)) static void sum_run(const Shape &s, const Block &b, const TileRun &run,
                                              const float *weights, float *y, int64_t filters,
                                              const float *next, int64_t lines) {
  typedef typename Vector<float>::type V;
  const bool begun = b.first > 0;
  const WindowStart *window = b.windows_at + run.first;
  y += run.first * s.filters;
  for (int32_t t = 0; t < run.count; t++, window += P, y += P * s.filters) {
    for (const float *end = next + lines * PANEL; next < end; next += PANEL)
      __builtin_prefetch(next, 0, 2);
    V sum[P][W];
    UNROLL for (int p = 0; p < P; p++) {
      __builtin_prefetch(y + p * s.filters, 1);
      UNROLL for (int v = 0; v < W; v++) sum[p][v] = V{};
    }
    sum_terms<P, W>(b, window, weights, sum);
    if (filters < W * VECTOR) {
      float sums[P][W * VECTOR];
      memcpy(sums, sum, sizeof sums);
      UNROLL for (int p = 0; p < P; p++) store_partial(sums[p], filters, begun, y + p * s.filters);
      continue;
    }
    UNROLL for (int p = 0; p < P; p++)
      UNROLL for (int v = 0; v < W; v++) {
        V &to = *(V *)(y + p * s.filters + v * VECTOR);
        to = begun ? to + sum[p][v] : sum[p][v];
      }
  }
}

// Add a block of terms of a panel to all results of a range, which are `tiles` register tiles.
template <int W>
static void sum_panel(const Shape &s, const Block &b, const TileRun *runs, int64_t count, int64_t tiles,
                      const float *weights, float *y, int64_t filters, const float *next) {
  const int64_t lines = ceil_div(b.last - b.first, tiles);
  for (const TileRun *run = runs; run < runs + count; run++) {
    switch (run->size) {
#define CASE(P) case P: sum_run<P, W>(s, b, *run, weights, y, filters, next, lines); break;
#ifdef __AVX512F__
      CASE(12) CASE(11) CASE(10) CASE(9) CASE(8) CASE(7)
#endif
      CASE(6) CASE(5) CASE(4) CASE(3) CASE(2) CASE(1)
#undef CASE
    }
    next += run->count * lines * PANEL;
  }
}

// Return the number of panels over all groups.
static int64_t panels_of(const Shape &s) { return s.groups * ceil_div(s.filters / s.groups, PANEL); }

// Pack panel number `tile` of the filter.
static void pack_filter(const Shape &s, void *const *buf, int64_t tile) {
  const int64_t each = s.filters / s.groups, each_panels = ceil_div(each, PANEL);
  const int64_t length = s.window[0] * s.window[1] * s.window[2] * (s.channels / s.groups);
  const int64_t first = tile % each_panels * PANEL;
  const int64_t count = each - first < PANEL ? each - first : PANEL;
  const float *from = (const float *)buf[3] + tile / each_panels * each + first;
  float *to = (float *)buf[4] + tile * length * PANEL;
  for (int64_t k = 0; k < length; k++, from += s.filters, to += PANEL)
    for (int64_t r = 0; r < PANEL; r++) to[r] = r < count ? from[r] : 0;
}

// Fill in the offset of each tap from the first one.
static void find_tap_offsets(const Shape &s, int64_t *tap) {
  for (int64_t a = 0; a < s.window[0]; a++)
    for (int64_t b = 0; b < s.window[1]; b++)
      for (int64_t c = 0; c < s.window[2]; c++, tap++)
        *tap = ((a * s.dilation[0] * s.size[1] + b * s.dilation[1]) * s.size[2] + c * s.dilation[2]) *
               s.channels;
}

// Return a bit for each tap that is outside the image, of the window that begins at these coordinates.
static uint64_t taps_outside(const Shape &s, const int64_t (&low)[3]) {
  uint64_t outside = 0, bit = 1;
  for (int64_t a = 0; a < s.window[0]; a++)
    for (int64_t b = 0; b < s.window[1]; b++)
      for (int64_t c = 0; c < s.window[2]; c++, bit <<= 1) {
        const int64_t at[3] = {low[0] + a * s.dilation[0], low[1] + b * s.dilation[1],
                               low[2] + c * s.dilation[2]};
        for (int k = 0; k < 3; k++)
          if (at[k] < 0 || at[k] >= s.size[k]) outside |= bit;
      }
  return outside;
}

// Fill in the windows of results first to first + count.
static void find_windows(const Shape &s, int64_t first, int64_t count, WindowStart *window) {
  int64_t row = first / s.result[2];
  int64_t at[3] = {row / s.result[1], row % s.result[1], first % s.result[2]};
  for (const WindowStart *end = window + count; window < end; window++) {
    int64_t low[3];
    bool inside = true;
    for (int k = 0; k < 3; k++) {
      low[k] = at[k] * s.stride[k] - s.before[k];
      inside &= low[k] >= 0 && low[k] + (s.window[k] - 1) * s.dilation[k] < s.size[k];
    }
    window->offset = ((low[0] * s.size[1] + low[1]) * s.size[2] + low[2]) * s.channels;
    window->outside = inside ? 0 : taps_outside(s, low);
    for (int k = 2; k >= 0 && ++at[k] == s.result[k]; k--) at[k] = 0;
  }
}

// Divide results first to first + count into runs of register tiles of nearly equal size; return the
// number of runs. With `by_rows`, as for padded images, a tile has results of one row only, so that most
// of its results have the same taps outside.
static int64_t find_runs(const Shape &s, int64_t first, int64_t count, bool by_rows, TileRun *run) {
  const TileRun *begin = run;
  for (int64_t done = 0; done < count;) {
    const int64_t left = s.result[2] - (first + done) % s.result[2];
    const int64_t length = by_rows && left < count - done ? left : count - done;
    const int64_t tiles = ceil_div(length, PIXELS), size = length / tiles, larger = length % tiles;
    if (larger > 0) *run++ = {(int32_t)done, (int32_t)size + 1, (int32_t)larger};
    done += larger * (size + 1);
    *run++ = {(int32_t)done, (int32_t)size, (int32_t)(tiles - larger)};
    done += (tiles - larger) * size;
  }
  return run - begin;
}

// Compute results first to first + count of an image, for panels begin to end of the packed filter.
//
// Scratch holds a pixel of zeros, the offsets of taps, the windows, the runs and, where channels are few
// or taps many, the copied elements of windows.
static void direct(const Shape &s, const int64_t *size, void *const *buf, int64_t image, int64_t first,
                   int64_t count, int64_t begin, int64_t end, unsigned char *scratch) {
  const int64_t own = s.channels / s.groups, each = s.filters / s.groups;
  const int64_t taps = s.window[0] * s.window[1] * s.window[2], length = taps * own;
  const float *x = (const float *)buf[2] + image * s.size[0] * s.size[1] * s.size[2] * s.channels;
  float *y = (float *)buf[5] + (image * s.result[0] * s.result[1] * s.result[2] + first) * s.filters;
  float *zeros = (float *)scratch;
  int64_t *tap = (int64_t *)(scratch += round_to_cache_lines(own * sizeof(float)));
  WindowStart *windows_at = (WindowStart *)(scratch += round_to_cache_lines(taps * sizeof(int64_t)));
  TileRun *runs = (TileRun *)(scratch += round_to_cache_lines(count * sizeof(WindowStart)));
  float *copied = (float *)(scratch += round_to_cache_lines((count + 1) * sizeof(TileRun)));
  memset(zeros, 0, own * sizeof(float));
  find_tap_offsets(s, tap);
  find_windows(s, first, count, windows_at);
  const bool gathered = (own < FEW_CHANNELS && taps > 1) || taps > MAX_TAPS;
  for (int64_t p = 0; gathered && p < count; p++) windows_at[p] = {p * length, 0};
  bool padded = false;
  for (int64_t p = 0; p < count; p++) padded |= windows_at[p].outside != 0;
  const int64_t num_runs = find_runs(s, first, count, padded, runs);
  int64_t tiles = 0;
  for (int64_t r = 0; r < num_runs; r++) tiles += runs[r].count;
  const int64_t panels = ceil_div(each, PANEL);
  for (int64_t stop; begin < end; begin = stop) {
    const int64_t group = begin / panels;
    stop = end < (group + 1) * panels ? end : (group + 1) * panels;
    Block b = {x + group * own, zeros, tap, windows_at, own, 0, 0, 0, 0};
    if (gathered) {
      gather_results(s, x, first, count, group, length, copied);
      b.source = copied, b.own = length;
    }
    for (; b.first < length; b.first = b.last) {
      b.last = length - b.first < size[DEPTH] ? length : b.first + size[DEPTH];
      b.tap = b.first / b.own, b.channel = b.first % b.own;
      for (int64_t panel = begin; panel < stop; panel++) {
        const int64_t f = panel % panels * PANEL, filters = each - f;
        const float *weights = (const float *)buf[4] + (panel * length + b.first) * PANEL;
        float *to = y + group * each + f;
        const float *next = panel + 1 < stop ? weights + length * PANEL
                                             : (const float *)buf[4] + (begin * length + b.last) * PANEL;
        if (filters <= VECTOR)
          sum_panel<1>(s, b, runs, num_runs, tiles, weights, to, filters, next);
        else
          sum_panel<2>(s, b, runs, num_runs, tiles, weights, to, filters, next);
      }
    }
  }
}

// Compute a range of results of an image for a range of panels of filters.
static void direct_tile(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                        unsigned char *scratch) {
  const int64_t results = results_of(s), height = size[3];
  const int64_t panels = panels_of(s), tile_panels = size[TILE_PANELS];
  const int64_t ranges = ceil_div(results, height), parts = ceil_div(panels, tile_panels);
  const int64_t range = tile / parts % ranges, image = tile / parts / ranges;
  const int64_t first = range * height, begin = tile % parts * tile_panels;
  const int64_t count = results - first < height ? results - first : height;
  const int64_t end = panels - begin < tile_panels ? panels : begin + tile_panels;
  direct(s, size, buf, image, first, count, begin, end, scratch);
  run_epilogue(size, buf, image * results + first, count);
}

// Run the task of a direct convolution on a tile.
static void run_direct(const Shape &s, const int64_t *size, void *const *buf, int64_t tile,
                       unsigned char *scratch) {
  if (size[0] == PACK_FILTER)
    pack_filter(s, buf, tile);
  else
    direct_tile(s, size, buf, tile, scratch);
}
}  // namespace convolution

extern "C" void convolve_direct(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                      unsigned char *scratch) {
  using namespace convolution;
  run_tiles(size, buf, begin, end, scratch, run_direct);
}
