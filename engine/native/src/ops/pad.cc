// copy_pad: ONNX Pad of any element type: constant, edge, reflect and wrap, negative pads cut.
// Every output index has a source index per axis, or none where the constant goes.
#include "convert.h"

namespace lite {

namespace {

struct State {
  int32_t* source[kMaxRank];  // per axis and output index: input index, -1: constant
  int64_t first, middle;      // last axis: `middle` consecutive input elements from output `first`
  int axes;                   // the others are `block` elements that stay together, where it is not 0
  int64_t block;
  uint8_t value[8];
};

// Source of position j of an axis of which [low, low + n) is kept.
int64_t source_of(const char* mode, int64_t j, int64_t low, int64_t n) {
  if (j >= 0 && j < n) return low + j;
  if (mode[0] == 'c') return -1;
  if (mode[0] == 'e') return j < 0 ? low : low + n - 1;
  if (mode[0] == 'w') return low + (j % n + n) % n;
  if (n == 1) return low;
  const int64_t period = 2 * (n - 1), at = (j % period + period) % period;
  return low + (at < n ? at : period - at);
}

// The last axes that nothing is added to, and that lie together in both tensors, as one. Threads share what
// is left.
void join_axes(const Tensor& x, const Tensor& y, const int64_t* begins, const int64_t* ends, State* s) {
  constexpr int64_t kEnough = 64;
  int64_t in[kMaxRank], out[kMaxRank], blocks = y.size;
  strides_of(x, in);
  strides_of(y, out);
  s->axes = y.rank;
  s->block = 1;
  for (int d = y.rank - 1; d >= 0 && y.size; --d) {
    if (begins[d] || ends[d] || in[d] != s->block || out[d] != s->block) break;
    if (d < y.rank - 1 && blocks / y.dims[d] < kEnough) break;
    blocks /= y.dims[d];
    s->block *= y.dims[d];
    s->axes = d;
  }
  if (s->axes == y.rank) s->block = 0, s->axes = y.rank - 1;
}

bool prepare(Step& step, Env& env) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  if (!x || !y || x->dtype != y->dtype || x->rank != y->rank || x->rank < 1 || step.num_inputs != 1)
    return env.fail("needs one input, an output of its type and rank, and constant pads");
  const char* mode = attr_string(step, "mode", "constant");
  if (strcmp(mode, "constant") && strcmp(mode, "edge") && strcmp(mode, "reflect") &&
      strcmp(mode, "wrap"))
    return env.fail("mode '%s'", mode);
  int count, axes_count;
  const int64_t* pads = attr_ints(step, "pads", &count);
  const int64_t* axes = attr_ints(step, "axes", &axes_count);
  const int listed = axes_count ? axes_count : x->rank;
  if (count != 2 * listed || listed > x->rank)
    return env.fail("%d pads do not fit %d axes", count, listed);
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  element_of(x->dtype, attr_float(step, "value", 0), s->value);
  int64_t begins[kMaxRank] = {}, ends[kMaxRank] = {};
  for (int i = 0; i < listed; ++i) {
    int64_t axis = axes_count ? axes[i] : i;
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank) return env.fail("axis is outside rank %d", x->rank);
    begins[axis] = pads[i];
    ends[axis] = pads[listed + i];
  }
  for (int d = 0; d < x->rank; ++d) {
    const int64_t dim = x->dims[d], limit = int64_t{1} << 31;
    if (dim >= limit || begins[d] < -limit || begins[d] > limit || ends[d] < -limit ||
        ends[d] > limit || dim + begins[d] + ends[d] != y->dims[d])
      return env.fail("pads do not give the output's size of axis %d", d);
    const int64_t low = begins[d] < 0 ? -begins[d] : 0;
    const int64_t n = dim - low - (ends[d] < 0 ? -ends[d] : 0);
    if (n < 0 || (n == 0 && mode[0] != 'c' && y->dims[d] > 0))
      return env.fail("axis %d has nothing left to repeat", d);
    s->source[d] = static_cast<int32_t*>(env.allocate((y->dims[d] + 1) * sizeof(int32_t)));
    if (!s->source[d]) return env.out_of_memory();
    const int64_t grown = begins[d] > 0 ? begins[d] : 0;
    for (int64_t i = 0; i < y->dims[d]; ++i)
      s->source[d][i] = static_cast<int32_t>(source_of(mode, i - grown, low, n));
    if (d == x->rank - 1) {
      s->first = grown;
      s->middle = n < y->dims[d] - grown ? n : y->dims[d] - grown;
      if (s->middle < 0) s->middle = 0;
    }
  }
  join_axes(*x, *y, begins, ends, s);
  return true;
}

template <class T>
void row(const State& s, const int32_t* map, const T* from, T* to, int64_t n) {
  T value;
  memcpy(&value, s.value, sizeof value);
  if (!from) {
    for (int64_t i = 0; i < n; ++i) to[i] = value;
    return;
  }
  for (int64_t i = 0; i < s.first; ++i) to[i] = map[i] < 0 ? value : from[map[i]];
  if (s.middle) memcpy(to + s.first, from + map[s.first], s.middle * sizeof(T));
  for (int64_t i = s.first + s.middle; i < n; ++i) to[i] = map[i] < 0 ? value : from[map[i]];
}

template <class T>
void rows(const Step& step, int thread, int threads) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &y = *step.outputs[0];
  int64_t in[kMaxRank], out[kMaxRank], begin, end;
  const int64_t in_origin = strides_of(x, in), out_origin = strides_of(y, out);
  const int64_t n = s.block ? s.block : last_dim(y);
  if (!y.size) return;
  share(y.size / n, 1, thread, threads, &begin, &end);
  int64_t at[kMaxRank], rest = begin;
  for (int d = s.axes - 1; d >= 0; --d) {
    at[d] = rest % y.dims[d];
    rest /= y.dims[d];
  }
  for (int64_t r = begin; r < end; ++r) {
    int64_t from = in_origin, to = out_origin;
    bool constant = false;
    for (int d = 0; d < s.axes; ++d) {
      const int32_t source = s.source[d][at[d]];
      constant = constant || source < 0;
      from += source * in[d];
      to += at[d] * out[d];
    }
    const T* const given = constant ? nullptr : x.as<T>() + from;
    if (s.block && given) memcpy(y.as<T>() + to, given, static_cast<size_t>(n) * sizeof(T));
    else row<T>(s, s.source[y.rank - 1], given, y.as<T>() + to, n);
    for (int d = s.axes - 1; d >= 0 && ++at[d] == y.dims[d]; --d) at[d] = 0;
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  switch (dtype_bytes(step.outputs[0]->dtype)) {
    case 1: return rows<uint8_t>(step, thread, threads);
    case 2: return rows<uint16_t>(step, thread, threads);
    case 4: return rows<uint32_t>(step, thread, threads);
    default: return rows<uint64_t>(step, thread, threads);
  }
}

const Kernel kPad[] = {{"Pad", "copy_pad", prepare, run, kAcceptsPitch | kAcceptsHalo}};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(pad, kPad)
