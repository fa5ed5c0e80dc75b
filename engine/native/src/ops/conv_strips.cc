#include "conv_strips.h"

#include <math.h>

namespace lite {
namespace {

void window_of(const ConvShape& s, int axis, int64_t o, int64_t* begin, int64_t* end) {
  const int64_t size = axis ? s.in.w : s.in.h;
  const int64_t before = axis ? s.in.halo[1] : s.in.halo[0];
  const int64_t after = axis ? s.in.halo[3] : s.in.halo[2];
  tap_window(o * s.stride[axis] - s.pad[axis], s.dilation[axis], s.kernel[axis], -before,
             size + after, begin, end);
}

// The first output after `from` along an axis, up to `end`, that sees other taps than `from`.
int64_t run_end(const ConvShape& s, int axis, int64_t from, int64_t end) {
  int64_t b0, e0, b, e;
  window_of(s, axis, from, &b0, &e0);
  for (int64_t o = from + 1; o < end; ++o) {
    window_of(s, axis, o, &b, &e);
    if (b != b0 || e != e0) return o;
  }
  return end;
}

// Writes strips when `list->strips` is set, else only counts.
struct Builder {
  const ConvShape& s;
  int tile_rows;
  StripList* list;
  int64_t count = 0, tiles = 0;

  void add(int64_t image, int64_t y, int64_t x, int64_t pixels, bool down) {
    if (pixels <= 0) return;
    const int64_t n = (pixels + tile_rows - 1) / tile_rows;
    if (list->strips) {
      Strip& t = list->strips[count];
      int64_t ky0, ky1, kx0, kx1;
      window_of(s, 0, y, &ky0, &ky1);
      window_of(s, 1, x, &kx0, &kx1);
      if (ky0 == ky1 || kx0 == kx1) ky0 = ky1 = kx0 = kx1 = 0;
      const int64_t iy = y * s.stride[0] - s.pad[0] + ky0 * s.dilation[0];
      const int64_t ix = x * s.stride[1] - s.pad[1] + kx0 * s.dilation[1];
      const bool empty = ky0 == ky1;
      t.a = empty ? 0 : s.in.origin + image * s.in.image + iy * s.in.row + ix * s.in.pixel;
      t.c = s.out.origin + image * s.out.image + y * s.out.row + x * s.out.pixel;
      t.lda = empty ? 0 : down ? s.stride[0] * s.in.row : s.stride[1] * s.in.pixel;
      t.ldc = down ? s.out.row : s.out.pixel;
      t.r = t.ldr = 0;
      if (s.has_residual) {
        t.r = s.residual.origin + image * s.residual.image + y * s.residual.row +
              x * s.residual.pixel;
        t.ldr = down ? s.residual.row : s.residual.pixel;
      }
      t.ky0 = static_cast<int32_t>(ky0), t.ky1 = static_cast<int32_t>(ky1);
      t.kx0 = static_cast<int32_t>(kx0), t.kx1 = static_cast<int32_t>(kx1);
      t.pixels = static_cast<int32_t>(pixels);
      t.first_tile = static_cast<int32_t>(tiles);
      t.tiles = static_cast<int32_t>(n);
      t.base = static_cast<int32_t>(pixels / n);
      t.larger = static_cast<int32_t>(pixels % n);
      t.window = window_index(t);
    }
    ++count;
    tiles += n;
  }

  int32_t window_index(const Strip& t) {
    for (int32_t i = list->num_windows - 1; i >= 0; --i) {
      const TapWindow& w = list->windows[i];
      if (w.ky0 == t.ky0 && w.ky1 == t.ky1 && w.kx0 == t.kx0 && w.kx1 == t.kx1) return i;
    }
    list->windows[list->num_windows] = {t.ky0, t.ky1, t.kx0, t.kx1};
    return list->num_windows++;
  }

  // Whether strips down a rectangle of the same taps fill tiles better than strips along it.
  bool goes_down(int64_t h, int64_t w) const {
    const auto tiles_of = [&](int64_t n) { return (n + tile_rows - 1) / tile_rows; };
    return w < tile_rows && w * tiles_of(h) < h * tiles_of(w);
  }

  // The rectangles of output rows [from, to) of an image, in one of the two directions.
  void add_group(int64_t image, int64_t from, int64_t to, bool down) {
    for (int64_t top = from, bottom; top < to; top = bottom) {
      bottom = run_end(s, 0, top, to);
      for (int64_t y = top; y < (down ? top + 1 : bottom); ++y)
        for (int64_t left = 0, right; left < s.out.w; left = right) {
          right = run_end(s, 1, left, s.out.w);
          if (goes_down(bottom - top, right - left) != down) continue;
          if (!down) add(image, y, left, right - left, false);
          for (int64_t x = left; down && x < right; ++x) add(image, top, x, bottom - top, true);
        }
    }
  }

