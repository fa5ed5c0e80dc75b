// Suppression: which of the boxes that overlap stay (docs/pipelines.md).
#pragma once

#include <stddef.h>

#include "array.h"
#include "json.h"

namespace lite::app {

struct Found;
struct Placement;

struct Nms {
  enum Kind { kHard, kDiou, kWeighted, kSoftLinear, kSoftGaussian, kMatrixLinear, kMatrixGaussian } kind = kHard;
  double overlap = 0.3;   // intersection over union from which a box is too much
  double sigma = 0.5;     // of the Gaussian exp(-IoU²/sigma)
  bool agnostic = false;  // boxes of other classes count, too

  // Null, or what is wrong with it.
  const char* read(Json::Value from);
  // Of boxes sorted best first, in parts of the input: those that stay, best first. Kinds that lower scores drop what
  // is not above `threshold`. False where memory does not suffice.
  bool apply(Array<Found>* found, double threshold, const Placement& placed) const;
};

}  // namespace lite::app
