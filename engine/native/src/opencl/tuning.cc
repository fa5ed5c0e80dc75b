#include "tuning.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "binary_cache.h"
#include "blake2b.h"

namespace lite::opencl {

namespace {

constexpr size_t kMostBytes = 4 << 20, kMostText = 500;
constexpr int kMostEntries = 10000;

// Goes through a JSON object whose values are texts, and nothing else.
struct Cursor {
  const char *at, *end;

  void skip() {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
  }
  bool next(char wanted) {
    skip();
    return at < end && *at == wanted && ++at;
  }
  // What lies between two quotes.
  bool text(const char** first, size_t* bytes) {
    if (!next('"')) return false;
    for (*first = at; at < end && *at != '"'; ++at) {
      const unsigned char c = static_cast<unsigned char>(*at);
      if (c < 0x20 || c > 0x7e || c == '\\') return false;  // no size or name has these
    }
    *bytes = at - *first;
    return at++ < end && *bytes <= kMostText;
  }
};

bool only_spaces(const char* at, const char* end) {
  Cursor in{at, end};
  in.skip();
  return in.at == end;
}

void key_of(const char* const identity[4], char hex[17]) {
  Blake2b hash(8);
  for (int i = 0; i < 4; ++i) {
    if (i) hash.add("", 1);
    hash.add(identity[i], strlen(identity[i]));
  }
  uint8_t digest[8];
  hash.finish(digest);
  to_hex(digest, sizeof digest, hex);
}

}  // namespace

void Tuning::open(const char* cache_dir, const char* beside, const char* const identity[4]) {
  char other[1000];
  key_of(identity, key_);
  const bool named = cache_dir && *cache_dir && strlen(cache_dir) < sizeof folder_ - 10;
  if (named) snprintf(folder_, sizeof folder_, "%s/opencl", cache_dir);
  else if (beside && strlen(beside) < sizeof folder_) snprintf(folder_, sizeof folder_, "%s", beside);
  if (!*folder_) return;
  snprintf(path, sizeof path, "%s/tuning-%s.json", folder_, key_);
  read(path);
  if (!named || !beside || strlen(beside) > sizeof folder_) return;
  snprintf(other, sizeof other, "%s/tuning-%s.json", beside, key_);
  read(other);
}

void Tuning::read(const char* file) {
  Text json;
  const char* reason = nullptr;
  const size_t known = entries_.size;
  bool good = read_whole(file, &json, &reason);
  const char *end = json.text() + json.size, *rest = nullptr;
  if (good && (json.size > kMostBytes || !take(json.text(), end, &rest) || !only_spaces(rest, end))) {
    entries_.size = known;
    good = false;
    reason = "not a table of layers' fastest variants";
  }
  json.release();
  if (!good && reason && !*warning)
    say(warning, sizeof warning, "%.200s: %s; it is ignored, measure again with --tune", file, reason);
}

void Tuning::add_stored(const char* section, size_t bytes) {
  char wanted[40];
  const size_t length = snprintf(wanted, sizeof wanted, "\"%s\":", key_);
  const size_t known = entries_.size;
  for (size_t at = 0; at + length <= bytes; ++at) {
    if (memcmp(section + at, wanted, length) != 0) continue;
    const char* rest;
    if (take(section + at + length, section + bytes, &rest)) return;
    entries_.size = known;
    if (!*warning)
      say(warning, sizeof warning, "the variants measured for this device in the file are damaged; they are ignored");
    return;
  }
}

bool Tuning::take(const char* json, const char* end, const char** rest) {
  Cursor in{json, end};
  if (!in.next('{')) return false;
  int count = 0;
  for (bool first = true; first || in.next(','); first = false) {
    const char *size, *way;
    size_t size_bytes, way_bytes;
    if (first && in.next('}')) {
      *rest = in.at;
      return true;
    }
    if (++count > kMostEntries || !in.text(&size, &size_bytes) || !in.next(':') || !in.text(&way, &way_bytes)) return false;
    entries_.add_bytes(size, size_bytes);
    entries_.add_bytes("", 1);
    entries_.add_bytes(way, way_bytes);
    entries_.add_bytes("", 1);
  }
  if (!in.next('}')) return false;
  *rest = in.at;
  return !entries_.failed;
}

const char* Tuning::way_of(const char* size) const {
  const char* end = entries_.text() + entries_.size;
  for (const char* at = entries_.text(); at < end;) {
    const char* way = at + strlen(at) + 1;
    if (strcmp(at, size) == 0) return way;
    at = way + strlen(way) + 1;
  }
  return nullptr;
}

void Tuning::learn(const char* size, const char* way) {
  if (way_of(size)) return;
  entries_.add_bytes(size, strlen(size) + 1);
  entries_.add_bytes(way, strlen(way) + 1);
}

bool Tuning::save() {
  if (!*path)
    return say(warning, sizeof warning,
               "what was measured is not kept: name a folder for it with --cache-dir");
  Text json;
  json.add("{");
  const char* end = entries_.text() + entries_.size;
  for (const char* at = entries_.text(); at < end;) {
    const char* way = at + strlen(at) + 1;
    if (way_of(at) == way) json.add("%s\n \"%s\": \"%s\"", json.size > 1 ? "," : "", at, way);
    at = way + strlen(way) + 1;
  }
  json.add("\n}");
  errno = 0;
  const bool good = !json.failed && !entries_.failed && write_whole(folder_, path, json);
  json.release();
  return good || say(warning, sizeof warning, "%.200s: what was measured cannot be kept there (%s)",
                     path, errno ? strerror(errno) : "out of memory");
}

void Tuning::close() { entries_.release(); }

}  // namespace lite::opencl
