// JPEG files one after the other in a stream of bytes that comes in pieces, like Motion JPEG of a camera.
#pragma once

#include <stddef.h>
#include <stdint.h>

class JpegFrames {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 28;  // of a frame

  JpegFrames() = default;
  JpegFrames(const JpegFrames&) = delete;
  JpegFrames& operator=(const JpegFrames&) = delete;
  ~JpegFrames();
  // Where the next `bytes` of the stream go, of which `added` tells how many came; null without memory. What lies
  // before the frame that has begun is dropped.
  uint8_t* room(size_t bytes);
  void added(size_t bytes) { size_ += bytes; }
  // 1: a frame, valid until the next call; 0: it needs more bytes; -1: it has more than kMostBytes. Whatever lies
  // between frames is passed over.
  int next(const uint8_t** data, size_t* size);

 private:
  bool begin();  // finds where the next frame begins
  bool end();    // goes on to where it ends

  uint8_t* data_ = nullptr;
  size_t size_ = 0, room_ = 0;
  size_t begin_ = 0, at_ = 0;  // of the frame, and how far it was read
  bool inside_ = false;        // a frame has begun
  bool scan_ = false;          // entropy-coded data lies between markers
};
