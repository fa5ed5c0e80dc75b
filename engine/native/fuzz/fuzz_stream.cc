// Input: Motion JPEG as it comes from a camera (src/runner/jpeg_frames.cc), in pieces whose sizes the last bytes say.
// The frames are the same as those of the whole input at once, lie in it one after the other, and are decoded.
#include "app/image.h"
#include "large_image.h"
#include "runner/jpeg_frames.h"

namespace {

struct Part {
  size_t at, size;
};

struct Parts {
  lite::app::Array<Part> list;
  lite::app::Array<uint8_t> bytes;
  void add(const uint8_t* data, size_t size) {
    const size_t at = bytes.size();
    if (!bytes.resize(at + size) || !list.push({at, size})) __builtin_trap();
    memcpy(bytes.data() + at, data, size);
  }
};

// The frames of a stream that comes in pieces of 1 to 256 bytes, or as a whole where `sizes` is null.
void split(const uint8_t* data, size_t size, const uint8_t* sizes, Parts* out) {
  JpegFrames frames;
  for (size_t at = 0, turn = 0; at < size; ++turn) {
    const size_t piece = sizes ? size_t{1} + sizes[turn % 4] : size, count = piece < size - at ? piece : size - at;
    uint8_t* room = frames.room(count);
    if (!room) __builtin_trap();
    memcpy(room, data + at, count);
    frames.added(count);
    at += count;
    const uint8_t* frame;
    size_t bytes;
    while (const int found = frames.next(&frame, &bytes)) {
      if (found < 0) __builtin_trap();  // none is that large
      out->add(frame, bytes);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  Parts whole, pieces;
  split(data, size - 4, nullptr, &whole);
  split(data, size - 4, data + size - 4, &pieces);
  if (whole.list.size() != pieces.list.size() || whole.bytes.size() != pieces.bytes.size() ||
      (!whole.bytes.empty() && memcmp(whole.bytes.data(), pieces.bytes.data(), whole.bytes.size()) != 0))
    __builtin_trap();
  size_t from = 0;
  for (const Part& part : whole.list) {
    const uint8_t* frame = whole.bytes.data() + part.at;
    const void* there = part.size < 2 ? nullptr : memmem(data + from, size - 4 - from, frame, part.size);
    if (!there || frame[0] != 0xFF || frame[1] != 0xD8) __builtin_trap();
    from = static_cast<size_t>(static_cast<const uint8_t*>(there) - data) + part.size;
    lite::app::Image image;
    if (!is_large(frame, part.size)) lite::app::decode_image({frame, part.size}, &image);
  }
  return 0;
}
