#include "broadcast.h"

namespace lite {

namespace {

constexpr int64_t kPiece = 4096;  // small enough that a fused activation finds it in the L1 cache

bool mergeable(const Broadcast& b, int outer, int inner) {
  for (int i = 0; i < b.operands; ++i)
    if (b.stride[i][outer] != b.stride[i][inner] * b.count[inner]) return false;
  return true;
}

}  // namespace

bool plan_broadcast(Env& env, const Tensor& out, const Tensor* const* inputs, int count,
                    Broadcast* b) {
  int64_t strides[kMaxOperands][kMaxRank];
  strides_of(out, strides[0]);
  for (int i = 0; i < count; ++i) strides_of(*inputs[i], strides[i + 1]);
  b->operands = count + 1;
  b->rank = 0;
  for (int d = 0; d < out.rank; ++d) {
    bool filled = out.dims[d] == 1;
    for (int i = 0; i < count; ++i) {
      const int at = d - (out.rank - inputs[i]->rank);
      if (at < 0 && inputs[i]->rank <= out.rank) continue;
      if (inputs[i]->rank > out.rank ||
          (inputs[i]->dims[at] != 1 && inputs[i]->dims[at] != out.dims[d]))
        return env.fail("'%s' cannot be broadcast to '%s'", inputs[i]->name, out.name);
      filled = filled || inputs[i]->dims[at] == out.dims[d];
    }
    if (!filled) return env.fail("no input fills axis %d of '%s'", d, out.name);
    if (out.dims[d] == 1) continue;
    const int at = b->rank++;
    b->count[at] = out.dims[d];
    b->stride[0][at] = strides[0][d];
    for (int i = 0; i < count; ++i) {
      const int axis = d - (out.rank - inputs[i]->rank);
      const bool repeats = axis < 0 || inputs[i]->dims[axis] == 1;
      b->stride[i + 1][at] = repeats ? 0 : strides[i + 1][axis];
    }
    if (at > 0 && mergeable(*b, at - 1, at)) {
      b->count[at - 1] *= b->count[at];
      for (int i = 0; i < b->operands; ++i) b->stride[i][at - 1] = b->stride[i][at];
      --b->rank;
    }
  }
  for (int i = 0; i < count; ++i)
    if (inputs[i]->rank > out.rank)
      return env.fail("'%s' has more axes than '%s'", inputs[i]->name, out.name);
  bool unit = b->rank > 0;
  for (int i = 0; unit && i < b->operands; ++i) {
    const int64_t stride = b->stride[i][b->rank - 1];
    unit = stride == 1 || (stride == 0 && i > 0);
  }
  if (!unit) {  // rows of one element, for example the last axis of a channel slice of one
    b->count[b->rank] = 1;
    for (int i = 0; i < b->operands; ++i) b->stride[i][b->rank] = 1;
    ++b->rank;
  }
  b->rows = 1;
  for (int d = 0; d + 1 < b->rank; ++d) b->rows *= b->count[d];
  const int64_t inner = b->count[b->rank - 1];
  b->piece = kPiece;
  b->pieces = (inner + kPiece - 1) / kPiece;
  return true;
}

void start_walk(const Broadcast& plan, int thread, int threads, BroadcastWalk* walk) {
  walk->plan = &plan;
  share(plan.rows * plan.pieces, 1, thread, threads, &walk->next, &walk->end);
  if (walk->next == walk->end) return;
  int64_t row = walk->next / plan.pieces;
  walk->piece = walk->next % plan.pieces;
  memset(walk->row, 0, sizeof walk->row);
  for (int d = plan.rank - 2; d >= 0; --d) {
    walk->index[d] = row % plan.count[d];
    row /= plan.count[d];
    for (int i = 0; i < plan.operands; ++i) walk->row[i] += walk->index[d] * plan.stride[i][d];
  }
}

bool next_piece(BroadcastWalk* walk) {
  if (walk->next == walk->end) return false;
  const Broadcast& plan = *walk->plan;
  const int last = plan.rank - 1;
  if (walk->piece == plan.pieces) {
    walk->piece = 0;
    for (int d = last - 1; d >= 0; --d) {
      for (int i = 0; i < plan.operands; ++i) walk->row[i] += plan.stride[i][d];
      if (++walk->index[d] < plan.count[d]) break;
      walk->index[d] = 0;
      for (int i = 0; i < plan.operands; ++i) walk->row[i] -= plan.stride[i][d] * plan.count[d];
    }
  }
  const int64_t begin = walk->piece * plan.piece;
  const int64_t left = plan.count[last] - begin;
  walk->length = left < plan.piece ? left : plan.piece;
  for (int i = 0; i < plan.operands; ++i) walk->at[i] = walk->row[i] + begin * plan.stride[i][last];
  ++walk->piece;
  ++walk->next;
  return true;
}

bool next_rows(BroadcastWalk* walk, int64_t* rows) {
  if (!next_piece(walk)) return false;
  const Broadcast& plan = *walk->plan;
  *rows = 1;
  if (plan.pieces > 1 || plan.rank < 2) return true;
  const int axis = plan.rank - 2;
  const int64_t left = walk->end - walk->next, follow = plan.count[axis] - 1 - walk->index[axis];
  const int64_t more = left < follow ? left : follow;
  for (int i = 0; i < plan.operands; ++i) walk->row[i] += more * plan.stride[i][axis];
  walk->index[axis] += more;
  walk->next += more;
  *rows += more;
  return true;
}

}  // namespace lite
