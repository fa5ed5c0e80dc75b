#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lite::opencl {

bool start_child(Child* child) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  child->pid = fork();
  if (child->pid == 0) {
    setpgid(0, 0);  // with the compilers that a driver starts
    const int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd)
      if (nowhere >= 0) dup2(nowhere, fd);
    if (ends[1] != kAnswerFd) dup2(ends[1], kAnswerFd);
    return true;
  }
  close(ends[1]);
  child->answers = ends[0];
  if (child->pid > 0) return true;
  close(ends[0]);
  return false;
}

long read_some(const Child& child, char* out, size_t bytes, int timeout_s) {
  pollfd wanted{child.answers, POLLIN, 0};
  int ready;
  do ready = poll(&wanted, 1, timeout_s * 1000);
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) return -1;
  return read(child.answers, out, bytes);
}

Ended end_child(Child* child, bool kill_it, int* status) {
  if (kill_it && kill(-child->pid, SIGKILL) != 0) kill(child->pid, SIGKILL);
  close(child->answers);
  int how = 0;
  while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR) {}
  if (kill_it) return Ended::kHung;
  *status = WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how);
  return WIFSIGNALED(how) ? Ended::kSignal : Ended::kExited;
}

namespace {

struct Signal {
  int number;
  const char* name;
};
const Signal kFaults[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},
                          {SIGILL, "SIGILL"},   {SIGFPE, "SIGFPE"},   {SIGSYS, "SIGSYS"}};

}  // namespace

void how_it_ended(Ended ended, int status, char* out, size_t bytes) {
  snprintf(out, bytes, ended == Ended::kSignal ? "signal %d" : "exit status %d", status);
  for (const Signal& s : kFaults)
    if (ended == Ended::kSignal && s.number == status) snprintf(out, bytes, "%s", s.name);
}

bool is_fault(int signal) {
  for (const Signal& s : kFaults)
    if (s.number == signal) return true;
  return false;
}

}  // namespace lite::opencl
