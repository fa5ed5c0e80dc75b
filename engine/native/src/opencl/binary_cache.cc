#include "binary_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blake2b.h"
#include "platform/regular_file.h"

namespace lite::opencl {

namespace {

constexpr char kMagic[8] = {'L', 'I', 'T', 'E', 'K', 'R', 'N', 'L'};
constexpr uint32_t kVersion = 1;
constexpr int64_t kMostBytes = 1 << 28;  // no entry of ours is as large

struct Header {
  char magic[8];
  uint32_t version, key_bytes;
  uint64_t binary_bytes;
  uint8_t digest[32];  // BLAKE2b-256 of key and binary
};
static_assert(sizeof(Header) == 56, "entries begin with it as it lies in memory");

void digest_of(const void* key, size_t key_bytes, const void* binary, size_t binary_bytes,
               uint8_t out[32]) {
  Blake2b hash(32);
  hash.add(key, key_bytes);
  hash.add(binary, binary_bytes);
  hash.finish(out);
}

bool make_folder(const char* folder) {
  char path[1000];
  snprintf(path, sizeof path, "%s", folder);
  for (char* at = path + 1; *at; ++at) {
    if (*at != '/') continue;
    *at = 0;
    mkdir(path, 0777);
    *at = '/';
  }
  return mkdir(path, 0777) == 0 || errno == EEXIST;
}

bool write_file(const char* path, const Text& content) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  size_t at = 0;
  while (at < content.size) {
    const ssize_t done = write(fd, content.data + at, content.size - at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;
    at += done;
  }
  const bool good = at == content.size && fsync(fd) == 0;
  return close(fd) == 0 && good;
}

}  // namespace

bool unpack_entry(const Text& entry, const Text* key, Text* binary, const char** reason) {
  Header header;
  *reason = "truncated";
  if (entry.size < sizeof header) return false;
  memcpy(&header, entry.data, sizeof header);
  *reason = "not a compiled kernel";
  if (memcmp(header.magic, kMagic, sizeof kMagic) != 0) return false;
  *reason = "another format version";
  if (header.version != kVersion) return false;
  *reason = "another size than its header says";
  const uint64_t content = entry.size - sizeof header;
  if (header.key_bytes > content || header.binary_bytes != content - header.key_bytes) return false;
  const char* stored = entry.data + sizeof header;
  const char* bytes = stored + header.key_bytes;
  uint8_t digest[32];
  digest_of(stored, header.key_bytes, bytes, header.binary_bytes, digest);
  *reason = "wrong digest";
  if (memcmp(digest, header.digest, sizeof digest) != 0) return false;
  *reason = "stored for another program, device or driver";
  if (key && (header.key_bytes != key->size || memcmp(stored, key->data, key->size) != 0))
    return false;
  binary->add_bytes(bytes, header.binary_bytes);
  *reason = "out of memory";
  return !binary->failed;
}

bool read_whole(const char* path, Text* out, const char** reason) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  *reason = nullptr;
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return false;
  const int64_t size = fd < 0 ? 0 : regular_file_size(fd);
  *reason = fd < 0              ? "cannot be read"
            : size < 0          ? "not a regular file"
            : size > kMostBytes ? "too large"
                                : nullptr;
  char part[1 << 14];
  while (!*reason) {
    const ssize_t got = read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || out->size + got > static_cast<size_t>(kMostBytes)) *reason = "cannot be read";
    if (got <= 0) break;
    out->add_bytes(part, got);
  }
  if (fd >= 0) close(fd);
  return !*reason && !out->failed;
}

bool write_whole(const char* folder, const char* path, const Text& content) {
  char part[1100];
  static int number = 0;
  snprintf(part, sizeof part, "%s.%ld.%d.part", path, static_cast<long>(getpid()),
           __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
  if (!make_folder(folder)) return false;
  if (write_file(part, content) && rename(part, path) == 0) return true;
  unlink(part);
  return false;
}

void BinaryCache::path_of(const Text& key, char* out, size_t bytes) const {
  uint8_t digest[16];
  char hex[33];
  Blake2b hash(sizeof digest);
  hash.add(key.text(), key.size);
  hash.finish(digest);
  to_hex(digest, sizeof digest, hex);
  snprintf(out, bytes, "%s/%s.bin", folder, hex);
}

bool BinaryCache::load(const Text& key, Text* binary) {
  if (!*folder) return false;
  char path[1000];
  path_of(key, path, sizeof path);
  Text entry;
  const char* reason = nullptr;
  const bool good = read_whole(path, &entry, &reason) && unpack_entry(entry, &key, binary, &reason);
  entry.release();
  if (good) return true;
  binary->release();
  if (!reason) return false;  // there is no entry
  if (!*warning)
    say(warning, sizeof warning, "%.200s: damaged compiled kernels are built again (%s)", folder,
        reason);
  drop(key);
  return false;
}

void BinaryCache::drop(const Text& key) {
  char path[1000];
  path_of(key, path, sizeof path);
  unlink(path);
}

void BinaryCache::store(const Text& key, const Text& binary) {
  if (!*folder || !writes) return;
  Header header{};
  memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.key_bytes = static_cast<uint32_t>(key.size);
  header.binary_bytes = binary.size;
  digest_of(key.text(), key.size, binary.text(), binary.size, header.digest);
  Text entry;
  entry.add_bytes(&header, sizeof header);
  entry.add_bytes(key.text(), key.size);
  entry.add_bytes(binary.text(), binary.size);
  char path[1000];
  path_of(key, path, sizeof path);
  writes = !entry.failed && write_whole(folder, path, entry);
  if (!writes && !*warning)
    say(warning, sizeof warning,
        "%.200s: compiled kernels cannot be kept there (%s): every start compiles them", folder,
        strerror(errno));
  entry.release();
}

}  // namespace lite::opencl
