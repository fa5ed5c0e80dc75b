// Why the system's loader could not open a library, from its own words and from the file.
#pragma once

namespace lite::opencl {

struct Refusal {
  const char* kind;  // missing, dependency, architecture, damaged, permission or refused
  char reason[512];
  char fix[320];
};

// `said`: glibc's, musl's or bionic's words about the library `name`.
Refusal explain_refusal(const char* name, const char* said);

}  // namespace lite::opencl
