// The pool of a page. Its threads are workers that JavaScript starts, each with the module on the
// same memory; a module with a memory of its own has none. There is one pool: a page runs one
// program at a time.
#include "pool_wasm.h"

#include "runtime/thread_pool.h"
#include "threads.h"

namespace lite {

struct ThreadPool {
  int workers;
  int threads;  // of the job, with the caller's
  Signal job;   // counts jobs
  std::atomic<int> busy;  // workers that have not finished the job
  Signal done;            // 1 when all have
  void (*work)(void*, int);
  void* context;
};

namespace {
ThreadPool only;
}

void expect_workers(int workers) { only.workers = workers; }
int expected_workers() { return only.workers; }

void serve_pool(int thread) {
  become_worker();
  for (int done = 0;;) {
    only.job.wait_while(done);
    done = only.job.value.load();
    if (thread < only.threads) only.work(only.context, thread);
    if (only.busy.fetch_sub(1, std::memory_order_acq_rel) == 1) only.done.set(1);
  }
}

ThreadPool* acquire_pool(int threads, bool) {
  if (threads > only.workers + 1) return nullptr;
  only.threads = threads;
  return &only;
}

void release_pool(ThreadPool*) {}

void run_on_pool(ThreadPool* pool, void (*work)(void*, int), void* context) {
  pool->work = work;
  pool->context = context;
  pool->busy.store(pool->workers, std::memory_order_relaxed);
  pool->done.value.store(pool->workers == 0, std::memory_order_relaxed);
  pool->job.set(pool->job.value.load() + 1);
  work(context, 0);
  pool->done.wait_while(0);
}

}  // namespace lite
