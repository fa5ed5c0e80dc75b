#include "lite_run_frames.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/files.h"
#include "platform/regular_file.h"

namespace {

constexpr size_t kChunk = 1 << 16;

// Of one in a folder; false where it is too long.
bool path_of(const char* folder, const char* name, char (&path)[4096]) {
  return snprintf(path, sizeof path, "%s/%s", folder, name) < static_cast<int>(sizeof path);
}

bool is_passed_over(const char* folder, const char* name) {
  char path[4096];
  return name[0] == '.' || (path_of(folder, name, path) && lite::is_other_than_file(path));
}

int by_name(const void* a, const void* b) {
  return strcmp(*static_cast<char* const*>(a), *static_cast<char* const*>(b));
}

}  // namespace

Frames::~Frames() {
  for (int i = 0; i < count_; ++i) free(names_[i]);
  free(names_);
  free(data_);
}

bool Frames::open(const char* from, char* error, size_t bytes) {
  if (strcmp(from, "-") == 0) return true;
  folder_ = from;
  DIR* folder = opendir(from);
  if (!folder) return snprintf(error, bytes, "%.300s is not a folder that can be read", from), false;
  int room = 0;
  bool good = (names_ = static_cast<char**>(calloc(1, sizeof(char*)))) != nullptr;
  while (good) {
    const dirent* entry = readdir(folder);
    if (!entry) break;
    if (is_passed_over(from, entry->d_name)) continue;
    if (count_ == room) {
      room = 2 * room + 16;
      char** grown = static_cast<char**>(realloc(names_, static_cast<size_t>(room) * sizeof(char*)));
      if (!(good = grown != nullptr)) break;
      names_ = grown;
    }
    good = (names_[count_] = strdup(entry->d_name)) != nullptr;
    count_ += good;
  }
  closedir(folder);
  if (!good) return snprintf(error, bytes, "out of memory"), false;
  if (!count_) return snprintf(error, bytes, "%.300s has no frames", from), false;
  qsort(names_, static_cast<size_t>(count_), sizeof(char*), by_name);
  return true;
}

void Frames::read_file(const char* name) {
  char path[4096];
  size_ = 0;
  FILE* file = path_of(folder_, name, path) ? lite::open_file(path, "rb") : nullptr;
  if (!file) return;
  for (;;) {
    if (size_ == room_) {
      const size_t room = 2 * room_ + kChunk;
      uint8_t* grown = room < JpegFrames::kMostBytes ? static_cast<uint8_t*>(realloc(data_, room)) : nullptr;
      if (!grown) break;
      data_ = grown;
      room_ = room;
    }
    const size_t read = fread(data_ + size_, 1, room_ - size_, file);
    if (!read) break;
    size_ += read;
  }
  if (!feof(file)) size_ = 0;
  fclose(file);
}

int Frames::next(const uint8_t** data, size_t* size, char* error, size_t bytes) {
  if (names_) {
    if (at_ == count_) return 0;
    read_file(names_[at_++]);
    *data = size_ ? data_ : reinterpret_cast<const uint8_t*>("");
    *size = size_;
    return 1;
  }
  for (;;) {
    const int found = stream_.next(data, size);
    if (found < 0) snprintf(error, bytes, "a frame has more than %zu MiB", JpegFrames::kMostBytes >> 20);
    if (found) return found;
    uint8_t* room = stream_.room(kChunk);
    if (!room) return snprintf(error, bytes, "out of memory"), -1;
    const size_t read = lite::read_input(room, kChunk);  // a camera's frame does not wait for the next one
    if (!read) return 0;
    stream_.added(read);
  }
}
