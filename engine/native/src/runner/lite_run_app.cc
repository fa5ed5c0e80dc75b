#include "lite_run_app.h"

#include <stdio.h>
#include <stdlib.h>

#include "platform/files.h"

#ifdef LITE_NO_PIPELINES

bool answer_image(lite_file*, const lite_options&, const char*, const char*, bool, int, char* error,
                  size_t bytes) {
  snprintf(error, bytes, "this runner was trimmed for one model, without images and pipelines");
  return false;
}

#else

namespace {

constexpr long kMaxFile = 1L << 28;

bool said(char* error, size_t bytes, const char* path, const char* what) {
  snprintf(error, bytes, "%.300s %s", path, what);
  return false;
}

// The whole file in memory, which the caller frees; null with one line in `error`.
void* read_whole(const char* path, size_t* size, char* error, size_t bytes) {
  FILE* file = lite::open_file(path, "rb");
  long end = -1;
  if (file && fseek(file, 0, SEEK_END) == 0) end = ftell(file);
  if (!file || end < 0 || end > kMaxFile || fseek(file, 0, SEEK_SET) != 0) {
    said(error, bytes, path, end > kMaxFile ? "is larger than 256 MiB" : "cannot be read");
    if (file) fclose(file);
    return nullptr;
  }
  void* data = malloc(static_cast<size_t>(end) + 1);
  const bool read = data && fread(data, 1, static_cast<size_t>(end), file) == static_cast<size_t>(end);
  fclose(file);
  if (!read) {
    free(data);
    said(error, bytes, path, "cannot be read");
    return nullptr;
  }
  *size = static_cast<size_t>(end);
  return data;
}

bool write_whole(const char* path, const void* data, size_t size, char* error, size_t bytes) {
  FILE* file = lite::open_file(path, "wb");
  if (!file) return said(error, bytes, path, "cannot be written");
  const bool written = fwrite(data, 1, size, file) == size;
  if (fclose(file) != 0 || !written) return said(error, bytes, path, "cannot be written");
  return true;
}

bool answer(lite_app* app, const char* image, const char* draw, bool times, int runs, char* error,
            size_t bytes) {
  size_t size = 0;
  void* data = read_whole(image, &size, error, bytes);
  if (!data) return false;
  bool good = true;
  for (int run = 0; good && run < runs; ++run) good = lite_app_run(app, data, size, error, bytes) == 0;
  free(data);
  if (!good) return false;
  const char* text = lite_app_answer(app, times);
  if (!text) return said(error, bytes, image, "out of memory");
  fputs(text, stdout);
  if (!draw) return true;
  const void* picture = lite_app_drawn(app, &size);
  if (!picture) return said(error, bytes, draw, "out of memory");
  return write_whole(draw, picture, size, error, bytes);
}

}  // namespace

bool answer_image(lite_file* file, const lite_options& options, const char* image, const char* draw,
                  bool times, int runs, char* error, size_t bytes) {
  lite_app* app = lite_app_open(file, &options, error, bytes);
  if (!app) return false;
  const bool good = answer(app, image, draw, times, runs, error, bytes);
  lite_app_free(app);
  return good;
}

#endif
