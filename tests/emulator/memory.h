// What the machine does in front of every load and store.
#pragma once
#include "threads.h"

namespace {
constexpr long MOST_ACCESSES = 20'000'000;
long accesses;

// How near the thread of a mark is: 0 itself, 1 of its warp, 2 of its block, 3 of the grid. Parts of
// a block that wait by themselves are as far from each other as blocks are.
int relation(const Mark &m) {
  const unsigned block = (m.who - 1) / size(), number = (m.who - 1) % size();
  const unsigned group = me->block->group ? me->block->group : size();
  const int near = block != me->block->index || number / group != me->number / group ? 3
                   : number / 32 != me->number / 32 ? 2
                   : number != me->number;
  return std::max(near, m.level);
}

// Whether waits stand between a mark and now.
bool before(const Mark &m) {
  if (!m.who) return true;
  const Block &own = *me->block;
  switch (relation(m)) {
    case 0: return true;
    case 1: return m.warp < own.warps[me->number / 32];
    case 2: return m.block < own.times[me->number / 32];
  }
  if (own.counter) {
    const auto &all = arrivals[own.counter];
    for (size_t k = 0; k < own.known; ++k)
      if (all[k].first == (m.who - 1) / size() && m.block < all[k].second) return true;
  }
  const auto made = [&](const Block &b) { return b.index == (m.who - 1) / size(); };
  const auto other = std::find_if(blocks.begin(), blocks.end(), made);
  return other != blocks.end() && m.grid < own.grid && m.block < other->covered;
}

Mark now(int level = 0) {
  const Block &b = *me->block;
  return {b.index * size() + me->number + 1, b.warps[me->number / 32],
          b.times[me->number / 32], b.grid, level};
}

const char *names(const Mark &m) {
  static char text[80];
  const unsigned number = (m.who - 1) % size(), width = launch.shape.x;
  snprintf(text, sizeof text, "thread (%u, %u) of block %u%s", number % width, number / width,
           (m.who - 1) / size(), m.level ? " and others" : "");
  return text;
}

Region *find(char *at) {
  static size_t last;
  const auto has = [&](const Region &r) { return at >= r.begin && at < r.end; };
  if (has(me->block->dynamic)) return &me->block->dynamic;
  if (has(me->block->fixed)) return &me->block->fixed;
  if (last < arrays.size() && has(arrays[last])) return &arrays[last];
  last = size_t(std::find_if(arrays.begin(), arrays.end(), has) - arrays.begin());
  return last < arrays.size() ? &arrays[last] : nullptr;
}

[[noreturn]] void outside(char *at, size_t nbytes, const char *does) {
  Region nearest{};
  size_t least = ~size_t(0);
  const auto look = [&](const Region &r) {
    const size_t apart = at < r.begin ? size_t(r.begin - at) : size_t(at - r.end);
    if (r.begin && apart < least)
      least = apart, nearest = {r.name, r.begin, r.end, r.item, r.filled, {}};
  };
  std::for_each(arrays.begin(), arrays.end(), look);
  look(me->block->dynamic), look(me->block->fixed);
  const long item = long(nearest.item);
  emulated::fail("%s %zu bytes outside of all arrays, at element %ld of %s, which has %ld", does,
                 nbytes, (at - nearest.begin) / item, nearest.name,
                 (nearest.end - nearest.begin) / item);
}

void touch(void *where, size_t nbytes, bool stores) {
  if (!me) return;
  char *at = static_cast<char *>(where);
  const char *does = stores ? "stores" : "loads";
  if (++accesses > MOST_ACCESSES) emulated::fail("runs for too long");
  if (uintptr_t(at) % nbytes) emulated::fail("%s %zu bytes that are not aligned", does, nbytes);
  Region *r = find(at);
  if (!r || at + nbytes > r->end) {
    const char *stack = stack_of(*me);
    if (at >= stack && at < stack + STACK - PAGE) return;
    for (const auto &[begin, end] : sections)
      if (at >= begin && at < end) return;
    outside(at, nbytes, does);
  }
  const size_t index = size_t(at - r->begin) / r->item;
  if (r->cells.empty()) {
    if (stores) emulated::fail("stores element %zu of %s, which it is to read", index, r->name);
    return;
  }
  for (size_t k = index; k * r->item < size_t(at + nbytes - r->begin); ++k) {
    Cell &c = r->cells[k];
    if (!stores && !c.store.who && !r->filled)
      emulated::fail("loads element %zu of %s, which nothing has stored", k, r->name);
    if (!before(c.store))
      emulated::fail("%s element %zu of %s, which %s stores: no wait stands between", does, k,
                     r->name, names(c.store));
    if (stores && !before(c.load))
      emulated::fail("stores element %zu of %s, which %s loads: no wait stands between", k,
                     r->name, names(c.load));
    if (stores) c = {now(), {}};
    else c.load = now(before(c.load) ? 0 : relation(c.load));
  }
}

// What a kernel is to fill has been stored.
void check_stored() {
  for (const Region &r : arrays)
    for (size_t k = 0; k < r.cells.size() && !r.filled; ++k)
      if (!r.cells[k].store.who) emulated::fail("leaves element %zu of %s as it was", k, r.name);
}
}  // namespace
