// i8_lstm: QLSTM, a whole sequence on bytes with a cell of 16 bits. ops/fixed_lstm.h has the numbers
// between, ops/quant_lstm.py the formulas.
//
// Phase 0 does the input products of all time steps at once. Then a time step has up to three phases:
// the gates' sums, shared by unit; what follows from them, by unit, or by row where a row is normalized
// (without that it is the same phase); the projection, by output. The state h has two buffers.
#include <initializer_list>

#include "ops/fixed_lstm.h"
#include "vec.h"

namespace lite::LITE_ISA {

namespace {

enum Gate { kIn, kForget, kNew, kOut, kGates };
constexpr int kLongest = 1 << 15;  // numbers of a row of weights: its sum fits int32

struct Rates {
  Fraction x, h, cell, norm;
  int32_t least;  // of a variance
};

struct State {
  int64_t steps, batch, width, units, outputs;
  int first;  // 1 where the input gate is what the forget gate leaves
  bool peepholes_by_row;
  int32_t x_zero, y_zero, hidden_zero, cell_bits, cell_clip, y_clip;
  Fraction hidden, projected;
  Rates rates[kGates];
  const int8_t *w, *r, *projection;  // of the first gate that there is
  const int16_t *peepholes, *norms;
  const int32_t* b;
  int32_t *x_bias, *h_bias;  // [gate][unit]: zero points times weights, and b of the first
  int32_t* y_bias;
  // Offsets in bytes into Step::shared.
  int64_t products;  // int16 [step, row][gate][unit]
  int64_t sums;      // int16 [row][gate][unit]
  int64_t cell;      // int16 [row][unit]
  int64_t h[2];      // int8 [row][output]
  int64_t hidden_at; // int8 [row][unit], where there is a projection
  int each;          // phases of a time step
};

template <class T>
T* shared(const Step& step, int64_t offset) {
  return reinterpret_cast<T*>(static_cast<uint8_t*>(step.shared) + offset);
}

// Plain loops: gcc turns them into widening multiplications of each instruction set.
LITE_INLINE int32_t dot(const int8_t* a, const int8_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += int32_t{a[i]} * b[i];
  return sum;
}

bool part(const Step& step, int i, DType dtype, int64_t size, bool needed) {
  const Tensor* t = input_of(step, i);
  if (!t) return !needed;
  return is_weight(*t) && t->dtype == dtype && t->size == size && is_dense(*t);
}

template <class T>
const T* data(const Step& step, int i) {
  const Tensor* t = input_of(step, i);
  return t ? t->as<T>() : nullptr;
}

bool read_numbers(const Step& step, Env& env, State* s) {
  s->x_zero = static_cast<int32_t>(attr_int(step, "x_zero", 0));
  s->y_zero = static_cast<int32_t>(attr_int(step, "y_zero", 0));
  s->hidden_zero = static_cast<int32_t>(attr_int(step, "hidden_zero", 0));
  s->cell_bits = static_cast<int32_t>(attr_int(step, "cell_bits", 11));
  s->cell_clip = static_cast<int32_t>(attr_int(step, "cell_clip", 0));
  s->y_clip = static_cast<int32_t>(attr_int(step, "y_clip", 0));
  for (int32_t zero : {s->x_zero, s->y_zero, s->hidden_zero})
    if (zero < -128 || zero > 128) return env.fail("a zero point is no byte");
  if (s->cell_bits < 9 || s->cell_bits > 15) return env.fail("the cell's steps are out of range");
  if (s->cell_clip < 0 || s->cell_clip > 32767 || s->y_clip < 0 || s->y_clip > 127)
    return env.fail("a clip is out of range");
  const float* ratios = step.inputs[4]->as<float>();
  const int count = kGates - s->first;
  for (int i = 0; i < 4 * count; ++i)
    if (!(ratios[i] >= 0) || !(ratios[i] < 65536)) return env.fail("a ratio is out of range");
  for (int g = s->first; g < kGates; ++g) {
    const float* of = ratios + g - s->first;
    const float least = 10000.0f * of[3 * count];
    s->rates[g] = {fraction_of(of[0]), fraction_of(of[count]), fraction_of(of[2 * count]),
                   fraction_of(of[3 * count]), least < 1 ? 1 : static_cast<int32_t>(least)};
    s->rates[g].norm.exponent += 12;
  }
  const double ratio[2] = {attr_float(step, "hidden_ratio", 0), attr_float(step, "projection_ratio", 0)};
  for (double r : ratio)
    if (!(r >= 0) || !(r < 65536)) return env.fail("a ratio is out of range");
  s->hidden = fraction_of(ratio[0]), s->projected = fraction_of(ratio[1]);
  return true;
}

bool check_ports(const Step& step, Env& env, State* s) {
  const Tensor *x = input_of(step, 0), *w = input_of(step, 1), *r = input_of(step, 2);
  const Tensor* y = output_of(step, 0);
  if (!x || !w || !r || !y || x->dtype != DType::kI8 || y->dtype != DType::kI8 || x->rank != 3 ||
      w->rank != 3 || r->rank != 3)
    return env.fail("needs i8 x, w and r of rank 3");
  s->steps = x->dims[0], s->batch = x->dims[1], s->width = x->dims[2];
  const int64_t gates = w->dims[0];
  s->units = w->dims[1], s->outputs = r->dims[2];
  if (gates != 3 && gates != 4) return env.fail("needs three or four gates");
  s->first = static_cast<int>(kGates - gates);
  if (s->steps < 1 || s->batch < 1 || s->units < 1 || s->outputs < 1 || s->width > kLongest ||
      s->units > kLongest || s->outputs > kLongest || s->steps > 1 << 20 || s->batch > 1 << 16 ||
      s->steps * s->batch > 1 << 24)
    return env.fail("sizes are out of range");
  const bool projected = input_of(step, 7) != nullptr;
  const int64_t per_gate = gates * s->units, peepholes = per_gate - s->units;
  const Tensor* p = input_of(step, 5);
  s->peepholes_by_row = p && p->size != peepholes;
  if (!part(step, 1, DType::kI8, per_gate * s->width, true) ||
      !part(step, 2, DType::kI8, per_gate * s->outputs, true) ||
      !part(step, 3, DType::kI32, per_gate, true) || !part(step, 4, DType::kF32, 4 * gates, true) ||
      !part(step, 5, DType::kI16, peepholes * (s->peepholes_by_row ? s->batch : 1), false) ||
      !part(step, 6, DType::kI16, per_gate, false) ||
      !part(step, 7, DType::kI8, s->outputs * s->units, false) ||
      !part(step, 8, DType::kI32, s->outputs, false) || (!projected && s->outputs != s->units) ||
      y->size != s->steps * s->batch * s->outputs)
    return env.fail("a part has another type or size, or is not constant");
  return true;
}

int32_t sum_of(const int8_t* w, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += w[i];
  return sum;
}

// Sums wrap, as LiteRT's do.
int32_t wrapped(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); }

bool make_biases(Env& env, State* s) {
  const int64_t rows = (kGates - s->first) * s->units;
  s->x_bias = static_cast<int32_t*>(env.allocate(static_cast<size_t>(rows) * sizeof(int32_t)));
  s->h_bias = static_cast<int32_t*>(env.allocate(static_cast<size_t>(rows) * sizeof(int32_t)));
  s->y_bias = static_cast<int32_t*>(env.allocate(static_cast<size_t>(s->outputs) * sizeof(int32_t)));
  if (!s->x_bias || !s->h_bias || !s->y_bias) return env.out_of_memory();
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t own = s->norms ? 0 : s->b[i];
    s->x_bias[i] = wrapped(own - int64_t{s->x_zero} * sum_of(s->w + i * s->width, s->width));
    s->h_bias[i] = wrapped(-int64_t{s->y_zero} * sum_of(s->r + i * s->outputs, s->outputs));
  }
  return true;
}

