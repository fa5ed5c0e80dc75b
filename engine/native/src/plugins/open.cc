#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins.h"

namespace lite {

namespace {

#ifdef __linux__
// Whether the file holds all that its header speaks of. The loader maps a library that was copied half
// way without looking, and the process ends. What is no library of this machine the loader refuses.
bool is_whole(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return true;  // the loader says why
  ElfW(Ehdr) head;
  bool whole = true;
  if (fread(&head, sizeof head, 1, file) == 1 && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
      head.e_phentsize == sizeof(ElfW(Phdr)) && fseek(file, 0, SEEK_END) == 0) {
    const uint64_t size = static_cast<uint64_t>(ftell(file));
    for (int i = 0; whole && i < head.e_phnum; ++i) {
      ElfW(Phdr) part;
      const uint64_t at = head.e_phoff + uint64_t{sizeof part} * static_cast<uint64_t>(i);
      whole = at <= size && fseek(file, static_cast<long>(at), SEEK_SET) == 0 &&
              fread(&part, sizeof part, 1, file) == 1 && part.p_offset <= size &&
              (part.p_type != PT_LOAD || part.p_filesz <= size - part.p_offset);
    }
  }
  fclose(file);
  return whole;
}
#else
bool is_whole(const char*) { return true; }
#endif

}  // namespace

const lite_plugin* open_plugin(const char* path, char* error, size_t error_bytes) {
  if (!is_whole(path)) {
    snprintf(error, error_bytes, "cannot load the library %s: the file is cut off", path);
    return nullptr;
  }
  void* library = strchr(path, '/') ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) {
    const char* why = strchr(path, '/') ? dlerror() : "write its path with a '/', like ./libacme.so";
    snprintf(error, error_bytes, "cannot load the library %s: %s", path, why ? why : "no reason given");
    return nullptr;
  }
  const lite_plugin* (*get)(void);
  void* found = dlsym(library, "lite_plugin_get");
  memcpy(&get, &found, sizeof get);
  const lite_plugin* plugin = found ? get() : nullptr;
  if (!plugin)
    snprintf(error, error_bytes, "%s %s", path, found ? "gave no kernels" : "has no lite_plugin_get");
  return plugin;
}

const lite_plugin* open_plugin_bytes(const void* bytes, size_t size, char* error, size_t error_bytes) {
  const char* places[] = {getenv("TMPDIR"), "/tmp", "/data/local/tmp", "."};
  for (const char* place : places) {
    char path[1024];
    if (!place || snprintf(path, sizeof path, "%s/lite-XXXXXX", place) >= int{sizeof path}) continue;
    const int file = mkstemp(path);  // for its owner only
    if (file < 0) continue;
    const auto* at = static_cast<const uint8_t*>(bytes);
    size_t left = size;
    while (left) {
      const ssize_t written = write(file, at, left);
      if (written <= 0) break;
      at += written;
      left -= static_cast<size_t>(written);
    }
    close(file);
    const lite_plugin* plugin = left ? nullptr : open_plugin(path, error, error_bytes);
    unlink(path);
    if (!left) return plugin;
  }
  snprintf(error, error_bytes, "cannot write a library of %zu bytes; set TMPDIR to a folder with room", size);
  return nullptr;
}

}  // namespace lite
