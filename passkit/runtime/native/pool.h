// A recycling pool of large memory: 2 MB-aligned slabs of huge pages, in size classes.
//
// Whoever calls holds the GIL, so there are no locks. Idle slabs are kept up to a limit; beyond it
// the one that has been idle longest goes back to the system. What is far smaller than a slab is a
// piece of one: the first touch of a huge page costs a sixth of that of as many small ones.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((int64_t)1 << 21)
#define BUCKETS 256

typedef struct Slab Slab;

struct Slab {
    char *data;
    int64_t nbytes;
    int bucket, pieces;      // pieces: how many it is cut into; 0: it is whole
    uint32_t room;           // the pieces that nobody has, a bit each
    Slab *below;             // the next idle slab of this bucket
    Slab *older, *newer;     // all idle slabs, by the time they came back; or those with room
};

static struct {
    int64_t limit, idle_bytes, idle_slabs, live_bytes, live_slabs, mapped, reused;
} pool_stats = {(int64_t)1 << 30, 0, 0, 0, 0, 0, 0};
static Slab *pool_buckets[BUCKETS];
static Slab *pool_oldest, *pool_newest;

// The class of a size: every 2 MB up to 16 MB, then eight classes for each doubling.
static int pool_bucket_of(int64_t nbytes, int64_t *rounded) {
    int64_t units = (nbytes + HUGE_PAGE - 1) / HUGE_PAGE;
    if (units < 1) units = 1;
    if (units <= 8) {
        *rounded = units * HUGE_PAGE;
        return (int)units - 1;
    }
    int exponent = 63 - __builtin_clzll((unsigned long long)(units - 1));
    int64_t step = (int64_t)1 << (exponent - 3);
    int64_t eighth = (units + step - 1) / step;              // 9..16
    *rounded = eighth * step * HUGE_PAGE;
    return 8 * (exponent - 2) + (int)eighth - 9;
}

COLD static char *pool_map(int64_t nbytes) {
    int64_t reserve = nbytes + HUGE_PAGE;
    char *base = (char *)mmap(NULL, (size_t)reserve, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    int64_t skip = (int64_t)(-(uintptr_t)base & (HUGE_PAGE - 1));
    if (skip) munmap(base, (size_t)skip);
    if (HUGE_PAGE - skip) munmap(base + skip + nbytes, (size_t)(HUGE_PAGE - skip));
    madvise(base + skip, (size_t)nbytes, MADV_HUGEPAGE);
    return base + skip;
}

static void pool_unlink(Slab *slab) {
    *(slab->older ? &slab->older->newer : &pool_oldest) = slab->newer;
    *(slab->newer ? &slab->newer->older : &pool_newest) = slab->older;
    Slab **place = &pool_buckets[slab->bucket];
    while (*place != slab) place = &(*place)->below;
    *place = slab->below;
    pool_stats.idle_bytes -= slab->nbytes;
    pool_stats.idle_slabs -= 1;
}

COLD static void pool_trim(int64_t limit) {
    while (pool_stats.idle_bytes > limit) {
        Slab *slab = pool_oldest;
        pool_unlink(slab);
        munmap(slab->data, (size_t)slab->nbytes);
        free(slab);
    }
}

// A slab of at least `nbytes`, its bytes unspecified; NULL where memory is short.
static Slab *pool_take(int64_t nbytes) {
    if (nbytes > ((int64_t)1 << 56)) return NULL;
    int64_t rounded;
    int bucket = pool_bucket_of(nbytes, &rounded);
    if (bucket >= BUCKETS) return NULL;
    Slab *slab = pool_buckets[bucket];
    if (slab) {
        pool_unlink(slab);
        pool_stats.reused += 1;
    } else {
        slab = (Slab *)malloc(sizeof(Slab));
        if (!slab) return NULL;
        char *data = pool_map(rounded);
        if (!data) {
            pool_trim(0);
            data = pool_map(rounded);
        }
        if (!data) {
            free(slab);
            return NULL;
        }
        *slab = (Slab){data, rounded, bucket, 0, 0, NULL, NULL, NULL};
        pool_stats.mapped += 1;
    }
    pool_stats.live_bytes += slab->nbytes;
    pool_stats.live_slabs += 1;
    return slab;
}

static void pool_give(Slab *slab) {
    pool_stats.live_bytes -= slab->nbytes;
    pool_stats.live_slabs -= 1;
    slab->below = pool_buckets[slab->bucket];
    pool_buckets[slab->bucket] = slab;
    slab->newer = NULL;
    slab->older = pool_newest;
    *(pool_newest ? &pool_newest->newer : &pool_oldest) = slab;
    pool_newest = slab;
    pool_stats.idle_bytes += slab->nbytes;
    pool_stats.idle_slabs += 1;
    pool_trim(pool_stats.limit);
}

#define SMALL_PAGE 4096
#define MOST_PIECES 32

// Memory of the pool: a slab, or a piece of one.
typedef struct {
    Slab *slab;
    char *data;
    int number;
} Piece;

static Slab *pool_room[2][MOST_PIECES + 1];    // slabs with room, by their size and their pieces

static void pool_enlist(Slab *slab) {
    Slab **first = &pool_room[slab->nbytes > HUGE_PAGE][slab->pieces];
    slab->older = NULL;
    slab->newer = *first;
    if (*first) (*first)->older = slab;
    *first = slab;
}

static void pool_delist(Slab *slab) {
    Slab **first = &pool_room[slab->nbytes > HUGE_PAGE][slab->pieces];
    *(slab->older ? &slab->older->newer : first) = slab->newer;
    if (slab->newer) slab->newer->older = slab->older;
}

static int64_t piece_nbytes(const Slab *slab) {
    return slab->nbytes / slab->pieces / SMALL_PAGE * SMALL_PAGE;
}

// Memory of at least `nbytes`; its slab is NULL where memory is short. Pieces have 2 MB, or above 1
// MB each 8 MB, in common.
static Piece pool_take_piece(int64_t nbytes) {
    int64_t whole = nbytes > HUGE_PAGE / 2 ? 4 * HUGE_PAGE : HUGE_PAGE;
    int64_t pages = nbytes / SMALL_PAGE + (nbytes % SMALL_PAGE != 0);
    int64_t pieces = pages ? whole / SMALL_PAGE / pages : MOST_PIECES;
    if (pieces > MOST_PIECES) pieces = MOST_PIECES;
    if (pieces < 2) {
        Slab *slab = pool_take(nbytes);
        return (Piece){slab, slab ? slab->data : NULL, 0};
    }
    Slab *slab = pool_room[whole > HUGE_PAGE][pieces];
    if (!slab) {
        slab = pool_take(whole);
        if (!slab) return (Piece){NULL, NULL, 0};
        slab->pieces = (int)pieces;
        slab->room = (uint32_t)(((uint64_t)1 << pieces) - 1);
        pool_enlist(slab);
    }
    int number = __builtin_ctz(slab->room);
    slab->room &= slab->room - 1;
    if (!slab->room) pool_delist(slab);
    return (Piece){slab, slab->data + number * piece_nbytes(slab), number};
}

static void pool_give_piece(Piece piece) {
    Slab *slab = piece.slab;
    if (slab->pieces) {
        if (!slab->room) pool_enlist(slab);
        slab->room |= (uint32_t)1 << piece.number;
        if (slab->room != (uint32_t)(((uint64_t)1 << slab->pieces) - 1)) return;
        pool_delist(slab);
        slab->pieces = 0;
    }
    pool_give(slab);
}
