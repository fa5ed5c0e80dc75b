#include "gemm_shape.h"

namespace lite {

bool read_gemm_shape(const Step& step, Env& env, DType real, DType other, GemmShape* s) {
  const Tensor *a = input_of(step, 0), *b = input_of(step, 1), *c = input_of(step, 2);
  const Tensor *residual = input_of(step, 3), *y = output_of(step, 0);
  if (!a || !b || !y) return env.fail("needs inputs a and b and an output");
  const Tensor* all[] = {a, b, c, residual, y};
  for (const Tensor* t : all) {
    const bool constant = t && (t == b || (t == c && is_weight(*c)));
    const bool fits = !t || t->dtype == (constant ? DType::kF32 : real) ||
                      ((t == a || t == y) && t->dtype == other);
    if (!fits)
      return env.fail("'%s' is %s, this kernel takes %s and constants of f32", t->name,
                      dtype_name(t->dtype), dtype_name(real));
  }
  if (residual && !same_dims(*residual, *y)) return env.fail("the residual must have the output's dims");
  if (!is_weight(*b)) return env.fail("b must be constant");
  if (a->rank != 2 || b->rank != 2 || y->rank != 2) return env.fail("takes matrices");
  if (attr_int(step, "transA", 0)) return env.fail("transA must be 0");
  const bool trans_b = attr_int(step, "transB", 0) != 0;
  const int64_t m = a->dims[0], k = a->dims[1], n = b->dims[trans_b ? 0 : 1];
  if (b->dims[trans_b ? 1 : 0] != k || y->dims[0] != m || y->dims[1] != n)
    return env.fail("dims of a, b and y do not agree");
  *s = {a, b, c, residual, y, m, n, k, trans_b, static_cast<float>(attr_float(step, "alpha", 1.0)),
        static_cast<float>(attr_float(step, "beta", 1.0))};
  return true;
}

}  // namespace lite
