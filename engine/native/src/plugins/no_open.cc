// In a static executable, which cannot load libraries.
#include <stdio.h>

#include "plugins.h"

namespace lite {

const lite_plugin* open_plugin(const char* path, char* error, size_t error_bytes) {
  snprintf(error, error_bytes,
           "cannot load the library %s: this program is linked statically; start lite_run_opencl, or "
           "link with liblite_runtime.so", path);
  return nullptr;
}

const lite_plugin* open_plugin_bytes(const void*, size_t, char* error, size_t error_bytes) {
  return open_plugin("of the file", error, error_bytes);
}

}  // namespace lite
