// Reads the attributes `activation` (an ONNX unary operator) and `activation_params` (its
// attributes in the operator's order).
#include <math.h>

#include "lite_kernel.h"

namespace lite {

namespace {
struct Row {
  const char* name;
  Act act;
  float a, b;
};
// Clip's defaults are open; the others are ONNX's.
const Row kRows[] = {
    {"", Act::kNone, 0, 0},
    {"Identity", Act::kNone, 0, 0},
    {"Relu", Act::kClip, 0, INFINITY},
    {"Relu6", Act::kClip, 0, 6},
    {"Clip", Act::kClip, -INFINITY, INFINITY},
    {"LeakyRelu", Act::kLeakyRelu, 0.01f, 0},
    {"HardSigmoid", Act::kHardSigmoid, 0.2f, 0.5f},
    {"HardSwish", Act::kHardSwish, 0, 0},
    {"Sigmoid", Act::kSigmoid, 0, 0},
    {"Silu", Act::kSilu, 0, 0},
    {"Swish", Act::kSilu, 0, 0},
    {"Tanh", Act::kTanh, 0, 0},
    {"Gelu", Act::kGelu, 0, 0},
    {"GeluTanh", Act::kGeluTanh, 0, 0},
    {"FastGelu", Act::kGeluTanh, 0, 0},
    {"Elu", Act::kElu, 1, 0},
    {"Selu", Act::kSelu, 1.67326319217681884765625f, 1.05070102214813232421875f},
    {"Softplus", Act::kSoftplus, 0, 0},
    {"Softsign", Act::kSoftsign, 0, 0},
    {"Mish", Act::kMish, 0, 0},
    {"Exp", Act::kExp, 0, 0},
    {"Erf", Act::kErf, 0, 0},
};
}  // namespace

bool parse_activation(const Step& step, Env& env, Activation* out) {
  const char* name = attr_string(step, "activation", "");
  for (const Row& row : kRows) {
    if (strcmp(row.name, name) != 0) continue;
    *out = {row.act, row.a, row.b};
    int count;
    const double* params = attr_floats(step, "activation_params", &count);
    if (count > 2) return env.fail("activation_params of %s has %d values, at most 2", name, count);
    // Relu has no attributes: exporters' stray parameters must not turn it into a Clip.
    if (strcmp(name, "Relu") == 0 || strcmp(name, "Relu6") == 0) return true;
    if (count > 0) out->a = static_cast<float>(params[0]);
    if (count > 1) out->b = static_cast<float>(params[1]);
    return true;
  }
  return env.fail("activation '%s' cannot be fused; run it as an operator of its own", name);
}

}  // namespace lite
