// The compiler's guard of a `static` in a function that is not a constant (Itanium C++ ABI, 3.3.3).
// libstdc++'s own brings exceptions, their tables and a demangler along: a hundred kilobytes, and
// functions that only a new glibc has.
#include <sched.h>
#include <stdint.h>

namespace {

constexpr uint8_t kDone = 1, kBusy = 1;

// Byte 0 is what the compiler looks at; byte 1 says that a thread is at it.
uint8_t* done_of(void* guard) { return static_cast<uint8_t*>(guard); }
uint8_t* busy_of(void* guard) { return static_cast<uint8_t*>(guard) + 1; }

}  // namespace

extern "C" {

// 1: the caller makes the value and calls release; 0: it is made.
int __cxa_guard_acquire(void* guard) {
  while (__atomic_load_n(done_of(guard), __ATOMIC_ACQUIRE) != kDone) {
    if (__atomic_exchange_n(busy_of(guard), kBusy, __ATOMIC_ACQUIRE) != kBusy) {
      if (__atomic_load_n(done_of(guard), __ATOMIC_ACQUIRE) != kDone) return 1;
      __atomic_store_n(busy_of(guard), 0, __ATOMIC_RELEASE);
      return 0;
    }
    sched_yield();
  }
  return 0;
}

void __cxa_guard_release(void* guard) {
  __atomic_store_n(done_of(guard), kDone, __ATOMIC_RELEASE);
  __atomic_store_n(busy_of(guard), 0, __ATOMIC_RELEASE);
}

void __cxa_guard_abort(void* guard) { __atomic_store_n(busy_of(guard), 0, __ATOMIC_RELEASE); }

}  // extern "C"
