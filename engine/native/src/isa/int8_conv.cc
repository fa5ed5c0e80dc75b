// QLinearConv, QLinearMatMul and QGemm with constant weights, as integer tap GEMM.
#include "int8_gemm.h"

namespace lite::LITE_ISA {
namespace {

bool prepare(Step& step, Env& env) {
  IntShape s;
  QuantParams quant;
  if (!read_int_shape(step, env, &s) || !read_int_params(step, env, s, &quant)) return false;
  IntGemm* g = static_cast<IntGemm*>(env.allocate(sizeof(IntGemm)));
  step.state = g;
  if (!g) return env.out_of_memory();
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return prepare_int_gemm(s.conv, s.w, s.bias, quant, step, env, g);
}

// Eight products at once: half of each would be padding.
bool suits(const Step& step, Env&) {
  const Tensor* w = input_of(step, 3);
  return kDepth < 8 || strcmp(step.op, "QLinearConv") != 0 || !w || w->rank < 2 || w->dims[1] > 4;
}

void run(const Step& step, int phase, int thread, int threads, void*) {
  run_int_gemm(*static_cast<const IntGemm*>(step.state), step, *step.inputs[0], *step.outputs[0],
               phase, thread, threads);
}

const Kernel kInt8Conv[] = {
    {"QLinearConv", "i8_conv2d_gemm", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
    {"QLinearMatMul QGemm", "i8_gemm", prepare, run, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_conv, kInt8Conv)