bool prepare(Step& step, Env& env) {
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!check_ports(step, env, s) || !read_numbers(step, env, s)) return false;
  s->w = data<int8_t>(step, 1), s->r = data<int8_t>(step, 2), s->b = data<int32_t>(step, 3);
  s->peepholes = data<int16_t>(step, 5), s->norms = data<int16_t>(step, 6);
  s->projection = data<int8_t>(step, 7);
  if (!make_biases(env, s)) return false;
  for (int64_t o = 0; s->projection && o < s->outputs; ++o) {
    const int32_t* own = data<int32_t>(step, 8);
    const int64_t zero = int64_t{s->hidden_zero} * sum_of(s->projection + o * s->units, s->units);
    s->y_bias[o] = wrapped((own ? own[o] : 0) - zero);
  }
  const int64_t gates = (kGates - s->first) * s->units, row = s->batch * s->units;
  int64_t at = 0;
  const auto take = [&at](int64_t bytes) {
    const int64_t from = at;
    at += (bytes + 63) / 64 * 64;
    return from;
  };
  s->products = take(s->steps * s->batch * gates * 2);
  s->sums = take(s->batch * gates * 2);
  s->cell = take(row * 2);
  for (int64_t& h : s->h) h = take(s->batch * s->outputs);
  s->hidden_at = take(row);
  step.shared_bytes = static_cast<size_t>(at);
  s->each = 1 + (s->norms != nullptr) + (s->projection != nullptr);
  step.phases = static_cast<int32_t>(1 + s->steps * s->each);
  set_variant(step, "%s__%s", step.kernel->name, LITE_ISA_NAME);
  return true;
}

