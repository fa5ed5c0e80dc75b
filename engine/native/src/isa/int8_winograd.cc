// 3x3 stride-1 integer convolution by Winograd's F(4,3) in both directions, exact: a quarter of the
// products, of 16-bit numbers.
//
// With Bt, G and At of Lavin & Gray 2015, and G taken 24 times, which makes it whole numbers, either
// direction gives 24 times the sums. What the transforms of bytes give, |Bt d B| <= 10 * 10 * 255 and
// |G g Gt| <= 12 * 12 * 128, fits into 16 bits; for that the last row of G is taken 12 times, and its
// products are doubled. Sums of products need more than 32 bits and are kept modulo 2^32: 576-fold
// sums, which times 9^-1 (modulo 2^32) are 64-fold ones. Where the sums are below 2^25 (suits()), these
// are exact, and the scale takes the 64. The integers are those of isa/int8_conv.cc.
//
// A block of tiles (4x4 output pixels) at a time, as many as the register tile has rows:
//   V[point][tile][channel]           input transform, int16
//   M[point][tile][column]            V[point] U[point] for one panel of U, int32
//   Y = At M A                        output transform, then the end of every integer tile
// Weights are transformed once: U[panel][point][channels / kPair][column][kPair].
#include "int8_winograd_tiles.h"

namespace lite::LITE_ISA {
namespace {

#if !defined(__ARM_NEON)
LITE_INLINE void dot_pair(I& acc, I x, I w) {
#if defined(LITE_VNNI)
  dot_shorts(acc, x, w);
#elif defined(__AVX512F__)
  acc = (I)((U)acc + (U)_mm512_madd_epi16((__m512i)x, (__m512i)w));
#elif defined(__AVX2__)
  acc = (I)((U)acc + (U)_mm256_madd_epi16((__m256i)x, (__m256i)w));
#else
  acc = (I)((U)acc + (U)_mm_madd_epi16((__m128i)x, (__m128i)w));
#endif
}
#endif

struct Products {
  const int16_t* a;
  ptrdiff_t lda;                   // elements
  const int16_t* w;
  ptrdiff_t groups;                // of kGroup products
  int32_t* c;
  ptrdiff_t ldc;
  const int16_t* prefetch;         // as far as `w` reaches
};
using ProductsFn = void (*)(const Products&);

// One group of channels of every row.
template <int kRows, int kVectors>
LITE_INLINE void multiply(I (&acc)[kRows][kVectors], const int16_t* a, ptrdiff_t lda,
                          const int16_t* w) {
#if !defined(__ARM_NEON)
  LITE_UNROLL for (int m = 0; m < kRows; ++m) {
    int32_t pair;
    memcpy(&pair, a + m * lda, sizeof pair);
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
      I b;
      memcpy(&b, w + n * kLanes * kPair, sizeof b);
      dot_pair(acc[m][n], splat(pair), b);
    }
  }
#else
  multiply_four(acc, reinterpret_cast<const uint8_t*>(a), lda * 2, w);
#endif
}

template <int kRows, int kVectors>
void products(const Products& t) {
  I acc[kRows][kVectors] = {};
  constexpr int kStep = kVectors * kLanes * kGroup;
  const int16_t *a = t.a, *w = t.w, *ahead = t.prefetch;
  const ptrdiff_t lda = t.lda;
#pragma GCC unroll 2
  for (ptrdiff_t k = t.groups; k > 0; --k, a += kGroup, w += kStep, ahead += kStep) {
    for (int line = 0; line < kStep; line += 32) prefetch_l2(ahead + line);
    multiply(acc, a, lda, w);
  }
  LITE_UNROLL for (int m = 0; m < kRows; ++m)
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) store(t.c + m * t.ldc + n * kLanes, acc[m][n]);
}

#define LITE_PRODUCTS(rows, vectors) products<rows, vectors>
constexpr ProductsFn kProductsOf[2][kTileRows] = {{LITE_HEIGHTS(LITE_PRODUCTS, 1)},
                                                  {LITE_HEIGHTS(LITE_PRODUCTS, 2)}};

#if defined(LITE_VNNI) || defined(__ARM_NEON)
constexpr double kProductCost = 1;
#else
constexpr double kProductCost = 2;         // and an addition
#endif
// Of a direct group of kDepth products; pairs of bytes take 0.78 of the time of 16-bit numbers.
#if defined(LITE_SATURATES)
constexpr double kPlainCost = 3.1;
#else
constexpr double kPlainCost = kProductCost;
#endif

