// QLinearConv, QLinearMatMul and QGemm with constant weights, as integer tap GEMM.
//
// Inputs keep ONNX's positions (x 0, w 3, bias 8; a 0, b 3; QGemm: bias 6), and 9 is our own
// residual; the scales and zero points between them are attributes.
#include "int8_gemm.h"

#include "../dispatch.h"

namespace lite::LITE_ISA {
namespace {

IntGemm* new_state(Step& step, Env& env) {
  IntGemm* g = static_cast<IntGemm*>(env.allocate(sizeof(IntGemm)));
  step.state = g;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return g;
}

bool prepare_conv(Step& step, Env& env) {
  const ConvOperands o{input_of(step, 0), input_of(step, 3), input_of(step, 8), input_of(step, 9),
                       output_of(step, 0)};
  ConvShape s;
  QuantParams quant;
  if (!read_conv_shape(step, env, o, false, &s)) return false;
  if (!read_quant_params(step, env, *o.x, *o.w, *o.y, o.b, "x", "w", s.out.c,
                         s.group_in * s.kernel[0] * s.kernel[1], &quant) ||
      !read_residual(step, env, 9, &quant)) {
    return false;
  }
  if (kDepth == 8 && s.group_in <= 4) {  // half of each product would be padding
    const char* isa;
    step.kernel = find_kernel(step.kernel->name, "neondot", &isa);
    return step.kernel->prepare(step, env);
  }
  IntGemm* g = new_state(step, env);
  if (!g) return env.out_of_memory();
  const int64_t kh = s.kernel[0], kw = s.kernel[1];
  const int64_t per_output = s.group_in * kh * kw;
  const IntWeightView w{o.w, s.group_out * per_output, per_output, kh * kw, kw, 1};
  return prepare_int_gemm(s, w, o.b ? o.b->as<int32_t>() : nullptr, quant, step, env, g);
}

// y[..., M, N] = a[..., M, K] b[K, N]; QGemm may have b as [N, K] (transB) and a bias.
bool prepare_gemm(Step& step, Env& env) {
  const bool gemm = strcmp(step.op, "QGemm") == 0;
  const Tensor* a = input_of(step, 0);
  const Tensor* b = input_of(step, 3);
  const Tensor* bias = gemm ? input_of(step, 6) : nullptr;
  const Tensor* y = output_of(step, 0);
  if (!a || !b || !y) return env.fail("needs inputs a and b and an output");
  if (!is_weight(*b) || b->rank != 2) return env.fail("b must be a constant matrix");
  if (a->rank < 2 || a->rank != y->rank || !is_dense(*a) || !is_dense(*y))
    return env.fail("takes dense matrices");
  if (attr_int(step, "transA", 0)) return env.fail("transA must be 0");
  if (attr_float(step, "alpha", 1.0) != 1.0) return env.fail("alpha must be 1");
  const bool trans_b = attr_int(step, "transB", 0) != 0;
  const int64_t k = last_dim(*a), rows = row_count(*a);
  const int64_t n = trans_b ? b->dims[0] : b->dims[1];
  if ((trans_b ? b->dims[1] : b->dims[0]) != k || last_dim(*y) != n || row_count(*y) != rows)
    return env.fail("dims of a, b and y do not agree");
  QuantParams quant;
  if (!read_quant_params(step, env, *a, *b, *y, bias, "a", "b", n, k, &quant)) return false;
  ConvShape s{};
  s.in = {1, 1, rows, k, rows * k, rows * k, k, 0, {0, 0, 0, 0}};
  s.out = {1, 1, rows, n, rows * n, rows * n, n, 0, {0, 0, 0, 0}};
  s.groups = 1;
  s.group_in = k;
  s.group_out = n;
  for (int i = 0; i < 2; ++i) s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
  IntGemm* g = new_state(step, env);
  if (!g) return env.out_of_memory();
  const IntWeightView w{b, 0, trans_b ? k : 1, trans_b ? 1 : n, 0, 0};
  return prepare_int_gemm(s, w, bias ? bias->as<int32_t>() : nullptr, quant, step, env, g);
}

void run(const Step& step, int phase, int thread, int threads, void*) {
  run_int_gemm(*static_cast<const IntGemm*>(step.state), step, *step.inputs[0], *step.outputs[0],
               phase, thread, threads);
}

const Kernel kInt8Conv[] = {
    {"QLinearConv", "i8_conv2d_gemm", prepare_conv, run, kAcceptsPitch | kAcceptsHalo},
    {"QLinearMatMul QGemm", "i8_gemm", prepare_gemm, run, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_conv, kInt8Conv)
