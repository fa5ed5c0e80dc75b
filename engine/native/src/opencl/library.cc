#include "library.h"

#include <dlfcn.h>
#include <string.h>

#include "text.h"

namespace lite::opencl {

namespace {

using PlatformsOf = decltype(Functions::clGetPlatformIDs);

constexpr int kFirst12 = 89;  // index of the first function of OpenCL 1.2

void* const* table_of(cl_platform_id platform) {
  return *reinterpret_cast<void* const* const*>(platform);
}

// Fills `cl` by names, or from a table when there is one; the first function that is missing.
const char* fill(void* library, void* const* table, Functions* cl) {
  const char* missing = nullptr;
#define LITE_CL(result, name, index, arguments)                           \
  {                                                                       \
    void* found = table ? table[index] : dlsym(library, #name);           \
    memcpy(&cl->name, &found, sizeof found);                              \
    if (!found && index < kFirst12 && !missing) missing = #name;          \
  }
#include "functions.inc"
#undef LITE_CL
  return missing;
}

PlatformsOf icd_entry(void* library) {
  void* found = dlsym(library, "clIcdGetPlatformIDsKHR");
  if (!found) {
    void* (*find)(const char*);
    void* entry = dlsym(library, "clGetExtensionFunctionAddress");
    memcpy(&find, &entry, sizeof entry);
    if (entry) found = find("clIcdGetPlatformIDsKHR");
  }
  PlatformsOf out;
  memcpy(&out, &found, sizeof found);
  return out;
}

}  // namespace

Opened open_library(const char* name, Platform platforms[kMaxPlatforms], int* count, char* detail,
                    size_t detail_bytes) {
  *count = 0;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    say(detail, detail_bytes, "%s", why ? why : "cannot be opened");
    return Opened::kRefused;
  }
  Functions all;
  const char* missing = fill(library, nullptr, &all);
  PlatformsOf of = missing ? icd_entry(library) : all.clGetPlatformIDs;
  if (!of && !all.clGetPlatformIDs) return Opened::kNotOpenCL;
  cl_platform_id ids[kMaxPlatforms];
  cl_uint found = 0;
  const cl_int status = (of ? of : all.clGetPlatformIDs)(kMaxPlatforms, ids, &found);
  if (status != CL_SUCCESS || found == 0) {
    say(detail, detail_bytes, "clGetPlatformIDs returned %d", status);
    return Opened::kNoPlatform;
  }
  for (cl_uint i = 0; i < found && i < kMaxPlatforms; ++i) {
    Platform* platform = &platforms[*count];
    platform->id = ids[i];
    platform->cl = all;
    const char* lacks = missing && of ? fill(library, table_of(ids[i]), &platform->cl) : missing;
    if (lacks) say(detail, detail_bytes, "the library has no function %s", lacks);
    else ++*count;
  }
  return *count ? Opened::kYes : Opened::kRefused;
}

}  // namespace lite::opencl
