// Executes prepared steps: every thread walks the same list, a barrier follows each phase. Steps
// that the first thread runs alone follow each other without one.
#include <time.h>

#include "runtime.h"

namespace lite {

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

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

void copy_taps(lite_program* p, int step) {
  for (int i = 0; i < p->program.num_tensors; ++i)
    if (p->tapped[i] && p->tap_step[i] == step) copy_dense(p->program.tensors[i], p->taps[i]);
}

void copy_taps_after(lite_program* p, int step, int thread) {
  if (p->step_taps[step] == 0) return;
  if (thread == 0) copy_taps(p, step);
  if (p->threads > 1) p->barrier.wait(p->threads);
}

void run_phase(const Step& step, int phase, int thread, int threads, void* scratch) {
  if (phase == 0 && (step.kernel->flags & kAcceptsHalo))
    for (int o = 0; o < step.num_outputs; ++o)
      if (step.outputs[o] && has_halo(*step.outputs[o]))
        fill_halo(*step.outputs[o], thread, threads);
  step.kernel->run(step, phase, thread, threads, scratch);
}

// One thread's own shares of a phase, then what is left of the others': a core that is slow, or has
// other work, keeps nobody waiting for more than a share. `before`: shares of earlier phases.
void run_shares(lite_program* p, const Step& step, int phase, int thread, int64_t before,
                void* scratch) {
  for (int i = 0; i < p->threads; ++i) {
    const int owner = (thread + i) % p->threads;
    for (int64_t k; (k = p->shares[owner].take(before, step.shares)) >= 0;)
      run_phase(step, phase, owner * step.shares + static_cast<int>(k),
                p->threads * step.shares, scratch);
  }
}

struct Run {
  lite_program* program;
  int64_t start_ns;
};

void run_thread(void* context, int thread) {
  const Run& run = *static_cast<Run*>(context);
  lite_program* p = run.program;
  const int threads = p->threads;
  void* scratch = p->scratch + thread * p->scratch_bytes;
  int64_t shares_before = 0;
  for (int i = 0; i < p->program.num_steps; ++i) {
    const Step& step = p->program.steps[i];
    const Band& band = p->bands[i];
    if (band.count && is_open(p, band)) {
      const int64_t start_ns = now_ns() - run.start_ns;
      int64_t ns[kMaxBandSteps];
      run_band(p, band, thread, ns);
      if (threads > 1) p->barrier.wait(threads);
      i += band.count - 1;
      if (thread == 0) {
        // The steps took turns: their times are laid one after the other, waiting behind the last.
        int64_t at = start_ns;
        for (int k = 0; k + 1 < band.count; ++k) p->end_ns[band.first + k] = at += ns[k];
        p->end_ns[i] = now_ns() - run.start_ns;
      }
      copy_taps_after(p, i, thread);
      continue;
    }
    if (step.one_thread) {
      if (thread == 0)
        for (int phase = 0; phase < step.phases; ++phase) run_phase(step, phase, 0, 1, scratch);
      const bool next_too = i + 1 < p->program.num_steps && p->program.steps[i + 1].one_thread;
      if (threads > 1 && !next_too) p->barrier.wait(threads);
    } else {
      for (int phase = 0; phase < step.phases; ++phase) {
        if (step.shares == 1) {
          run_phase(step, phase, thread, threads, scratch);
        } else {
          run_shares(p, step, phase, thread, shares_before, scratch);
          shares_before += step.shares;
        }
        if (threads > 1) p->barrier.wait(threads);
      }
    }
    if (thread == 0) p->end_ns[i] = now_ns() - run.start_ns;
    copy_taps_after(p, i, thread);
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

bool run_steps(lite_program* p) {
  ThreadPool* pool = nullptr;
  if (p->threads > 1) {
    pool = acquire_pool(p->threads, p->pin);
    if (!pool) return p->env.fail("cannot start %d threads; use fewer", p->threads);
  }
  place_tensors(p);
  if (p->num_early_taps) copy_taps(p, -1);
  for (int i = 0; i < p->threads; ++i) p->shares[i].taken.store(0, std::memory_order_relaxed);
  Run run{p, now_ns()};
  if (pool) {
    run_on_pool(pool, run_thread, &run);
    release_pool(pool);
  } else {
    run_thread(&run, 0);
  }
  // Outputs that are views of something else have no step of their own that writes them.
  for (int i = 0; i < p->program.num_outputs; ++i) {
    const int t = p->program.outputs[i];
    const Tensor& tensor = p->program.tensors[t];
    if (p->program.storage[t].root != t && tensor.size)
      memmove(place_of(p, t), tensor.data, tensor.bytes);
  }
  p->run_ns = now_ns() - run.start_ns;
  return true;
}

}  // namespace lite
