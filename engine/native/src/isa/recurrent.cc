// f32_lstm, f32_gru, f32_rnn: whole sequences, one or two directions. bf16_lstm and so on are the same, with
// products of bf16 where there are those of pairs: inputs, states and weights are rounded for them.
//
// Lanes are hidden units. Weights are packed [direction][block of kLanes units][kProducts k][gate][kLanes],
// so that one pass over k gives all gates of a block. Phase 0 does the input products of all time
// steps at once (they do not depend on each other); then each time step is one phase (two for a GRU
// whose reset comes before its product), in which threads share the blocks. States are
// double-buffered.
#include <math.h>
#include <strings.h>

#include <initializer_list>

#include "activation.h"
#include "recurrent_products.h"

namespace lite::LITE_ISA {

namespace {

enum class Cell { kLstm, kGru, kRnn };
constexpr int kFunctions = 3;

struct State {
  Cell cell;
  int64_t steps, batch, width, hidden, padded, blocks;
  int gates, directions;
  bool backwards[2], batch_first, reset_after;
  Activation functions[2][kFunctions];
  float* input_weights;  // packed w
  float* state_weights;  // packed r
  float* bias;           // [direction][block][gate][kLanes]: what is added to the input products
  float* late_bias;      // [direction][block][kLanes]: GRU, inside the reset
  // Offsets in floats into Step::shared.
  int64_t products;           // [direction][steps * batch][block][gate][kLanes]
  int64_t h[2], c, z, reset;  // [direction][batch][padded]
  // What products take of x, [steps * batch], of h and of reset, where they take pairs.
  int64_t x_pairs, h_pairs[2], reset_pairs;

