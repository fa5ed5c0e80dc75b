// QLinearConv, QLinearConvTranspose, QLinearMatMul and QGemm with constant weights, as integer tap GEMM.
#include "int8_gemm.h"

namespace lite::LITE_ISA {
namespace {

struct State {
  int32_t parts;
  IntGemm* part;
};

bool prepare(Step& step, Env& env) {
  IntShape s;
  QuantParams quant;
  if (!read_int_shape(step, env, &s) || !read_int_params(step, env, s, &quant)) return false;
  const int64_t count = count_int_parts(s, env);
  if (!count) return false;
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  step.state = state;
  if (!state) return env.out_of_memory();
  state->part = static_cast<IntGemm*>(env.allocate(static_cast<size_t>(count) * sizeof(IntGemm)));
  if (!state->part) return env.out_of_memory();
  const bool row_sums = needs_row_sums(s, quant);
  for (int64_t i = 0; i < count; ++i) {
    ConvShape shape;
    IntWeightView w;
    if (int_part(s, i, &shape, &w) &&
        !prepare_int_gemm(shape, w, s.bias, quant, row_sums, s.transposed, step, env,
                          &state->part[state->parts++])) {
      return false;
    }
  }
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return true;
}

// Whether most tiles will pass the test of int8_bounds.h and gain more than it takes. Operands around 128, as those
// of both signs are, would not pass. What is declined is multiplied as 16-bit numbers, by the set below.
bool fits_pairs(const Step& step, const IntShape& s) {
  constexpr int64_t kHighestZero = 64, kLeastDepth = 32;
  int count;
  const int64_t* zeros = attr_ints(step, "x_zero_point", &count);
  if (!count) zeros = attr_ints(step, "a_zero_point", &count);
  const int64_t lowest = step.inputs[0]->dtype == DType::kI8 ? -128 : 0;
  return (count ? zeros[0] : 0) - lowest <= kHighestZero &&
         s.conv.kernel[0] * s.conv.kernel[1] * s.conv.group_in >= kLeastDepth;
}

bool suits(const Step& step, Env& env) {
  IntShape s;
  if (kSaturates) return read_int_shape(step, env, &s) && fits_pairs(step, s);
  // Eight products at once: half of each would be padding.
  return kDepth < 8 || (read_int_shape(step, env, &s) && s.conv.group_in > 4);
}

void run(const Step& step, int phase, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &y = *step.outputs[0];
  if (s.parts && s.part[0].copied && phase == 0) {
    copy_int_input(s.part[0], step, x, thread, threads);
    return;
  }
  for (int32_t i = 0; i < s.parts; ++i) run_int_gemm(s.part[i], step, x, y, thread);
}

const Kernel kInt8Conv[] = {
    {"QLinearConv", "i8_conv2d_gemm", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible, suits},
    {"QLinearConvTranspose", "i8_deconv2d", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
    {"QLinearMatMul QGemm", "i8_gemm", prepare, run, kDivisible, kSaturates ? suits : nullptr},
    // By their own names where sparse_int8.cc would take the step (`lite tune`).
    {"QLinearConv", "i8_conv_dense", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible, suits},
    {"QLinearMatMul QGemm", "i8_gemm_dense", prepare, run, kDivisible, kSaturates ? suits : nullptr},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_conv, kInt8Conv)
