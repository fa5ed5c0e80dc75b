// Kernels of floats on tensors of bf16: inputs are widened, results rounded.
//
// A kernel that can compute some rows of an image (Kernel::run_rows) does so in scratch memory that stays
// in the cache; for others whole tensors are widened before their phases and rounded after them. A
// kernel bf16_NAME that takes floats too (its products are bf16) serves the step itself, f32_NAME otherwise.
#include <stdio.h>

#include "runtime/dispatch.h"
#include "shorts.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kMost = 8;  // inputs, or outputs

// A tensor of the step in floats, dense.
struct Moved {
  const Tensor* narrow;
  Tensor* floats;
  size_t at;             // of Step::shared
  bool output;
};

struct State {
  Step step;             // on floats
  Tensor* inputs[kMost];
  Tensor* outputs[kMost];
  Moved moved[2 * kMost];
  int32_t count;
  bool by_rows;
  int64_t rows;          // of outputs at once
  size_t window_in, window_out;  // of scratch memory, for rows
};

bool is_short(const Tensor* t) { return t && t->dtype == DType::kBF16; }

bool has_shorts(const Step& step, Env&) {
  bool any = false;
  for (int i = 0; i < step.num_inputs; ++i) any |= is_short(step.inputs[i]);
  for (int i = 0; i < step.num_outputs; ++i) any |= is_short(step.outputs[i]);
  return any;
}

// Visits one thread's innermost rows: visit(element of the tensor, of a dense one, elements).
template <class Visit>
void for_each_row(const Tensor& t, int thread, int threads, Visit visit) {
  int64_t strides[kMaxRank], begin, end;
  const int64_t origin = strides_of(t, strides), width = last_dim(t);
  share(row_count(t), 1, thread, threads, &begin, &end);
  if (is_dense(t)) return visit(begin * width, begin * width, (end - begin) * width);
  for (int64_t row = begin; row < end; ++row) {
    int64_t at = origin, rest = row;
    for (int axis = t.rank - 2; axis >= 0; --axis) {
      at += rest % t.dims[axis] * strides[axis];
      rest /= t.dims[axis];
    }
    visit(at, row * width, width);
  }
}

size_t round_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// The step on floats: narrow are replaced, the first `count` of state->moved.
bool make_inner(const Step& step, Env& env, State* state) {
  if (step.num_inputs > kMost || step.num_outputs > kMost) return env.fail("too many operands");
  const auto in_floats = [&](Tensor* t, bool output) -> Tensor* {
    if (!is_short(t)) return t;
    Tensor* floats = static_cast<Tensor*>(env.allocate(sizeof(Tensor)));
    if (!floats) return nullptr;
    *floats = *t;
    floats->dtype = DType::kF32;
    floats->pitch = last_dim(*t);
    for (int32_t& cells : floats->halo) cells = 0;
    floats->bytes = static_cast<size_t>(t->size) * sizeof(float);
    floats->data = nullptr;
    // Numbers of a narrow constant are there in a run only, where prepare does not see them.
    if (is_weight(*floats)) floats->role = Role::kArena;
    state->moved[state->count++] = {t, floats, 0, output};
    return floats;
  };
  for (int i = 0; i < step.num_inputs; ++i) {
    state->inputs[i] = in_floats(step.inputs[i], false);
    if (step.inputs[i] && !state->inputs[i]) return env.out_of_memory();
  }
  for (int i = 0; i < step.num_outputs; ++i) {
    state->outputs[i] = in_floats(step.outputs[i], true);
    if (step.outputs[i] && !state->outputs[i]) return env.out_of_memory();
  }
  Step& inner = state->step;
  inner = step;
  inner.inputs = state->inputs;
  inner.outputs = state->outputs;
  inner.by_rows = true;  // whether the step is or not
  inner.state = nullptr;
  return true;
}

