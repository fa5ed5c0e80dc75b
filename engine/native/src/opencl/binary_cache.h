// Compiled kernels on disk, one file for each program, in the format of backends/opencl/
// binary_cache.py: what the one writes the other reads. Nothing reaches a driver that is not, byte
// for byte, what it once gave.
#pragma once

#include "text.h"

namespace lite::opencl {

struct BinaryCache {
  char folder[900] = "";  // empty: nothing is kept
  char warning[300] = "";  // the first thing that went wrong; the runtime itself prints nothing
  bool writes = true;      // false once the folder took no file

  // The binary stored under `key`; false when there is none. A damaged entry is deleted.
  bool load(const Text& key, Text* binary);
  void drop(const Text& key);
  void store(const Text& key, const Text& binary);
  // FOLDER/HASH.bin, of the key.
  void path_of(const Text& key, char* out, size_t bytes) const;
};

// The binary of an entry's bytes; with `key` only when it was stored under that. False with the
// reason.
bool unpack_entry(const Text& entry, const Text* key, Text* binary, const char** reason);
// A regular file's bytes; false when it cannot be read or is too large.
bool read_whole(const char* path, Text* out, const char** reason);
// Written whole or not at all: a file beside it, fsync, rename. Makes the folder.
bool write_whole(const char* folder, const char* path, const Text& content);

}  // namespace lite::opencl