void input_phase(const Step& step, const State& s, int thread, int threads) {
  const int8_t* x = step.inputs[0]->as<int8_t>();
  const int64_t rows = (kGates - s.first) * s.units;
  int16_t* products = shared<int16_t>(step, s.products);
  int64_t begin, end;
  share(rows, 8, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const Fraction rate = s.rates[s.first + i / s.units].x;
    for (int64_t n = 0; n < s.steps * s.batch; ++n) {
      const int32_t sum = dot(x + n * s.width, s.w + i * s.width, s.width);
      products[n * rows + i] = to_int16(rescale(wrapped(int64_t{s.x_bias[i]} + sum), rate));
    }
  }
  if (thread != 0) return;
  memset(shared<int16_t>(step, s.cell), 0, static_cast<size_t>(s.batch * s.units) * 2);
  memset(shared<int8_t>(step, s.h[0]), s.y_zero, static_cast<size_t>(s.batch * s.outputs));
}

// One row of one time step.
struct Row {
  int64_t b;
  const int16_t* products;  // [gate][unit]
  int16_t* sums;
  int16_t* cell;
  const int8_t* h;
  int8_t* next;  // where [unit] goes: the state, or what is projected
};

Row row_of(const Step& step, const State& s, int64_t t, int64_t b) {
  const int64_t gates = (kGates - s.first) * s.units;
  int8_t* next = s.projection ? shared<int8_t>(step, s.hidden_at) + b * s.units
                              : shared<int8_t>(step, s.h[(t + 1) & 1]) + b * s.outputs;
  return {b,
          shared<int16_t>(step, s.products) + (t * s.batch + b) * gates,
          shared<int16_t>(step, s.sums) + b * gates,
          shared<int16_t>(step, s.cell) + b * s.units,
          shared<int8_t>(step, s.h[t & 1]) + b * s.outputs,
          next};
}

int32_t peephole(const State& s, const Row& row, Gate g, int64_t unit, int32_t cell) {
  const int64_t rows = s.peepholes_by_row ? s.batch : 1, b = s.peepholes_by_row ? row.b : 0;
  const int64_t at = (g == kOut ? 2 : g) - s.first;
  return rescale(s.peepholes[(at * rows + b) * s.units + unit] * cell, s.rates[g].cell);
}

// Sums of all gates of units [begin, end); the output gate still lacks the new cell's share.
void add_up(const State& s, const Row& row, int64_t begin, int64_t end) {
  for (int g = s.first; g < kGates; ++g)
    for (int64_t u = begin; u < end; ++u) {
      const int64_t i = (g - s.first) * s.units + u;
      const int32_t sum = wrapped(int64_t{s.h_bias[i]} + dot(row.h, s.r + i * s.outputs, s.outputs));
      int32_t v = to_int16(int64_t{row.products[i]} + rescale(sum, s.rates[g].h));
      if (s.peepholes && g < kNew)
        v = to_int16(int64_t{v} + peephole(s, row, static_cast<Gate>(g), u, row.cell[u]));
      row.sums[i] = static_cast<int16_t>(v);
    }
}

// A gate's whole row less its mean, over its deviation.
void normalize(const State& s, const Row& row, int g) {
  const int64_t from = (g - s.first) * s.units;
  int16_t* v = row.sums + from;
  int64_t sum = 0, squares = 0;
  for (int64_t u = 0; u < s.units; ++u) sum += v[u], squares += int32_t{v[u]} * v[u];
  const int32_t mean = static_cast<int32_t>(sum * 1024 / s.units);
  int64_t variance = (squares * ((1 << 20) / s.units) - int64_t{mean} * mean) / (1 << 20);
  if (variance < 1) variance = s.rates[g].least;
  const Fraction root = inverse_root(variance);
  for (int64_t u = 0; u < s.units; ++u) {
    const int64_t fine = rescale(1024 * v[u] - mean, root);
    const int64_t wide = fine * s.norms[from + u] + s.b[from + u];
    const int32_t near = wrapped((wide + (wide > 0 ? 512 : -512)) / 1024);
    v[u] = to_int16(rescale(near, s.rates[g].norm));
  }
}

