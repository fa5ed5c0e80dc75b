// Threads of a page: workers may sleep, its own thread must not. WASI has one thread.
#include "threads.h"

#include "pool_wasm.h"

namespace lite {

namespace {
thread_local bool is_worker = false;
}

void become_worker() { is_worker = true; }

void sleep_while(std::atomic<int>& value, int old) {
  if (is_worker) __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&value), old, -1);
}
void wake_all(std::atomic<int>& value) {
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&value), ~0u);
}
Affinity pin_thread(int) { return {}; }
void restore_thread(const Affinity&) {}
int usable_processors() { return expected_workers() + 1; }
long this_process() { return 1; }

}  // namespace lite
