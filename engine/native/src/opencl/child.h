// A process of its own for what may crash or hang.
#pragma once

#include <stddef.h>
#include <sys/types.h>

namespace lite::opencl {

constexpr int kAnswerFd = 3;      // where the child writes; 0, 1 and 2 lead nowhere
constexpr int kNotStarted = 125;  // its exit status where the runner could not be executed

struct Child {
  pid_t pid;
  int answers;  // to read from
};

enum class Ended { kExited, kSignal, kHung };

// Forks. In the child (true with pid 0) the answers' end is kAnswerFd. False: no process.
bool start_child(Child* child);
// Reads until `bytes` are there, a line feed, the end, or nothing came for `timeout_s`. The number
// of bytes, 0 at the end, -1 after the time.
long read_some(const Child& child, char* out, size_t bytes, int timeout_s);
// Waits for its end, after killing it when `kill_it`. `status`: exit status or signal.
Ended end_child(Child* child, bool kill_it, int* status);
// "SIGSEGV", "exit status 3".
void how_it_ended(Ended ended, int status, char* out, size_t bytes);
// Signals by which a fault of the program itself ends it; others came from outside.
bool is_fault(int signal);

}  // namespace lite::opencl
