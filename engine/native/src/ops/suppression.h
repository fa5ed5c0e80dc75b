// What the operators that end a detector share: candidates by falling score, those that overlap a
// better one dropped, the best put into slots of a fixed number.
//
// One thread does it: some thousand boxes, of which a threshold leaves few. Equal scores keep their
// order, so that every machine gives the same rows; a NaN score is no candidate.
#pragma once

#include "lite_kernel.h"

namespace lite {

struct Found {
  float score;
  int32_t label, box;
  int64_t order;  // when it was found
};

// What a kernel's state begins with.
struct Candidates {
  int64_t boxes, classes, slots;
};

// A new state for scores (images, classes, boxes); nullptr when there is no memory.
template <class State>
LITE_INLINE State* state_of(Step& step, Env& env, const Tensor& scores) {
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return nullptr;
  step.state = s;
  s->images = scores.dims[0];
  s->classes = scores.dims[1];
  s->boxes = scores.dims[2];
  return s;
}

// Of one thread, in its scratch.
struct Room {
  float* corners;  // (boxes, 4)
  float* scores;   // (boxes)
  int32_t* order;  // boxes by falling score
  int32_t* kept;
  Found* found;  // the best so far, at most `slots`
  int64_t slots, count;
};

// The scratch that a room takes; slots that nothing can fill are taken away. False on overflow.
bool room_bytes(Candidates*, size_t* bytes);
Room room_in(const Candidates&, void* scratch);

LITE_INLINE bool is_floats(const Tensor* t) { return t && t->dtype == DType::kF32; }
// `size` elements of f32, or absent.
bool holds(const Tensor*, int64_t size);

bool reaches(float score, float threshold);  // >=
bool exceeds(float score, float threshold);  // >

// Whether box `a` comes before `b`: a higher score, of equals the first.
bool before(const float* scores, int32_t a, int32_t b);

// Boxes whose score passes, best first; returns how many.
int64_t by_score(const float* scores, int64_t boxes, bool (*passes)(float, float), float threshold,
                 int32_t* order);

// As np.maximum and np.minimum: NaN of either wins.
LITE_INLINE float larger(float a, float b) { return a > b || a != a ? a : b; }
LITE_INLINE float smaller(float a, float b) { return a < b || a != a ? a : b; }

// Greedy: of the first n in `order` those that overlap no better one by more than iou, at most
// `limit`, into `kept`; returns how many. Boxes without area overlap nothing.
int64_t suppress(const Room&, int64_t n, float iou, int64_t limit);

// Keeps the best `slots`, by falling score; the first found of equals.
void offer(Room*, const Found&);

// Puts what was kept into the order in which it was found.
void in_order(Room*);

}  // namespace lite