  void build() {
    count = tiles = 0;
    const int64_t step = list->group_rows;
    for (int64_t image = 0; image < s.out.images; ++image) {
      for (int64_t from = 0; from < s.out.h; from += step) {
        const int64_t to = from + step < s.out.h ? from + step : s.out.h;
        if (list->group_tiles) list->group_tiles[from / step] = static_cast<int32_t>(tiles);
        add_group(image, from, to, false);
        add_group(image, from, to, true);
      }
    }
    if (list->group_tiles)
      list->group_tiles[(s.out.h + step - 1) / step] = static_cast<int32_t>(tiles);
  }
};

void join(PixelView* v) {
  v->w *= v->h * v->images;
  v->h = v->images = 1;
  v->row = v->image = v->w * v->pixel;
}

}  // namespace

bool one_long_row(const PixelView& v) {
  return v.row == v.w * v.pixel && v.image == v.h * v.row;
}

void flatten_pointwise(ConvShape* s) {
  for (int i = 0; i < 2; ++i) {
    if (s->kernel[i] != 1 || s->stride[i] != 1 || s->pad[i] != 0) return;
  }
  if (s->in.h != s->out.h || s->in.w != s->out.w) return;
  if (!one_long_row(s->in) || !one_long_row(s->out)) return;
  if (s->has_residual && !one_long_row(s->residual)) return;
  join(&s->in);
  join(&s->out);
  if (s->has_residual) join(&s->residual);
}

bool make_strips(const ConvShape& s, int tile_rows, Env& env, StripList* list,
                 int64_t group_rows) {
  *list = StripList{};
  list->group_rows = group_rows > 0 ? group_rows : s.out.h > 0 ? s.out.h : 1;
  Builder builder{s, tile_rows, list};
  builder.build();
  if (builder.tiles >= (1 << 30)) return env.fail("more than 2^30 tiles");
  list->count = static_cast<int32_t>(builder.count);
  list->tiles = static_cast<int32_t>(builder.tiles);
  list->strips = static_cast<Strip*>(env.allocate((builder.count + 1) * sizeof(Strip)));
  // Each edge row and edge column may have a window of its own.
  list->windows = static_cast<TapWindow*>(env.allocate((builder.count + 1) * sizeof(TapWindow)));
  if (!list->strips || !list->windows) return env.out_of_memory();
  if (group_rows > 0) {
    const int64_t groups = (s.out.h + group_rows - 1) / group_rows;
    list->group_tiles = static_cast<int32_t*>(env.allocate((groups + 1) * sizeof(int32_t)));
    if (!list->group_tiles) return env.out_of_memory();
  }
  builder.build();
  return true;
}

ThreadGrid choose_grid(int threads, int64_t tiles, int64_t panels, double tile_cost,
                       double input_cost, double weight_cost) {
  ThreadGrid best{1, 1};
  double best_cost = -1;
  for (int32_t by_tiles = threads; by_tiles >= 1; --by_tiles) {
    const int32_t by_panels = threads / by_tiles;
    const int64_t most_tiles = (tiles + by_tiles - 1) / by_tiles;
    const int64_t most_panels = (panels + by_panels - 1) / by_panels;
    const double cost = static_cast<double>(most_tiles) * static_cast<double>(most_panels) *
                            tile_cost +
                        input_cost / by_tiles + weight_cost / by_panels;
    if (best_cost < 0 || cost < best_cost * 0.99) {
      best = {by_tiles, by_panels};
      best_cost = cost;
    }
  }
  return best;
}

ThreadGrid choose_parts(const Env& env, int64_t tiles, int64_t panels, double tile_cost, double input_cost,
                        double weight_cost) {
  constexpr double kLittle = 1.04;
  const int threads = env.threads / env.shares;
  ThreadGrid best{1, 1}, several{1, 1};
  double least = INFINITY, least_of_several = INFINITY;
  for (int32_t by_tiles = 1; by_tiles <= env.threads && by_tiles <= tiles; ++by_tiles)
    for (int32_t by_panels = 1; by_panels * by_tiles <= env.threads && by_panels <= panels; ++by_panels) {
      const int parts = by_tiles * by_panels, turns = (parts + threads - 1) / threads;
      const double some_tiles = ceil(static_cast<double>(tiles) / by_tiles);
      const double some_panels = ceil(static_cast<double>(panels) / by_panels);
      const double sums = input_cost / by_tiles + weight_cost / by_panels;
      const double cost = turns * (some_tiles * some_panels * tile_cost + sums);
      if (cost < least) least = cost, best = {by_tiles, by_panels};
      if (parts >= 2 * threads && cost < least_of_several) least_of_several = cost, several = {by_tiles, by_panels};
    }
  return least_of_several <= kLittle * least ? several : best;
}

GridPart part_of(const ThreadGrid& grid, int64_t tiles, int64_t grain, int64_t panels, int thread) {
  GridPart part{};
  if (thread >= grid.by_tiles * grid.by_panels) return part;
  share(tiles, grain, thread / grid.by_panels, grid.by_tiles, &part.begin, &part.end);
  share(panels, 1, thread % grid.by_panels, grid.by_panels, &part.panel_begin, &part.panel_end);
  return part;
}

}  // namespace lite
