// Winograd's input transform on AArch64: two vectors of channels at a time, both in one load or store that
// also moves on to the next pixel or point.
#pragma once

#include "packed_tile.h"
#include "winograd_transform.h"

namespace lite::LITE_ISA {
#if defined(LITE_PACKED_TILE)

constexpr int kPairLanes = 2 * kLanes;

// Pixels of a tile: of columns `first` to `last` - 1, which lie inside; rows that do not are zeros, and their
// steps are 0.
template <class Down>
struct TilePixels {
  const float* row[Down::kPoints];
  ptrdiff_t step[Down::kPoints];   // bytes from one column to the next
  int first, last;
};

// A load or store of two vectors takes neighbouring registers: these are named.
#define LITE_TWO(i, a, b)           \
  register F v##a asm("v" #a);      \
  register F v##b asm("v" #b);
#define LITE_ALL_TWOS(make) \
  make(0, 16, 17) make(1, 18, 19) make(2, 20, 21) make(3, 22, 23) make(4, 24, 25) make(5, 26, 27) \
  make(6, 28, 29) make(7, 30, 31)
#define LITE_LOAD_TWO(i, a, b)                                                      \
  if constexpr (i < Down::kPoints) {                                                \
    asm volatile("ld1 {v" #a ".4s, v" #b ".4s}, [%2], %3"                           \
                 : "=w"(v##a), "=w"(v##b), "+r"(row[i])                             \
                 : "r"(at.step[i]));                                                \
    d[0][i] = v##a;                                                                 \
    d[1][i] = v##b;                                                                 \
  }
#define LITE_STORE_TWO(i, a, b)                                                     \
  if constexpr (i < Along::kPoints) {                                               \
    v##a = o[0][i];                                                                 \
    v##b = o[1][i];                                                                 \
    asm volatile("st1 {v" #a ".4s, v" #b ".4s}, [%0], %1"                           \
                 : "+r"(to) : "r"(next), "w"(v##a), "w"(v##b) : "memory");          \
  }
#define LITE_KEEP_TWO(i, a, b) \
  if constexpr (i < kDown) store_pair<i % kReached * kAlong * 32>(i < kReached ? t : beyond, o[0][i], o[1][i]);
#define LITE_TAKE_TWO(i, a, b) \
  if constexpr (i < Along::kPoints) load_pair_at<i * 32>(d[0][i], d[1][i], t);

// One that is all there, pixel by pixel.
template <class Down, class Along>
LITE_INLINE TilePixels<Down> in_memory(const float* pixels) {
  TilePixels<Down> at;
  for (int i = 0; i < Down::kPoints; ++i) {
    at.row[i] = pixels + i * Along::kPoints * kPairLanes;
    at.step[i] = kPairLanes * 4;
  }
  at.first = 0;
  at.last = Along::kPoints;
  return at;
}

// So many channels, in pairs of vectors. Points lie `stride` elements apart.
template <class Down, class Along>
LITE_INLINE void transform_pairs(const TilePixels<Down>& at, int64_t channels, float* v, int64_t stride) {
  constexpr int kDown = Down::kPoints, kAlong = Along::kPoints, kMost = 8;
  constexpr int kReached = kRowsInReach<kAlong * 32>;
  float between[kDown * kAlong * kPairLanes];
  LITE_ALL_TWOS(LITE_TWO)
  const float* row[kDown];
  ptrdiff_t back[kDown];           // bytes from behind the last column to the next channels of the first one
  LITE_UNROLL for (int i = 0; i < kDown; ++i) {
    row[i] = at.row[i];
    back[i] = at.step[i] ? kPairLanes * 4 - (at.last - at.first) * at.step[i] : 0;
  }
  for (int j = 0; j < kAlong; ++j) {
    if (j >= at.first && j < at.last) continue;
    for (int i = 0; i < kDown; ++i) memset(between + (i * kAlong + j) * kPairLanes, 0, kPairLanes * 4);
  }
  const ptrdiff_t next = stride * 4;
  float* to = v;
  asm volatile("" ::: "memory");   // what is loaded below was stored
  for (int64_t c = 0; c < channels; c += kPairLanes) {
    float* t = between + at.first * kPairLanes;
    for (int j = at.first; j < at.last; ++j, t += kPairLanes) {
      float* beyond = t + kReached * kAlong * kPairLanes;
      F d[2][kMost], o[2][kMost];
      LITE_ALL_TWOS(LITE_LOAD_TWO)
      Down::input(d[0], o[0]);
      Down::input(d[1], o[1]);
      LITE_ALL_TWOS(LITE_KEEP_TWO)
    }
    t = between;
    for (int i = 0; i < kDown; ++i, t += kAlong * kPairLanes) {
      F d[2][kMost], o[2][kMost];
      LITE_ALL_TWOS(LITE_TAKE_TWO)
      Along::input(d[0], o[0]);
      Along::input(d[1], o[1]);
      LITE_ALL_TWOS(LITE_STORE_TWO)
    }
    to += kPairLanes - kDown * kAlong * stride;
    LITE_UNROLL for (int i = 0; i < kDown; ++i)
      row[i] = reinterpret_cast<const float*>(reinterpret_cast<const char*>(row[i]) + back[i]);
  }
}

#undef LITE_TWO
#undef LITE_ALL_TWOS
#undef LITE_LOAD_TWO
#undef LITE_STORE_TWO
#undef LITE_KEEP_TWO
#undef LITE_TAKE_TWO

#endif
}  // namespace lite::LITE_ISA