// What follows from the sums of units [begin, end).
void close(const State& s, const Row& row, int64_t begin, int64_t end) {
  const int16_t* sums = row.sums - s.first * s.units;
  for (int64_t u = begin; u < end; ++u) {
    const int32_t forget = sigmoid_16(sums[kForget * s.units + u]);
    const int32_t in = s.first ? INT16_MAX - forget : sigmoid_16(sums[u]);
    const int32_t fresh = wrap_16(halved(in * tanh_16(sums[kNew * s.units + u], 3), 30 - s.cell_bits));
    int32_t c = to_16(wrap_16(halved(forget * row.cell[u], 15)) + fresh);
    if (s.cell_clip) c = c < -s.cell_clip ? -s.cell_clip : c > s.cell_clip ? s.cell_clip : c;
    row.cell[u] = static_cast<int16_t>(c);
  }
}

void leave(const State& s, const Row& row, int64_t begin, int64_t end) {
  const int16_t* sums = row.sums + (kOut - s.first) * s.units;
  for (int64_t u = begin; u < end; ++u) {
    const int32_t hidden = sigmoid_16(sums[u]) * tanh_16(row.cell[u], 15 - s.cell_bits);
    const int32_t v = rescale(hidden, s.hidden) + s.hidden_zero;
    row.next[u] = static_cast<int8_t>(v < -128 ? -128 : v > 127 ? 127 : v);
  }
}

void see_cell(const State& s, const Row& row, int64_t begin, int64_t end) {
  int16_t* sums = row.sums + (kOut - s.first) * s.units;
  for (int64_t u = begin; s.peepholes && u < end; ++u)
    sums[u] = to_int16(int64_t{sums[u]} + peephole(s, row, kOut, u, row.cell[u]));
}

void project(const Step& step, const State& s, int64_t t, int thread, int threads) {
  const int8_t* hidden = shared<int8_t>(step, s.hidden_at);
  int8_t* next = shared<int8_t>(step, s.h[(t + 1) & 1]);
  int8_t* y = step.outputs[0]->as<int8_t>() + t * s.batch * s.outputs;
  int64_t begin, end;
  share(s.outputs, 4, thread, threads, &begin, &end);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t o = begin; o < end; ++o) {
      const int32_t sum = dot(hidden + b * s.units, s.projection + o * s.units, s.units);
      int32_t v = rescale(wrapped(int64_t{s.y_bias[o]} + sum), s.projected) + s.y_zero;
      v = v < -128 ? -128 : v > 127 ? 127 : v;
      if (s.y_clip) v = v < -s.y_clip ? -s.y_clip : v > s.y_clip ? s.y_clip : v;
      y[b * s.outputs + o] = next[b * s.outputs + o] = static_cast<int8_t>(v);
    }
}

void finish(const Step& step, const State& s, int64_t t, const Row& row, int64_t begin, int64_t end) {
  close(s, row, begin, end);
  see_cell(s, row, begin, end);
  if (s.norms) normalize(s, row, kOut);  // the whole row
  leave(s, row, begin, end);
  if (!s.projection)
    memcpy(step.outputs[0]->as<int8_t>() + (t * s.batch + row.b) * s.outputs + begin, row.next + begin,
           static_cast<size_t>(end - begin));
}

void run(const Step& step, int phase, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  if (phase == 0) return input_phase(step, s, thread, threads);
  const int64_t t = (phase - 1) / s.each, stage = (phase - 1) % s.each;
  if (s.projection && stage == s.each - 1) return project(step, s, t, thread, threads);
  int64_t begin, end;
  if (stage == 0) {
    share(s.units, 8, thread, threads, &begin, &end);
    for (int64_t b = 0; b < s.batch && begin < end; ++b) {
      const Row row = row_of(step, s, t, b);
      add_up(s, row, begin, end);
      if (!s.norms) finish(step, s, t, row, begin, end);
    }
    return;
  }
  share(s.batch, 1, thread, threads, &begin, &end);
  for (int64_t b = begin; b < end; ++b) {
    const Row row = row_of(step, s, t, b);
    for (int g = s.first; g < kOut; ++g) normalize(s, row, g);
    finish(step, s, t, row, 0, s.units);
  }
}

const Kernel kLstm[] = {{"QLSTM", "i8_lstm", prepare, run, 0}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_lstm, kLstm)
