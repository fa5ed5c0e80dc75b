#include "bands.h"

#include "../platform/clock.h"
#include "runtime.h"

namespace lite {

namespace {

// Bytes between two steps from which bands save more than their short passes cost. Behind a small
// second-level cache of x86 lies a third that is nearly as fast: with 512 KiB and AVX2 MobileNetV1 and V2
// take 4 and 6 % longer in bands. With 1 MiB and Zen 4 they take 3 and 4 % longer, and only what no longer
// stays in that third cache gains.
#if defined(__x86_64__)
size_t least_between(const Env& env) {
  if (env.l2_bytes < 1 << 20) return SIZE_MAX;
  return env.cpu.halves && env.l2_bytes < 2 << 20 ? 8 << 20 : 0;
}
#else
size_t least_between(const Env&) { return 0; }
#endif

int64_t round_down(int64_t value, int64_t grain) { return value / grain * grain; }
int64_t round_up(int64_t value, int64_t grain) { return (value + grain - 1) / grain * grain; }

int64_t row_bytes(const Tensor& t) { return t.dims[2] * t.pitch * dtype_bytes(t.dtype); }

bool is_image(const Tensor* t) { return t && t->rank == 4 && t->dims[0] == 1 && t->dims[1] > 0; }

// Only the step after `step` reads its output, and nothing else looks at those bytes.
bool is_passed_on(const Program& program, int step, const Tensor& t) {
  const Storage& storage = program.storage[t.index];
  if (storage.root != t.index || t.role != Role::kArena || !is_dense(t)) return false;
  for (int i = 0; i < program.num_tensors; ++i)
    if (i != t.index && program.storage[i].root == t.index) return false;
  for (int i = 0; i < program.num_outputs; ++i)
    if (program.outputs[i] == t.index) return false;
  for (int s = 0; s < program.num_steps; ++s)
    for (int i = 0; i < program.steps[s].num_inputs; ++i)
      if (program.steps[s].inputs[i] == &t && (s != step + 1 || i != 0)) return false;
  return true;
}

bool joins(const lite_program& p, int step) {
  const Program& program = p.program;
  const Step& a = program.steps[step];
  const Step& b = program.steps[step + 1];
  return attr_int(a, "band", 0) == attr_int(b, "band", 0) && a.num_outputs == 1 &&
         b.num_inputs > 0 && a.outputs[0] && a.outputs[0] == b.inputs[0] &&
         a.outputs[0]->bytes >= least_between(p.env) &&
         is_passed_on(program, step, *a.outputs[0]);
}

bool has_rows(const Step& s) {
  return s.by_rows && s.kernel->run_rows && s.rows.span > 0 && s.rows.stride > 0 &&
         s.rows.grain > 0 && s.phases == 1 && s.num_outputs == 1 && is_image(s.outputs[0]) &&
         is_image(input_of(s, 0)) && !has_halo(*s.outputs[0]);
}

// The last output is written while earlier steps still read: it must lie elsewhere.
bool overwrites(const Program& program, const Band& band) {
  const Tensor& out = *program.steps[band.first + band.count - 1].outputs[0];
  for (int k = 0; k < band.count; ++k) {
    const Step& step = program.steps[band.first + k];
    for (int i = k == 0 ? 0 : 1; i < step.num_inputs; ++i)
      if (step.inputs[i] && overlap(program, out, *step.inputs[i])) return true;
  }
  return false;
}

// Sets the rows that every window must hold when the last step does `rows` at a time; their bytes
// together.
int64_t hold(const Program& program, Band* band, int64_t rows) {
  int64_t bytes = 0;
  band->rows = rows;
  band->held[band->count - 1] = rows;
  for (int k = band->count - 1; k > 0; --k) {
    const Step& reader = program.steps[band->first + k];
    const Step& writer = program.steps[band->first + k - 1];
    band->held[k - 1] = (band->held[k] - 1) * reader.rows.stride + reader.rows.span +
                        2 * (writer.rows.grain - 1);
    bytes += band->held[k - 1] * row_bytes(*writer.outputs[0]);
  }
  return bytes;
}

// Whether the rows that one pass reads overlap those of the next.
bool overlaps(const Step& reader) { return reader.rows.span > reader.rows.stride; }

// Rows per pass: as many as let the windows take an eighth of the second-level cache. Where passes
// overlap a window moves its rows to its front when it is full: a longer one moves them less often.
bool choose_rows(const lite_program& p, Band* band) {
  const Step* steps = p.program.steps + band->first;
  const Step& last = steps[band->count - 1];
  const int64_t grain = last.rows.grain, height = last.outputs[0]->dims[1];
  const int64_t room = static_cast<int64_t>(p.env.l2_bytes);
  const int64_t mine = round_up((height + p.threads - 1) / p.threads, grain);
  int64_t rows = grain;
  if (height > INT32_MAX || hold(p.program, band, rows) > room / 4) return false;
  while (rows < mine && hold(p.program, band, rows + grain) <= room / 8) rows += grain;
  const int64_t passes = (mine + rows - 1) / rows;
  const int64_t used = hold(p.program, band, round_up((mine + passes - 1) / passes, grain));
  int longer = 0;
  for (int k = 0; k + 1 < band->count; ++k) longer += overlaps(steps[k + 1]);
  for (int k = 0; k + 1 < band->count; ++k) {
    const Tensor& t = *steps[k].outputs[0];
    if (!overlaps(steps[k + 1]) || used > room / 2) continue;
    band->held[k] += (room / 2 - used) / longer / (row_bytes(t) + 1);
    if (band->held[k] > t.dims[1]) band->held[k] = t.dims[1];
  }
  return true;
}

}  // namespace

bool may_band(const Step& step, const Env& env) {
  const Tensor *in = input_of(step, 0), *out = output_of(step, 0);
  const size_t least = least_between(env);
  return attr_int(step, "band", 0) > 0 && in && out && (in->bytes >= least || out->bytes >= least);
}

bool prepare_bands(lite_program* p) {
  Program& program = p->program;
  p->bands = static_cast<Band*>(p->memory.allocate_array(program.num_steps, sizeof(Band)));
  if (!p->bands) return p->env.out_of_memory();
  size_t windows = 0;
  const size_t start = p->scratch_bytes;
  for (int i = 0; i < program.num_steps; ++i) {
    Band band{i, 1, 0, {}, {}};
    if (!has_rows(program.steps[i])) continue;
    while (band.count < kMaxBandSteps && i + band.count < program.num_steps &&
           has_rows(program.steps[i + band.count]) && joins(*p, i + band.count - 1))
      ++band.count;
    // Every overlap makes the rows before it more: a long band may have to be cut.
    while (band.count > 1 && (overwrites(program, band) || !choose_rows(*p, &band))) --band.count;
    if (band.count == 1) continue;
    size_t used = 0;
    for (int k = 0; k + 1 < band.count; ++k) {
      const Tensor& t = *program.steps[i + k].outputs[0];
      band.windows[k] = start + used;
      // One cache line apart: rows of a power of two would share cache sets with the next window.
      used += round_up(band.held[k] * row_bytes(t), kAlign) + kAlign;
    }
    if (used > windows) windows = used;
    for (int k = 0; k < band.count; ++k) append_variant(program.steps[i + k], "_band");
    p->bands[i] = band;
    i += band.count - 1;
  }
  p->scratch_bytes = start + round_up(windows, kAlign);
  return true;
}

bool is_open(const lite_program* p, const Band& band) {
  for (int k = 0; k + 1 < band.count; ++k)
    if (p->step_taps[band.first + k]) return false;
  return true;
}

namespace {

// A step's output rows up to `done` are there, those from `base` on in a window of `held` rows.
struct Stage {
  const Step* step;
  uint8_t* rows;              // where row `base` lies
  int64_t held, base, done;
  int64_t bytes;              // of a row
  int64_t* ns;
};

// Makes rows up to `end`; rows before `keep` are no longer wanted.
void produce(Stage* stages, int k, int64_t keep, int64_t end, void* scratch) {
  Stage& s = stages[k];
  const RowMap& map = s.step->rows;
  const Tensor& in = *s.step->inputs[0];
  const int64_t height = s.step->outputs[0]->dims[1], in_height = in.dims[1];
  keep = round_down(keep, map.grain);
  end = round_up(end, map.grain);
  if (end > height) end = height;
  if (end <= s.done) return;
  // As addresses: row 0 of a window may lie before any memory of ours.
  uintptr_t input = reinterpret_cast<uintptr_t>(in.data);
  if (k > 0) {
    int64_t first = (s.done > keep ? s.done : keep) * map.stride - map.pad;
    int64_t last = (end - 1) * map.stride - map.pad + map.span;
    if (first < 0) first = 0;
    if (first > in_height) first = in_height;
    if (last > in_height) last = in_height;
    produce(stages, k - 1, first, last, scratch);
    const Stage& from = stages[k - 1];
    input = reinterpret_cast<uintptr_t>(from.rows) - from.base * from.bytes;
  }
  const int64_t start = now_ns();
  if (s.done < keep) s.done = keep;
  if (end - s.base > s.held) {
    memmove(s.rows, s.rows + (keep - s.base) * s.bytes, (s.done - keep) * s.bytes);
    s.base = keep;
  }
  s.step->kernel->run_rows(
      *s.step,
      {reinterpret_cast<const uint8_t*>(input),
       reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(s.rows) - s.base * s.bytes), s.done,
       end},
      scratch);
  *s.ns += now_ns() - start;
  s.done = end;
}

}  // namespace

