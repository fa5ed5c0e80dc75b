// Numbers that a seed repeats, for programs that damage files.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace lite {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  size_t below(size_t n) { return n ? next() % n : 0; }

 private:
  uint64_t state_;
};

}  // namespace lite
