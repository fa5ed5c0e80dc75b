#include "threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lite {

static_assert(sizeof(cpu_set_t) <= sizeof(Affinity::bits), "a set of processors fits");

void sleep_while(std::atomic<int>& value, int old) {
  syscall(SYS_futex, reinterpret_cast<int*>(&value), FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
}

void wake_all(std::atomic<int>& value) {
  syscall(SYS_futex, reinterpret_cast<int*>(&value), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
          0);
}

Affinity pin_thread(int index) {
  Affinity before{};
  cpu_set_t allowed, one;
  before.known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  if (!before.known) return before;
  memcpy(before.bits, &allowed, sizeof allowed);
  const int wanted = index % CPU_COUNT(&allowed);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != wanted) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    break;
  }
  return before;
}

void restore_thread(const Affinity& before) {
  cpu_set_t set;
  memcpy(&set, before.bits, sizeof set);
  if (before.known) sched_setaffinity(0, sizeof set, &set);
}

int usable_processors() {
  cpu_set_t allowed;
  const long count = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                         ? CPU_COUNT(&allowed)
                         : sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : static_cast<int>(count);
}

long this_process() { return getpid(); }

}  // namespace lite
