#include "refusal.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace lite::opencl {

namespace {

const char* file_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

struct Machine {
  int number;  // e_machine
  const char* name;
};
const Machine kMachines[] = {
    {3, "32-bit x86"}, {40, "32-bit ARM"}, {62, "x86-64"}, {183, "AArch64"}, {243, "RISC-V"}};

// The machine that an ELF file is for (e_machine), -1 for other files.
int machine_of(const char* path) {
  unsigned char head[20] = {};
  FILE* file = fopen(path, "rb");
  if (!file) return -1;
  const bool whole = fread(head, 1, sizeof head, file) == sizeof head;
  fclose(file);
  if (!whole || memcmp(head, "\x7f" "ELF", 4) != 0) return -1;
  return head[5] == 1 ? head[18] | head[19] << 8 : head[18] << 8 | head[19];
}

constexpr int own_machine() {
#if defined(__x86_64__)
  return 62;
#elif defined(__aarch64__)
  return 183;
#elif defined(__arm__)
  return 40;
#else
  return -1;
#endif
}

// The file that the loader could not use, and what was wrong with it.
struct Complaint {
  char file[512];
  const char* why;
  bool absent;
};

bool has(const char* text, const char* part) { return strstr(text, part) != nullptr; }

Complaint parse(const char* name, const char* said) {
  Complaint out{};
  // bionic: dlopen failed: library "libfoo.so" not found: needed by ...
  // musl: Error loading shared library libfoo.so: No such file or directory (needed by ...)
  // glibc: libfoo.so: cannot open shared object file: No such file or directory
  const char* start = said;
  const char* end = nullptr;
  if (const char* quoted = strstr(said, "dlopen failed: library \"")) {
    start = quoted + strlen("dlopen failed: library \"");
    end = strchr(start, '"');
  } else {
    const char* lead = "Error loading shared library ";
    if (strncmp(said, lead, strlen(lead)) == 0) start = said + strlen(lead);
    end = strstr(start, ": ");
  }
  const size_t length = end ? static_cast<size_t>(end - start) : 0;
  if (end && length < sizeof out.file) {
    memcpy(out.file, start, length);
    out.why = end + (*end == '"' ? 1 : 2);
  } else {
    snprintf(out.file, sizeof out.file, "%.500s", name);
    out.why = said;
  }
  out.absent = has(out.why, "No such file") || has(out.why, " not found");
  return out;
}

}  // namespace

Refusal explain_refusal(const char* name, const char* said) {
  const char* const another =
      "reinstall the driver, or name another library with LITE_OPENCL_LIBRARY";
  Refusal out{};
  const Complaint c = parse(name, said);
  const bool own = strcmp(file_name(c.file), file_name(name)) == 0;
  if (c.absent && !own) {
    out.kind = "dependency";
    snprintf(out.reason, sizeof out.reason, "needs %.300s, which is not installed", c.file);
    snprintf(out.fix, sizeof out.fix,
             "install the package that has %.150s, or add its folder to LD_LIBRARY_PATH", c.file);
    return out;
  }
  const char* path = own ? c.file : name;
  if (c.absent && access(path, F_OK) != 0) {
    out.kind = "missing";
    snprintf(out.reason, sizeof out.reason, "no such library");
    return out;
  }
  const int machine = machine_of(path);
  if (has(c.why, "wrong ELF class") || (machine >= 0 && machine != own_machine())) {
    const char* built = "another machine";
    for (const Machine& m : kMachines)
      if (m.number == machine) built = m.name;
    utsname here{};
    uname(&here);
    out.kind = "architecture";
    snprintf(out.reason, sizeof out.reason, "%.300s was built for %s, this machine is %.60s", path,
             built, here.machine);
    snprintf(out.fix, sizeof out.fix, "install the driver for %.60s", here.machine);
  } else if (has(c.why, "Permission denied")) {
    out.kind = "permission";
    snprintf(out.reason, sizeof out.reason, "%.300s may not be read", path);
    snprintf(out.fix, sizeof out.fix, "sudo chmod a+rx '%.250s'", path);
  } else if (has(said, "not accessible for the namespace")) {
    out.kind = "permission";
    snprintf(out.reason, sizeof out.reason, "%.300s is not open to this app", path);
    snprintf(out.fix, sizeof out.fix,
             "name it in the app's manifest: <uses-native-library android:name=\"%.100s\" "
             "android:required=\"false\"/>", file_name(path));
  } else if (has(c.why, "invalid ELF header") || has(c.why, "file too short") ||
             has(c.why, "cannot read file data") || has(said, "bad ELF magic")) {
    out.kind = "damaged";
    snprintf(out.reason, sizeof out.reason, "%.200s is damaged (%.200s)", path, c.why);
    snprintf(out.fix, sizeof out.fix, "reinstall the driver");
  } else {
    out.kind = "refused";
    snprintf(out.reason, sizeof out.reason, "%.500s", *c.why ? c.why : said);
    snprintf(out.fix, sizeof out.fix, "%s", another);
  }
  return out;
}

}  // namespace lite::opencl
