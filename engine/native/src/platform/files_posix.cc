#include "files.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lite {

void make_folder(const char* path) { mkdir(path, 0777); }

const char* own_path() {
#if defined(__linux__)
  static char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  return length > 0 ? path : nullptr;
#else
  return nullptr;
#endif
}

void use_utf8(int*, char***) {}

FILE* open_file(const char* path, const char* mode) { return fopen(path, mode); }

size_t read_input(void* to, size_t bytes) {
  ssize_t got;
  do got = read(STDIN_FILENO, to, bytes);
  while (got < 0 && errno == EINTR);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

}  // namespace lite
