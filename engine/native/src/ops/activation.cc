// Reads the attributes `activation` (an ONNX unary operator) and `activation_params` (its
// attributes in the operator's order).
#include "activation_table.h"

namespace lite {

namespace {
#define ROW(op, act, a_name, b_name, a, b) {op, Act::act, a_name, b_name, a, b},
const ActivationRow kRows[] = {LITE_ACTIVATIONS(ROW)};
#undef ROW
}  // namespace

const ActivationRow* find_activation(const char* op) {
  for (const ActivationRow& row : kRows)
    if (strcmp(row.op, op) == 0) return &row;
  return nullptr;
}

bool parse_activation(const Step& step, Env& env, Activation* out) {
  const char* name = attr_string(step, "activation", "");
  *out = {Act::kNone, 0, 0};
  if (!*name) return true;
  const ActivationRow* row = find_activation(name);
  if (!row)
    return env.fail("activation '%s' cannot be fused; run it as an operator of its own", name);
  *out = {row->act, row->a, row->b};
  int count;
  const double* params = attr_floats(step, "activation_params", &count);
  if (count > 2) return env.fail("activation_params of %s has %d values, at most 2", name, count);
  // Relu has no attributes: exporters' stray parameters must not turn it into a Clip.
  if (count > 0 && row->a_name) out->a = static_cast<float>(params[0]);
  if (count > 1 && row->b_name) out->b = static_cast<float>(params[1]);
  if (out->act == Act::kGelu && out->a != 0) out->act = Act::kGeluTanh;
  return true;
}

}  // namespace lite
