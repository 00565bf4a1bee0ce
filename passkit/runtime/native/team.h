// A team of threads that runs the steps of a program together.
//
// A region is a sequence of steps. Each step is divided into shares. A thread first claims its own shares,
// the same in every call, so that its cache keeps their data; then any that no thread has begun, so that a
// worker that sleeps or is preempted delays no other. A step ends when all its shares are done, which is
// the barrier before the next step.
#pragma once
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef void (*Kernel)(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                       unsigned char *scratch);

typedef struct {                 // one launch; its pointers are ptrs[first_ptr...]
    Kernel kernel;
    int64_t tiles;
    const int64_t *sizes;
    int first_ptr;
    bool parallel;
} Step;

#define MAX_THREADS 64
#define SHARES_PER_THREAD 4
#define SPIN_NS 80000
#define CLOSED ((uint64_t)1 << 31)

// Scratch memory of one thread, page-aligned; it grows, and is freed with the thread.
typedef struct {
    unsigned char *data;
    int64_t nbytes;
    bool busy;                        // in use as the arena of a run further up this thread's stack
} Scratch;

typedef struct {                 // the progress of one step of the current region, on its own cache line
    uint64_t claimed;            // a bit for each share that a thread has claimed
    int32_t shares, done;
    char rest[48];
} Sync;

typedef struct {
    const Step *steps;
    void *const *ptrs;
    int count;
} Region;

typedef struct Team Team;

typedef struct {
    pthread_t thread;
    Team *team;
    int index, cpu;
    Scratch scratch;
} Worker;

struct Team {
    uint64_t gate;               // region number << 32 | CLOSED | threads inside
    char rest[56];
    uint32_t sleepers;
    bool stop;
    int64_t spin_ns;
    int size, spare_cpu;         // spare_cpu: the CPU of the caller; -1 if workers are not bound
    Worker *workers;             // workers[0] is the calling thread
    Region region;
    Sync *sync;
    int capacity;
};

static Team *team_current;       // NULL until needed, and again after fork
static int team_size = 1;
static int team_busy;            // 1 while a thread uses or changes the team

// Allocate memory at a multiple of `alignment`, a power of two. C requires the size to be one, too.
static void *allocate_aligned(size_t alignment, size_t nbytes) {
    return aligned_alloc(alignment, (nbytes + alignment - 1) & ~(alignment - 1));
}

