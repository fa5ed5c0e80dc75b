// The frames of a stream: files of a folder, or JPEG files one after the other on standard input. A file that cannot be
// read is a frame without bytes, whose answer is an error; folders, pipes and devices in the folder are passed over.
#pragma once

#include "jpeg_frames.h"

class Frames {
 public:
  ~Frames();
  // False with one line in `error`.
  bool open(const char* from, char* error, size_t bytes);
  bool live() const { return !names_; }  // nobody waits for it: a camera
  // 1, 0 after the last one, or -1 with one line in `error`. Valid until the next call.
  int next(const uint8_t** data, size_t* size, char* error, size_t bytes);

 private:
  void read_file(const char* name);

  const char* folder_ = nullptr;
  char** names_ = nullptr;
  int count_ = 0, at_ = 0;
  uint8_t* data_ = nullptr;  // of a file
  size_t size_ = 0, room_ = 0;
  JpegFrames stream_;
};
