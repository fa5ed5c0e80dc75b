// BLAKE2b without key (RFC 7693), as Python's hashlib.blake2b with digest_size computes it.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lite::opencl {

struct Blake2b {
  explicit Blake2b(int digest_bytes);  // 1 to 64
  void add(const void* data, size_t bytes);
  void finish(uint8_t* digest);

 private:
  void compress(bool last);

  uint64_t state_[8];
  uint64_t count_ = 0;  // bytes before this block and in it
  uint8_t block_[128];
  size_t filled_ = 0;
  int digest_bytes_;
};

// Lower-case hexadecimal digits and a zero byte: out has 2 * bytes + 1.
void to_hex(const uint8_t* digest, int bytes, char* out);

}  // namespace lite::opencl
