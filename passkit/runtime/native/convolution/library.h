enum {
  MEMORY_CREATE, MEMORY_DESTROY, EXECUTE, GET_THREADS, SET_THREADS, ENGINE, STREAM, FILTER,
  PARTS,                                              // of an image; their records begin at FIRST
  FIRST,
};

enum {                                                // the record of a part
  PRIMITIVE, SOURCE_KIND, RESULT_KIND, SCRATCH_KIND, SOURCE_OFFSET, RESULT_OFFSET, FIRST_ROW, ROWS,
  PART,
};

enum { SOURCE_ARGUMENT = 1, RESULT_ARGUMENT = 17, FILTER_ARGUMENT = 33, SCRATCH_ARGUMENT = 80 };

struct Argument {
  int which;
  void *memory;
};

typedef int (*Create)(void **memory, const void *kind, void *engine, void *data);
typedef int (*Destroy)(void *memory);
typedef int (*Execute)(const void *primitive, void *stream, int count, const Argument *arguments);

// One primitive on arrays of these kinds; 0, or what the library says is wrong.
static int run_primitive(const int64_t *table, int64_t primitive, int count, const int *which,
                         const int64_t *kinds, void *const *data) {
  Argument arguments[4];
  int made = 0, status = 0;
  for (; made < count && !status; made++) {
    arguments[made].which = which[made];
    status = ((Create)table[MEMORY_CREATE])(&arguments[made].memory, (const void *)kinds[made],
                                            (void *)table[ENGINE], data[made]);
    if (status) break;
  }
  if (!status) {
    // The library's own threads stay out of it: the caller's setting is put back afterwards.
    int before = ((int (*)(void))table[GET_THREADS])();
    ((void (*)(int))table[SET_THREADS])(1);
    status = ((Execute)table[EXECUTE])((const void *)primitive, (void *)table[STREAM], count,
                                       arguments);
    ((void (*)(int))table[SET_THREADS])(before);
  }
  while (made-- > 0) ((Destroy)table[MEMORY_DESTROY])(arguments[made].memory);
  return status;
}

// The library refused: from now on these convolutions are products of windows, and that is said.
static void give_up(int64_t *table, int status) {
  if (__atomic_exchange_n(&table[FILTER], 0, __ATOMIC_RELAXED))
    fprintf(stderr, "passkit: oneDNN failed with status %d in a convolution, which from now on is "
                    "computed as matrix products\n", status);
}

// A part of the filter into the layout of the library.
static void reorder(void *const *buf, int64_t tile) {
  int64_t *table = (int64_t *)buf[0];
  const int64_t *part = table + FIRST + table[PARTS] * PART + tile * 3;
  const int which[2] = {SOURCE_ARGUMENT, RESULT_ARGUMENT};
  void *const data[2] = {buf[3], buf[4]};
  const int status = run_primitive(table, part[0], 2, which, part + 1, data);
  if (status) give_up(table, status);
}

// Whether the library computed the tile.
static bool by_library(const Shape &s, const int64_t *part, int64_t image, void *const *buf,
                       unsigned char *scratch) {
  int64_t *table = (int64_t *)buf[0];
  if (!__atomic_load_n(&table[FILTER], __ATOMIC_RELAXED)) return false;
  const int64_t in = s.size[0] * s.size[1] * s.size[2] * s.channels * image;
  const int64_t out = s.result[0] * s.result[1] * s.result[2] * s.filters * image;
  const int which[4] = {SOURCE_ARGUMENT, FILTER_ARGUMENT, RESULT_ARGUMENT, SCRATCH_ARGUMENT};
  const int64_t kinds[4] = {part[SOURCE_KIND], table[FILTER], part[RESULT_KIND],
                            part[SCRATCH_KIND]};
  void *const data[4] = {(float *)buf[2] + in + part[SOURCE_OFFSET], buf[4],
                         (float *)buf[5] + out + part[RESULT_OFFSET], scratch};
  const int status = run_primitive(table, part[PRIMITIVE], 4, which, kinds, data);
  if (status) give_up(table, status);
  return status == 0;
}
