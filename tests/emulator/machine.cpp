// A machine for CUDA's threads: each is a fiber, and every load and store is looked at first.
//
// A load or store outside of what a kernel was given, of shared memory that nobody stored, or with
// no wait between it and another thread's ends the launch with a message that says who and where.
#include <link.h>
#include <ucontext.h>

#include "memory.h"

alignas(1024) thread_local unsigned char scratch[SHARED];

namespace {
void leave(State state) {
  me->state = state;
  if (!_setjmp(me->at)) _longjmp(host, 1);
}

void run_thread() {
  launch.entry(launch.arguments);
  me->state = DONE;
  ++me->block->ended;
  _longjmp(host, 1);
}

// A thread runs until it waits or ends.
void resume(Thread &t) {
  static ucontext_t fresh;
  me = &t;
  const int back = _setjmp(host);
  if (back == 0) {
    if (t.begun) _longjmp(t.at, 1);
    t.begun = true;
    getcontext(&fresh);
    fresh.uc_stack.ss_sp = stack_of(t);
    fresh.uc_stack.ss_size = STACK - PAGE;
    fresh.uc_link = nullptr;
    makecontext(&fresh, run_thread, 0);
    setcontext(&fresh);
  }
  me = nullptr;
  if (back == 2) throw 0;
}

// A volatile load: others come on before it.
void poll() {
  leave(POLLING);
  uint32_t least = ~0u;
  for (const Block &b : blocks) least = std::min(least, b.published);
  me->seen = std::max(me->seen, least);
}

// Whether all threads of a mask have come to the same line; then they go on.
bool warp_complete(Block &b, unsigned first, unsigned mask, int line) {
  const auto each = [&](auto what) {
    for (unsigned k = 0; k < 32; ++k)
      if (mask >> k & 1 && first + k < size() && !what(b.threads[first + k])) return false;
    return true;
  };
  if (!each([&](Thread &t) { return t.state == IN_WARP && t.line == line && t.mask == mask; }))
    return false;
  return each([&](Thread &t) {
    if (first + t.source >= size() || !(mask >> t.source & 1))
      emulated::fail("line %d: takes the value of lane %d, which is not in mask %#x", line,
                     t.source, mask);
    t.state = READY;
    t.result = b.threads[first + t.source].value;
    return true;
  });
}

void meet(int line, unsigned mask) {
  const unsigned lane = me->number % 32;
  if (!(mask >> lane & 1)) emulated::fail("line %d: is not in its own mask %#x", line, mask);
  me->line = line, me->mask = mask, me->state = IN_WARP;
  if (!warp_complete(*me->block, me->number - lane, mask, line)) leave(IN_WARP);
}

// Threads wait, and none can go on: who waits where.
[[noreturn]] void diverged(Block &b) {
  const auto waits = [](const Thread &t) { return t.state != DONE; };
  const Thread &one = *std::find_if(b.threads.begin(), b.threads.end(), waits);
  const auto alike = [&](const Thread &t) { return t.state == one.state && t.line == one.line; };
  const auto other = std::find_if_not(b.threads.begin(), b.threads.end(), alike);
  const long count = std::count_if(b.threads.begin(), b.threads.end(), alike);
  char text[100] = "";
  if (other != b.threads.end())
    snprintf(text, sizeof text, ", thread (%u, %u) %s%s %d", other->x, other->y,
             WHERE[other->state], other->state == DONE ? ", and met others last in line" : " in line",
             other->line);
  emulated::fail("block %u diverges: thread (%u, %u) and %ld more of %u %s in line %d%s", b.index,
                 one.x, one.y, count - 1, size(), WHERE[one.state], one.line, text);
}

// Threads run in their order until each waits or ends: whether any came on.
bool run_block(Block &b) {
  bool moved = false;
  for (bool again = true; again;) {
    again = false;
    for (unsigned k : order) {
      Thread &t = b.threads[k];
      if (t.state != READY && t.state != POLLING) continue;
      const bool polled = t.state == POLLING;
      resume(t);
      if (!polled || t.state != POLLING) again = moved = true;
    }
  }
  const auto polls = [](const Thread &t) { return t.state == POLLING; };
  if (b.ended < size() && std::none_of(b.threads.begin(), b.threads.end(), polls)) diverged(b);
  return moved;
}

Region shared_region(const char *name, char *begin, size_t nbytes) {
  return {name, begin, begin + nbytes, 1, false, std::vector<Cell>(nbytes)};
}

void begin_block(unsigned index) {
  Block &b = blocks.emplace_back(Block{index});
  b.dynamic = shared_region("shared memory", reinterpret_cast<char *>(scratch), launch.shared);
  b.fixed = shared_region("__shared__ variables", fixed.begin, size_t(fixed.end - fixed.begin));
  b.kept.assign(b.dynamic.cells.size() + b.fixed.cells.size(), char(0xff));  // NaN, or -1
  b.warps.assign((size() + 31) / 32, 1);
  b.times = b.warps;
  for (unsigned k = 0; k < size(); ++k)
    b.threads.push_back({&b, k, k % launch.shape.x, k / launch.shape.x});
}

void swap(Block &b, bool in) {
  char *kept = b.kept.data();
  for (const Region *r : {&b.dynamic, &b.fixed}) {
    memcpy(in ? r->begin : kept, in ? kept : r->begin, r->cells.size());
    kept += r->cells.size();
  }
}

// Blocks that are there at the same time, until all have ended.
void run_together(const std::vector<unsigned> &numbers) {
  blocks.clear();
  blocks.reserve(numbers.size());  // threads know where theirs is
  for (unsigned n : numbers) begin_block(n);
  for (bool moved = true, left = true; left;) {
    if (!moved) emulated::fail("blocks wait for each other for good");
    moved = left = false;
    for (Block &b : blocks) {
      if (b.ended == size()) continue;
      swap(b, true);
      moved |= run_block(b);
      swap(b, false);
      left |= b.ended < size();
    }
  }
}

// Where the kernel's library lies, and where this thread has those of its variables.
int look_at(dl_phdr_info *info, size_t, void *) {
  bool own = false;
  std::vector<std::pair<char *, char *>> found;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const auto &h = info->dlpi_phdr[k];
    char *begin = reinterpret_cast<char *>(info->dlpi_addr + h.p_vaddr);
    char *entry = reinterpret_cast<char *>(launch.entry);
    if (h.p_type == PT_LOAD) found.push_back({begin, begin + h.p_memsz});
    own |= h.p_type == PT_LOAD && entry >= begin && entry < begin + h.p_memsz;
  }
  if (!own) return 0;
  sections = found;
  for (int k = 0; k < info->dlpi_phnum; ++k)
    if (info->dlpi_phdr[k].p_type == PT_TLS && info->dlpi_tls_data) {
      fixed.begin = static_cast<char *>(info->dlpi_tls_data);
      fixed.end = fixed.begin + info->dlpi_phdr[k].p_memsz;
    }
  return 1;
}
}  // namespace

