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

constexpr size_t kPathBytes = 1024;

// The beginning of a file of the system; empty where there is none that can be read.
template <size_t kSize>
const char* text_of(const char* path, char (&text)[kSize]) {
  const int in = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t count = in < 0 ? 0 : read(in, text, kSize - 1);
  if (in >= 0) close(in);
  text[count > 0 ? count : 0] = '\0';
  return text;
}

// How fast a processor is against the others, 0 where the system does not say.
long speed_of(int cpu) {
  long speed = 0;
  for (const char* file : {"cpu_capacity", "cpufreq/cpuinfo_max_freq"}) {
    char path[96], text[24];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    speed = strtol(text_of(path, text), nullptr, 10);
    if (speed > 0) break;
  }
  return speed;
}

// Whole processors' worth of time that one cgroup gives (cpu.max of version 2, cpu.cfs_* of version 1).
long limit_of(const char* folder) {
  char path[kPathBytes + 24], text[64], *rest;
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  // Microseconds; a quota of "max", of -1, or none is no limit. Not sscanf, which brings 130 KB along.
  long quota = strtol(text_of(path, text), &rest, 10), period = strtol(rest, nullptr, 10);
  if (!*text) {
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    quota = strtol(text_of(path, text), nullptr, 10);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    period = strtol(text_of(path, text), nullptr, 10);
  }
  if (quota <= 0 || period <= 0) return LONG_MAX;
  return quota < period ? 1 : quota / period;
}

// Of this process's cgroup and those around it: what a container may use of a machine's processors. More threads
// would use up the quota of a period early and then all stand still.
long container_limit() {
  char groups[4096], folder[kPathBytes];
  text_of("/proc/self/cgroup", groups);
  long least = LONG_MAX;
  char* rest = groups;
  while (char* line = strsep(&rest, "\n")) {  // "4:cpu,cpuacct:/path"; of version 2 "0::/path"
    strsep(&line, ":");
    const char* controllers = strsep(&line, ":");
    if (!line) continue;
    const bool of_cpu = !*controllers || strcmp(controllers, "cpu") == 0 || strcmp(controllers, "cpu,cpuacct") == 0;
    if (!of_cpu) continue;
    const int base = snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%s", *controllers ? "/" : "", controllers);
    snprintf(folder + base, sizeof folder - static_cast<size_t>(base), "%s", line);
    for (;;) {
      const long limit = limit_of(folder);
      if (limit < least) least = limit;
      char* end = strrchr(folder, '/');
      if (end < folder + base) break;
      *end = '\0';
    }
  }
  return least;
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
  const long limit = container_limit(), usable = count < limit ? count : limit;
  return usable < 1 ? 1 : static_cast<int>(usable);
}

long this_process() { return getpid(); }

}  // namespace lite
