#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins.h"

namespace lite {

const lite_plugin* open_plugin(const char* path, char* error, size_t error_bytes) {
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
