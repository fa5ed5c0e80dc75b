// Fails the n-th file operation of this process below one folder (LD_PRELOAD). Whatever opens,
// writes or renames goes through it: Python, NumPy, SQLite, the native library.
//
//   fault_arm("/folder", 0, 0)     counts operations
//   fault_arm("/folder", 7, 28)    the seventh fails with errno 28
//   fault_arm("/folder", 7, -1)    the seventh writes half of its bytes, if it writes
//   fault_arm("/folder", 7, -2)    the process ends before the seventh
//   fault_threads(2)               the second thread that is started from now on does not start
//   fault_count()                  operations so far; fault_name(): what the failed one was
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 4096
static char folder[PATH_MAX];
static long wanted, seen;
static int how;
static const char* failed = "";
static char below[MOST];  // per descriptor: it was opened below the folder

static void* real(const char* name) { return dlsym(RTLD_NEXT, name); }
#define REAL(result, name, ...) ((result(*)(__VA_ARGS__))real(#name))

void fault_arm(const char* path, long n, int kind) {
  strncpy(folder, path, sizeof folder - 1);
  wanted = n;
  how = kind;
  seen = 0;
  failed = "";
}
long fault_count(void) { return seen; }
const char* fault_name(void) { return failed; }

static long threads_left = -1;
void fault_threads(long n) { threads_left = n; }
int pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* given) {
  if (threads_left > 0 && --threads_left == 0) return EAGAIN;
  return REAL(int, pthread_create, pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)(
      thread, attr, run, given);
}

static int is_below(int at, const char* path) {
  if (!*folder || !path) return 0;
  if (path[0] != '/') {
    if (at != AT_FDCWD) return at >= 0 && at < MOST && below[at];
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) return 0;
    return strncmp(here, folder, strlen(folder)) == 0;
  }
  return strncmp(path, folder, strlen(folder)) == 0;
}
static int tracked(int fd) { return *folder && fd >= 0 && fd < MOST && below[fd]; }

// What the next operation does: 0 as it should, 1 fails with errno set, 2 writes half.
static int next(const char* name, int writes) {
  if (++seen != wanted) return 0;
  if (how == -2) kill(getpid(), SIGKILL);
  if (how == -1 && !writes) return 0;
  failed = name;
  if (how == -1) return 2;
  errno = how;
  return 1;
}

static int opened(int fd, int is) {
  if (fd >= 0 && fd < MOST) below[fd] = is;
  return fd;
}
#define MODE(flags)                          \
  mode_t mode = 0;                           \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {   \
    va_list list;                            \
    va_start(list, flags);                   \
    mode = va_arg(list, mode_t);             \
    va_end(list);                            \
  }
#define OPEN(name)                                                               \
  int name(const char* path, int flags, ...) {                                   \
    MODE(flags)                                                                  \
    const int is = is_below(AT_FDCWD, path);                                     \
    if (is && next("open", 0)) return -1;                                        \
    return opened(REAL(int, name, const char*, int, ...)(path, flags, mode), is); \
  }
#define OPENAT(name)                                                                      \
  int name(int at, const char* path, int flags, ...) {                                    \
    MODE(flags)                                                                           \
    const int is = is_below(at, path);                                                    \
    if (is && next("open", 0)) return -1;                                                 \
    return opened(REAL(int, name, int, const char*, int, ...)(at, path, flags, mode), is); \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
int close(int fd) {
  if (fd >= 0 && fd < MOST) below[fd] = 0;
  return REAL(int, close, int)(fd);
}

#define SOME(name, fd, size, less, ...)                        \
  if (tracked(fd)) {                                           \
    const int what = next(#name, (size) > 1);                  \
    if (what == 1) return -1;                                  \
    if (what == 2) return less;                                \
  }                                                            \
  return __VA_ARGS__;
ssize_t write(int fd, const void* data, size_t size) {
  ssize_t (*go)(int, const void*, size_t) = real("write");
  SOME(write, fd, size, go(fd, data, size / 2), go(fd, data, size))
}
#define PWRITE(name)                                                       \
  ssize_t name(int fd, const void* data, size_t size, off_t at) {          \
    ssize_t (*go)(int, const void*, size_t, off_t) = real(#name);          \
    SOME(pwrite, fd, size, go(fd, data, size / 2, at), go(fd, data, size, at)) \
  }
PWRITE(pwrite)
PWRITE(pwrite64)
ssize_t writev(int fd, const struct iovec* parts, int count) {
  ssize_t (*go)(int, const struct iovec*, int) = real("writev");
  SOME(writev, fd, count, go(fd, parts, count / 2), go(fd, parts, count))
}
#define SENDFILE(name, type)                                                            \
  ssize_t name(int out, int in, type* at, size_t size) {                                \
    ssize_t (*go)(int, int, type*, size_t) = real(#name);                               \
    SOME(sendfile, out, size, go(out, in, at, 1), go(out, in, at, size))                \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define PLAIN(name, is, values, ...)                    \
  {                                                     \
    if ((is) && next(#name, 0)) return -1;              \
    return REAL(int, name, __VA_ARGS__) values;         \
  }
int fsync(int fd) PLAIN(fsync, tracked(fd), (fd), int)
int fdatasync(int fd) PLAIN(fdatasync, tracked(fd), (fd), int)
int ftruncate(int fd, off_t size) PLAIN(ftruncate, tracked(fd), (fd, size), int, off_t)
int ftruncate64(int fd, off64_t size) PLAIN(ftruncate64, tracked(fd), (fd, size), int, off64_t)
int fchmod(int fd, mode_t mode) PLAIN(fchmod, tracked(fd), (fd, mode), int, mode_t)
int chmod(const char* path, mode_t mode)
    PLAIN(chmod, is_below(AT_FDCWD, path), (path, mode), const char*, mode_t)
int mkdir(const char* path, mode_t mode)
    PLAIN(mkdir, is_below(AT_FDCWD, path), (path, mode), const char*, mode_t)
int rmdir(const char* path) PLAIN(rmdir, is_below(AT_FDCWD, path), (path), const char*)
int unlink(const char* path) PLAIN(unlink, is_below(AT_FDCWD, path), (path), const char*)
int unlinkat(int at, const char* path, int flags)
    PLAIN(unlinkat, is_below(at, path), (at, path, flags), int, const char*, int)
int rename(const char* from, const char* to)
    PLAIN(rename, is_below(AT_FDCWD, to), (from, to), const char*, const char*)
int renameat(int a, const char* from, int b, const char* to)
    PLAIN(renameat, is_below(b, to), (a, from, b, to), int, const char*, int, const char*)
