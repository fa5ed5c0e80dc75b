// SPMD thread pool: `run(work)` calls work on every thread; workers spin on barriers while a run
// lasts and sleep between runs.
#pragma once

#include <atomic>

#include "lite_kernel.h"

namespace lite {

// Reusable barrier for a fixed number of threads. Spins, and yields when the wait is long (more
// threads than free processors).
struct Barrier {
  std::atomic<int> arrived{0};
  std::atomic<int> generation{0};
  void wait(int threads);
};

struct ThreadPool;

// Takes an idle pool of that size from the process's stock, or starts one; nullptr when threads
// cannot be started. Pools are shared by all programs: they never run two at once.
ThreadPool* acquire_pool(int threads, bool pin);
void release_pool(ThreadPool*);

// Calls work(context, thread) on threads 0 ... N-1 (0 is the caller) and returns when all are done.
void run_on_pool(ThreadPool*, void (*work)(void* context, int thread), void* context);

int allowed_processors();

}  // namespace lite