void divide_band(lite_program* p, const Band& band) {
  const Step& last = p->program.steps[band.first + band.count - 1];
  divide_work(p->queues, p->threads, last.outputs[0]->dims[1], last.rows.grain);
}

void run_band(lite_program* p, const Band& band, int thread, int64_t* ns) {
  uint8_t* scratch = p->scratch + thread * p->scratch_bytes;
  Stage stages[kMaxBandSteps];
  const int last = band.count - 1;
  for (int k = 0; k <= last; ++k) {
    const Step& step = p->program.steps[band.first + k];
    ns[k] = 0;
    const Tensor& out = *step.outputs[0];
    stages[k] = {&step,
                 k == last ? out.data : scratch + band.windows[k],
                 k == last ? out.dims[1] : band.held[k],
                 0,
                 0,
                 row_bytes(out),
                 ns + k};
  }
  const int64_t grain = stages[last].step->rows.grain;
  for (int64_t at = 0;;) {
    const Units rows = take_work(p->queues, p->threads, thread, band.rows, grain);
    if (rows.begin == rows.end) return;
    // Elsewhere: nothing of what lies in the windows is of use.
    if (rows.begin != at)
      for (int k = 0; k <= last; ++k) stages[k].base = stages[k].done = 0;
    stages[last].done = rows.begin;
    produce(stages, last, 0, rows.end, scratch);
    at = rows.end;
  }
}

}  // namespace lite
