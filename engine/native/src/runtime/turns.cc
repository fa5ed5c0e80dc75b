#include "turns.h"

#include "runtime.h"

namespace lite {

namespace {

void move(lite_program* p, int64_t turns) {
  for (int i = 0; i < p->program.num_tensors; ++i)
    if (p->program.storage[i].turns == kMoving)
      p->program.tensors[i].data += turns * turn_bytes(p->program.tensors[i]);
}

// The times of a step's turns are laid one after the other.
void note_times(lite_program* p, bool last) {
  Turns& t = p->turns;
  for (int i = t.end - 1; i >= t.first; --i)
    t.spent_ns[i - t.first] += p->end_ns[i] - (i == t.first ? t.start_ns : p->end_ns[i - 1]);
  t.start_ns = p->end_ns[t.end - 1];
  if (!last) return;
  int64_t at = t.first ? p->end_ns[t.first - 1] : 0;
  for (int i = t.first; i < t.end; ++i) {
    p->end_ns[i] = at += t.spent_ns[i - t.first];
    t.spent_ns[i - t.first] = 0;
  }
}

}  // namespace

int64_t samples_of_turn(int64_t batch, int threads) {
  // Many threads have large caches together, and wait for each other longer than a step takes.
  constexpr int kMostThreads = 4;
  if (threads > kMostThreads) return batch;
  if (threads < 1) threads = 1;
  int64_t more = threads, less = threads < batch ? threads - 1 : 0;
  while (more < batch && batch % more) ++more;
  if (more < batch) return more;
  // All of them, unless that is much more than the threads need.
  while (less > 0 && batch % less) --less;
  return batch > 2 * threads && 2 * less >= threads ? less : batch;
}

int64_t turn_bytes(const Tensor& t) {
  int64_t strides[kMaxRank];
  strides_of(t, strides);
  return strides[0] * t.dims[0] * dtype_bytes(t.dtype);
}

bool find_turns(Program* program, Env& env, Turns* turns) {
  *turns = {};
  const Samples& of = program->turns;
  for (int i = 0; i < program->num_steps; ++i) {
    const Step& step = program->steps[i];
    const bool takes = i >= of.first && i < of.end;
    for (int k = 0; k < step.num_inputs + step.num_outputs; ++k) {
      const Tensor* t = step.inputs[k];
      if (t && !is_weight(*t) && takes != (program->storage[t->index].turns != kNoTurns))
        return env.fail("step %d '%s': '%s' is not what its samples take turns on", i, step.name, t->name);
    }
  }
  if (!of.samples) return true;
  if (program->has_device) return env.fail("steps beside those of a device cannot take turns over samples");
  if (of.each == of.samples) {  // the whole batch in one: tensors and steps like others
    for (int i = 0; i < program->num_tensors; ++i) program->storage[i].turns = kNoTurns;
    return true;
  }
  *turns = {of.first, of.end, of.samples / of.each, 0, 0, nullptr};
  turns->spent_ns = static_cast<int64_t*>(env.allocator->allocate_array(turns->end - turns->first, sizeof(int64_t)));
  return turns->spent_ns || env.out_of_memory();
}

int32_t step_after(lite_program* p, int32_t i) {
  Turns& t = p->turns;
  if (i + 1 != t.end || !t.end) return i + 1;
  const bool last = t.turn + 1 == t.count;
  if (t.turn == 0) t.start_ns = t.first ? p->end_ns[t.first - 1] : 0;
  note_times(p, last);
  move(p, last ? 1 - t.count : 1);
  t.turn = last ? 0 : t.turn + 1;
  return last ? t.end : t.first;
}

int64_t start_of(const lite_program* p, int32_t i) {
  const Turns& t = p->turns;
  if (t.end && i == t.first && t.turn > 0) return t.start_ns;
  return i ? p->end_ns[i - 1] : 0;
}

}  // namespace lite
