// Tiles of pixels into Winograd's domain and back, a vector of channels at a time: forms of one
// transform down an image's columns and one along its rows.
#pragma once

#include <math.h>

#include "activation.h"
#include "ops/conv_strips.h"
#include "tap_gemm.h"
#include "winograd_output.h"
#include "winograd_pairs.h"

namespace lite::LITE_ISA {
namespace {

constexpr double kBytes = sizeof(Real);

struct Winograd;
struct TileAt {
  int64_t image, y, x;   // first output pixel
};

struct Line {            // the constants of a one-dimensional transform
  int taps, outputs, points, stride, weight_rows;
  const double* weights;  // [weight_rows][taps]
  const int* weight_of;
};
struct Form {
  const char* name;
  Line down, along;
  void (*input)(const Winograd&, const Real* x, TileAt, Real* v, int64_t stride);
  void (*output)(const Winograd&, const Real* products, int64_t next, int64_t stride,
                 int64_t first, int64_t count, int64_t channel, int64_t columns, Real* y,
                 const Real* residual);
};

constexpr int kMostPoints = 8, kMostTaps = 5;  // of a line
struct Winograd {
  const Form* form;
  int points;                         // of both directions
  int8_t weight_of[kMostPoints * kMostPoints];   // which of the panel's matrices a point takes
  PixelView in, out, residual;
  bool has_residual;
  int64_t pad[2], dilation[2];
  int64_t channels, padded_channels;   // padded to whole vectors
  int64_t depth;                       // of the products: channels, padded where V is packed
  int64_t tiles_h, tiles_w, tiles;     // of all images
  const int64_t *top, *left;           // first output of each row and column of tiles
  int64_t block;                       // tiles per block
  int64_t group;                       // panels that share what they read of V
  int64_t row_elems;                  // of V, from one tile to the next
  int64_t panels, panel_elems;
  const Real* weights;
  const Real* bias;
  const Real* zeros;                  // padded_channels of them
  Activation activation;
  float lo, hi, slope;                // see slope_of
  bool applies;                       // what is none of these
  ThreadGrid grid;
};

// Outputs that lie `dilation` apart see each other's pixels and no others: they are an image of their
// own, as many of them as the dilation. Of all of them, the tiles along an axis of `size` outputs;
// `first`, if given, takes the first output of each.
int64_t tiles_along(int64_t size, int64_t dilation, int64_t outputs, int64_t* first) {
  int64_t count = 0;
  for (int64_t from = 0; from < dilation && from < size; ++from)
    for (int64_t at = from; at < size; at += outputs * dilation, ++count)
      if (first) first[count] = at;
  return count;
}

// What is known of a step before its weights are laid out, in tiles of `form`; bias and zeros.
bool describe(const ConvShape& s, const Form& form, Env& env, Winograd* w) {
  const Line &down = form.down, &along = form.along;
  for (int i = 0; i < 2; ++i) {
    const bool dilated = s.dilation[i] != 1 && down.stride != 1;
    if (s.kernel[i] != down.taps || s.stride[i] != down.stride || dilated || s.groups != 1)
      return env.fail("Winograd takes %dx%d kernels of stride %d, dilated only at 1, one group", down.taps,
                      down.taps, down.stride);
  }
  w->form = &form;
  w->points = down.points * along.points;
  for (int i = 0; i < w->points; ++i)
    w->weight_of[i] = static_cast<int8_t>(down.weight_of[i / along.points] * along.weight_rows +
                                          along.weight_of[i % along.points]);
  w->in = s.in;
  w->out = s.out;
  w->residual = s.residual;
  w->has_residual = s.has_residual;
  for (int i = 0; i < 2; ++i) w->pad[i] = s.pad[i], w->dilation[i] = s.dilation[i];
  w->channels = s.in.c;
  w->padded_channels = (s.in.c + kLanes - 1) / kLanes * kLanes;
  w->activation = s.activation;
  const bool clip = s.activation.act == Act::kClip;
  w->lo = clip ? s.activation.a : -INFINITY;
  w->hi = clip ? s.activation.b : INFINITY;
  w->slope = slope_of(s.activation);
  w->applies = s.activation.act != Act::kNone && !clip && w->slope == 1;
  int64_t* first = static_cast<int64_t*>(env.allocate((s.out.h + s.out.w + 1) * sizeof(int64_t)));
  if (!first) return env.out_of_memory();
  w->top = first;
  w->left = first + s.out.h;
  w->tiles_h = tiles_along(s.out.h, s.dilation[0], down.outputs, first);
  w->tiles_w = tiles_along(s.out.w, s.dilation[1], along.outputs, first + s.out.h);
  w->tiles = w->tiles_h * w->tiles_w * s.out.images;
  const int64_t columns = (s.out.c + kTileColumns - 1) / kTileColumns * kTileColumns;
  Real* bias = static_cast<Real*>(env.allocate((columns + 1) * sizeof(Real)));
  Real* zeros = static_cast<Real*>(env.allocate((w->padded_channels + 1) * sizeof(Real)));
  if (!bias || !zeros) return env.out_of_memory();
  for (int64_t i = 0; s.bias && i < s.out.c; ++i)
    bias[i] = static_cast<Real>(s.bias->as<float>()[i]);
  w->bias = bias;
  w->zeros = zeros;
  return true;
}

LITE_INLINE TileAt tile_at(const Winograd& w, int64_t tile) {
  const int64_t per_image = w.tiles_h * w.tiles_w;
  const int64_t image = tile / per_image, rest = tile - image * per_image;
  const int64_t y = rest / w.tiles_w;
  return {image, w.top[y], w.left[rest - y * w.tiles_w]};
}

LITE_INLINE void load_two(const Real* const* from, const Real** to) {
#if defined(__aarch64__) && !defined(__clang__)
  typedef __int128 Two __attribute__((may_alias, aligned(8)));
  asm("ldp %0, %1, %2" : "=r"(to[0]), "=r"(to[1]) : "Ump"(*reinterpret_cast<const Two*>(from)));
#else
  to[0] = from[0];
  to[1] = from[1];
#endif
}
LITE_INLINE Real* at_bytes(Real* p, ptrdiff_t bytes) {
  return reinterpret_cast<Real*>(reinterpret_cast<char*>(p) + bytes);
}

// Points lie `stride` elements apart, vectors of channels `kNext`.
template <class Down, class Along, ptrdiff_t kNext = kLanes>
void transform_input(const Winograd& w, const Real* x, TileAt at, Real* v, int64_t stride) {
  constexpr int kDown = Down::kPoints, kAlong = Along::kPoints;
  const Real* image = x + w.in.origin + at.image * w.in.image;
  const Real* rows[kDown];
  for (int i = 0; i < kDown; ++i) {
    const int64_t row = at.y * Down::kStride - w.pad[0] + i * w.dilation[0];
    rows[i] = row >= 0 && row < w.in.h ? image + row * w.in.row : nullptr;
  }
#if defined(LITE_PACKED_TILE)
  int64_t first, last;
  const int64_t column = at.x * Along::kStride - w.pad[1];
  tap_window(column, w.dilation[1], kAlong, 0, w.in.w, &first, &last);
  const int64_t from = (column + first * w.dilation[1]) * w.in.pixel, apart = w.dilation[1] * w.in.pixel;
  TilePixels<Down> pixels;
  pixels.first = static_cast<int>(first);
  pixels.last = static_cast<int>(last);
  LITE_UNROLL for (int i = 0; i < kDown; ++i) {
    pixels.row[i] = rows[i] ? rows[i] + from : w.zeros;
    pixels.step[i] = rows[i] ? apart * static_cast<ptrdiff_t>(sizeof(Real)) : 0;
  }
  const int64_t pairs = w.channels / kPairLanes * kPairLanes;
  Real own[kDown * kAlong * kPairLanes];
  int64_t left = w.channels - pairs;
  for (int64_t count = pairs;; count = kPairLanes) {  // one place, so that it is compiled into this once
    if (count) transform_pairs<Down, Along>(pixels, count, v, stride);
    if (left == 0) return;
    // What is left of the channels, in a tile of their own.
    memset(own, 0, sizeof own);
    for (int i = 0; i < kDown; ++i)
      for (int64_t j = first; rows[i] && j < last; ++j)
        memcpy(own + (i * kAlong + j) * kPairLanes, rows[i] + from + (j - first) * apart + pairs,
               static_cast<size_t>(left) * sizeof(Real));
    pixels = in_memory<Down, Along>(own);
    v += pairs;
    left = 0;
  }
#else
  int64_t c = 0;
  const Real* p[kAlong][(kDown + 1) / 2 * 2];    // [column][row]
  for (int j = 0; j < kAlong; ++j) {
    const int64_t column = at.x * Along::kStride - w.pad[1] + j * w.dilation[1];
    const bool inside = column >= 0 && column < w.in.w;
    LITE_UNROLL for (int i = 0; i < kDown; ++i)
      p[j][i] = inside && rows[i] ? rows[i] + column * w.in.pixel : w.zeros;
    if (kDown % 2) p[j][kDown] = w.zeros;
  }
  Real* to[kDown];
  LITE_UNROLL for (int i = 0; i < kDown; ++i) to[i] = v + c + i * kAlong * stride;
  ptrdiff_t step[kAlong];
  LITE_UNROLL for (int j = 0; j < kAlong; ++j) {
    step[j] = j * stride * static_cast<ptrdiff_t>(sizeof(Real));
    keep_in_register(step[j]);
  }
  auto vector = [&](int64_t c, auto read) __attribute__((always_inline)) {
    F t[kDown][kAlong];
    LITE_UNROLL for (int j = 0; j < kAlong; ++j) {
      F d[kDown], o[kDown];
      const Real* from[(kDown + 1) / 2 * 2];
      LITE_UNROLL for (int i = 0; i < kDown; i += 2) load_two(p[j] + i, from + i);
      LITE_UNROLL for (int i = 0; i < kDown; ++i) d[i] = read(from[i] + c);
      Down::input(d, o);
      LITE_UNROLL for (int i = 0; i < kDown; ++i) t[i][j] = o[i];
    }
    LITE_UNROLL for (int i = 0; i < kDown; ++i) {
      F o[kAlong];
      Along::input(t[i], o);
      LITE_UNROLL for (int j = 0; j < kAlong; ++j) store(at_bytes(to[i], step[j]), o[j]);
      to[i] += kNext;
    }
  };
  for (; c + kLanes <= w.channels; c += kLanes)
    vector(c, [](const Real* q) __attribute__((always_inline)) { return load(q); });
  for (; c < w.channels; c += kLanes) {
    const int64_t left = w.channels - c;
    const int lanes = static_cast<int>(left < kLanes ? left : kLanes);
    vector(c, [&](const Real* q) __attribute__((always_inline)) { return load_part(q, lanes); });
  }
#endif
}

// Outputs of a tile from `at` on that exist.
LITE_INLINE int64_t outputs_in(int64_t size, int64_t at, int64_t dilation, int64_t most) {
  const int64_t left = dilation == 1 ? size - at : (size - at + dilation - 1) / dilation;
  return left < most ? left : most;
}

// `columns` of the products of one tile of pixels, from output channel `channel` on.
template <class Down, class Along>
LITE_INLINE void write_tile(const Winograd& w, const Real* products, int64_t stride, TileAt at,
                            int64_t channel, int64_t columns, Real* y, const Real* residual) {
  const int64_t dy = w.dilation[0], dx = w.dilation[1];
  OutputTile to{y + w.out.origin + at.image * w.out.image + at.y * w.out.row +
                    at.x * w.out.pixel + channel,
                w.out.row * dy, w.out.pixel * dx,
                outputs_in(w.out.h, at.y, dy, Down::kOutputs),
                outputs_in(w.out.w, at.x, dx, Along::kOutputs),
                nullptr,
                w.residual.row * dy,
                w.residual.pixel * dx,
                w.slope};
  if (residual)
    to.residual = residual + w.residual.origin + at.image * w.residual.image +
                  at.y * w.residual.row + at.x * w.residual.pixel + channel;
  const Real* bias = w.bias + channel;
  if (kPacks) stride = kTileColumns;  // products of a tile lie together
  int64_t n = 0;
  const auto go = [&](int64_t by) __attribute__((always_inline)) {
    n += by;
    to.c += by;
    if (residual) to.residual += by;
  };
#if defined(LITE_PACKED_TILE)
  if (columns == kTileColumns) return transform_pair<Down, Along>(products, bias, w.lo, w.hi, to);
#endif
  for (; n + kLanes <= columns; go(kLanes))
    transform_vector<Down, Along>(products + n, stride, bias + n, w.lo, w.hi, to);
  if (n < columns)
    transform_part<Down, Along>(products + n, stride, bias + n, w.lo, w.hi, to,
                                static_cast<int>(columns - n));
}

// The outputs of tiles that follow each other along the image, from `at` to the one that begins at `last_x`.
void activate_tiles(const Winograd& w, TileAt at, int64_t last_x, int64_t channel, int64_t columns, Real* y) {
  const int64_t dy = w.dilation[0], dx = w.dilation[1];
  const int64_t rows = outputs_in(w.out.h, at.y, dy, w.form->down.outputs);
  const int64_t pixels =
      (last_x - at.x) / dx + outputs_in(w.out.w, last_x, dx, w.form->along.outputs);
  Real* row = y + w.out.origin + at.image * w.out.image + at.y * w.out.row + at.x * w.out.pixel + channel;
  for (int64_t i = 0; i < rows; ++i, row += dy * w.out.row)
    activate_rows(row, pixels, dx * w.out.pixel, columns, w.activation);
}

// Tiles whose outputs are still in the first-level cache.
constexpr int64_t kActivatedAtOnce = 8;

// Those of `count` tiles from `first` on, `next` elements apart.
template <class Down, class Along>
void write_tiles(const Winograd& w, const Real* products, int64_t next, int64_t stride,
                 int64_t first, int64_t count, int64_t channel, int64_t columns, Real* y,
                 const Real* residual) {
  const int64_t line = first / w.tiles_w;
  int64_t image = line / w.tiles_h, down = line % w.tiles_h, along = first % w.tiles_w;
  for (int64_t i = 0, waiting = 0; i < count; ++i, products += next) {
    const TileAt at{image, w.top[down], w.left[along]};
    write_tile<Down, Along>(w, products, stride, at, channel, columns, y, residual);
    const bool ends = ++along == w.tiles_w;
    if (w.applies && (++waiting == kActivatedAtOnce || ends || i + 1 == count || w.dilation[1] != 1)) {
      activate_tiles(w, {image, at.y, w.left[along - waiting]}, at.x, channel, columns, y);
      waiting = 0;
    }
    if (!ends) continue;
    along = 0;
    if (++down < w.tiles_h) continue;
    down = 0;
    ++image;
  }
}

template <class T>
constexpr Line line_of() {
  return {T::kTaps, T::kOutputs, T::kPoints, T::kStride, sizeof(T::kWeights) / sizeof(T::kWeights[0]),
          T::kWeights[0], T::kWeightOf};
}
template <class Down, class Along>
constexpr Form form_of(const char* name) {
  static_assert(Down::kTaps == Along::kTaps && Down::kTaps <= kMostTaps);
  return {name, line_of<Down>(), line_of<Along>(), transform_input<Down, Along>,
          write_tiles<Down, Along>};
}

}  // namespace
}  // namespace lite::LITE_ISA