// Vector operations, more or less: those of a transform stand for its loads and stores too.
struct Costs {
  double product;                          // what one of ours takes, of a direct one
  double in, out;                          // transforms of a vector of channels
  double byte;                             // of weights from beyond the second-level cache
  bool hides;                              // products and those bytes take the time of the longer
};
Costs costs(const CpuFeatures& cpu) {
#if defined(__ARM_NEON)
  return {1.27, 400, 300, 0.3, false};
#else
  // Units that do half a product at a time leave loads and stores more time.
  if (kLanes == 16 && cpu.halves) return {1.1, 260, 200, 0.15, true};
  return {1.27, 400, 300, 0.05, false};
#endif
}

double plain_cost(const ConvShape& s) {
  const double pixels = static_cast<double>(s.out.images * s.out.h * s.out.w);
  return pixels * 9 * static_cast<double>(s.in.c) / kDepth * kPlainCost *
         static_cast<double>((s.out.c + kLanes - 1) / kLanes);
}
double transformed_cost(const ConvShape& s, const Env& env) {
  const Costs cost = costs(env.cpu);
  const int64_t tiles = s.out.images * ((s.out.h + 3) / 4) * ((s.out.w + 3) / 4);
  const double vectors_in = static_cast<double>((s.in.c + kNarrow - 1) / kNarrow);
  const double vectors_out = static_cast<double>((s.out.c + kLanes - 1) / kLanes);
  const double products =
      cost.product * kAll * static_cast<double>(s.in.c) / kPair * kProductCost * vectors_out;
  const double transforms = cost.in * vectors_in + cost.out * vectors_out;
  // Each block reads all weights, which may have to come from beyond the second-level cache.
  const double weight_bytes = 2.0 * kAll * static_cast<double>(s.in.c) * kLanes * vectors_out;
  const double blocks = static_cast<double>((tiles + kTileRows - 1) / kTileRows);
  const bool far = weight_bytes > 0.7 * static_cast<double>(env.l2_bytes);
  const double multiplying = static_cast<double>(tiles) * products;
  double reading = far ? blocks * cost.byte * weight_bytes : 0;
  if (cost.hides) reading = reading > multiplying ? reading - multiplying : 0;
  return static_cast<double>(tiles) * transforms + multiplying + reading;
}

// Whether no sum of products reaches 2^25.
bool sums_fit(const Step& step, const IntShape& s) {
  const int64_t zero = attr_int(step, "x_zero_point", 0);
  const int64_t least = (s.x->dtype == DType::kI8 ? -128 : 0) - zero, most = least + 255;
  const int8_t* w = reinterpret_cast<const int8_t*>(s.w.tensor->data);
  for (int64_t n = 0; n < s.conv.out.c; ++n) {
    int64_t low = s.bias ? s.bias[n] : 0, high = low;
    for (int64_t i = 0; i < 9 * s.conv.in.c; ++i, ++w) {
      low += *w * (*w < 0 ? most : least);
      high += *w * (*w < 0 ? least : most);
    }
    if (low <= -(1 << 25) || high >= 1 << 25) return false;
  }
  return true;
}

bool suits(const Step& step, Env& env) {
  IntShape s;
  if (!read_int_shape(step, env, &s) || s.transposed ||
      !weights_are_centred(step, *s.w.tensor, s.w_name)) {
    return false;
  }
  const ConvShape& c = s.conv;
  if (s.b && (s.b->dtype != DType::kI32 || s.b->size != c.out.c)) return false;
  for (int i = 0; i < 2; ++i)
    if (c.kernel[i] != 3 || c.stride[i] != 1 || c.dilation[i] != 1) return false;
  if (c.groups != 1) return false;
  return transformed_cost(c, env) < plain_cost(c) && sums_fit(step, s);
}