namespace emulated {
uint3 thread() { return {me->x, me->y, 0}; }
uint3 block() { return {me->block->index, 0, 0}; }
uint3 threads() { return launch.shape; }
uint3 blocks() { return launch.grid; }

void wait_of_block(int line) {
  Block &b = *me->block;
  me->line = line;
  if (++b.arrived < size()) return leave(AT_BARRIER);
  for (Thread &t : b.threads) {
    if (t.line != line)
      fail("waits in line %d, thread (%u, %u) in line %d", line, t.x, t.y, t.line);
    t.state = READY;
    b.grid = std::max(b.grid, t.acquired);
    if (t.held) b.counter = t.counter, b.known = t.held;
  }
  for (uint32_t &w : b.warps) ++w;
  const uint32_t last = *std::max_element(b.times.begin(), b.times.end());
  for (uint32_t &t : b.times) t = last + 1;  // those of groups that have waited by themselves differ
  b.arrived = b.group = 0;
}

void wait_of_part(int line, unsigned group, unsigned count) {
  Block &b = *me->block;
  if (count % 32 || (group + 1) * count > size() || me->number / count != group || group > 14)
    fail("waits in line %d for part %u of %u threads", line, group, count);
  if (b.group && b.group != count)
    fail("waits in line %d for parts of %u and of %u threads", line, b.group, count);
  b.group = count, b.grouped.resize(size() / count);
  me->line = line;
  if (++b.grouped[group] < count) return leave(AT_BARRIER);
  for (unsigned k = group * count; k < (group + 1) * count; ++k) {
    Thread &t = b.threads[k];
    if (t.line != line)
      fail("waits in line %d, thread (%u, %u) in line %d", line, t.x, t.y, t.line);
    t.state = READY;
  }
  for (unsigned w = group * count / 32; w < (group + 1) * count / 32; ++w)
    ++b.warps[w], ++b.times[w];
  b.grouped[group] = 0;
}

void wait_of_warp(int line, unsigned mask) {
  uint32_t &time = me->block->warps[me->number / 32];
  const uint32_t then = time;
  me->source = int(me->number % 32);
  meet(line, mask);
  if (time == then) ++time;  // the first of them to go on
}

// No order of memory comes of it.
uint64_t exchange(int line, Way way, unsigned mask, uint64_t bits, int lane, int width) {
  const int own = int(me->number % 32), begin = own & -width, end = begin + width;
  const int from = way == HERE ? begin + (lane & (width - 1))
                   : way == XOR ? own ^ lane
                   : way == UP ? own - lane
                               : own + lane;
  me->value = bits, me->source = (way == UP ? from < begin : from >= end) ? own : from;
  meet(line, mask);
  return me->result;
}

// Blocks learn of each other's stores so: a thread that has waited with its block fences and adds;
// when those of all blocks have, one that then polls and fences tells its block by a wait.
void fence() {
  me->fenced = me->block->times[me->number / 32];
  if (me->seen > me->block->grid) me->acquired = me->seen;
  me->held = me->drawn;
}

void touch_atomically(void *where) {
  Block &b = *me->block;
  const auto has = [&](const auto &s) { return where >= s.first && where < s.second; };
  Region *counters = find(static_cast<char *>(where));
  if (counters && !strcmp(counters->name, "counters")) {
    // Who adds knows of those that added before, once it fences and its block waits.
    auto &all = arrivals[where];
    me->counter = where, me->drawn = all.size();
    const uint32_t now = b.times[me->number / 32];
    if (me->fenced == now) all.push_back({b.index, now});
    return;
  }
  if (std::none_of(sections.begin(), sections.end(), has))
    fail("adds to memory that is no variable of its file");
  const uint32_t time = b.times[me->number / 32];
  if (me->fenced == time) b.published = b.grid + 1, b.covered = time;
}
}  // namespace emulated