bool prepare_inner(const Step& step, Env& env, State* state) {
  Step& inner = state->step;
  char name[sizeof step.variant];
  const char* isa = "";
  snprintf(name, sizeof name, "%s", step.kernel->name);
  inner.kernel = find_kernel(name, env.cpu, &inner, &env, &isa);
  if (!inner.kernel) {
    snprintf(name, sizeof name, "f32%s", step.kernel->name + strlen("bf16"));
    inner.kernel = find_kernel(name, env.cpu, &inner, &env, &isa);
  }
  if (!inner.kernel) return env.fail("kernel '%s' is not in this library", name);
  set_variant(inner, "%s__%s", inner.kernel->name, isa);
  return inner.kernel->prepare(inner, env);
}

// Whether rows of one image suffice: the main input and the output are narrow, nothing else is.
bool can_go_by_rows(const State& state) {
  const Step& s = state.step;
  return s.kernel->run_rows && s.rows.span > 0 && s.phases == 1 && state.count == 2 &&
         s.num_outputs == 1 && state.moved[0].floats == s.inputs[0] && state.moved[1].output &&
         s.inputs[0]->rank == 4 && s.inputs[0]->dims[0] == 1 && s.outputs[0]->dims[0] == 1;
}

int64_t row_elements(const Tensor& t) { return t.dims[2] * t.dims[3]; }

// As many rows as let both windows take an eighth of the second-level cache.
void plan_rows(const Env& env, State* state) {
  const Step& s = state->step;
  const Tensor &in = *s.inputs[0], &out = *s.outputs[0];
  const RowMap& map = s.rows;
  const auto windows = [&](int64_t rows, size_t* first, size_t* second) {
    int64_t most = (rows - 1) * map.stride + map.span;
    if (most > in.dims[1]) most = in.dims[1];
    *first = round_up(static_cast<size_t>(most * row_elements(in)) * sizeof(float)) + kAlign;
    *second = round_up(static_cast<size_t>(rows * row_elements(out)) * sizeof(float));
  };
  size_t first, second;
  for (state->rows = map.grain;; state->rows += map.grain) {
    windows(state->rows + map.grain, &first, &second);
    if (first + second > env.l2_bytes / 8 || state->rows * env.threads >= out.dims[1]) break;
  }
  windows(state->rows, &first, &second);
  state->window_in = round_up(s.scratch_bytes);
  state->window_out = state->window_in + first;
}

bool prepare(Step& step, Env& env) {
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  step.state = state;
  if (!make_inner(step, env, state) || !prepare_inner(step, env, state)) return false;
  const Step& inner = state->step;
  // Both names end with what was chosen.
  set_variant(step, "%s%s", step.kernel->name, strstr(inner.variant, "__"));
  state->by_rows = can_go_by_rows(*state);
  if (state->by_rows) {
    plan_rows(env, state);
    const size_t out = static_cast<size_t>(state->rows * row_elements(*inner.outputs[0]));
    step.scratch_bytes = state->window_out + round_up(out * sizeof(float));
    if (step.by_rows) step.rows = inner.rows;
    return true;
  }
  step.phases = inner.phases + 2;
  step.scratch_bytes = inner.scratch_bytes;
  size_t bytes = round_up(inner.shared_bytes);
  for (int i = 0; i < state->count; ++i) {
    state->moved[i].at = bytes;
    if (!add_size(bytes, round_up(state->moved[i].floats->bytes), &bytes))
      return env.fail("tensors too large");
  }
  step.shared_bytes = bytes;
  return true;
}

