// A vendor's library, opened at run time; a loader, a driver with every function, or one that hands
// its functions out through the objects' tables (cl_khr_icd), as libraries named in .icd files do.
#pragma once

#include "api.h"

namespace lite::opencl {

constexpr int kMaxPlatforms = 16;

struct Platform {
  cl_platform_id id;
  Functions cl;
};

// Why a library gives no platform. `kRefused`: the system's loader said no, in `detail`.
enum class Opened { kYes, kNotOpenCL, kNoPlatform, kRefused };

// Opens a library in this process, for good: drivers do not survive being closed. Writes its
// platforms and their number, or what was said against it.
Opened open_library(const char* name, Platform platforms[kMaxPlatforms], int* count, char* detail,
                    size_t detail_bytes);

}  // namespace lite::opencl
