// Depthwise convolution of bf16 tensors: 3x3 and 5x5, strides 1 and 2; sums are floats.
//
// Tiles are those of isa/depthwise.cc: a few neighbouring outputs of one row, channels innermost, input
// columns by pointers. 32 channels are one load of pairs; as floats the first of each pair are the
// bits shifted up, the second ones the bits without the first: two vectors, [even channels] and
// [odd channels], in which weights and bias are packed too.
#include "ops/conv_strips.h"
#include "isa/activation.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kPixels = 7, kBlock = 2 * kLanes, kMaxKernel = 5;
constexpr int kMaxColumns = (kPixels - 1) * 2 + kMaxKernel;

struct Tile {
  const uint16_t* columns[kMaxKernel * kMaxColumns];  // [ky][column]
  int32_t taps;                 // rows of columns
  const float* weights;         // of the first of them: [block][ky][kx][kBlock]
  int64_t block_weights;
  const float* bias;
  int64_t begin, end;           // channels; begin is a multiple of kBlock
  uint16_t* out;
  int64_t out_pixel;
  float lo, hi;
  bool hard_swish;
};
using TileFn = void (*)(const Tile&);

struct State {
  ConvShape shape;
  TileFn tile[kPixels];         // by number of pixels - 1; only 1, 2, 4, 7 are there
  int64_t blocks, block_weights;
  const float* weights;
  const float* bias;
  const uint16_t* zeros;
  float lo, hi;
  ThreadGrid grid;
};

// The 16-bit element of [even][odd] where channel c lies, for c = 0 to 31.
LITE_INLINE __m512i in_order() {
  const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(16)), 16));
}

template <int k, int s, int kPx>
void tile(const Tile& t) {
  constexpr int kColumns = (kPx - 1) * s + k;
  const __m512i order = in_order(), odd = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  const F lo = splat(t.lo), hi = splat(t.hi);
  const float* block = t.weights;
  for (int64_t c = t.begin; c < t.end; c += kBlock, block += t.block_weights) {
    const int64_t left = t.end - c;
    const __mmask32 lanes = left >= kBlock ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
    F acc[kPx][2];
    LITE_UNROLL for (int p = 0; p < kPx; ++p)
      LITE_UNROLL for (int n = 0; n < 2; ++n) acc[p][n] = load(t.bias + c + n * kLanes);
    const uint16_t* const* columns = t.columns;
    const float* w = block;
    for (int y = t.taps; y > 0; --y, columns += kColumns, w += k * kBlock) {
      F f[k][2];
      LITE_UNROLL for (int x = 0; x < k; ++x)
        LITE_UNROLL for (int n = 0; n < 2; ++n) f[x][n] = load(w + x * kBlock + n * kLanes);
      LITE_UNROLL for (int j = 0; j < kColumns; ++j) {
        touches(columns[j] + c, 2 * __builtin_popcount(lanes));
        const __m512i pairs = _mm512_maskz_loadu_epi16(lanes, columns[j] + c);
        const F d[2] = {(F)_mm512_slli_epi32(pairs, 16), (F)_mm512_and_si512(pairs, odd)};
        LITE_UNROLL for (int x = 0; x < k; ++x) {
          const int p = (j - x) / s;
          if (j < x || (j - x) % s != 0 || p >= kPx) continue;
          LITE_UNROLL for (int n = 0; n < 2; ++n) acc[p][n] = fma(d[n], f[x][n], acc[p][n]);
        }
      }
    }
    uint16_t* to = t.out + c;
    LITE_UNROLL for (int p = 0; p < kPx; ++p, to += t.out_pixel) {
      LITE_UNROLL for (int n = 0; n < 2; ++n)
        acc[p][n] = t.hard_swish ? activate_vector<Act::kHardSwish>(acc[p][n], lo, hi)
                                 : min(hi, max(lo, acc[p][n]));
      const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)acc[p][1], (__m512)acc[p][0]);
      touches(to, 2 * __builtin_popcount(lanes));
      _mm512_mask_storeu_epi16(to, lanes, _mm512_permutexvar_epi16(order, both));
    }
  }
}

template <int k, int s>
void set_tiles(State* d) {
  d->tile[0] = tile<k, s, 1>;
  d->tile[1] = tile<k, s, 2>;
  d->tile[3] = tile<k, s, 4>;
  d->tile[6] = tile<k, s, 7>;
}

bool read(const Step& step, Env& env, ConvShape* s) {
  const ConvOperands o{input_of(step, 0), input_of(step, 1), input_of(step, 2), input_of(step, 3),
                       output_of(step, 0)};
  return read_conv_shape(step, env, o, false, s) && parse_activation(step, env, &s->activation);
}

// Everything else is left to the kernel of floats, and so are so few channels that half of a block is empty.
bool suits(const Step& step, Env& env) {
  ConvShape s;
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || x->dtype != DType::kBF16 || y->dtype != DType::kBF16 || !read(step, env, &s))
    return false;
  const Act act = s.activation.act;
  const bool floats = s.weights->dtype == DType::kF32 && (!s.bias || s.bias->dtype == DType::kF32);
  return floats && !s.has_residual && s.out.c > kLanes && s.group_in == 1 && s.group_out == 1 &&
         s.kernel[0] == s.kernel[1] && (s.kernel[0] == 3 || s.kernel[0] == 5) &&
         (s.stride[1] == 1 || s.stride[1] == 2) && s.dilation[1] == 1 &&
         (act == Act::kNone || act == Act::kClip || act == Act::kHardSwish);
}

