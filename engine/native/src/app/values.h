// What a model gave, as the numbers that it stands for.
#pragma once

#include "json.h"
#include "lite_runtime.h"

namespace lite::app {

struct Quant {
  float scale = 0;  // 0: not quantised
  int64_t zero_point = 0;
  // Null, or why not: `scale` and `zero_point`, where they are there.
  const char* read(Json::Value from);
};

// An output of a model: floats in row-major order.
struct Values {
  Array<float> v;
  int rank = 0;
  int64_t dims[8] = {};
  bool whole = false;  // integers that are numbers themselves: classes, counts
  int bytes = 0;       // of one element, in the model

  // Null, or why not. Numbers of a scale become what they stand for.
  const char* read(const lite_array& from, Quant quant);
  int64_t count() const { return static_cast<int64_t>(v.size()); }
  int64_t last() const { return rank ? dims[rank - 1] : 1; }
};

}  // namespace lite::app
