// Convolutions by primitives of oneDNN. buf[0] is a table of functions, handles and records of parts,
// which onednn.py builds.
enum {
  MEMORY_CREATE, MEMORY_DESTROY, EXECUTE, GET_THREADS, SET_THREADS, ENGINE, STREAM, FILTER,
  PARTS,                                              // the number of parts of an image
  FIRST,                                              // where the records of parts begin
};

enum {                                                // the record of a part; PART is its length
  PRIMITIVE, SOURCE_MEMORY, RESULT_MEMORY, SCRATCH_MEMORY, SOURCE_OFFSET, RESULT_OFFSET, FIRST_ROW, ROWS,
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

// Run a primitive on arrays with these memory descriptors; return the library's status, 0 for success.
static int run_primitive(const int64_t *table, int64_t primitive, int count, const int *which,
                         const int64_t *descriptors, void *const *data) {
  Argument arguments[4];
  int created = 0, status = 0;
  for (; created < count && !status; created++) {
    arguments[created].which = which[created];
    status = ((Create)table[MEMORY_CREATE])(&arguments[created].memory, (const void *)descriptors[created],
                                            (void *)table[ENGINE], data[created]);
    if (status) break;
  }
  if (!status) {
    // Primitives are created for one thread; the caller's number of threads is restored.
    int before = ((int (*)(void))table[GET_THREADS])();
    ((void (*)(int))table[SET_THREADS])(1);
    status = ((Execute)table[EXECUTE])((const void *)primitive, (void *)table[STREAM], count,
                                       arguments);
    ((void (*)(int))table[SET_THREADS])(before);
  }
  while (created-- > 0) ((Destroy)table[MEMORY_DESTROY])(arguments[created].memory);
  return status;
}

// Stop using the library for convolutions of this table, and report it once: im2col computes them.
static void disable_library(int64_t *table, int status) {
  if (__atomic_exchange_n(&table[FILTER], 0, __ATOMIC_RELAXED))
    fprintf(stderr, "passkit: oneDNN failed with status %d in a convolution, which from now on is "
                    "computed as matrix products\n", status);
}

// Convert a filter to the layout of the library.
static void reorder_filter(void *const *buf, int64_t tile) {
  int64_t *table = (int64_t *)buf[0];
  const int64_t *part = table + FIRST + table[PARTS] * PART + tile * 3;
  const int which[2] = {SOURCE_ARGUMENT, RESULT_ARGUMENT};
  void *const data[2] = {buf[3], buf[4]};
  const int status = run_primitive(table, part[0], 2, which, part + 1, data);
  if (status) disable_library(table, status);
}

// Compute a part of an image by the library; return whether it succeeded.
static bool by_onednn(const Shape &s, const int64_t *part, int64_t image, void *const *buf,
                       unsigned char *scratch) {
  int64_t *table = (int64_t *)buf[0];
  if (!__atomic_load_n(&table[FILTER], __ATOMIC_RELAXED)) return false;
  const int64_t in = s.size[0] * s.size[1] * s.size[2] * s.channels * image;
  const int64_t out = s.result[0] * s.result[1] * s.result[2] * s.filters * image;
  const int which[4] = {SOURCE_ARGUMENT, FILTER_ARGUMENT, RESULT_ARGUMENT, SCRATCH_ARGUMENT};
  const int64_t descriptors[4] = {part[SOURCE_MEMORY], table[FILTER], part[RESULT_MEMORY],
                            part[SCRATCH_MEMORY]};
  void *const data[4] = {(float *)buf[2] + in + part[SOURCE_OFFSET], buf[4],
                         (float *)buf[5] + out + part[RESULT_OFFSET], scratch};
  const int status = run_primitive(table, part[PRIMITIVE], 4, which, descriptors, data);
  if (status) disable_library(table, status);
  return status == 0;
}
