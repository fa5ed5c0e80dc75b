// macOS has no public way to sleep on a number before 14.4, and does not pin threads.
#include "threads.h"

#include <sched.h>
#include <unistd.h>

namespace lite {

void sleep_while(std::atomic<int>&, int) { sched_yield(); }
void wake_all(std::atomic<int>&) {}

Affinity pin_thread(int) { return {}; }
void restore_thread(const Affinity&) {}

int usable_processors() {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : static_cast<int>(count);
}

long this_process() { return getpid(); }

}  // namespace lite
