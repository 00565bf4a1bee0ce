// Windows of images as rows of a matrix, for the kernels that multiply them by the filter.
template <class T, class P> static inline P *copy(const T *from, int64_t n, P *to) {
  for (int64_t k = 0; k < n; k++) to[k] = from[k];
  return to + n;
}

template <class T> static inline T *zeros(int64_t n, T *to) {
  for (int64_t k = 0; k < n; k++) to[k] = 0;
  return to + n;
}

// Copy the windows of results first to last of a row, for one group of channels, as the rows of a
// matrix. Taps that are adjacent in memory are copied together. P is T, or a wider type.
template <class T, class P>
static void gather(const Shape &s, const T *image, int64_t row, int64_t first, int64_t last,
                   int64_t group, P *to) {
  const int64_t own = s.channels / s.groups, taps = s.window[2];
  const int64_t z = row / s.result[1] * s.stride[0] - s.before[0];
  const int64_t y = row % s.result[1] * s.stride[1] - s.before[1];
  const bool adjacent = s.groups == 1 && s.dilation[2] == 1;
  for (int64_t i = first; i < last; i++)
    for (int64_t a = 0; a < s.window[0]; a++)
      for (int64_t b = 0; b < s.window[1]; b++) {
        const int64_t d = z + a * s.dilation[0], h = y + b * s.dilation[1];
        if (d < 0 || d >= s.size[0] || h < 0 || h >= s.size[1]) {
          to = zeros(taps * own, to);
          continue;
        }
        const T *line = image + (d * s.size[1] + h) * s.size[2] * s.channels + group * own;
        const int64_t left = i * s.stride[2] - s.before[2];
        if (adjacent) {
          const int64_t from = left < 0 ? (-left < taps ? -left : taps) : 0;
          const int64_t inside = s.size[2] - left < taps ? s.size[2] - left : taps;
          const int64_t end = inside > from ? inside : from;
          to = zeros(from * own, to);
          to = copy(line + (left + from) * own, (end - from) * own, to);
          to = zeros((taps - end) * own, to);
          continue;
        }
        for (int64_t c = 0; c < taps; c++) {
          const int64_t w = left + c * s.dilation[2];
          const bool inside = w >= 0 && w < s.size[2];
          to = inside ? copy(line + w * s.channels, own, to) : zeros(own, to);
        }
      }
}

// Copy the windows of results first to first + count of an image, numbered in row-major order.
template <class T, class P>
static void gather_results(const Shape &s, const T *image, int64_t first, int64_t count,
                           int64_t group, int64_t length, P *to) {
  const int64_t across = s.result[2];
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / across, i = first + done - row * across;
    const int64_t n = across - i < count - done ? across - i : count - done;
    gather(s, image, row, i, i + n, group, to + done * length);
    done += n;
  }
}
