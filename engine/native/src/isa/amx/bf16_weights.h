// Weights of floats as the bf16 tiles that AMX reads, in one part or in two.
#pragma once

#include "amx_gemm.h"
#include "ops/convert.h"
#include "isa/tap_gemm.h"

namespace lite::LITE_ISA {
namespace {

// The bf16 nearest to each of 16 floats, as floats.
LITE_INLINE F rounded(F v) {
  return as_float((I)_mm512_slli_epi32(
      _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)v)), 16));
}

// Weights of one group, gathered 16 columns at a time.
template <int kParts>
void pack_one_group(const AmxGemm& g, const float* weights, uint8_t* out) {
  const int64_t taps = g.taps, per_output = g.in_c * taps, rows = g.k_bytes / 4;
  const I index = to_int(F{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) *
                  static_cast<int32_t>(per_output);
  for (int64_t n = 0; n < g.out_c; n += kLanes) {
    const int64_t panel = n / kAmxColumns, columns = amx_panel_columns(g, panel);
    const __mmask16 lanes = first_lanes(static_cast<int>(g.out_c - n < kLanes ? g.out_c - n : kLanes));
    uint8_t* to = out + panel * g.panel_bytes + n % kAmxColumns * 4;
    for (int64_t c = 0; c < g.in_c; c += 2) {
      const float* from = weights + n * per_output + c * taps;
      const __mmask16 second = c + 1 < g.in_c ? lanes : 0;
      const int64_t k = c / 2;
      for (int64_t tap = 0; tap < taps; ++tap) {
        F a = (F)_mm512_mask_i32gather_ps(__m512{}, lanes, (__m512i)index, from + tap, 4);
        F b = (F)_mm512_mask_i32gather_ps(__m512{}, second, (__m512i)index, from + taps + tap, 4);
        for (int part = 0; part < kParts; ++part) {
          const F high_a = rounded(a), high_b = rounded(b);
          const int64_t tile = (k / rows * taps + tap) * kParts + part;
          const __m512i pair = _mm512_or_si512((__m512i)high_b,
                                               _mm512_srli_epi32((__m512i)high_a, 16));
          _mm512_storeu_si512(to + (tile * rows + k % rows) * columns * 4, pair);
          a -= high_a;
          b -= high_b;
        }
      }
    }
  }
}

// `w` says where a weight lies; its scale is 1.
template <int kParts>
void pack(const ConvShape& s, const WeightView& w, const AmxGemm& g, uint8_t* out) {
  const int64_t taps = s.kernel[0] * s.kernel[1], join = s.groups / g.groups;
  const bool rows = w.x == 1 && w.y == s.kernel[1] && w.in == taps && w.out == s.group_in * taps;
  if (s.groups == 1 && rows && g.taps == taps && s.group_in * taps < (1 << 26))
    return pack_one_group<kParts>(g, w.data, out);
  for (int part = 0; part < kParts; ++part) {
    pack_amx<uint16_t>(
        g, s.kernel[1], out,
        [&](int64_t group, int64_t o, int64_t c, int64_t ky, int64_t kx) -> uint16_t {
          const int64_t member = c / s.group_in;
          if (o / s.group_out != member) return 0;
          float v = w.data[(group * join + member) * w.group + o % s.group_out * w.out +
                           c % s.group_in * w.in + ky * w.y + kx * w.x];
          for (int i = 0; i < part; ++i) v -= rounded(splat(v))[0];
          return float_to_bfloat(v);
        },
        part);
  }
}

}  // namespace
}  // namespace lite::LITE_ISA
