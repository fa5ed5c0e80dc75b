// The pool of threads where there are POSIX threads.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/thread_pool.h"
#include "threads.h"

namespace lite {

struct Worker {
  ThreadPool* pool;
  int thread;
  pthread_t handle;
};

struct ThreadPool {
  ThreadPool* next;  // in the stock of idle pools
  long process;     // a forked child must not use its parent's threads
  int threads;
  bool pin;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  std::atomic<int> job;  // counts jobs; written under the mutex
  bool stop;  // written before the job that ends the workers
  std::atomic<int> busy;  // workers that have not finished the job
  Signal done;            // 1 when all have
  void (*work)(void*, int);
  void* context;
  Worker workers[kMaxThreads];
};

namespace {

pthread_mutex_t stock_mutex = PTHREAD_MUTEX_INITIALIZER;
ThreadPool* stock = nullptr;

void* worker_main(void* argument) {
  Worker* self = static_cast<Worker*>(argument);
  ThreadPool* pool = self->pool;
  if (pool->pin) pin_thread(self->thread);
  for (int done = 0;;) {
    if (!changes_soon(pool->job, done)) {
      pthread_mutex_lock(&pool->mutex);
      while (pool->job.load() == done) pthread_cond_wait(&pool->wake, &pool->mutex);
      pthread_mutex_unlock(&pool->mutex);
    }
    done = pool->job.load();  // before the work: behind it the next job may begin
    if (pool->stop) return nullptr;
    pool->work(pool->context, self->thread);
    if (pool->busy.fetch_sub(1, std::memory_order_acq_rel) == 1) pool->done.set(1);
  }
}

void stop_pool(ThreadPool* pool, int started) {
  pthread_mutex_lock(&pool->mutex);
  pool->stop = true;
  advance(pool->job);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
  for (int i = 1; i <= started; ++i) pthread_join(pool->workers[i].handle, nullptr);
  free(pool);
}

ThreadPool* start_pool(int threads, bool pin) {
  ThreadPool* pool = static_cast<ThreadPool*>(calloc(1, sizeof(ThreadPool)));
  if (!pool) return nullptr;
  pool->process = this_process();
  pool->threads = threads;
  pool->pin = pin;
  pthread_mutex_init(&pool->mutex, nullptr);
  pthread_cond_init(&pool->wake, nullptr);
  for (int i = 1; i < threads; ++i) {
    pool->workers[i].pool = pool;
    pool->workers[i].thread = i;
    if (pthread_create(&pool->workers[i].handle, nullptr, worker_main, &pool->workers[i]) != 0) {
      stop_pool(pool, i - 1);
      return nullptr;
    }
  }
  return pool;
}

}  // namespace

ThreadPool* acquire_pool(int threads, bool pin) {
  const long process = this_process();
  ThreadPool* found = nullptr;
  pthread_mutex_lock(&stock_mutex);
  for (ThreadPool** at = &stock; *at && !found; at = &(*at)->next) {
    if ((*at)->threads != threads || (*at)->pin != pin || (*at)->process != process) continue;
    found = *at;
    *at = found->next;
    break;
  }
  pthread_mutex_unlock(&stock_mutex);
  return found ? found : start_pool(threads, pin);
}

void release_pool(ThreadPool* pool) {
  pthread_mutex_lock(&stock_mutex);
  pool->next = stock;
  stock = pool;
  pthread_mutex_unlock(&stock_mutex);
}

void run_on_pool(ThreadPool* pool, void (*work)(void*, int), void* context) {
  // The caller's thread is borrowed: its own affinity comes back after the run.
  const Affinity before = pool->pin ? pin_thread(0) : Affinity{};
  pthread_mutex_lock(&pool->mutex);
  pool->work = work;
  pool->context = context;
  pool->busy.store(pool->threads - 1, std::memory_order_relaxed);
  pool->done.value.store(pool->threads == 1, std::memory_order_relaxed);
  advance(pool->job);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
  work(context, 0);
  pool->done.wait_while(0);
  restore_thread(before);
}

}  // namespace lite
