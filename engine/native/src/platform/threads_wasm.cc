// One thread: nobody is there to wait for.
#include "threads.h"

namespace lite {

void sleep_while(std::atomic<int>&, int) {}
void wake_all(std::atomic<int>&) {}
Affinity pin_thread(int) { return {}; }
void restore_thread(const Affinity&) {}
int usable_processors() { return 1; }
long this_process() { return 1; }

}  // namespace lite