static unsigned char *scratch_atleast(Scratch *scratch, int64_t nbytes) {
    if (nbytes <= scratch->nbytes) return scratch->data;
    free(scratch->data);
    int64_t rounded = (nbytes + 4095) & ~(int64_t)4095;
    scratch->data = (unsigned char *)allocate_aligned(4096, (size_t)rounded);
    scratch->nbytes = scratch->data ? rounded : 0;
    return scratch->data;
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static inline uint32_t *epoch_word(Team *t) { return (uint32_t *)&t->gate + 1; }

static inline void futex(uint32_t *word, int operation, uint32_t value) {
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static inline void run_share(const Region *region, int s, int k, int shares,
                             unsigned char *scratch) {
    const Step *step = &region->steps[s];
    int64_t begin = step->tiles * k / shares, end = step->tiles * (k + 1) / shares;
    if (begin < end)
        step->kernel(region->ptrs + step->first_ptr, step->sizes, begin, end, scratch);
}

// The log of shares, for profiles; without entries nothing is logged.
typedef struct {
    int64_t begin, end, first, last;     // nanoseconds, and tiles
    int thread;
} Share;
typedef struct {
    Share *entries;
    int capacity, count;                 // count: may exceed the capacity
} ShareLog;
static ShareLog share_log;

COLD static void run_logged_share(const Region *region, int s, int k, int shares,
                                 unsigned char *scratch, int index) {
    int64_t tiles = region->steps[s].tiles, begin = now_ns();
    run_share(region, s, k, shares, scratch);
    int place = __atomic_fetch_add(&share_log.count, 1, __ATOMIC_RELAXED);
    if (place < share_log.capacity)
        share_log.entries[place] = (Share){begin, now_ns(), tiles * k / shares,
                                           tiles * (k + 1) / shares, index};
}

// Run the remaining shares of the region. A step's data is read only while a share is claimed: otherwise
// the caller may have finished the region.
static void run_region(Team *t, int index, unsigned char *scratch) {
    Region region = t->region;
    for (int s = 0; s < region.count; s++) {
        Sync *sync = &t->sync[s];
        int shares = sync->shares, own = index * shares / t->size;
        uint64_t all = shares == 64 ? ~(uint64_t)0 : ((uint64_t)1 << shares) - 1;
        uint64_t claimed = __atomic_load_n(&sync->claimed, __ATOMIC_ACQUIRE);
        while (~claimed & all) {
            uint64_t rest = ~claimed & all, mine = rest >> own << own;
            int k = __builtin_ctzll(mine ? mine : rest);
            uint64_t bit = (uint64_t)1 << k;
            uint64_t before = __atomic_fetch_or(&sync->claimed, bit, __ATOMIC_ACQ_REL);
            claimed = before | bit;
            if (before & bit) continue;
            if (__builtin_expect(share_log.entries != NULL, 0))
                run_logged_share(&region, s, k, shares, scratch, index);
            else
                run_share(&region, s, k, shares, scratch);
            __atomic_fetch_add(&sync->done, 1, __ATOMIC_RELEASE);
        }
        for (int spins = 0; __atomic_load_n(&sync->done, __ATOMIC_ACQUIRE) != shares; spins++) {
            if (spins < 2000 && t->spin_ns)
                relax();
            else
                sched_yield();
        }
    }
}

// Wait until the region number differs from `seen`: spin for a time, then sleep. Return the gate.
static uint64_t next_region(Team *t, uint32_t seen) {
    int64_t deadline = 0;
    for (int spins = 0;; spins++) {
        uint64_t gate = __atomic_load_n(&t->gate, __ATOMIC_SEQ_CST);
        if ((uint32_t)(gate >> 32) != seen) return gate;
        relax();
        if (spins % 32) continue;
        int64_t now = now_ns();
        if (!deadline) deadline = now + t->spin_ns;
        if (now < deadline) continue;
        __atomic_fetch_add(&t->sleepers, 1, __ATOMIC_SEQ_CST);
        while ((uint32_t)(__atomic_load_n(&t->gate, __ATOMIC_SEQ_CST) >> 32) == seen)
            futex(epoch_word(t), FUTEX_WAIT, seen);
        __atomic_fetch_sub(&t->sleepers, 1, __ATOMIC_SEQ_CST);
    }
}

// The main function of a worker.
static void *work(void *argument) {
    Worker *self = (Worker *)argument;
    Team *t = self->team;
    uint32_t seen = 0;
    for (;;) {
        uint64_t gate = next_region(t, seen);
        if (__atomic_load_n(&t->stop, __ATOMIC_SEQ_CST)) break;
        bool inside = false;
        while (!(gate & CLOSED) && !inside)
            inside = __atomic_compare_exchange_n(&t->gate, &gate, gate + 1, false,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        seen = (uint32_t)(gate >> 32);
        if (!inside) continue;
        run_region(t, self->index, self->scratch.data);
        __atomic_fetch_sub(&t->gate, 1, __ATOMIC_RELEASE);
    }
    free(self->scratch.data);
    return NULL;
}

// Choose a CPU for each worker, other than the caller's; none if there are more threads than CPUs.
COLD static void choose_cpus(Team *t) {
    cpu_set_t allowed;
    t->spare_cpu = -1;
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < t->size) {
        t->spin_ns = 0;
        return;
    }
    t->spin_ns = SPIN_NS;
    int here = sched_getcpu();
    if (here < 0 || !CPU_ISSET(here, &allowed)) return;
    t->spare_cpu = here;
    for (int i = 1, cpu = here; i < t->size; i++) {
        do cpu = (cpu + 1) % CPU_SETSIZE; while (!CPU_ISSET(cpu, &allowed));
        t->workers[i].cpu = cpu;
    }
}

COLD static void bind_worker(Worker *w, int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (!pthread_setaffinity_np(w->thread, sizeof one, &one)) w->cpu = cpu;
}

COLD static Team *team_create(int size) {
    Team *t = (Team *)allocate_aligned(64, sizeof(Team));
    if (!t) return NULL;
    memset((void *)t, 0, sizeof *t);
    t->gate = CLOSED;
    t->size = size;
    t->workers = (Worker *)calloc((size_t)size, sizeof(Worker));
    if (!t->workers) {
        free(t);
        return NULL;
    }
    choose_cpus(t);
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    for (int i = 1; i < size; i++) {
        Worker *w = &t->workers[i];
        w->team = t;
        w->index = i;
        if (pthread_create(&w->thread, NULL, work, w)) {
            t->size = i;             // the workers that were started form a smaller team
            break;
        }
        if (t->spare_cpu >= 0) bind_worker(w, w->cpu);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t;
}

COLD static void team_destroy(Team *t) {
    __atomic_store_n(&t->stop, true, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&t->gate, (uint64_t)1 << 32, __ATOMIC_SEQ_CST);
    futex(epoch_word(t), FUTEX_WAKE, INT_MAX);
    for (int i = 1; i < t->size; i++) pthread_join(t->workers[i].thread, NULL);
    free(t->sync);
    free(t->workers);
    free(t);
}

// If the caller has moved to a worker's CPU, bind that worker to the CPU where the caller was.
COLD static void yield_cpu(Team *t) {
    int here = t->spare_cpu < 0 ? -1 : sched_getcpu();
    if (here < 0 || here == t->spare_cpu) return;
    for (int i = 1; i < t->size; i++) {
        if (t->workers[i].cpu != here) continue;
        bind_worker(&t->workers[i], t->spare_cpu);
        t->spare_cpu = here;
        return;
    }
}

// Prepare the team for a region; false if a worker is still in the last one, or memory is short.
static bool team_prepare(Team *t, const Region *region, int64_t scratch_nbytes) {
    for (int spins = 0; __atomic_load_n(&t->gate, __ATOMIC_ACQUIRE) & (CLOSED - 1); spins++) {
        if (spins > 2000) return false;          // a worker is preempted in the last region
        relax();
    }
    if (region->count > t->capacity) {
        free(t->sync);
        t->sync = (Sync *)allocate_aligned(64, sizeof(Sync) * (size_t)region->count);
        t->capacity = t->sync ? region->count : 0;
        if (!t->sync) return false;
    }
    for (int i = 1; scratch_nbytes && i < t->size; i++)
        if (!scratch_atleast(&t->workers[i].scratch, scratch_nbytes)) return false;
    for (int s = 0; s < region->count; s++) {
        const Step *step = &region->steps[s];
        int64_t shares = step->parallel ? (int64_t)t->size : 1;
        if (step->parallel && t->size * SHARES_PER_THREAD <= 64 &&
            step->tiles >= 8 * t->size * SHARES_PER_THREAD)
            shares *= SHARES_PER_THREAD;
        if (shares > step->tiles) shares = step->tiles > 0 ? step->tiles : 1;
        t->sync[s].claimed = 0;
        t->sync[s].done = 0;
        t->sync[s].shares = (int32_t)shares;
    }
    t->region = *region;
    return true;
}

// Run a region on the team; false if the team is busy or cannot be created, and nothing was run.
static bool team_run(const Region *region, int64_t scratch_nbytes, unsigned char *scratch) {
    if (team_size < 2 || __atomic_exchange_n(&team_busy, 1, __ATOMIC_ACQUIRE)) return false;
    if (!team_current) team_current = team_create(team_size);
    Team *t = team_current;
    bool ready = t && t->size > 1 && team_prepare(t, region, scratch_nbytes);
    if (ready) {
        uint64_t epoch = (t->gate >> 32) + 1;
        __atomic_store_n(&t->gate, epoch << 32, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&t->sleepers, __ATOMIC_SEQ_CST)) {
            yield_cpu(t);
            futex(epoch_word(t), FUTEX_WAKE, INT_MAX);
        }
        run_region(t, 0, scratch);
        __atomic_fetch_or(&t->gate, CLOSED, __ATOMIC_ACQ_REL);
    }
    __atomic_store_n(&team_busy, 0, __ATOMIC_RELEASE);
    return ready;
}

// Change the number of threads; the team is created when it is first needed.
COLD static void team_resize(int size) {
    while (__atomic_exchange_n(&team_busy, 1, __ATOMIC_ACQUIRE)) sched_yield();
    if (team_current && team_current->size != size) {
        team_destroy(team_current);
        team_current = NULL;
    }
    team_size = size;
    __atomic_store_n(&team_busy, 0, __ATOMIC_RELEASE);
}

// The child of a fork has no workers: it creates a new team when it needs one.
COLD static void team_after_fork(void) {
    team_current = NULL;
    team_busy = 0;
}
