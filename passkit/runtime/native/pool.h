// A pool of large memory: 2 MB-aligned slabs of huge pages, in size classes.
//
// Callers hold the GIL, so there are no locks; what threads without it return waits in a list. Idle
// slabs are kept up to a limit; beyond it the one that has been idle longest is returned to the system.
// Smaller allocations are pieces of a slab: the first access to a huge page costs a sixth of that to as
// many small pages.
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
    int bucket, pieces;      // pieces: the number it is divided into; 0 if it is one allocation
    uint32_t free_pieces;    // a bit for each piece that is not allocated
    Slab *below;             // the next idle slab of this bucket
    Slab *older, *newer;     // idle slabs, by the time they were returned; or slabs with free pieces
};

static struct {
    int64_t limit, idle_bytes, idle_slabs, live_bytes, live_slabs, mapped, reused;
} pool_stats = {(int64_t)1 << 30, 0, 0, 0, 0, 0, 0};
static Slab *pool_buckets[BUCKETS];
static Slab *pool_oldest, *pool_newest;

// Return the size class: one per 2 MB up to 16 MB, then eight classes per power of two.
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

// Map huge pages at a multiple of their size; NULL if memory is short.
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

// Remove an idle slab from its bucket and from the list of idle slabs.
static void pool_unlink(Slab *slab) {
    *(slab->older ? &slab->older->newer : &pool_oldest) = slab->newer;
    *(slab->newer ? &slab->newer->older : &pool_newest) = slab->older;
    Slab **link = &pool_buckets[slab->bucket];
    while (*link != slab) link = &(*link)->below;
    *link = slab->below;
    pool_stats.idle_bytes -= slab->nbytes;
    pool_stats.idle_slabs -= 1;
}

// Unmap the slabs that have been idle longest, until at most `limit` bytes are idle.
COLD static void pool_trim(int64_t limit) {
    while (pool_stats.idle_bytes > limit) {
        Slab *slab = pool_oldest;
        pool_unlink(slab);
        munmap(slab->data, (size_t)slab->nbytes);
        free(slab);
    }
}

// Allocate a slab of at least `nbytes`, with unspecified contents; NULL if memory is short.
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

// Return a slab to the pool.
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
#define MAX_PIECES 32

// An allocation of the pool: a slab, or a piece of one.
typedef struct {
    Slab *slab;
    char *data;
    int number;
} Piece;

static Slab *pool_partial[2][MAX_PIECES + 1];    // slabs with free pieces, by size and number of pieces

static void pool_enlist(Slab *slab) {
    Slab **first = &pool_partial[slab->nbytes > HUGE_PAGE][slab->pieces];
    slab->older = NULL;
    slab->newer = *first;
    if (*first) (*first)->older = slab;
    *first = slab;
}

static void pool_delist(Slab *slab) {
    Slab **first = &pool_partial[slab->nbytes > HUGE_PAGE][slab->pieces];
    *(slab->older ? &slab->older->newer : first) = slab->newer;
    if (slab->newer) slab->newer->older = slab->older;
}

static int64_t piece_nbytes(const Slab *slab) {
    return slab->nbytes / slab->pieces / SMALL_PAGE * SMALL_PAGE;
}

static void pool_give_piece(Piece piece);

// An allocation that was returned without the GIL: the next allocation gives it to the pool.
typedef struct Returned Returned;

struct Returned {
    Piece piece;
    Returned *next;
    void *memory;            // of the entry itself, which is freed then
};

static Returned *pool_returned;

// Return an allocation to the pool from any thread.
static void pool_give_later(Returned *entry) {
    entry->next = __atomic_load_n(&pool_returned, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&pool_returned, &entry->next, entry, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {}
}

// Give to the pool what was returned without the GIL.
static void pool_collect(void) {
    if (!__atomic_load_n(&pool_returned, __ATOMIC_RELAXED)) return;
    Returned *entry = __atomic_exchange_n(&pool_returned, NULL, __ATOMIC_ACQUIRE);
    while (entry) {
        Returned *next = entry->next;
        pool_give_piece(entry->piece);
        free(entry->memory);
        entry = next;
    }
}

// Allocate at least `nbytes`; the slab is NULL if memory is short. Pieces up to 1 MB share slabs of 2 MB,
// larger ones slabs of 8 MB.
static Piece pool_take_piece(int64_t nbytes) {
    pool_collect();
    int64_t slab_nbytes = nbytes > HUGE_PAGE / 2 ? 4 * HUGE_PAGE : HUGE_PAGE;
    int64_t pages = nbytes / SMALL_PAGE + (nbytes % SMALL_PAGE != 0);
    int64_t pieces = pages ? slab_nbytes / SMALL_PAGE / pages : MAX_PIECES;
    if (pieces > MAX_PIECES) pieces = MAX_PIECES;
    if (pieces < 2) {
        Slab *slab = pool_take(nbytes);
        return (Piece){slab, slab ? slab->data : NULL, 0};
    }
    Slab *slab = pool_partial[slab_nbytes > HUGE_PAGE][pieces];
    if (!slab) {
        slab = pool_take(slab_nbytes);
        if (!slab) return (Piece){NULL, NULL, 0};
        slab->pieces = (int)pieces;
        slab->free_pieces = (uint32_t)(((uint64_t)1 << pieces) - 1);
        pool_enlist(slab);
    }
    int number = __builtin_ctz(slab->free_pieces);
    slab->free_pieces &= slab->free_pieces - 1;
    if (!slab->free_pieces) pool_delist(slab);
    return (Piece){slab, slab->data + number * piece_nbytes(slab), number};
}

// Return an allocation to the pool.
static void pool_give_piece(Piece piece) {
    Slab *slab = piece.slab;
    if (slab->pieces) {
        if (!slab->free_pieces) pool_enlist(slab);
        slab->free_pieces |= (uint32_t)1 << piece.number;
        if (slab->free_pieces != (uint32_t)(((uint64_t)1 << slab->pieces) - 1)) return;
        pool_delist(slab);
        slab->pieces = 0;
    }
    pool_give(slab);
}
