// What is a regular file, and the size of an open one.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#if defined(__linux__) && defined(__LP64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace lite {

// -1 where `fd` is no regular file.
inline int64_t regular_file_size(int fd) {
  struct stat info;
#if defined(__linux__) && defined(__LP64__)
  // The system call: what glibc calls fstat since 2.33 is missing in the older one of a board.
  const bool known = syscall(SYS_fstat, fd, &info) == 0;
#else
  const bool known = fstat(fd, &info) == 0;
#endif
  return known && S_ISREG(info.st_mode) ? static_cast<int64_t>(info.st_size) : -1;
}

// Whether something is there that is none: a folder, a pipe, a device. False where nobody can tell.
inline bool is_other_than_file(const char* path) {
  struct stat info;
#if defined(__linux__) && defined(__LP64__)
  const bool known = syscall(SYS_newfstatat, AT_FDCWD, path, &info, 0) == 0;
#else
  const bool known = stat(path, &info) == 0;
#endif
  return known && !S_ISREG(info.st_mode);
}

}  // namespace lite
