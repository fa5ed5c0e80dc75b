// A UTF-8 path as Windows' functions take it.
#pragma once

#include <stdlib.h>
#include <windows.h>

namespace lite {

// `text` is nullptr where the path is not UTF-8 or there is no memory.
struct WidePath {
  wchar_t* text = nullptr;

  explicit WidePath(const char* path) {
    const int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, nullptr, 0);
    text = count > 0 ? static_cast<wchar_t*>(malloc(count * sizeof(wchar_t))) : nullptr;
    if (text) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, text, count);
  }
  ~WidePath() { free(text); }
  WidePath(const WidePath&) = delete;
  WidePath& operator=(const WidePath&) = delete;
};

}  // namespace lite
