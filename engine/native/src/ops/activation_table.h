// Functions of one number that other operators may carry as their `activation`; f32_unary runs them
// as operators of their own.
#pragma once

#include "lite_kernel.h"

namespace lite {

// ROW(operator, Act, names of its attributes in their order, nullptr where it has none, defaults)
#define LITE_ACTIVATIONS(ROW)                                             \
  ROW("Relu", kClip, nullptr, nullptr, 0, __builtin_inff())               \
  ROW("Clip", kClip, "min", "max", -__builtin_inff(), __builtin_inff())   \
  ROW("LeakyRelu", kLeakyRelu, "alpha", nullptr, 0.01f, 0)                \
  ROW("HardSigmoid", kHardSigmoid, "alpha", "beta", 0.2f, 0.5f)           \
  ROW("HardSwish", kHardSwish, nullptr, nullptr, 0, 0)                    \
  ROW("Sigmoid", kSigmoid, nullptr, nullptr, 0, 0)                        \
  ROW("Silu", kSilu, nullptr, nullptr, 0, 0)                              \
  ROW("Swish", kSwish, "alpha", nullptr, 1, 0)                            \
  ROW("Tanh", kTanh, nullptr, nullptr, 0, 0)                              \
  ROW("Gelu", kGelu, "approximate", nullptr, 0, 0)                        \
  ROW("Elu", kElu, "alpha", nullptr, 1, 0)                                \
  ROW("Selu", kSelu, "alpha", "gamma", 1.67326319217681884765625f,        \
      1.05070102214813232421875f)                                         \
  ROW("Softplus", kSoftplus, nullptr, nullptr, 0, 0)                      \
  ROW("Softsign", kSoftsign, nullptr, nullptr, 0, 0)                      \
  ROW("Mish", kMish, nullptr, nullptr, 0, 0)                              \
  ROW("Exp", kExp, nullptr, nullptr, 0, 0)                                \
  ROW("Erf", kErf, nullptr, nullptr, 0, 0)

struct ActivationRow {
  const char* op;
  Act act;
  const char* a_name;
  const char* b_name;
  float a, b;
};

const ActivationRow* find_activation(const char* op);  // nullptr when there is none

}  // namespace lite