bool prepare(Step& step, Env& env) {
  State* d = static_cast<State*>(env.allocate(sizeof(State)));
  if (!d) return env.out_of_memory();
  step.state = d;
  ConvShape& s = d->shape;
  if (!read(step, env, &s)) return false;
  const int64_t k = s.kernel[0], taps = k * k, channels = s.out.c;
  if (k == 3 && s.stride[1] == 1) set_tiles<3, 1>(d);
  else if (k == 3) set_tiles<3, 2>(d);
  else if (s.stride[1] == 1) set_tiles<5, 1>(d);
  else set_tiles<5, 2>(d);
  d->blocks = (channels + kBlock - 1) / kBlock;
  d->block_weights = taps * kBlock;
  float* w = static_cast<float*>(env.allocate((d->blocks * d->block_weights + 1) * 4));
  float* b = static_cast<float*>(env.allocate((d->blocks * kBlock + 1) * 4));
  uint16_t* zeros = static_cast<uint16_t*>(env.allocate((d->blocks * kBlock + 1) * 2));
  if (!w || !b || !zeros) return env.out_of_memory();
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t lane = c % kBlock / 2 + c % 2 * kLanes;
    for (int64_t i = 0; i < taps; ++i)
      w[c / kBlock * d->block_weights + i * kBlock + lane] = s.weights->as<float>()[c * taps + i];
    if (s.bias) b[c / kBlock * kBlock + lane] = s.bias->as<float>()[c];
  }
  d->weights = w;
  d->bias = b;
  d->zeros = zeros;
  const bool clip = s.activation.act == Act::kClip;
  d->lo = clip ? s.activation.a : -__builtin_inff();
  d->hi = clip ? s.activation.b : __builtin_inff();
  if (step.by_rows && s.out.images == 1) step.rows = row_map(s, 1);
  d->grid = choose_grid(env.threads, s.out.images * s.out.h, d->blocks,
                        static_cast<double>(s.out.w * taps), 0, 0);
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%ds%d_%dx%d", step.kernel->name, static_cast<int>(k),
              static_cast<int>(k), static_cast<int>(s.stride[1]), kPixels, kBlock);
  return true;
}

// Input columns of the tile at x; those outside the image are zeros.
void point(const State& d, const uint16_t* image, int64_t row, int64_t x, int pixels, int64_t ky0,
           int64_t ky1, const uint16_t** columns) {
  const ConvShape& s = d.shape;
  const int64_t count = (pixels - 1) * s.stride[1] + s.kernel[1];
  const int64_t first = x * s.stride[1] - s.pad[1];
  const int64_t low = -s.in.halo[1], high = s.in.w + s.in.halo[3];
  for (int64_t ky = ky0; ky < ky1; ++ky) {
    const uint16_t* from = image + (row + ky * s.dilation[0]) * s.in.row;
    if (first >= low && first + count <= high) {
      for (int64_t j = 0; j < count; ++j) *columns++ = from + (first + j) * s.in.pixel;
      continue;
    }
    for (int64_t j = first; j < first + count; ++j)
      *columns++ = j >= low && j < high ? from + j * s.in.pixel : d.zeros;
  }
}

// Rows of all images and blocks of channels.
void run_part(const State& d, const uint16_t* input, uint16_t* output, const GridPart& part) {
  const ConvShape& s = d.shape;
  Tile t;
  t.block_weights = d.block_weights;
  t.bias = d.bias;
  t.begin = part.panel_begin * kBlock;
  t.end = part.panel_end * kBlock < s.out.c ? part.panel_end * kBlock : s.out.c;
  t.out_pixel = s.out.pixel;
  t.lo = d.lo;
  t.hi = d.hi;
  t.hard_swish = s.activation.act == Act::kHardSwish;
  const float* weights = d.weights + part.panel_begin * d.block_weights;
  const int64_t w = s.out.w;
  const int pixels = w >= 7 ? 7 : w >= 4 ? 4 : w >= 2 ? 2 : 1;
  for (int64_t row = part.begin; row < part.end; ++row) {
    const int64_t image = row / s.out.h, y = row - image * s.out.h;
    const int64_t in_row = y * s.stride[0] - s.pad[0];
    int64_t ky0, ky1;
    tap_window(in_row, s.dilation[0], s.kernel[0], -s.in.halo[0], s.in.h + s.in.halo[2], &ky0, &ky1);
    t.taps = static_cast<int32_t>(ky1 - ky0);
    t.weights = weights + ky0 * s.kernel[1] * kBlock;
    const uint16_t* from = input + s.in.origin + image * s.in.image;
    uint16_t* to = output + s.out.origin + image * s.out.image + y * s.out.row;
    for (int64_t x = 0; x < w; x += pixels) {
      if (x + pixels > w) x = w - pixels;  // computes some twice rather than few
      point(d, from, in_row, x, pixels, ky0, ky1, t.columns);
      t.out = to + x * s.out.pixel;
      d.tile[pixels - 1](t);
    }
  }
}

void run(const Step& step, int, int thread, int, void*) {
  const State& d = *static_cast<const State*>(step.state);
  const GridPart part = part_of(d.grid, d.shape.out.images * d.shape.out.h, 1, d.blocks, thread);
  run_part(d, step.inputs[0]->as<uint16_t>(), step.outputs[0]->as<uint16_t>(), part);
}

void run_rows(const Step& step, const RowRange& r, void*) {
  const State& d = *static_cast<const State*>(step.state);
  run_part(d, reinterpret_cast<const uint16_t*>(r.input), reinterpret_cast<uint16_t*>(r.output),
           {r.begin, r.end, 0, d.blocks});
}

const Kernel kDepthwise[] = {
    {"Conv", "bf16_conv2d_depthwise", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible, suits, run_rows},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(depthwise, kDepthwise)
