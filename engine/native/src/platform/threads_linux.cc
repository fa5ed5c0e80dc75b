#include "threads.h"

#include <fcntl.h>
#include <initializer_list>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
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

namespace {

// How fast a processor is against the others, 0 where the system does not say.
long speed_of(int cpu) {
  long speed = 0;
  for (const char* file : {"cpu_capacity", "cpufreq/cpuinfo_max_freq"}) {
    char path[96], text[24] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    const int in = open(path, O_RDONLY | O_CLOEXEC);
    if (in < 0) continue;
    const ssize_t count = read(in, text, sizeof text - 1);
    close(in);
    speed = count > 0 ? strtol(text, nullptr, 10) : 0;
    if (speed > 0) break;
  }
  return speed;
}

}  // namespace

Affinity pin_thread(int index) {
  Affinity before{};
  cpu_set_t allowed, one;
  before.known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  if (!before.known) return before;
  memcpy(before.bits, &allowed, sizeof allowed);
  long speeds[CPU_SETSIZE];
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    speeds[cpu] = CPU_ISSET(cpu, &allowed) ? speed_of(cpu) : 0;
  for (int left = index % CPU_COUNT(&allowed), best = -1; left >= 0; --left, best = -1) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed) && (best < 0 || speeds[cpu] > speeds[best])) best = cpu;
    CPU_CLR(best, &allowed);
    CPU_ZERO(&one);
    CPU_SET(best, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
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
