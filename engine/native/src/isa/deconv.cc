// ConvTranspose as one stride-1 tap GEMM per remainder of the stride.
//
// Where there are products of bf16 pairs, they multiply pixels of bf16 with an even number of channels per
// group, in place; the output may be of floats or bf16. Other steps are those of floats.
//
// Outputs of few channels, as of a decoder's last layer, would leave most lanes idle: there the pixels that
// one stride spans become the channels of one, and their remainders share the inputs that any of them reads.
#include "tap_gemm.h"

namespace lite::LITE_ISA {
namespace {

struct Deconv {
  int32_t parts;
  int32_t residual;               // input index or -1
  TapGemm* part;
};

#if defined(LITE_PAIRS)
bool is_short(const Tensor* t) { return t && t->dtype == DType::kBF16; }

bool read_shape(const Step& step, Env& env, ConvShape* s) {
  const ConvOperands o{input_of(step, 0), input_of(step, 1), input_of(step, 2), input_of(step, 3),
                       output_of(step, 0)};
  return read_conv_shape(step, env, o, true, s) && parse_activation(step, env, &s->activation);
}

bool suits(const Step& step, Env& env) {
  ConvShape s;
  if (!is_short(input_of(step, 0)) || !read_shape(step, env, &s)) return false;
  const Tensor* all[] = {step.inputs[0], step.outputs[0], s.residual_tensor};
  for (const Tensor* t : all)
    if (t && ((t->dtype != DType::kF32 && !is_short(t)) || t->bytes / 2 >= 1u << 30)) return false;
  const bool floats = s.weights->dtype == DType::kF32 && (!s.bias || s.bias->dtype == DType::kF32);
  const PixelView& in = s.in;
  return floats && s.group_in % 2 == 0 && (in.pixel | in.row | in.image | in.origin) % 2 == 0;
}

// The shape of a part as one of pairs.
void count_pairs(ConvShape* s) {
  PixelView& in = s->in;
  s->group_in /= 2;
  in.c /= 2, in.pixel /= 2, in.row /= 2, in.image /= 2, in.origin /= 2;
}
#else
bool read_shape(const Step& step, Env& env, ConvShape* s) {
  return read_conv(step, env, true, s, kReal);
}
#endif

int64_t vectors_of(int64_t channels) { return (channels + kLanes - 1) / kLanes; }

// What the outputs of one stride read, of a dense row without dilation: outputs stride * j + r take input
// j + first_of(r) + u for tap last_of(r) - u * stride.
struct SharedInputs {
  int64_t stride, kernel, pad;
  int64_t last_of(int64_t r) const {
    const int64_t least = ((r + pad) % stride + stride) % stride;
    return least < kernel ? least + (kernel - 1 - least) / stride * stride : least - stride;
  }
  int64_t taps_of(int64_t r) const { return last_of(r) < 0 ? 0 : last_of(r) / stride + 1; }
  int64_t first_of(int64_t r) const { return (r + pad - last_of(r)) / stride; }  // exact
};

// Makes the shape that of such pixels, if that takes fewer products.
bool join_pixels(Env& env, ConvShape* s) {
  const int64_t stride = s->stride[1], channels = s->out.c, kernel = s->kernel[1];
  if (stride == 1 || s->groups != 1 || s->has_residual || s->dilation[1] != 1 || s->pad[1] < 0 ||
      s->out.pixel != channels || s->out.w % stride != 0) {
    return true;
  }
  const SharedInputs shared{stride, kernel, s->pad[1]};
  int64_t begin = INT64_MAX, end = INT64_MIN, products = 0;
  for (int64_t r = 0; r < stride; ++r) {
    const int64_t taps = shared.taps_of(r), first = shared.first_of(r);
    products += taps * vectors_of(channels);
    if (taps && first < begin) begin = first;
    if (taps && first + taps > end) end = first + taps;
  }
  if (begin >= end || (end - begin) * vectors_of(stride * channels) >= products) return true;

  const int64_t taps = end - begin, rows = s->kernel[0], row = stride * channels;
  Tensor* weights = static_cast<Tensor*>(env.allocate(sizeof(Tensor)));
  Tensor* bias = static_cast<Tensor*>(env.allocate(sizeof(Tensor)));
  float* joined = static_cast<float*>(env.allocate(s->in.c * row * rows * taps * sizeof(float)));
  float* offsets = static_cast<float*>(env.allocate(row * sizeof(float)));
  if (!weights || !bias || !joined || !offsets) return env.out_of_memory();
  // [in][r, out][ky][tap], the taps in the order of a kernel's.
  const float* from = s->weights->as<float>();
  for (int64_t in = 0; in < s->in.c; ++in)
    for (int64_t r = 0; r < stride; ++r)
      for (int64_t out = 0; out < channels; ++out)
        for (int64_t ky = 0; ky < rows; ++ky)
          for (int64_t u = 0; u < shared.taps_of(r); ++u)
            joined[((in * row + r * channels + out) * rows + ky) * taps + end - 1 - shared.first_of(r) - u] =
                from[((in * channels + out) * rows + ky) * kernel + shared.last_of(r) - u * stride];
  *weights = *s->weights;
  weights->data = reinterpret_cast<uint8_t*>(joined);
  if (s->bias) {
    for (int64_t i = 0; i < row; ++i) offsets[i] = s->bias->as<float>()[i % channels];
    *bias = *s->bias;
    bias->data = reinterpret_cast<uint8_t*>(offsets);
    s->bias = bias;
  }
  s->weights = weights;
  s->out.w /= stride, s->out.c = s->out.pixel = s->group_out = row;
  s->stride[1] = 1, s->kernel[1] = taps, s->pad[1] = end - 1;
  return true;
}

bool prepare(Step& step, Env& env) {
  ConvShape s;
  if (!read_shape(step, env, &s) || !join_pixels(env, &s)) return false;
  Deconv* d = static_cast<Deconv*>(env.allocate(sizeof(Deconv)));
  if (!d) return env.out_of_memory();
  step.state = d;
  d->residual = s.has_residual ? 3 : -1;
  const int64_t count = count_deconv_parts(s, env);
  if (!count) return false;
  d->part = static_cast<TapGemm*>(env.allocate(static_cast<size_t>(count) * sizeof(TapGemm)));
  if (!d->part) return env.out_of_memory();
  for (int64_t i = 0; i < count; ++i) {
    DeconvPart part;
    if (!deconv_part(s, i, &part)) continue;
    WeightView weights = weights_of(s, part);
#if defined(LITE_PAIRS)
    weights.pairs_in = s.group_in;
    count_pairs(&part.shape);
#endif
    if (!prepare_tap_gemm(part.shape, weights, s.bias ? s.bias->as<float>() : nullptr, 1.0f, env,
                          &d->part[d->parts])) {
      return false;
    }
#if defined(LITE_PAIRS)
    d->part[d->parts].short_out = is_short(step.outputs[0]);
    d->part[d->parts].short_residual = is_short(s.residual_tensor);
#endif
    const size_t bytes = d->part[d->parts++].scratch_bytes;
    if (bytes > step.scratch_bytes) step.scratch_bytes = bytes;
  }
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return true;
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const Deconv& d = *static_cast<const Deconv*>(step.state);
  for (int32_t i = 0; i < d.parts; ++i) {
    run_tap_gemm(d.part[i], step.inputs[0]->as<Real>(), step.outputs[0]->as<Real>(),
                 d.residual < 0 ? nullptr : step.inputs[d.residual]->as<Real>(), thread,
                 scratch);
  }
}

const Kernel kDeconv[] = {
#if defined(LITE_PAIRS)
    {"ConvTranspose", "bf16_deconv2d", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
#elif defined(LITE_FP16)
    {"ConvTranspose", "f16_deconv2d", prepare, run, kAcceptsPitch | kAcceptsHalo},
#else
    {"ConvTranspose", "f32_deconv2d", prepare, run, kAcceptsPitch | kAcceptsHalo},
    {"ConvTranspose", "bf16_deconv2d", prepare, run, kAcceptsPitch | kAcceptsHalo},  // without AMX
    {"ConvTranspose", "f32_deconv2d_bf16x2", prepare, run, kAcceptsPitch | kAcceptsHalo},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(deconv, kDeconv)