bool prepare(Step& step, Env& env) {
  IntShape s;
  Winograd* w = static_cast<Winograd*>(env.allocate(sizeof(Winograd)));
  if (!w) return env.out_of_memory();
  step.state = w;
  if (!read_int_shape(step, env, &s) || !read_int_params(step, env, s, &w->quant)) return false;
  const ConvShape& c = s.conv;
  w->in = c.in;
  w->out = c.out;
  w->residual = c.residual;
  w->pad[0] = c.pad[0], w->pad[1] = c.pad[1];
  w->channels = c.in.c;
  w->row_elems = (c.in.c + kNarrow - 1) / kNarrow * kNarrow;
  w->tiles_h = (c.out.h + kSide - 1) / kSide;
  w->tiles_w = (c.out.w + kSide - 1) / kSide;
  w->tiles = w->tiles_h * w->tiles_w * c.out.images;
  w->panels = panel_count(c.out.c);
  w->point_elems = (c.in.c + kGroup - 1) / kGroup * kGroup * kTileColumns;
  const int64_t weight_elems = w->panels * kAll * w->point_elems;
  const int64_t columns = w->panels * kTileColumns;
  int16_t* weights = static_cast<int16_t*>(env.allocate(weight_elems * 2 + 64));
  int32_t* bias = static_cast<int32_t*>(env.allocate(columns * 4 + 64));
  float* scale = static_cast<float*>(env.allocate(columns * 4 + 64));
  if (!weights || !bias || !scale) return env.out_of_memory();
  transform_weights(s, *w, weights);
  for (int64_t n = 0; n < c.out.c; ++n) {
    bias[n] = s.bias ? static_cast<int32_t>(kFold * static_cast<uint32_t>(s.bias[n])) : 0;
    scale[n] = w->quant.scale[n] / 64;
  }
  w->weights = weights;
  w->bias = bias;
  w->scale = scale;
  const double weight_bytes = 2.0 * static_cast<double>(weight_elems);
  w->grid = choose_grid(env.threads, (w->tiles + kTileRows - 1) / kTileRows, w->panels,
                        static_cast<double>(kAll * w->channels) / kPair * kTileRows,
                        static_cast<double>(w->tiles * w->row_elems) * 400 / kNarrow,
                        weight_bytes / 16);
  step.scratch_bytes = kAll * static_cast<size_t>(2 * v_elems(*w) + 4 * kSumElems + c.in.c);
  set_variant(step, "i8_conv2d_winograd43__" LITE_ISA_NAME "_%dx%d", kTileRows, kTileColumns);
  return true;
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const Winograd& w = *static_cast<const Winograd*>(step.state);
  const GridPart part = part_of(w.grid, w.tiles, 1, w.panels, thread);
  const uint8_t* x = step.inputs[0]->data;
  uint8_t* y = step.outputs[0]->data + w.out.origin;
  const Residual& r = w.quant.residual;
  const uint8_t* residual = r.input >= 0 ? step.inputs[r.input]->data + w.residual.origin : nullptr;
  int16_t* v = static_cast<int16_t*>(scratch);
  int32_t* m = reinterpret_cast<int32_t*>(v + kAll * v_elems(w));
  uint8_t* patch = reinterpret_cast<uint8_t*>(m + kAll * kSumElems);
  IntTile to;
  to.zero = w.quant.y_zero + (w.quant.y_signed ? 128 : 0);
  to.flip = w.quant.y_signed ? 0x80 : 0;
  to.low = static_cast<uint8_t>(w.quant.low + to.flip);
  to.high = static_cast<uint8_t>(w.quant.high + to.flip);
  to.addend = addend_of(r);
  to.ldc = w.out.pixel;
  to.ldr = w.residual.pixel;
  to.half_c = kHalfRows * to.ldc;
  to.half_r = kHalfRows * to.ldr;
  Products p;
  p.lda = w.row_elems;
  p.groups = (w.channels + kGroup - 1) / kGroup;
  p.ldc = kTileColumns;
  const TileSplit split = split_rows(part.end - part.begin);
  for (int64_t j = 0; j < split.tiles; ++j) {
    const int64_t first = part.begin + tile_begin(split, j), count = tile_rows(split, j);
    for (int64_t i = 0; i < count; ++i)
      transform_input(w, x, tile_at(w, first + i), patch, v + i * w.row_elems, v_elems(w));
    for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
      const int64_t n0 = panel * kTileColumns, left = w.out.c - n0;
      to.columns = static_cast<int32_t>(left < kTileColumns ? left : kTileColumns);
      to.scale = w.scale + n0;
      const int vectors = tile_vectors(to.columns);
      p.a = v;
      p.w = w.weights + panel * kAll * w.point_elems;
      p.c = m;
      for (int i = 0; i < kAll; ++i, p.a += v_elems(w), p.w += w.point_elems, p.c += kSumElems) {
        p.prefetch = p.w + w.point_elems;
        kProductsOf[vectors - 1][count - 1](p);
      }
      const auto write = vectors == 2 ? transform_output<2> : transform_output<1>;
      for (int64_t i = 0; i < count; ++i) {
        const TileAt at = tile_at(w, first + i);
        to.c = y + at.image * w.out.image + at.y * w.out.row + at.x * w.out.pixel + n0;
        to.residual = residual ? residual + at.image * w.residual.image + at.y * w.residual.row +
                                     at.x * w.residual.pixel + n0
                               : nullptr;
        write(w, m + i * kTileColumns, n0, at, to);
      }
    }
  }
}

const Kernel kInt8Winograd[] = {
    {"QLinearConv", "i8_conv2d_gemm", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_winograd, kInt8Winograd)