  int64_t width_pairs() const { return product_length(width); }
  int64_t hidden_pairs() const { return product_length(hidden); }
  PackedCell packed() const { return {directions, gates, hidden, blocks}; }
};

float* shared(const Step& step, int64_t offset) {
  return static_cast<float*>(step.shared) + offset;
}

void pack_bias(State* s, const float* b) {
  const int64_t h = s->hidden, g = s->gates;
  for (int d = 0; b && d < s->directions; ++d)
    for (int64_t j = 0; j < h; ++j) {
      const float* wb = b + d * 2 * g * h + j;
      const float* rb = wb + g * h;
      for (int64_t gate = 0; gate < g; ++gate) {
        const bool late = s->cell == Cell::kGru && gate == 2 && s->reset_after;
        s->bias[((d * s->blocks + j / kLanes) * g + gate) * kLanes + j % kLanes] =
            wb[gate * h] + (late ? 0.0f : rb[gate * h]);
        if (late) s->late_bias[d * s->padded + j] = rb[gate * h];
      }
    }
}

bool read_functions(const Step& step, Env& env, State* s) {
  static const Act kDefaults[3][kFunctions] = {{Act::kSigmoid, Act::kTanh, Act::kTanh},
                                               {Act::kSigmoid, Act::kTanh, Act::kNone},
                                               {Act::kTanh, Act::kNone, Act::kNone}};
  const int each = s->cell == Cell::kLstm ? 3 : s->cell == Cell::kGru ? 2 : 1;
  const char* text = attr_string(step, "activations", "");
  for (int i = 0; i < s->directions * each; ++i) {
    Activation* function = &s->functions[i / each][i % each];
    *function = {kDefaults[static_cast<int>(s->cell)][i % each], 0, 0};
    if (!*text) continue;
    const size_t length = strcspn(text, ",");
    if (length == 7 && strncasecmp(text, "sigmoid", 7) == 0) *function = {Act::kSigmoid, 0, 0};
    else if (length == 4 && strncasecmp(text, "tanh", 4) == 0) *function = {Act::kTanh, 0, 0};
    else if (length == 4 && strncasecmp(text, "relu", 4) == 0)
      *function = {Act::kClip, 0, INFINITY};
    else return env.fail("activation '%.*s' of a cell", static_cast<int>(length), text);
    text += length + (text[length] == ',');
  }
  return true;
}

bool constant(const Tensor* t, int64_t size) {
  return t && is_weight(*t) && t->dtype == DType::kF32 && t->size == size && is_dense(*t);
}
bool optional_float(const Tensor* t, int64_t size) {
  return !t || (t->dtype == DType::kF32 && t->size == size);
}

bool check_ports(const Step& step, Env& env, const State& s) {
  const int64_t state = s.directions * s.batch * s.hidden;
  if (!constant(step.inputs[1], s.directions * s.gates * s.hidden * s.width) ||
      !constant(step.inputs[2], s.directions * s.gates * s.hidden * s.hidden) ||
      (input_of(step, 3) && !constant(step.inputs[3], 2 * s.directions * s.gates * s.hidden)))
    return env.fail("weights and bias must be constants of the cell's size");
  if (input_of(step, 4)) return env.fail("sequence lengths are not supported");
  if (input_of(step, 7)) return env.fail("peepholes are not supported");
  if (!optional_float(input_of(step, 5), state) || !optional_float(input_of(step, 6), state))
    return env.fail("initial states have another size");
  if (!optional_float(output_of(step, 0), state * s.steps) ||
      !optional_float(output_of(step, 1), state) || !optional_float(output_of(step, 2), state))
    return env.fail("outputs have another size");
  return true;
}

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *w = input_of(step, 1), *r = input_of(step, 2);
  if (!x || !w || !r || x->dtype != DType::kF32 || x->rank != 3 || w->rank != 3 || r->rank != 3)
    return env.fail("needs f32 x, w and r of rank 3");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->cell = strcmp(step.op, "LSTM") == 0  ? Cell::kLstm
            : strcmp(step.op, "GRU") == 0 ? Cell::kGru
                                          : Cell::kRnn;
  s->gates = s->cell == Cell::kLstm ? 4 : s->cell == Cell::kGru ? 3 : 1;
  s->batch_first = attr_int(step, "layout", 0) != 0;
  s->reset_after = attr_int(step, "linear_before_reset", 0) != 0;
  const char* direction = attr_string(step, "direction", "forward");
  s->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
  s->backwards[0] = strcmp(direction, "reverse") == 0;
  s->backwards[1] = true;
  s->steps = x->dims[s->batch_first ? 1 : 0];
  s->batch = x->dims[s->batch_first ? 0 : 1];
  s->width = x->dims[2];
  s->hidden = r->dims[2];
  s->blocks = (s->hidden + kLanes - 1) / kLanes;
  s->padded = s->blocks * kLanes;
  if (s->steps < 1 || s->batch < 1 || s->hidden < 1 || s->hidden > 1 << 16 || s->width > 1 << 20 ||
      s->steps > 1 << 20 || s->batch > 1 << 16 || s->steps * s->batch > 1 << 24)
    return env.fail("sizes are out of range");
  if (attr_float(step, "clip", 0) != 0 || attr_int(step, "input_forget", 0) != 0)
    return env.fail("clip and input_forget are not supported");
  if (!check_ports(step, env, *s) || !read_functions(step, env, s)) return false;
  const size_t unit = sizeof(float) * s->directions * s->padded;
  const auto packed = [&](const Tensor* from, int64_t k_count, int64_t rows) -> float* {
    const Recipe recipe{LITE_ISA_NAME " cells",
                        from->data,
                        from->bytes,
                        {s->directions, s->gates, s->hidden, s->blocks, k_count}};
    bool made;
    float* to = static_cast<float*>(env.allocate_packed(recipe, unit * s->gates * rows, &made));
    if (to && !made) pack(s->packed(), from->as<float>(), k_count, to);
    return to;
  };
  s->input_weights = packed(w, s->width, s->width ? s->width_pairs() : 1);
  s->state_weights = packed(r, s->hidden, s->hidden_pairs());
  s->bias = static_cast<float*>(env.allocate(unit * s->gates));
  s->late_bias = static_cast<float*>(env.allocate(unit));
  if (!s->input_weights || !s->state_weights || !s->bias || !s->late_bias)
    return env.out_of_memory();
  pack_bias(s, input_of(step, 3) ? step.inputs[3]->as<float>() : nullptr);
  const int64_t state = s->directions * s->batch * s->padded;
  int64_t at = state * s->gates * s->steps;
  for (int64_t* place : {&s->h[0], &s->h[1], &s->c, &s->z, &s->reset}) {
    *place = at;
    at += state;
  }
  if (kProducts > 1) {
    for (int64_t* place : {&s->h_pairs[0], &s->h_pairs[1], &s->reset_pairs}) {
      *place = at;
      at += state / kProducts;
    }
    s->x_pairs = at;
    at += s->steps * s->batch * s->width_pairs();
  } else {
    s->h_pairs[0] = s->h[0], s->h_pairs[1] = s->h[1], s->reset_pairs = s->reset;
  }
  step.shared_bytes = at * sizeof(float);
  const bool twice = s->cell == Cell::kGru && !s->reset_after;
  step.phases = static_cast<int32_t>(1 + s->steps * (twice ? 2 : 1));
  set_variant(step, "%s__%s_x%d", step.kernel->name, LITE_ISA_NAME, kLanes);
  return true;
}

// The input products of rows of one sequence, or of all of them where their time steps lie together: one block of
// units after the other, two gates at a time.
void input_products(const State& s, const float* x, int d, int64_t rows, float* products, int64_t ld) {
  Tile t{};
  t.taps_y = t.taps_x = 1;
  t.lda = t.k = s.width_pairs();
  t.ldw = s.gates * kLanes;
  t.ldc = ld;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  const TileSplit split = split_rows(rows);
  for (int64_t block = 0; block < s.blocks; ++block) {
    const int64_t unit = d * s.blocks + block;
    for (int gate = 0; gate < s.gates; gate += 2) {
      const int vectors = s.gates - gate < 2 ? 1 : 2;
      t.columns = vectors * kLanes;
      t.w = s.input_weights + (unit * t.k * s.gates + gate) * kLanes;
      t.bias = s.bias + (unit * s.gates + gate) * kLanes;
      float* c = products + (block * s.gates + gate) * kLanes;
      for_each_height(split, [&](int64_t row, int height, int tiles) {
        t.a = x + row * t.lda;
        t.c = c + row * ld;
        t.count = tiles;
        multiply_tile(kTile[vectors - 1][height - 1], t);
      });
    }
  }
}

void input_phase(const Step& step, const State& s, int thread, int threads) {
  const float* x = step.inputs[0]->as<float>();
  const int64_t sequences = s.batch_first ? s.batch : 1, rows = s.steps * s.batch / sequences;
  const int64_t row_products = s.blocks * s.gates * kLanes;
  int64_t begin, end;
  share(rows, kTileRows, thread, threads, &begin, &end);
  if (kProducts > 1) {
    float* pairs = shared(step, s.x_pairs);
    for (int64_t i = 0; i < sequences; ++i)
      for (int64_t row = i * rows + begin; row < i * rows + end; ++row)
        to_products(x + row * s.width, s.width, pairs + row * s.width_pairs());
    x = pairs;
  }
  for (int d = 0; d < s.directions; ++d)
    for (int64_t i = 0; i < sequences; ++i) {
      const int64_t first = d * s.steps * s.batch + begin * sequences + i;
      input_products(s, x + (i * rows + begin) * s.width_pairs(), d, end - begin,
                     shared(step, s.products) + first * row_products, sequences * row_products);
    }
  if (thread != 0) return;
  for (int i = 0; i < (s.cell == Cell::kLstm ? 2 : 1); ++i) {
    const Tensor* initial = input_of(step, 5 + i);
    float* to = shared(step, i ? s.c : s.h[0]);
    memset(to, 0, s.directions * s.batch * s.padded * sizeof(float));
    for (int64_t d = 0; initial && d < s.directions; ++d)
      for (int64_t b = 0; b < s.batch; ++b)
        memcpy(to + (d * s.batch + b) * s.padded,
               initial->as<float>() +
                   (s.batch_first ? b * s.directions + d : d * s.batch + b) * s.hidden,
               s.hidden * sizeof(float));
  }
  if (kProducts > 1)
    to_products(shared(step, s.h[0]), s.directions * s.batch * s.padded, shared(step, s.h_pairs[0]));
}

// Not inlined: five calls of each cell would grow runners.
__attribute__((noinline)) F apply(F v, const Activation& function) {
  const F lo = splat(function.a), hi = splat(function.b);
  if (function.act == Act::kSigmoid) return activate_vector<Act::kSigmoid>(v, lo, hi);
  if (function.act == Act::kTanh) return activate_vector<Act::kTanh>(v, lo, hi);
  return activate_vector<Act::kClip>(v, lo, hi);
}

// Where one unit block of one sequence is in one time step.
struct Place {
  int d;
  int64_t block, t, b, state;  // state: offset of the block in [direction][batch][padded]
  const float *h, *input;      // previous state (whole row), input products of the block
  const float* factors;        // the previous state as products take it
  const float* weights;        // packed r of the block
  float *next, *next_factors;
};

void store_state(const Place& p, F h) {
  store(p.next, h);
  if (kProducts > 1) to_products(p.next, kLanes, p.next_factors);
}

void write_output(const Step& step, const State& s, const Place& p, F h, F c) {
  const int64_t left = s.hidden - p.block * kLanes;
  const int n = static_cast<int>(left < kLanes ? left : kLanes);
  const int64_t unit = p.block * kLanes;
  if (const Tensor* y = output_of(step, 0)) {
    const int64_t row = s.batch_first ? (p.b * s.steps + p.t) * s.directions + p.d
                                      : (p.t * s.directions + p.d) * s.batch + p.b;
    store_part(y->as<float>() + row * s.hidden + unit, h, n);
  }
  const bool last = s.backwards[p.d] ? p.t == 0 : p.t == s.steps - 1;
  if (!last) return;
  const int64_t row = s.batch_first ? p.b * s.directions + p.d : p.d * s.batch + p.b;
  if (const Tensor* y = output_of(step, 1))
    store_part(y->as<float>() + row * s.hidden + unit, h, n);
  if (const Tensor* y = output_of(step, 2))
    store_part(y->as<float>() + row * s.hidden + unit, c, n);
}

template <int G>
LITE_INLINE void load_products(const Place& p, F acc[1][G]) {
  LITE_UNROLL for (int g = 0; g < G; ++g)
    acc[0][g] = load(p.input + g * kLanes);
}

void lstm_block(const Step& step, const State& s, const Place& p) {
  F acc[1][4];  // i, o, f, c
  load_products<4>(p, acc);
  multiply<4, 1>(&p.factors, p.weights, 4, s.hidden_pairs(), acc);
  const Activation* f = s.functions[p.d];
  float* c_at = shared(step, s.c) + p.state;
  const F c =
      fma(apply(acc[0][2], f[0]), load(c_at), apply(acc[0][0], f[0]) * apply(acc[0][3], f[1]));
  const F h = apply(acc[0][1], f[0]) * apply(c, f[2]);
  store(c_at, c);
  store_state(p, h);
  write_output(step, s, p, h, c);
}

void rnn_block(const Step& step, const State& s, const Place& p) {
  F acc[1][1];
  load_products<1>(p, acc);
  multiply<1, 1>(&p.factors, p.weights, 1, s.hidden_pairs(), acc);
  const F h = apply(acc[0][0], s.functions[p.d][0]);
  store_state(p, h);
  write_output(step, s, p, h, h);
}

void gru_finish(const Step& step, const State& s, const Place& p, F z, F candidate) {
  const F previous = load(p.h + p.block * kLanes);
  const F h = fma(z, previous - candidate, candidate);
  store_state(p, h);
  write_output(step, s, p, h, h);
}

// Reset after the product: everything in one phase.
void gru_block(const Step& step, const State& s, const Place& p) {
  F acc[1][3];  // z, r, h
  load_products<3>(p, acc);
  const F input = acc[0][2];
  acc[0][2] = load(s.late_bias + p.d * s.padded + p.block * kLanes);
  multiply<3, 1>(&p.factors, p.weights, 3, s.hidden_pairs(), acc);
  const Activation* f = s.functions[p.d];
  const F z = apply(acc[0][0], f[0]), r = apply(acc[0][1], f[0]);
  gru_finish(step, s, p, z, apply(fma(r, acc[0][2], input), f[1]));
}

// Reset before the product: z and r * h first, the candidate when all of r * h is there.
void gru_gates(const Step& step, const State& s, const Place& p) {
  F acc[1][2] = {{load(p.input), load(p.input + kLanes)}};
  multiply<2, 1>(&p.factors, p.weights, 3, s.hidden_pairs(), acc);
  const Activation* f = s.functions[p.d];
  store(shared(step, s.z) + p.state, apply(acc[0][0], f[0]));
  float* reset = shared(step, s.reset) + p.state;
  store(reset, apply(acc[0][1], f[0]) * load(p.h + p.block * kLanes));
  if (kProducts > 1) to_products(reset, kLanes, shared(step, s.reset_pairs) + p.state / kProducts);
}
void gru_candidate(const Step& step, const State& s, const Place& p) {
  F acc[1][1] = {{load(p.input + 2 * kLanes)}};
  const float* reset = shared(step, s.reset_pairs) + (p.state - p.block * kLanes) / kProducts;
  multiply<1, 1>(&reset, p.weights + 2 * kLanes, 3, s.hidden_pairs(), acc);
  gru_finish(step, s, p, load(shared(step, s.z) + p.state), apply(acc[0][0], s.functions[p.d][1]));
}

void run(const Step& step, int phase, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  if (phase == 0) return input_phase(step, s, thread, threads);
  const bool twice = s.cell == Cell::kGru && !s.reset_after;
  const int64_t i = twice ? (phase - 1) / 2 : phase - 1;
  int64_t begin, end;
  share(s.directions * s.batch * s.blocks, 1, thread, threads, &begin, &end);
  for (int64_t item = begin; item < end; ++item) {
    Place p;
    p.block = item % s.blocks;
    p.b = item / s.blocks % s.batch;
    p.d = static_cast<int>(item / s.blocks / s.batch);
    p.t = s.backwards[p.d] ? s.steps - 1 - i : i;
    const int64_t row = (p.d * s.batch + p.b) * s.padded;
    p.state = row + p.block * kLanes;
    p.h = shared(step, s.h[i & 1]) + row;
    p.next = shared(step, s.h[(i + 1) & 1]) + p.state;
    p.factors = shared(step, s.h_pairs[i & 1]) + row / kProducts;
    p.next_factors = shared(step, s.h_pairs[(i + 1) & 1]) + p.state / kProducts;
    p.input = shared(step, s.products) +
              ((p.d * s.steps + p.t) * s.batch + p.b) * s.blocks * s.gates * kLanes +
              p.block * s.gates * kLanes;
    p.weights = s.state_weights + (p.d * s.blocks + p.block) * s.hidden_pairs() * s.gates * kLanes;
    if (s.cell == Cell::kLstm) lstm_block(step, s, p);
    else if (s.cell == Cell::kRnn) rnn_block(step, s, p);
    else if (!twice) gru_block(step, s, p);
    else if (phase % 2) gru_gates(step, s, p);
    else gru_candidate(step, s, p);
  }
}

const Kernel kRecurrent[] = {
#if !defined(LITE_PAIRS)
    {"LSTM", "f32_lstm", prepare, run, 0},
    {"GRU", "f32_gru", prepare, run, 0},
    {"RNN", "f32_rnn", prepare, run, 0},
#endif
    {"LSTM", "bf16_lstm", prepare, run, 0},
    {"GRU", "bf16_gru", prepare, run, 0},
    {"RNN", "bf16_rnn", prepare, run, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(recurrent, kRecurrent)