// What the compiler puts in front of loads and stores, and what it finds undefined.
#define HOOKS(n)                                                                                   \
  void __tsan_read##n(void *at) { touch(at, n, false); }                                           \
  void __tsan_write##n(void *at) { touch(at, n, true); }                                           \
  void __tsan_unaligned_read##n(void *at) { touch(at, n, false); }                                 \
  void __tsan_unaligned_write##n(void *at) { touch(at, n, true); }                                 \
  void __tsan_volatile_read##n(void *) { poll(); }
struct Place { const char *file; uint32_t line, column; };
#define UNDEFINED(name, what)                                                                      \
  void __ubsan_handle_##name(const Place *at, long a, long b) {                                    \
    emulated::fail("line %u: " what ": %ld and %ld", at->line, a, b);                              \
  }
void touch_words(void *at, size_t nbytes, bool write) {
  for (size_t k = 0; k < nbytes; k += 4) touch(static_cast<char *>(at) + k, 4, write);
}
struct Array { void *at; int64_t nbytes; int32_t item, stored, filled; const char *name; };

extern "C" {
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
// Copies of structures, which are words.
void __tsan_read_range(void *at, size_t nbytes) { touch_words(at, nbytes, false); }
void __tsan_write_range(void *at, size_t nbytes) { touch_words(at, nbytes, true); }
void __tsan_init() {}
void __ubsan_handle_out_of_bounds(const Place *at, long index) {
  emulated::fail("line %u: index %ld of a variable with fewer elements", at->line, index);
}
UNDEFINED(divrem_overflow, "a quotient that overflows, or of 0")
UNDEFINED(add_overflow, "a sum overflows")
UNDEFINED(sub_overflow, "a difference overflows")
UNDEFINED(mul_overflow, "a product overflows")
UNDEFINED(negate_overflow, "a negation overflows")
UNDEFINED(shift_out_of_bounds, "a shift below 0, or by more than there are bits")

// Run a kernel: 0, or 1 with a message. The order of threads and blocks is 0 for forwards, 1 for
// backwards, else a seed to shuffle by.
int emulate(const char *name, void (*kernel)(void **), void **arguments, const Array *given,
            int count, unsigned grid, unsigned width, unsigned height, size_t shared,
            int cooperative, unsigned shuffled, char *message, size_t room) {
  launch = {name, kernel, arguments, {width, height, 1}, {grid, 1, 1}, shared, message, room};
  accesses = 0, fixed = {}, me = nullptr, arrivals.clear();
  arrays.clear(), sections.clear();
  for (int k = 0; k < count; ++k) {
    const Array &a = given[k];
    char *at = static_cast<char *>(a.at);
    arrays.push_back({a.name, at, at + a.nbytes, size_t(a.item), a.filled != 0, {}});
    if (a.stored) arrays.back().cells.resize(a.nbytes / a.item);
  }
  kernel(nullptr);
  dl_iterate_phdr(look_at, nullptr);
  std::vector<unsigned> numbers(grid);
  order.resize(size());
  for (std::vector<unsigned> *v : {&numbers, &order}) {
    for (size_t k = 0; k < v->size(); ++k) (*v)[k] = unsigned(k);
    if (shuffled == 1) std::reverse(v->begin(), v->end());
    if (shuffled > 1) std::shuffle(v->begin(), v->end(), std::mt19937(shuffled));
  }
  try {
    if (shared > SHARED || size() > 1024 || size() % 32)
      emulated::fail("%u threads with %zu bytes of shared memory", size(), shared);
    if (cooperative) run_together(numbers);
    else for (unsigned n : numbers) run_together({n});
    check_stored();
  } catch (int) { return 1; }
  return 0;
}
}