// Output rows [begin, end) of the only image; x and y are where the tensors' first rows lie.
void run_some(const State& state, const uint8_t* x, uint8_t* y, int64_t begin, int64_t end,
              void* scratch) {
  const Step& s = state.step;
  const RowMap& map = s.rows;
  const int64_t in_row = row_elements(*s.inputs[0]), out_row = row_elements(*s.outputs[0]);
  const Tensor &in = *state.moved[0].narrow, &out = *state.moved[1].narrow;
  int64_t in_strides[kMaxRank], out_strides[kMaxRank];
  const uint16_t* from = reinterpret_cast<const uint16_t*>(x) + strides_of(in, in_strides);
  uint16_t* to = reinterpret_cast<uint16_t*>(y) + strides_of(out, out_strides);
  float* wide = reinterpret_cast<float*>(static_cast<uint8_t*>(scratch) + state.window_in);
  float* results = reinterpret_cast<float*>(static_cast<uint8_t*>(scratch) + state.window_out);
  const int64_t height = in.dims[1];
  for (int64_t row = begin; row < end;) {
    const int64_t stop = row + state.rows < end ? row + state.rows : end;
    int64_t first = row * map.stride - map.pad, last = (stop - 1) * map.stride - map.pad + map.span;
    if (first < 0) first = 0;
    if (first > height) first = height;
    if (last > height) last = height;
    const int64_t c_in = last_dim(in), c_out = last_dim(out);
    for (int64_t i = first; i < last; ++i) {
      const uint16_t* line = from + i * in_strides[1];
      float* at = wide + (i - first) * in_row;
      if (in_strides[2] == c_in) widen(line, at, in_row);
      else
        for (int64_t p = 0; p < in.dims[2]; ++p) widen(line + p * in_strides[2], at + p * c_in, c_in);
    }
    // As addresses: row 0 may lie before any memory of ours.
    const uintptr_t input = reinterpret_cast<uintptr_t>(wide) - first * in_row * sizeof(float);
    const uintptr_t output = reinterpret_cast<uintptr_t>(results) - row * out_row * sizeof(float);
    s.kernel->run_rows(
        s, {reinterpret_cast<const uint8_t*>(input), reinterpret_cast<uint8_t*>(output), row, stop},
        scratch);
    for (int64_t i = row; i < stop; ++i) {
      uint16_t* line = to + i * out_strides[1];
      const float* at = results + (i - row) * out_row;
      if (out_strides[2] == c_out) round(at, line, out_row);
      else
        for (int64_t p = 0; p < out.dims[2]; ++p)
          round(at + p * c_out, line + p * out_strides[2], c_out);
    }
    row = stop;
  }
}

void run(const Step& step, int phase, int thread, int threads, void* scratch) {
  State& state = *static_cast<State*>(step.state);
  if (state.by_rows) {
    int64_t begin, end;
    share(step.outputs[0]->dims[1], state.step.rows.grain, thread, threads, &begin, &end);
    return run_some(state, step.inputs[0]->data, step.outputs[0]->data, begin, end, scratch);
  }
  uint8_t* shared = static_cast<uint8_t*>(step.shared);
  if (phase > 0 && phase + 1 < step.phases)
    return state.step.kernel->run(state.step, phase - 1, thread, threads, scratch);
  const bool output = phase > 0;
  if (!output && thread == 0) {  // the others look after the barrier
    state.step.shared = shared;
    for (int i = 0; i < state.count; ++i)
      state.moved[i].floats->data = shared + state.moved[i].at;
  }
  for (int i = 0; i < state.count; ++i) {
    const Moved& m = state.moved[i];
    if (m.output != output) continue;
    float* floats = reinterpret_cast<float*>(shared + m.at);
    uint16_t* narrow = m.narrow->as<uint16_t>();
    for_each_row(*m.narrow, thread, threads, [&](int64_t at, int64_t dense, int64_t n) {
      if (output) round(floats + dense, narrow + at, n);
      else widen(narrow + at, floats + dense, n);
    });
  }
}

void run_rows(const Step& step, const RowRange& r, void* scratch) {
  run_some(*static_cast<const State*>(step.state), r.input, r.output, r.begin, r.end, scratch);
}

constexpr uint32_t kFlags = kAcceptsPitch | kAcceptsHalo;
const Kernel kBf16[] = {
    {"Conv", "bf16_conv2d_depthwise", prepare, run, kFlags, has_shorts, run_rows},
    {"MaxPool AveragePool GlobalAveragePool GlobalMaxPool", "bf16_pool", prepare, run, kFlags,
     has_shorts, run_rows},
    {"Conv", "bf16_conv2d_gemm", prepare, run, kFlags, has_shorts},
    {"Conv", "bf16_conv2d_3x3", prepare, run, kFlags, has_shorts},
    {"ConvTranspose", "bf16_deconv2d", prepare, run, kFlags, has_shorts},
    {"Gemm", "bf16_gemm", prepare, run, kAcceptsPitch, has_shorts},
    {"Attention", "bf16_attention", prepare, run, kAcceptsPitch, has_shorts},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(bf16, kBf16)
