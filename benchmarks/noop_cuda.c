/* A libcuda.so.1 that does nothing, for the time that calls take on the host; it counts its calls.
   A device of compute capability 9.0 is there, whose memory has addresses but no bytes. */
#include <stdint.h>
#include <string.h>

typedef uint64_t word;
#define MAX 64
static struct { const char *name; void *function; long count; } table[MAX];
static int size;
static word next_address = 1 << 20, next_handle = 4096;
static __thread void *current;

long calls_of(const char *name) {
  for (int k = 0; k < size; k++)
    if (!strcmp(table[k].name, name)) return table[k].count;
  return -1;
}
void forget_calls(void) { for (int k = 0; k < size; k++) table[k].count = 0; }
int num_functions(void) { return size; }
const char *name_of(int k) { return table[k].name; }

#define FN(symbol, parameters, body) \
  static int number_##symbol; \
  int symbol parameters { table[number_##symbol].count++; body; return 0; } \
  __attribute__((constructor)) static void add_##symbol(void) { \
    number_##symbol = size; table[size].name = #symbol; table[size++].function = (void *)symbol; }

FN(cuInit, (unsigned flags), )
FN(cuGetErrorString, (int code, const char **text), *text = "an error of a driver that does nothing")
FN(cuDriverGetVersion, (int *version), *version = 13000)
FN(cuDeviceGetCount, (int *count), *count = 1)
FN(cuDeviceGet, (int *device, int ordinal), *device = 0)
FN(cuDeviceGetName, (char *name, int length, int device), strcpy(name, "No device"))
FN(cuDeviceTotalMem_v2, (size_t *bytes, int device), *bytes = (size_t)1 << 36)
FN(cuDeviceGetAttribute, (int *value, int kind, int device),
   *value = kind == 75 ? 9 : kind == 76 ? 0 : kind == 16 ? 132 : kind == 1 ? 1024 : kind == 95 ? 1 : kind == 97 ? 232448 : 1 << 30)
FN(cuDevicePrimaryCtxRetain, (void **context, int device), *context = (void *)64)
FN(cuCtxPushCurrent_v2, (void *context), current = context)
FN(cuCtxPopCurrent_v2, (void **context), *context = current)
FN(cuCtxGetCurrent, (void **context), *context = current)
FN(cuCtxSetCurrent, (void *context), current = context)
FN(cuModuleLoadData, (void **module, const void *image), *module = (void *)(next_handle += 8))
FN(cuModuleGetFunction, (void **function, void *module, const char *name), *function = (void *)(next_handle += 8))
FN(cuFuncGetAttribute, (int *value, int kind, void *function), *value = kind == 0 ? 1024 : kind == 4 ? 32 : 0)
FN(cuFuncSetAttribute, (void *function, int kind, int value), )
FN(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, void *function, int threads, size_t shared), *blocks = 4)
FN(cuMemAlloc_v2, (word *address, size_t bytes), *address = next_address; next_address += (bytes + 511) & ~(size_t)511)
FN(cuMemFree_v2, (word address), )
FN(cuStreamCreate, (void **stream, unsigned flags), *stream = (void *)(next_handle += 8))
FN(cuStreamSynchronize, (void *stream), )
FN(cuStreamWaitEvent, (void *stream, void *event, unsigned flags), )
FN(cuMemcpyHtoDAsync_v2, (word target, const void *source, size_t bytes, void *stream), )
FN(cuMemcpyDtoHAsync_v2, (void *target, word source, size_t bytes, void *stream), )
FN(cuMemcpyDtoDAsync_v2, (word target, word source, size_t bytes, void *stream), )
FN(cuMemsetD8Async, (word target, unsigned char byte, size_t bytes, void *stream), )
FN(cuEventCreate, (void **event, unsigned flags), *event = (void *)(next_handle += 8))
FN(cuEventRecord, (void *event, void *stream), )
FN(cuEventDestroy_v2, (void *event), )
FN(cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                    unsigned shared, void *stream, void **places, void **extra), )
FN(cuLaunchCooperativeKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, void *stream, void **places), )
FN(cuGraphCreate, (void **graph, unsigned flags), *graph = (void *)(next_handle += 8))
FN(cuGraphAddKernelNode_v2, (void **node, void *graph, void **before, size_t count, void *params), *node = (void *)(next_handle += 8))
FN(cuGraphKernelNodeSetAttribute, (void *node, int kind, void *value), )
FN(cuGraphInstantiateWithFlags, (void **executable, void *graph, word flags), *executable = (void *)(next_handle += 8))
FN(cuGraphLaunch, (void *executable, void *stream), )
FN(cuGraphExecDestroy, (void *executable), )
FN(cuGraphDestroy, (void *graph), )

int cuGetProcAddress_v2(const char *name, void **function, int version, word flags, int *status) {
  *function = 0;
  for (int k = 0; k < size; k++) {
    size_t length = strlen(name);
    int is_same = !strncmp(table[k].name, name, length);
    const char *rest = table[k].name + length;
    if (is_same && (!*rest || !strcmp(rest, "_v2") || !strcmp(rest, "WithFlags"))) *function = table[k].function;
  }
  if (!strcmp(name, "cuGetProcAddress")) *function = (void *)cuGetProcAddress_v2;
  if (status) *status = *function ? 0 : 1;
  return 0;
}
int cuGetProcAddress(const char *name, void **function, int version, word flags) {
  return cuGetProcAddress_v2(name, function, version, flags, 0);
}
