#include "blake2b.h"

#include <stdio.h>
#include <string.h>

namespace lite::opencl {

namespace {

constexpr uint64_t kStart[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
// Order of the message words in each round (RFC 7693, section 2.7); rounds 10 and 11 repeat 0 and 1.
constexpr uint8_t kOrder[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

uint64_t turned(uint64_t x, int bits) { return x >> bits | x << (64 - bits); }

void mix(uint64_t* v, int a, int b, int c, int d, uint64_t x, uint64_t y) {
  v[a] += v[b] + x;
  v[d] = turned(v[d] ^ v[a], 32);
  v[c] += v[d];
  v[b] = turned(v[b] ^ v[c], 24);
  v[a] += v[b] + y;
  v[d] = turned(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = turned(v[b] ^ v[c], 63);
}

}  // namespace

Blake2b::Blake2b(int digest_bytes) : digest_bytes_(digest_bytes) {
  memcpy(state_, kStart, sizeof state_);
  state_[0] ^= 0x01010000u ^ static_cast<uint64_t>(digest_bytes);
}

void Blake2b::compress(bool last) {
  uint64_t v[16], words[16];
  for (int i = 0; i < 16; ++i) {
    words[i] = 0;
    for (int byte = 7; byte >= 0; --byte) words[i] = words[i] << 8 | block_[i * 8 + byte];
  }
  memcpy(v, state_, sizeof state_);
  memcpy(v + 8, kStart, sizeof kStart);
  v[12] ^= count_;
  if (last) v[14] = ~v[14];
  for (int round = 0; round < 12; ++round) {
    const uint8_t* o = kOrder[round % 10];
    for (int i = 0; i < 4; ++i)
      mix(v, i, i + 4, i + 8, i + 12, words[o[2 * i]], words[o[2 * i + 1]]);
    for (int i = 0; i < 4; ++i)
      mix(v, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12, words[o[8 + 2 * i]],
          words[o[9 + 2 * i]]);
  }
  for (int i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
}

void Blake2b::add(const void* data, size_t bytes) {
  const uint8_t* from = static_cast<const uint8_t*>(data);
  while (bytes) {
    if (filled_ == sizeof block_) {  // only when more comes: the last block is marked
      compress(false);
      filled_ = 0;
    }
    const size_t room = sizeof block_ - filled_, part = bytes < room ? bytes : room;
    memcpy(block_ + filled_, from, part);
    filled_ += part;
    count_ += part;
    from += part;
    bytes -= part;
  }
}

void Blake2b::finish(uint8_t* digest) {
  memset(block_ + filled_, 0, sizeof block_ - filled_);
  compress(true);
  for (int i = 0; i < digest_bytes_; ++i)
    digest[i] = static_cast<uint8_t>(state_[i / 8] >> (i % 8 * 8));
}

void to_hex(const uint8_t* digest, int bytes, char* out) {
  for (int i = 0; i < bytes; ++i) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

}  // namespace lite::opencl
