// What threads need of the operating system beyond POSIX threads. One of threads_*.cc is built.
#pragma once

#include <atomic>

namespace lite {

// Sleeps while `value` is `old`; may return before.
void sleep_while(std::atomic<int>& value, int old);
// Wakes all that sleep on `value`.
void wake_all(std::atomic<int>& value);

// The processors that a thread may run on.
struct Affinity {
  unsigned char bits[128];
  bool known;
};
// Pins the calling thread to the `index`-th processor that it may use, and says which those were.
Affinity pin_thread(int index);
void restore_thread(const Affinity&);

// That this process may use, a container's limit of time considered; at least 1.
int usable_processors();
// Another number in a forked child.
long this_process();

}  // namespace lite
