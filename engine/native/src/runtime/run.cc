// Executes prepared steps: every thread walks the same list, a barrier follows each phase. Steps
// that the first thread runs alone follow each other without one.
#include "../opencl/executor.h"
#include "../platform/clock.h"
#include "../plugins/plugins.h"
#include "runtime.h"

namespace lite {

namespace {

void fill(uint8_t* at, int64_t count, DType dtype, int32_t value) {
  const int bytes = dtype_bytes(dtype);
  if (value == 0) {
    memset(at, 0, count * bytes);
  } else if (bytes == 1) {
    memset(at, value, count);
  } else if (dtype == DType::kF32) {
    float* out = reinterpret_cast<float*>(at);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(value);
  } else {
    for (int64_t i = 0; i < count; ++i) memcpy(at + i * bytes, &value, bytes < 4 ? bytes : 4);
  }
}

// One thread's share of a tensor's halo. Channel slices keep to their own channels.
void fill_halo(const Tensor& t, int thread, int threads) {
  const int64_t rows = t.dims[1] + t.halo[0] + t.halo[2];
  const int64_t columns = t.dims[2] + t.halo[1] + t.halo[3];
  const int64_t bytes = dtype_bytes(t.dtype);
  int64_t begin, end;
  share(t.dims[0] * rows, 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t y = row % rows - t.halo[0];
    const bool outside = y < 0 || y >= t.dims[1];
    for (int64_t column = 0; column < columns; ++column) {
      if (!outside && column == t.halo[1]) column += t.dims[2];
      if (column >= columns) break;
      fill(t.data + (row * columns + column) * t.pitch * bytes, t.dims[3], t.dtype, t.halo_value);
    }
  }
}

uint8_t* place_of(lite_program* p, int tensor) {
  return p->bound[tensor] ? p->bound[tensor] : p->own[tensor];
}

// Addresses of everything that lives in inputs and outputs may change from run to run.
void place_tensors(lite_program* p) {
  for (int i = 0; i < p->program.num_tensors; ++i) {
    const Storage& storage = p->program.storage[i];
    const Role role = p->program.tensors[storage.root].role;
    if (role != Role::kInput && role != Role::kOutput) continue;
    p->program.tensors[i].data =
        place_of(p, storage.root) + (storage.root == i ? 0 : storage.offset);
  }
}

// What has memory for one turn is copied after each to its own place, what has it for all after the last.
void copy_taps(lite_program* p, int step, int turn) {
  const Turns& turns = p->turns;
  const bool last = step < turns.first || step >= turns.end || turn + 1 == turns.count;
  for (int i = 0; i < p->program.num_tensors; ++i) {
    // What lies on a device and nothing writes has no value: its copy stays zero.
    const Tensor& t = p->program.tensors[i];
    if (!p->tapped[i] || p->tap_step[i] != step || !t.data) continue;
    const bool kept = p->program.storage[i].turns == kKept;
    if (!kept && !last) continue;
    copy_dense(t, p->taps[i] + (kept ? turn : 0) * t.size * dtype_bytes(t.dtype));
  }
}

// All threads meet; last() is called once, before any of them goes on.
template <class Last>
void meet(lite_program* p, Last last) {
  if (p->threads > 1) p->barrier.wait(p->threads, last);
  else last();
}

void copy_taps_after(lite_program* p, int step, int turn, int thread) {
  if (p->step_taps[step] == 0) return;
  if (thread == 0) copy_taps(p, step, turn);
  meet(p, [] {});
}

void run_phase(const Step& step, int phase, int thread, int threads, void* scratch) {
  if (phase == 0 && (step.kernel->flags & kAcceptsHalo))
    for (int o = 0; o < step.num_outputs; ++o)
      if (step.outputs[o] && has_halo(*step.outputs[o]))
        fill_halo(*step.outputs[o], thread, threads);
  step.kernel->run(step, phase, thread, threads, scratch);
}

// One thread's own shares of a phase, then what is left of the others': a core that is slow, or has
// other work, keeps nobody waiting for more than a share.
void run_shares(lite_program* p, const Step& step, int phase, int thread, void* scratch) {
  for (Units u; (u = take_work(p->queues, p->threads, thread, 1, 1)).begin < u.end;)
    run_phase(step, phase, static_cast<int>(u.begin), p->threads * step.shares, scratch);
}

bool is_band(const lite_program* p, int step) {
  return p->bands[step].count && is_open(p, p->bands[step]);
}

// Adds what a thread computes in its scope to its time of a step, where somebody asked for it.
struct ThreadClock {
  lite_program* p;
  int step, thread;
  int64_t start_ns;
  ThreadClock(lite_program* p, int step, int thread)
      : p(p), step(step), thread(thread), start_ns(p->note_threads ? now_ns() : 0) {}
  ~ThreadClock() {
    if (p->note_threads) thread_ns(p, step, thread) += now_ns() - start_ns;
  }
};

// Before any thread begins with a step, or one of its phases.
void divide_step(lite_program* p, int i, int last) {
  if (i >= last) return;
  const Step& step = p->program.steps[i];
  if (is_band(p, i)) divide_band(p, p->bands[i]);
  else if (step.shares > 1) divide_work(p->queues, p->threads, p->threads * step.shares, 1);
}

// The steps of a band took turns: their times are laid one after the other, each as long as its part
// of what all threads spent.
void lay_times(lite_program* p, const Band& band, int64_t start_ns, int64_t end_ns) {
  double spent[kMaxBandSteps] = {}, all = 0, before = 0;
  for (int k = 0; k < band.count; ++k) {
    for (int thread = 0; thread < p->threads; ++thread) spent[k] += p->times[thread].ns[k];
    all += spent[k];
  }
  for (int k = 0; k + 1 < band.count; ++k) {
    before += spent[k];
    const double part = all > 0 ? before / all : 0;
    p->end_ns[band.first + k] = start_ns + static_cast<int64_t>((end_ns - start_ns) * part);
  }
  p->end_ns[band.first + band.count - 1] = end_ns;
}

struct Run {
  lite_program* program;
  int first, last;
  int64_t start_ns;
};

void run_thread(void* context, int thread) {
  const Run& run = *static_cast<Run*>(context);
  lite_program* p = run.program;
  const int count = run.last;
  const Turns& turns = p->turns;
  void* scratch = p->scratch + thread * p->scratch_bytes;
  int turn = 0;
  for (int i = run.first; i < count; ++i) {
    const Step& step = p->program.steps[i];
    if (is_band(p, i)) {
      const Band& band = p->bands[i];
      run_band(p, band, thread, p->times[thread].ns);
      for (int k = 0; p->note_threads && k < band.count; ++k)
        thread_ns(p, i + k, thread) += p->times[thread].ns[k];
      meet(p, [&] {
        lay_times(p, band, start_of(p, i), now_ns() - run.start_ns);
        divide_step(p, step_after(p, i + band.count - 1), count);
      });
      i += band.count - 1;
    } else if (step.one_thread) {
      if (thread == 0) {
        const ThreadClock clock(p, i, 0);
        for (int phase = 0; phase < step.phases; ++phase) run_phase(step, phase, 0, 1, scratch);
        p->end_ns[i] = now_ns() - run.start_ns;
      }
      const bool next_too = i + 1 < count && i + 1 != turns.end && p->program.steps[i + 1].one_thread;
      if (!next_too) meet(p, [&] { divide_step(p, step_after(p, i), count); });
    } else {
      for (int phase = 0; phase < step.phases; ++phase) {
        {
          const ThreadClock clock(p, i, thread);
          if (step.shares > 1) run_shares(p, step, phase, thread, scratch);
          else run_phase(step, phase, thread, p->threads, scratch);
        }
        meet(p, [&] {
          p->end_ns[i] = now_ns() - run.start_ns;
          divide_step(p, phase + 1 < step.phases ? i : step_after(p, i), count);
        });
      }
    }
    copy_taps_after(p, i, turn, thread);
    if (!turns.end || i + 1 != turns.end) continue;
    turn = turn + 1 < turns.count ? turn + 1 : 0;
    if (turn) i = turns.first - 1;
  }
}

}  // namespace

void copy_dense(const Tensor& t, uint8_t* out) {
  const size_t bytes = dtype_bytes(t.dtype);
  if (is_dense(t)) {
    memcpy(out, t.data, t.size * bytes);
    return;
  }
  if (t.size == 0) return;
  int64_t strides[kMaxRank], index[kMaxRank] = {};
  const int64_t origin = strides_of(t, strides);
  const int64_t rows = row_count(t), row_bytes = last_dim(t) * bytes;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = origin;
    for (int axis = 0; axis + 1 < t.rank; ++axis) at += index[axis] * strides[axis];
    memcpy(out + row * row_bytes, t.data + at * bytes, row_bytes);
    for (int axis = t.rank - 2; axis >= 0 && ++index[axis] == t.dims[axis]; --axis) index[axis] = 0;
  }
}

