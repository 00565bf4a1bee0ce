// The team's size and placement, and a loop that times a kernel without Python in it.
#include <sched.h>
#include <time.h>

#include "vector.h"

extern "C" {

// Sets the number of threads and pins the workers (not the calling thread) to the CPUs given. A
// worker that floats is woken on the caller's CPU and waits there for milliseconds.
void hand_threads(int64_t count, const int64_t *cpus) {
  omp_set_dynamic(0);
  omp_set_num_threads((int)count);
#pragma omp parallel
  {
    int t = omp_get_thread_num();
    if (t) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET((int)cpus[t], &set);
      sched_setaffinity(0, sizeof set, &set);
    }
  }
}

// Nanoseconds of `calls` calls, using the `sets` argument lists in turn.
double hand_time(void (*kernel)(void *const *, const int64_t *), void *const *const *bufs,
                 int64_t sets, const int64_t *size, int64_t calls) {
  timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int64_t i = 0, k = 0; i < calls; ++i, k = k + 1 < sets ? k + 1 : 0) kernel(bufs[k], size);
  clock_gettime(CLOCK_MONOTONIC, &b);
  return (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
}

}  // extern "C"
