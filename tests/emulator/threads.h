// Threads, blocks and a launch: what the machine knows while a kernel runs.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "cuda.h"
#undef asm  // this is C++

constexpr size_t STACK = 64 << 10, SHARED = 227 << 10, PAGE = 4096;
extern thread_local unsigned char scratch[];

namespace {
// Who touched an element, and the times of its warp, its block and all blocks by then, which waits
// count. At a level above 0 several did: of a warp, of a block, of the grid.
struct Mark { uint32_t who = 0, warp = 0, block = 0, grid = 0; int level = 0; };
struct Cell { Mark store, load; };

// An array. What kernels may not store to has no cells; what is filled may be loaded at once.
struct Region {
  const char *name = "";
  char *begin = nullptr, *end = nullptr;
  size_t item = 1;
  bool filled = false;
  std::vector<Cell> cells{};
};

enum State { READY, AT_BARRIER, IN_WARP, POLLING, DONE };
const char *const WHERE[] = {"runs", "waits for its block", "waits for its warp", "polls", "ended"};

struct Block;
struct Thread {
  Block *block;
  unsigned number, x, y;
  State state = READY;
  bool begun = false;
  int line = 0, source = 0;  // where it met others last, and whose value it takes
  unsigned mask = 0;
  uint64_t value = 0, result = 0;
  uint32_t fenced = 0, seen = 0, acquired = 0;  // see `fence`
  size_t drawn = 0, held = 0;                   // arrivals of `counter` before its own; and fenced
  const void *counter = nullptr;
  jmp_buf at{};
};

struct Block {
  unsigned index;
  std::vector<Thread> threads{};
  std::vector<uint32_t> warps{}, times{};  // of each warp: its waits, and those of its block
  unsigned group = 0;  // threads of each part that waits by itself, as if it were a block
  std::vector<unsigned> grouped{};  // how many of a part have come
  uint32_t grid = 1, published = 1, covered = 0;
  unsigned arrived = 0, ended = 0;
  const void *counter = nullptr;  // the arrivals there that it knows of
  size_t known = 0;
  Region dynamic{}, fixed{};
  std::vector<char> kept{};  // its shared memory while another block runs
};

// One launch at a time.
struct Launch {
  const char *name;
  void (*entry)(void **);
  void **arguments;
  uint3 shape, grid;
  size_t shared;
  char *message;
  size_t room;
} launch;
std::vector<Region> arrays;
std::vector<std::pair<char *, char *>> sections;  // of the kernel's library
Region fixed;                                      // its variables that are shared
std::vector<Block> blocks;                         // that are there at the same time
std::vector<unsigned> order;
// The blocks that added to a counter behind a wait and a fence, in order, with their times.
std::map<const void *, std::vector<std::pair<unsigned, uint32_t>>> arrivals;
Thread *me = nullptr;
jmp_buf host;
std::deque<char *> stacks;

unsigned size() { return launch.shape.x * launch.shape.y; }

char *stack_of(const Thread &t) {
  const size_t k = size_t(t.block - blocks.data()) * size() + t.number;
  while (stacks.size() <= k) {
    void *made = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(made, PAGE, PROT_NONE);
    stacks.push_back(static_cast<char *>(made));
  }
  return stacks[k] + PAGE;
}
}  // namespace

// Ends the launch with a message. A thread goes back to its host, which throws.
[[noreturn]] void emulated::fail(const char *what, ...) {
  char *text = launch.message, *end = text + launch.room;
  text += snprintf(text, end - text, "kernel %s", launch.name);
  if (me) text += snprintf(text, end - text, ", block %u, thread (%u, %u)", me->block->index, me->x,
                           me->y);
  text += snprintf(text, end - text, ": ");
  va_list more;
  va_start(more, what);
  vsnprintf(text, end - text, what, more);
  va_end(more);
  if (!me) throw 0;
  _longjmp(host, 2);
}
