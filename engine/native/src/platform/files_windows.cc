#include "files.h"

#include <corecrt_startup.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <windows.h>

#include "wide_path.h"

namespace lite {

void make_folder(const char* path) {
  const WidePath wide(path);
  if (wide.text) CreateDirectoryW(wide.text, nullptr);
}

// Nothing is started again: there is no OpenCL in it (platform.cmake).
const char* own_path() { return nullptr; }

namespace {

char* utf8(const wchar_t* wide) {
  const int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, nullptr, 0, nullptr, nullptr);
  char* text = bytes > 0 ? static_cast<char*>(malloc(bytes)) : nullptr;
  if (text) WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, bytes, nullptr, nullptr);
  return text;
}

}  // namespace

void use_utf8(int* argc, char*** argv) {
  SetConsoleOutputCP(CP_UTF8);
  // main() has them in the system's code page, where a name may have no letters.
  if (_configure_wide_argv(_crt_argv_unexpanded_arguments) != 0) return;
  const int count = *__p___argc();
  char** words = static_cast<char**>(calloc(count + 1, sizeof(char*)));
  if (!words) return;
  for (int i = 0; i < count; ++i)
    if (!(words[i] = utf8((*__p___wargv())[i]))) return;
  *argc = count;
  *argv = words;
}

size_t read_input(void* to, size_t bytes) {
  _setmode(_fileno(stdin), _O_BINARY);  // or line ends would change
  const int read = _read(_fileno(stdin), to, static_cast<unsigned>(bytes));
  return read > 0 ? static_cast<size_t>(read) : 0;
}

FILE* open_file(const char* path, const char* mode) {
  const WidePath wide(path), how(mode);
  return wide.text && how.text ? _wfopen(wide.text, how.text) : nullptr;
}

}  // namespace lite
