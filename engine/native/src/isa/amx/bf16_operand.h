// Pixels as the bf16 operand that AMX reads: floats rounded, or bf16 copied; zeros fill a group.
#pragma once

#include "amx_gemm.h"

namespace lite::LITE_ISA {
namespace {

// n floats as bf16, the second part `part_bytes` behind the first.
template <int kParts>
LITE_INLINE void round_run(const float* from, uint8_t* to, int64_t n, int64_t part_bytes) {
  const auto two = [&](__m512 low, __m512 high, __mmask32 lanes) __attribute__((always_inline)) {
    for (int part = 0; part < kParts; ++part) {
      const __m512bh pair = _mm512_cvtne2ps_pbh(high, low);
      touches(to + part * part_bytes, 2 * __builtin_popcount(lanes));
      _mm512_mask_storeu_epi16(to + part * part_bytes, lanes, (__m512i)pair);
      if (part + 1 == kParts) break;
      const __m512i bits = (__m512i)pair;
      const auto wide = [](__m256i v) __attribute__((always_inline)) {
        return (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16);
      };
      low = low - wide(_mm512_castsi512_si256(bits));
      high = high - wide(_mm512_extracti64x4_epi64(bits, 1));
    }
  };
  for (; n >= 2 * kLanes; n -= 2 * kLanes, from += 2 * kLanes, to += 4 * kLanes)
    two((__m512)load(from), (__m512)load(from + kLanes), ~__mmask32{0});
  if (n <= 0) return;
  const int first = n < kLanes ? static_cast<int>(n) : kLanes, second = static_cast<int>(n) - first;
  two((__m512)load_part(from, first),
      second ? (__m512)load_part(from + kLanes, second) : __m512{}, (__mmask32{1} << n) - 1);
}

// Pixels of three floats as three bf16 and a zero: four pixels are a vector.
void pad_triples(const float* from, uint8_t* to, int64_t pixels) {
  const __m512i place = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
  for (; pixels > 0; pixels -= 4, from += 12, to += 32) {
    const int n = pixels < 4 ? static_cast<int>(pixels) : 4;
    const __m512 v = _mm512_maskz_permutexvar_ps(0x7777, place, (__m512)load_part(from, 3 * n));
    touches(to, 8 * n);
    _mm256_mask_storeu_epi16(to, static_cast<__mmask16>((1u << 4 * n) - 1),
                             (__m256i)_mm512_cvtneps_pbh(v));
  }
}

template <int kParts>
void copy_pixels(const AmxGemm& g, const float* from, uint8_t* to, int64_t pixels) {
  const int64_t pixel = g.source.pixel * g.source_column, channels = g.group_bytes / 2;
  if (g.groups * channels == pixel && g.pixel == 2 * pixel) {
    round_run<kParts>(from, to, pixels * pixel, g.part_bytes);
    return;
  }
  if (kParts == 1 && channels == 3 && pixel == 3 && g.groups == 1) return pad_triples(from, to, pixels);
  const int64_t rest = g.padded - g.group_bytes;
  for (int64_t i = 0; i < pixels; ++i, from += pixel, to += g.pixel) {
    for (int64_t group = 0; group < g.groups; ++group) {
      uint8_t* at = to + group * g.padded;
      round_run<kParts>(from + group * channels, at, channels, g.part_bytes);
      for (int part = 0; rest && part < kParts; ++part)
        memset(at + g.group_bytes + part * g.part_bytes, 0, rest);
    }
  }
}

// The same of pixels that are bf16 already.
void copy_shorts(const AmxGemm& g, const uint16_t* from, uint8_t* to, int64_t pixels) {
  const int64_t pixel = g.source.pixel * g.source_column, channels = g.group_bytes / 2;
  if (g.groups * channels == pixel && g.pixel == 2 * pixel) {
    memcpy(to, from, pixels * g.pixel);
    return;
  }
  const int64_t padded = g.padded / 2;
  for (int64_t i = 0; i < pixels; ++i, from += pixel, to += g.pixel)
    for (int64_t group = 0; group < g.groups; ++group) {
      const uint16_t* source = from + group * channels;
      uint16_t* at = reinterpret_cast<uint16_t*>(to + group * g.padded);
      for (int64_t c = 0; c < padded; c += 2 * kLanes) {
        const int64_t n = channels - c, room = padded - c;  // n may be 0 or less: only padding
        const __mmask32 some = n >= 32 ? ~__mmask32{0} : n > 0 ? (__mmask32{1} << n) - 1 : 0;
        const __mmask32 all = room >= 32 ? ~__mmask32{0} : (__mmask32{1} << room) - 1;
        touches(source + c, 2 * __builtin_popcount(some));
        touches(at + c, 2 * __builtin_popcount(all));
        _mm512_mask_storeu_epi16(at + c, all, _mm512_maskz_loadu_epi16(some, source + c));
      }
    }
}

}  // namespace
}  // namespace lite::LITE_ISA
