// Which way was fastest for layers of a size, measured once on a device: the table that backends/
// opencl/tuning.py keeps, in the same file. What the one writes the other reads.
#pragma once

#include "text.h"

namespace lite::opencl {

struct Tuning {
  char path[1000] = "";     // where it is kept, empty: nowhere
  char warning[400] = "";   // the first thing that went wrong
  char summary[1500] = "";  // what the last measuring found, for a person

  // Reads CACHE_DIR/opencl/tuning-KEY.json and BESIDE/tuning-KEY.json, either of which may be nullptr;
  // the first one is where it is kept. Whatever is not such a table is ignored, with a warning. `identity`: platform, device, versions of device and driver.
  void open(const char* cache_dir, const char* beside, const char* const identity[4]);
  // What a model file holds of this device in its section TUNED: `{"KEY": {…}, …}`. What was measured
  // here comes first.
  void add_stored(const char* section, size_t bytes);
  // The name of the fastest way, nullptr: not measured.
  const char* way_of(const char* size) const;
  void learn(const char* size, const char* way);
  // Writes the table; false with a warning where it cannot be kept.
  bool save();
  void close();

 private:
  void read(const char* file);
  // The table that the text begins with; `rest` is what follows it.
  bool take(const char* json, const char* end, const char** rest);

  char key_[17] = "";
  char folder_[900] = "";
  Text entries_;  // size, zero byte, way, zero byte, …: the first of a size counts
};

}  // namespace lite::opencl
