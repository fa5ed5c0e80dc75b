#include "files.h"

#include <windows.h>

#include "wide_path.h"

namespace lite {

void make_folder(const char* path) {
  const WidePath wide(path);
  if (wide.text) CreateDirectoryW(wide.text, nullptr);
}

// Nothing is started again: there is no OpenCL in it (platform.cmake).
const char* own_path() { return nullptr; }

void use_utf8() { SetConsoleOutputCP(CP_UTF8); }

}  // namespace lite