bool run_range(lite_program* p, int first, int last) {
  ThreadPool* pool = nullptr;
  if (p->threads > 1) {
    pool = acquire_pool(p->threads, p->pin);
    if (!pool) return p->env.fail("cannot start %d threads; use fewer", p->threads);
  }
  divide_step(p, first, last);
  // Where steps of a device came before, times go on from theirs.
  Run run{p, first, last, now_ns() - (first ? p->end_ns[first - 1] : 0)};
  if (pool) {
    run_on_pool(pool, run_thread, &run);
    release_pool(pool);
  } else {
    run_thread(&run, 0);
  }
  return true;
}

bool run_steps(lite_program* p) {
  const int64_t start_ns = now_ns();
  place_tensors(p);
  p->copies = p->copied_bytes = 0;
  if (p->note_threads)
    memset(p->thread_ns, 0, sizeof(int64_t) * p->threads * p->program.num_steps);
  if (p->num_early_taps) copy_taps(p, -1, 0);
  if (!(p->opencl ? opencl::run(p) : run_range(p, 0, p->program.num_steps))) return false;
  // Outputs that are views of something else have no step of their own that writes them.
  for (int i = 0; i < p->program.num_outputs; ++i) {
    const int t = p->program.outputs[i];
    const Tensor& tensor = p->program.tensors[t];
    if (p->program.storage[t].root == t || !tensor.size || place_of(p, t) == tensor.data) continue;
    memmove(place_of(p, t), tensor.data, tensor.bytes);
    if (p->opencl) {
      ++p->copies;
      p->copied_bytes += static_cast<int64_t>(tensor.bytes);
    }
  }
  p->run_ns = now_ns() - start_ns;
  return plugins_succeeded(p);
}

}  // namespace lite
