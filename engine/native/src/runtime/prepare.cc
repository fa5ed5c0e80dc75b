// From parsed steps to prepared ones: kernel look-up, the rules every kernel relies on, packing.
#include <stdio.h>

#include "../opencl/executor.h"
#include "../plugins/plugins.h"
#include "bands.h"
#include "dispatch.h"
#include "platform/memory.h"
#include "rows.h"
#include "runtime.h"

namespace lite {

namespace {

bool names_op(const char* ops, const char* op) {
  const size_t length = strlen(op);
  for (const char* at = ops; (at = strstr(at, op)) != nullptr; at += length) {
    const bool starts = at == ops || at[-1] == ' ';
    if (length && starts && (at[length] == 0 || at[length] == ' ')) return true;
    if (!length) return false;
  }
  return false;
}

}  // namespace

namespace {

// From the arena's first byte, or from the root's where the root has memory of its own.
uint64_t first_byte(const Program& program, const Tensor& t) {
  const Storage& storage = program.storage[t.index];
  const bool inside = storage.root != t.index;
  const bool arena = program.tensors[storage.root].role == Role::kArena;
  return storage.offset + (arena && inside ? program.storage[storage.root].offset : 0);
}

}  // namespace

bool overlap(const Program& program, const Tensor& a, const Tensor& b) {
  const int root_a = program.storage[a.index].root, root_b = program.storage[b.index].root;
  const bool arena =
      program.tensors[root_a].role == Role::kArena && program.tensors[root_b].role == Role::kArena;
  const bool kept = program.storage[root_a].turns == kKept;
  if (root_a != root_b && (!arena || kept != (program.storage[root_b].turns == kKept))) return false;
  const auto moved_by = [&](const Tensor& t) { return program.storage[t.index].turns == kMoving ? turn_bytes(t) : 0; };
  // Two that move over the same samples stay side by side, others meet anywhere.
  const bool apart = root_a == root_b && moved_by(a) == moved_by(b);
  const auto rows = [&](const Tensor& view) -> Rows {
    const bool moves = program.storage[view.index].turns == kMoving && !apart;
    const Tensor& t = moves ? program.tensors[program.storage[view.index].root] : view;
    const uint64_t element = dtype_bytes(t.dtype);
    return {first_byte(program, t), t.bytes, last_dim(t) * element, t.pitch * element};
  };
  return overlap(rows(a), rows(b));
}

bool Env::overlap(const Tensor& a, const Tensor& b, int64_t* start) const {
  *start = static_cast<int64_t>(first_byte(*program, a) - first_byte(*program, b));
  return lite::overlap(*program, a, b);
}

namespace {

bool same_place(const lite_program& p, const Tensor& a, const Tensor& b) {
  return first_byte(p.program, a) == first_byte(p.program, b) && a.bytes == b.bytes &&
         a.pitch == b.pitch && dtype_bytes(a.dtype) == dtype_bytes(b.dtype) &&
         memcmp(a.halo, b.halo, sizeof a.halo) == 0;
}

bool check_tensor(Env& env, const Kernel& kernel, const Tensor* t) {
  if (!t) return true;
  if (t->role == Role::kDevice) return env.fail("'%s' lies on the device", t->name);
  if (has_halo(*t) && !(kernel.flags & kAcceptsHalo))
    return env.fail("'%s' has a halo, which this kernel does not accept", t->name);
  if (t->pitch != last_dim(*t) && !(kernel.flags & kAcceptsPitch))
    return env.fail("'%s' has a pitch, which this kernel does not accept", t->name);
  return true;
}

bool check_places(lite_program* p, const Step& step) {
  Env& env = p->env;
  for (int o = 0; o < step.num_outputs; ++o) {
    const Tensor* out = step.outputs[o];
    if (!out) continue;
    for (int other = 0; other < o; ++other)
      if (step.outputs[other] && overlap(p->program, *out, *step.outputs[other]))
        return env.fail("outputs '%s' and '%s' share memory", out->name, step.outputs[other]->name);
    for (int i = 0; i < step.num_inputs; ++i) {
      const Tensor* in = step.inputs[i];
      if (!in || step.kernel->flags & kOverlaps || !overlap(p->program, *in, *out)) continue;
      if (!(step.kernel->flags & kInPlace) || !same_place(*p, *in, *out))
        return env.fail("output '%s' overwrites input '%s'", out->name, in->name);
    }
  }
  return true;
}

// Waiting for the other threads takes about as long as touching this much.
constexpr size_t kSmallBytes = 16 << 10;
// Steps that touch more are cut finer than by threads: who is done takes what others have left.
constexpr size_t kLargeBytes = 128 << 10;
constexpr int kShares = 4;

size_t touched_bytes(const Step& step) {
  size_t bytes = 0;
  for (int i = 0; i < step.num_inputs; ++i) bytes += step.inputs[i] ? step.inputs[i]->bytes : 0;
  for (int i = 0; i < step.num_outputs; ++i) bytes += step.outputs[i] ? step.outputs[i]->bytes : 0;
  return bytes;
}

bool is_small(const Step& step) {
  return touched_bytes(step) <= kSmallBytes && !step.by_rows;
}

bool is_divided(const Step& step, int threads) {
  return step.kernel->flags & kDivisible && threads > 1 && touched_bytes(step) > kLargeBytes;
}

// Kernels divide by sizes.
bool makes_nothing(const Step& step) {
  for (int i = 0; i < step.num_outputs; ++i)
    if (step.outputs[i] && step.outputs[i]->size) return false;
  return true;
}

bool prepare_step(lite_program* p, Step& step) {
  Env& env = p->env;
  const char* isa = "";
  step.by_rows = may_band(step, env);
  step.kernel = find_kernel(step.variant, env.cpu, &step, &env, &isa);
  if (!step.kernel && strcmp(step.variant, kPluginKernel) == 0)
    return env.fail("no library with a kernel for it is loaded; name one with --library PATH, or load "
                    "the one that the file brings with --trust");
  if (!step.kernel) return env.fail("kernel '%s' is not in this library", step.variant);
  const Kernel& kernel = *step.kernel;
  if (!names_op(kernel.ops, step.op)) return env.fail("kernel does not implement %s", step.op);
  for (int i = 0; i < step.num_inputs; ++i)
    if (!check_tensor(env, kernel, step.inputs[i])) return false;
  for (int i = 0; i < step.num_outputs; ++i)
    if (!check_tensor(env, kernel, step.outputs[i])) return false;
  if (!check_places(p, step)) return false;
  set_variant(step, "%s__%s", kernel.name, isa);
  step.one_thread = kernel.flags & kOneThread || is_small(step);
  step.shares = is_divided(step, p->threads) ? kShares : 1;
  env.threads = step.one_thread ? 1 : p->threads * step.shares;
  env.shares = step.shares;
  p->has_plugins |= strcmp(kernel.name, kPluginKernel) == 0;
  if (makes_nothing(step)) {
    step.phases = 0;
    step.one_thread = true;
    return true;
  }
  if (!kernel.prepare(step, env)) {
    if (!*env.error) env.fail("kernel refused the step");
    return false;
  }
  if (step.index >= p->turns.first && step.index < p->turns.end) append_variant(step, "_turns");
  if (step.phases < 1 || step.scratch_bytes > SIZE_MAX / 256 || step.shared_bytes > SIZE_MAX / 4)
    return env.fail("phases or scratch memory are out of range");
  if (step.scratch_bytes > p->scratch_bytes) p->scratch_bytes = step.scratch_bytes;
  if (step.shared_bytes > p->shared_bytes) p->shared_bytes = step.shared_bytes;
  return true;
}

// Weights that were packed need not stay in memory a second time: their pages leave it, and come
// back from the file where a run reads them in place.
void drop_weight_pages(const lite_program& p, const Step& step) {
  const uintptr_t file = reinterpret_cast<uintptr_t>(p.file.data);
  for (int i = 0; i < step.num_inputs; ++i) {
    const Tensor* t = step.inputs[i];
    const uintptr_t begin = t ? reinterpret_cast<uintptr_t>(t->data) : 0;
    if (!t || !is_weight(*t) || begin < file || begin - file >= p.file.bytes) continue;
    forget_pages(t->data, t->bytes);
  }
}

}  // namespace

bool prepare_steps(lite_program* p) {
  const size_t before = p->memory.used_bytes;
  p->env.program = &p->program;
  for (int i = 0; i < p->program.num_steps; ++i) {
    Step& step = p->program.steps[i];
    if (p->opencl && p->opencl->step_of[i] >= 0) continue;
    char kernel[sizeof step.variant];
    snprintf(kernel, sizeof kernel, "%s", step.variant);
    if (prepare_step(p, step)) {
      drop_weight_pages(*p, step);
      continue;
    }
    char reason[400];
    snprintf(reason, sizeof reason, "%s", p->env.error);
    return p->env.fail("step %d '%s' (%s, %s): %s", i, step.name, step.op, kernel, reason);
  }
  p->packed_bytes = p->memory.used_bytes - before + p->cache.bytes;
  p->scratch_bytes = (p->scratch_bytes + kAlign - 1) / kAlign * kAlign;
  return prepare_bands(p);
}

}  // namespace lite
