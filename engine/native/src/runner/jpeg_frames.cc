#include "jpeg_frames.h"

#include <stdlib.h>
#include <string.h>

JpegFrames::~JpegFrames() { free(data_); }

uint8_t* JpegFrames::room(size_t bytes) {
  if (begin_) {
    memmove(data_, data_ + begin_, size_ - begin_);
    size_ -= begin_;
    at_ -= begin_;
    begin_ = 0;
  }
  if (room_ - size_ < bytes) {
    const size_t grown = 2 * room_ + bytes;
    uint8_t* data = static_cast<uint8_t*>(realloc(data_, grown));
    if (!data) return nullptr;
    data_ = data;
    room_ = grown;
  }
  return data_ + size_;
}

bool JpegFrames::begin() {
  while (begin_ + 1 < size_ && !(data_[begin_] == 0xFF && data_[begin_ + 1] == 0xD8)) ++begin_;
  at_ = begin_ + 2;
  scan_ = false;
  return begin_ + 1 < size_;
}

// Markers inside segments (a thumbnail's) do not count (ITU T.81, annex B).
bool JpegFrames::end() {
  while (at_ + 1 < size_) {
    if (data_[at_] != 0xFF) {
      if (!scan_) return true;  // damaged: the decoder says so
      ++at_;
      continue;
    }
    const int marker = data_[at_ + 1];
    if (marker == 0xD9) return at_ += 2, true;
    if (marker == 0xFF) {
      ++at_;
    } else if (marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD8)) {
      at_ += 2;
    } else {
      if (at_ + 3 >= size_) return false;
      at_ += 2 + (size_t{data_[at_ + 2]} << 8 | data_[at_ + 3]);
      scan_ = marker == 0xDA;
    }
  }
  return false;
}

int JpegFrames::next(const uint8_t** data, size_t* size) {
  if (!inside_ && !(inside_ = begin())) return 0;
  if (!end()) return size_ - begin_ > kMostBytes ? -1 : 0;
  *data = data_ + begin_;
  *size = at_ - begin_;
  begin_ = at_;
  inside_ = false;
  return 1;
}
