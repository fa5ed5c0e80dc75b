// Whether a driver survives loading a compiled kernel: tried once for each device and driver, and
// remembered beside the cache in the file that backends/opencl/load_trial.py keeps.
//
// With a runner another process does the first load. Without one (an app that links the library) the
// verdict "no" is written before the first load and "yes" after it: a crash is suffered once.
#pragma once

#include "text.h"

namespace lite::opencl {

constexpr int kTrialTimeoutS = 60;

struct LoadTrial {
  enum class Verdict { kUnknown, kLoads, kFails };

  char folder[900] = "", path[1000] = "";
  char warning[300] = "";
  const char* runner = nullptr;
  char library[512] = "";
  int device = 0;  // its number among those of the library
  Text lead;  // how the file begins that holds the verdict on this device and driver
  Verdict verdict = Verdict::kUnknown;

  void open(const char* folder, const char* const identity[4]);
  // Whether the entry at `entry_path` may be given to the driver in this process.
  bool may_load(const char* entry_path, const char* options);
  // The driver came back from loading one.
  void came_back();
  void close() { lead.release(); }

 private:
  Verdict remembered() const;
  Verdict tried(const char* entry_path, const char* options);
  bool write(bool loads, const char* reason) const;
  bool announced_ = false;
};

// The other process's part: loads and builds the entry's binary. The exit status.
int answer_trial(const char* library, const char* device, const char* entry, const char* options);

}  // namespace lite::opencl
