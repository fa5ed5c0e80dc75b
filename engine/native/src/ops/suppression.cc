#include "suppression.h"

namespace lite {

bool room_bytes(Candidates* s, size_t* bytes) {
  if (s->slots > s->boxes * s->classes) s->slots = s->boxes * s->classes;
  size_t boxes, found;
  return mul_size(static_cast<size_t>(s->boxes), 7 * 4, &boxes) &&
         mul_size(static_cast<size_t>(s->slots), sizeof(Found), &found) &&
         add_size(boxes, found, bytes);
}

Room room_in(const Candidates& s, void* scratch) {
  Room r;
  r.found = static_cast<Found*>(scratch);
  r.corners = reinterpret_cast<float*>(r.found + s.slots);
  r.scores = r.corners + 4 * s.boxes;
  r.order = reinterpret_cast<int32_t*>(r.scores + s.boxes);
  r.kept = r.order + s.boxes;
  r.slots = s.slots;
  r.count = 0;
  return r;
}

bool holds(const Tensor* t, int64_t size) {
  return !t || (is_floats(t) && t->size == size);
}

bool reaches(float score, float threshold) { return score >= threshold; }
bool exceeds(float score, float threshold) { return score > threshold; }

bool before(const float* scores, int32_t a, int32_t b) {
  return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
}

// Heap sort, whose memory is the order itself.
static void sift(const float* scores, int32_t* heap, int64_t root, int64_t n) {
  for (;;) {
    int64_t child = 2 * root + 1;
    if (child >= n) return;
    if (child + 1 < n && before(scores, heap[child], heap[child + 1])) ++child;
    if (!before(scores, heap[root], heap[child])) return;
    const int32_t swap = heap[root];
    heap[root] = heap[child];
    heap[child] = swap;
    root = child;
  }
}

int64_t by_score(const float* scores, int64_t boxes, bool (*passes)(float, float), float threshold,
                 int32_t* order) {
  int64_t n = 0;
  for (int64_t i = 0; i < boxes; ++i)
    if (passes(scores[i], threshold)) order[n++] = static_cast<int32_t>(i);
  for (int64_t root = n / 2; root-- > 0;) sift(scores, order, root, n);
  for (int64_t last = n; last-- > 1;) {
    const int32_t swap = order[0];
    order[0] = order[last];
    order[last] = swap;
    sift(scores, order, 0, last);
  }
  return n;
}

static float area(const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

static bool overlaps(const float* a, const float* b, float iou) {
  const float area_a = area(a), area_b = area(b);
  if (!(area_a > 0) || !(area_b > 0)) return !(0 <= iou);
  const float first = larger(smaller(a[2], b[2]) - larger(a[0], b[0]), 0.0f);
  const float second = larger(smaller(a[3], b[3]) - larger(a[1], b[1]), 0.0f);
  const float shared = first * second;
  return !(shared / (area_a + area_b - shared) <= iou);
}

int64_t suppress(const Room& r, int64_t n, float iou, int64_t limit) {
  int64_t count = 0;
  for (int64_t i = 0; i < n && count < limit; ++i) {
    const float* box = r.corners + 4 * static_cast<int64_t>(r.order[i]);
    bool free = true;
    for (int64_t k = 0; k < count && free; ++k)
      free = !overlaps(box, r.corners + 4 * static_cast<int64_t>(r.kept[k]), iou);
    if (free) r.kept[count++] = r.order[i];
  }
  return count;
}

void in_order(Room* r) {
  for (int64_t i = 1; i < r->count; ++i) {
    const Found f = r->found[i];
    int64_t at = i;
    for (; at > 0 && r->found[at - 1].order > f.order; --at) r->found[at] = r->found[at - 1];
    r->found[at] = f;
  }
}

void offer(Room* r, const Found& f) {
  if (r->count == r->slots && (!r->slots || r->found[r->slots - 1].score >= f.score)) return;
  int64_t at = r->count < r->slots ? r->count++ : r->slots - 1;
  for (; at > 0 && r->found[at - 1].score < f.score; --at) r->found[at] = r->found[at - 1];
  r->found[at] = f;
}

}  // namespace lite
