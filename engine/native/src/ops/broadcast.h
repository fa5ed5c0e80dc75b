// NumPy broadcasting of up to three inputs to one output, as rows that a kernel can vectorise.
#pragma once

#include "lite_kernel.h"

namespace lite {

constexpr int kMaxOperands = 4;  // the output is operand 0

// Axes are merged where all operands allow it. In the last axis every stride is 1, or 0 for an
// operand that repeats.
struct Broadcast {
  int rank, operands;
  int64_t count[kMaxRank + 1];
  int64_t stride[kMaxOperands][kMaxRank + 1];
  int64_t rows;    // product of the counts before the last
  int64_t pieces;  // a row is cut in pieces that threads share
  int64_t piece;   // elements
};

// Fails when the inputs cannot be broadcast to exactly the output's shape.
bool plan_broadcast(Env&, const Tensor& out, const Tensor* const* inputs, int count, Broadcast*);

// Walks one thread's pieces: `at[i]` is operand i's element, `length` the elements of the piece.
struct BroadcastWalk {
  const Broadcast* plan;
  int64_t next, end;
  int64_t index[kMaxRank + 1];
  int64_t row[kMaxOperands];
  int64_t piece;
  int64_t at[kMaxOperands];
  int64_t length;
};
void start_walk(const Broadcast&, int thread, int threads, BroadcastWalk*);
bool next_piece(BroadcastWalk*);
// The next piece and, where pieces are whole rows, all of this thread's that follow it in the axis
// before the last.
bool next_rows(BroadcastWalk*, int64_t* rows);

}  // namespace lite
