// ConvTranspose as one stride-1 tap GEMM per remainder of the stride.
#include "tap_gemm.h"

namespace lite::LITE_ISA {
namespace {

struct Deconv {
  int32_t parts;
  int32_t residual;               // input index or -1
  TapGemm* part;
};

bool prepare(Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, true, &s, kReal)) return false;
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
    if (!prepare_tap_gemm(part.shape, weights_of(s, part), s.bias ? s.bias->as<float>() : nullptr,
                          1.0f, env, &d->part[d->parts])) {
      return false;
    }
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
#if defined(LITE_FP16)
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
