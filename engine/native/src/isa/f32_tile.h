// The one inner loop of float matrix work: a register tile of pixels x output channels.
//
// Convolution (1x1 and any other kernel, as taps), transposed convolution, Gemm, MatMul and the
// products inside Winograd are all this tile over different addresses:
//
//   C[m][n] = f(bias[n] + R[m][n] +
//               sum over y, x, k of A[m*lda + y*tap_y + x*tap_x + k] * W[y][x][k][n])
//
// f clamps, or is HardSwish: the activations that cost less here than in a pass of their own.
//
// W is walked as [y][x][k][ldw]: ldw = kLanes * vectors where the weights are packed in
// panels.
#pragma once

#include "vec.h"

namespace lite::LITE_ISA {

// Largest tile that stays in registers (gcc spills beyond): rows x (2 vectors of columns).
#if defined(__AVX512F__)
constexpr int kTileRows = 14;
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
#elif defined(__SSE2__)
constexpr int kTileRows = 4;
#else
constexpr int kTileRows = 8;
#endif

// make(rows, ...) for every height of such a tile.
#define LITE_HEIGHTS_4(make, ...) \
  make(1, __VA_ARGS__), make(2, __VA_ARGS__), make(3, __VA_ARGS__), make(4, __VA_ARGS__)
#define LITE_HEIGHTS_6(make, ...) \
  LITE_HEIGHTS_4(make, __VA_ARGS__), make(5, __VA_ARGS__), make(6, __VA_ARGS__)
#define LITE_HEIGHTS_8(make, ...) \
  LITE_HEIGHTS_6(make, __VA_ARGS__), make(7, __VA_ARGS__), make(8, __VA_ARGS__)
#define LITE_HEIGHTS_14(make, ...)                                                         \
  LITE_HEIGHTS_8(make, __VA_ARGS__), make(9, __VA_ARGS__), make(10, __VA_ARGS__),          \
      make(11, __VA_ARGS__), make(12, __VA_ARGS__), make(13, __VA_ARGS__), make(14, __VA_ARGS__)
#if defined(__AVX512F__)
#define LITE_HEIGHTS LITE_HEIGHTS_14
#elif defined(__AVX2__)
#define LITE_HEIGHTS LITE_HEIGHTS_6
#elif defined(__SSE2__)
#define LITE_HEIGHTS LITE_HEIGHTS_4
#else
#define LITE_HEIGHTS LITE_HEIGHTS_8
#endif

// Where products are of bf16 pairs (AVX512-BF16), two numbers take the place of a float in A and in
// W, and every k below is one of pairs; sums and C are floats. A pair of W lies together.
// With LITE_FP16 all of A, W and C are halves.
constexpr int kTileColumns = 2 * kLanes;
#if defined(__AVX512BF16__)
#define LITE_PAIRS
constexpr int kProducts = 2;
#else
constexpr int kProducts = 1;
#endif

struct Tile {
  const Real* a;
  ptrdiff_t lda, tap_y, tap_x;     // elements
  int32_t taps_y, taps_x;
  ptrdiff_t k;                     // contiguous elements per tap
  const Real* w;
  ptrdiff_t ldw, w_y;              // elements from one k, one row of taps, to the next
  const Real* bias;                // kTileColumns readable ones
  Real* c;
  ptrdiff_t ldc;
  const Real* residual;            // or nullptr
  ptrdiff_t ldr;
  float lo, hi;
  int32_t columns;                 // valid ones; what lies behind them is neither read nor written
  const Real* prefetch = nullptr;  // next panel, fetched to L2 meanwhile
  int32_t prefetches = 0;          // by the first tiles, half a panel each
  int32_t count = 1;               // tiles of one height, each below the one before
  bool hard_swish = false;         // instead of the clamp
  bool short_c = false, short_residual = false;  // with products of pairs: bf16, in steps of these
};

// Element i of floats, or of bf16.
LITE_INLINE Real* element(Real* p, ptrdiff_t i, bool is_short) {
  return is_short ? reinterpret_cast<Real*>(reinterpret_cast<uint16_t*>(p) + i) : p + i;
}
LITE_INLINE const Real* element(const Real* p, ptrdiff_t i, bool is_short) {
  return is_short ? reinterpret_cast<const Real*>(reinterpret_cast<const uint16_t*>(p) + i) : p + i;
}

using TileFn = void (*)(const Tile&);

// kTile[vectors - 1][rows - 1]
extern const TileFn kTile[2][kTileRows];
inline constexpr Real kNoBias[kTileColumns] = {};

// The rounding error of one chain of sums grows with its length: longer ones are added up in parts, through C.
constexpr ptrdiff_t kLongestSum = 512;

// The tile in parts of the taps and of k: only the last one clamps.
void multiply_in_parts(TileFn fn, const Tile& whole);
LITE_INLINE void multiply_tile(TileFn fn, const Tile& t) {
  if constexpr (kProducts == 1 && sizeof(Real) == sizeof(float)) {
    if (t.taps_y * t.taps_x * t.k > kLongestSum) return multiply_in_parts(fn, t);
  }
  fn(t);
}

LITE_INLINE int tile_vectors(int64_t columns) { return columns > kLanes ? 2 : 1; }

// Splits `total` rows into the fewest tiles of nearly equal height (49 = 13+12+12+12).
struct TileSplit {
  int32_t tiles, base, larger;     // the first `larger` tiles have base + 1 rows
};
LITE_INLINE TileSplit split_rows(int64_t total) {
  const int32_t tiles = static_cast<int32_t>((total + kTileRows - 1) / kTileRows);
  if (tiles == 0) return {0, 0, 0};
  return {tiles, static_cast<int32_t>(total / tiles), static_cast<int32_t>(total % tiles)};
}
// run(row, height, count): count tiles of one height, from that row on.
template <class Run>
LITE_INLINE void for_each_height(const TileSplit& s, Run run) {
  if (s.larger > 0) run(int64_t{0}, s.base + 1, s.larger);
  if (s.tiles > s.larger) run(int64_t{s.larger} * (s.base + 1), s.base, s.tiles - s.larger);
}
LITE_INLINE int64_t tile_begin(const TileSplit& s, int64_t j) {
  return j * s.base + (j < s.larger ? j : s.larger);
}
LITE_INLINE int tile_rows(const TileSplit& s, int64_t j) { return s.base + (j < s.larger); }

}  // namespace lite::LITE_ISA
