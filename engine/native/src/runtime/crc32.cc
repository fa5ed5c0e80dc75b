#include "crc32.h"

#include <string.h>

#include "dispatch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lite {
namespace {

struct Tables {
  uint32_t table[8][256];
  Tables() {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      table[0][i] = c;
    }
    for (int t = 1; t < 8; ++t)
      for (int i = 0; i < 256; ++i)
        table[t][i] = table[0][table[t - 1][i] & 255] ^ (table[t - 1][i] >> 8);
  }
};

// Eight bytes a step by tables.
uint32_t by_tables(uint32_t c, const uint8_t* p, size_t n) {
  static const Tables tables;
  const auto& t = tables.table;
  for (; n >= 8; n -= 8, p += 8) {
    uint32_t low, high;
    memcpy(&low, p, 4);
    memcpy(&high, p + 4, 4);
    low ^= c;
    c = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
        t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
  }
  for (; n; --n, ++p) c = t[0][(c ^ *p) & 255] ^ (c >> 8);
  return c;
}

#if defined(__x86_64__)

// Folding by carry-less multiplication: "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction" (Intel, 2009), in eight lanes for the instruction's latency. A 128-bit lane
// moves 1024 bits on with the powers x^(8*128+32) and x^(8*128-32) mod P, 128 bits on with x^(128+32)
// and x^(128-32), all bit-reflected. The last lane's 16 bytes have the same remainder as all that went
// before: tables finish it.
__attribute__((target("pclmul,sse4.1"))) __m128i fold(__m128i lane, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, powers, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) uint32_t by_folding(uint32_t c, const uint8_t* p,
                                                             size_t n) {
  const auto load = [](const uint8_t* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  const __m128i by_1024 = _mm_set_epi64x(0x14a7fe880, 0x1e88ef372);
  const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lane[8];
  for (int i = 0; i < 8; ++i) lane[i] = load(p + 16 * i);
  lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128(static_cast<int>(c)));
  for (p += 128, n -= 128; n >= 128; p += 128, n -= 128)
    for (int i = 0; i < 8; ++i) lane[i] = fold(lane[i], by_1024, load(p + 16 * i));
  for (int i = 1; i < 8; ++i) lane[i] = fold(lane[i - 1], by_128, lane[i]);
  uint8_t rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), lane[7]);
  return by_tables(by_tables(0, rest, 16), p, n);
}

bool can_fold() { return machine().crc32; }
constexpr size_t kFoldFrom = 128;

#elif defined(__aarch64__)

#define LITE_CRC ".arch_extension crc\n\t"

// In assembly: compilers disagree on how a function asks for the extension's intrinsics.
uint32_t by_folding(uint32_t c, const uint8_t* p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    __asm__(LITE_CRC "crc32x %w0, %w0, %x1" : "+r"(c) : "r"(word));
  }
  for (; n; --n, ++p) __asm__(LITE_CRC "crc32b %w0, %w0, %w1" : "+r"(c) : "r"(uint32_t{*p}));
  return c;
}

bool can_fold() { return machine().crc32; }
constexpr size_t kFoldFrom = 8;

#else

uint32_t by_folding(uint32_t c, const uint8_t* p, size_t n) { return by_tables(c, p, n); }
bool can_fold() { return false; }
constexpr size_t kFoldFrom = 0;

#endif

}  // namespace

uint32_t crc32(const uint8_t* data, size_t bytes) {
  const bool fast = bytes >= kFoldFrom && can_fold();
  return ~(fast ? by_folding : by_tables)(~0u, data, bytes);
}

}  // namespace lite
