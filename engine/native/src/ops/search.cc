// Kernels that walk one axis of a tensor of any type: ArgMax, ArgMin, TopK, CumSum, CumProd,
// OneHot; and Trilu and NonZero.
#include "convert.h"

namespace lite {

namespace {

struct State {
  int64_t outer, axis, inner;  // element (o, a, i) at (o * axis + a) * inner + i
  bool floats, largest, last, exclusive, reverse, product;
  int64_t k;
};

State* split(Step& step, Env& env, const Tensor& t, int64_t axis) {
  if (axis < 0) axis += t.rank;
  if (axis < 0 || axis >= t.rank) {
    env.fail("axis is outside rank %d", t.rank);
    return nullptr;
  }
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) {
    env.out_of_memory();
    return nullptr;
  }
  step.state = s;
  s->outer = s->inner = 1;
  s->axis = t.dims[axis];
  s->floats = is_float(t.dtype);
  for (int i = 0; i < t.rank; ++i) {
    if (i < axis) s->outer *= t.dims[i];
    if (i > axis) s->inner *= t.dims[i];
  }
  return s;
}

void load(DType type, const uint8_t* from, int64_t stride, int n, double* out) {
  load_doubles(type, from, stride, n, out);
}
void load(DType type, const uint8_t* from, int64_t stride, int n, int64_t* out) {
  load_ints(type, from, stride, n, out);
}
void save(DType type, const double* from, int n, uint8_t* out) {
  store_doubles(type, from, n, out);
}
void save(DType type, const int64_t* from, int n, uint8_t* out) { store_ints(type, from, n, out); }

const uint8_t* series(const State& s, const Tensor& t, int64_t i) {
  return t.data + (i / s.inner * s.axis * s.inner + i % s.inner) * dtype_bytes(t.dtype);
}

// ---- ArgMax, ArgMin

bool prepare_arg(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || y->dtype != DType::kI64) return env.fail("needs an input and an i64 output");
  State* s = split(step, env, *x, attr_int(step, "axis", 0));
  if (!s) return false;
  s->largest = strcmp(step.op, "ArgMax") == 0;
  s->last = attr_int(step, "select_last_index", 0) != 0;
  if (y->size != s->outer * s->inner || (y->size && !s->axis))
    return env.fail("output size does not fit");
  return true;
}

// Like NumPy, the first (or last) NaN is the extreme.
template <class T>
int64_t extreme(const State& s, const Tensor& x, int64_t i) {
  const uint8_t* from = series(s, x, i);
  const int64_t stride = s.inner * dtype_bytes(x.dtype);
  T chunk[kChunk], best{};
  int64_t where = 0;
  for (int64_t a = 0; a < s.axis; a += kChunk) {
    const int n = static_cast<int>(s.axis - a < kChunk ? s.axis - a : kChunk);
    load(x.dtype, from + a * stride, s.inner, n, chunk);
    for (int k = 0; k < n; ++k) {
      const bool better = s.largest ? chunk[k] > best : chunk[k] < best;
      const bool nan = chunk[k] != chunk[k] && (s.last || best == best);
      if ((a | k) == 0 || better || nan || (s.last && chunk[k] == best)) {
        best = chunk[k];
        where = a + k;
      }
    }
  }
  return where;
}

void run_arg(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor& x = *step.inputs[0];
  int64_t begin, end;
  share(s.outer * s.inner, 8, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i)
    step.outputs[0]->as<int64_t>()[i] =
        s.floats ? extreme<double>(s, x, i) : extreme<int64_t>(s, x, i);
}

// ---- TopK: a heap of the k best, then heap sort

bool prepare_top_k(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *values = output_of(step, 0), *at = output_of(step, 1);
  if (!x || (values && values->dtype != x->dtype) || (at && at->dtype != DType::kI64))
    return env.fail("needs an input, values of its type and i64 indices");
  State* s = split(step, env, *x, attr_int(step, "axis", -1));
  if (!s) return false;
  s->k = attr_int(step, "k", -1);
  s->largest = attr_int(step, "largest", 1) != 0;
  const int64_t wanted = s->k < 0 || s->k > s->axis ? -1 : s->outer * s->inner * s->k;
  if (wanted < 0 || (values && values->size != wanted) || (at && at->size != wanted))
    return env.fail("k does not fit the axis or the outputs");
  step.scratch_bytes = static_cast<size_t>(s->k) * 16 + 16;
  return true;
}

template <class T>
struct Candidate {
  T value;
  int64_t at;
};

// Whether a comes before b in the result; equal values keep their order.
template <class T>
bool before(const State& s, const Candidate<T>& a, const Candidate<T>& b) {
  if (a.value == b.value) return a.at < b.at;
  if (a.value != a.value || b.value != b.value)  // NaN counts as the largest
    return (a.value != a.value) == (b.value != b.value) ? a.at < b.at
                                                        : (a.value != a.value) == s.largest;
  return s.largest ? a.value > b.value : a.value < b.value;
}

// Restores the heap below `root`; its top is the candidate that goes first when a better one comes.
template <class T>
void sift(const State& s, Candidate<T>* heap, int64_t root, int64_t n) {
  for (;;) {
    int64_t child = 2 * root + 1;
    if (child >= n) return;
    if (child + 1 < n && before(s, heap[child], heap[child + 1])) ++child;
    if (!before(s, heap[root], heap[child])) return;
    const Candidate<T> swap = heap[root];
    heap[root] = heap[child];
    heap[child] = swap;
    root = child;
  }
}

template <class T>
void top_k(const Step& step, const State& s, int64_t i, Candidate<T>* heap) {
  const Tensor& x = *step.inputs[0];
  const uint8_t* from = series(s, x, i);
  const int64_t element = dtype_bytes(x.dtype), stride = s.inner * element;
  T chunk[kChunk];
  int64_t size = 0;
  for (int64_t a = 0; a < s.axis && s.k; a += kChunk) {
    const int n = static_cast<int>(s.axis - a < kChunk ? s.axis - a : kChunk);
    load(x.dtype, from + a * stride, s.inner, n, chunk);
    for (int k = 0; k < n; ++k) {
      const Candidate<T> next{chunk[k], a + k};
      if (size < s.k) {
        heap[size++] = next;
        if (size == s.k)
          for (int64_t root = size / 2; root-- > 0;) sift(s, heap, root, size);
      } else if (before(s, next, heap[0])) {
        heap[0] = next;
        sift(s, heap, 0, size);
      }
    }
  }
  for (int64_t n = size; n-- > 1;) {
    const Candidate<T> swap = heap[0];
    heap[0] = heap[n];
    heap[n] = swap;
    sift(s, heap, 0, n);
  }
  const int64_t first = i / s.inner * s.k * s.inner + i % s.inner;
  for (int64_t k = 0; k < size; ++k) {
    const int64_t to = first + k * s.inner;
    if (const Tensor* y = output_of(step, 0))
      save(y->dtype, &heap[k].value, 1, y->data + to * element);
    if (const Tensor* y = output_of(step, 1)) y->as<int64_t>()[to] = heap[k].at;
  }
}

void run_top_k(const Step& step, int, int thread, int threads, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  int64_t begin, end;
  share(s.outer * s.inner, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    if (s.floats) top_k(step, s, i, static_cast<Candidate<double>*>(scratch));
    else top_k(step, s, i, static_cast<Candidate<int64_t>*>(scratch));
  }
}

// ---- CumSum, CumProd

bool prepare_cumulate(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || x->dtype != y->dtype || !same_dims(*x, *y) || !find_attr(step, "axis"))
    return env.fail("needs an input, an output like it and a constant axis");
  State* s = split(step, env, *x, attr_int(step, "axis", 0));
  if (!s) return false;
  s->product = strcmp(step.op, "CumProd") == 0;
  s->exclusive = attr_int(step, "exclusive", 0) != 0;
  s->reverse = attr_int(step, "reverse", 0) != 0;
  return true;
}

double combined(bool product, double a, double b) { return product ? a * b : a + b; }
int64_t combined(bool product, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  return static_cast<int64_t>(product ? x * y : x + y);
}

template <class T>
void cumulate(const State& s, const Tensor& x, const Tensor& y, int64_t i) {
  const uint8_t* from = series(s, x, i);
  uint8_t* to = const_cast<uint8_t*>(series(s, y, i));
  const int64_t stride = s.inner * dtype_bytes(x.dtype);
  T total = s.product;
  for (int64_t n = 0; n < s.axis; ++n) {
    const int64_t at = (s.reverse ? s.axis - 1 - n : n) * stride;
    T value;
    load(x.dtype, from + at, 1, 1, &value);
    const T next = combined(s.product, total, value);
    save(y.dtype, s.exclusive ? &total : &next, 1, to + at);
    total = next;
  }
}

void run_cumulate(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  int64_t begin, end;
  share(s.outer * s.inner, 16, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    if (s.floats) cumulate<double>(s, *step.inputs[0], *step.outputs[0], i);
    else cumulate<int64_t>(s, *step.inputs[0], *step.outputs[0], i);
  }
}

// ---- OneHot: inputs indices, depth (its value is the output's size), values (off, on)

bool prepare_one_hot(Step& step, Env& env) {
  const Tensor *indices = input_of(step, 0), *values = input_of(step, 2), *y = output_of(step, 0);
  if (!indices || !values || !y || values->dtype != y->dtype || values->size != 2 ||
      y->rank != indices->rank + 1)
    return env.fail(
        "needs indices, two values of the output's type and an output of one more axis");
  State* s = split(step, env, *y, attr_int(step, "axis", -1));
  if (!s) return false;
  if (indices->size != s->outer * s->inner) return env.fail("indices do not fit the output");
  return true;
}

void run_one_hot(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &indices = *step.inputs[0], &values = *step.inputs[2], &y = *step.outputs[0];
  const int64_t element = dtype_bytes(y.dtype), from = dtype_bytes(indices.dtype);
  int64_t begin, end;
  share(s.outer * s.inner, 16, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    int64_t index;
    load_ints(indices.dtype, indices.data + i * from, 1, 1, &index);
    if (index < 0) index += s.axis;
    uint8_t* to = const_cast<uint8_t*>(series(s, y, i));
    for (int64_t a = 0; a < s.axis; ++a)
      memcpy(to + a * s.inner * element, values.data + (a == index) * element, element);
  }
}

// ---- Trilu

bool prepare_trilu(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || x->dtype != y->dtype || !same_dims(*x, *y) || x->rank < 2 || input_of(step, 1))
    return env.fail("needs an input of rank 2 or more, an output like it and a constant k");
  State* s = split(step, env, *x, -1);
  if (!s) return false;
  s->k = attr_int(step, "k", 0);
  s->largest = attr_int(step, "upper", 1) != 0;
  const int64_t limit = int64_t{1} << 40;
  return (s->k > -limit && s->k < limit) || env.fail("k is out of range");
}

void run_trilu(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &y = *step.outputs[0];
  const int64_t element = dtype_bytes(x.dtype), columns = s.axis, rows = x.dims[x.rank - 2];
  int64_t begin, end;
  share(s.outer, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    int64_t edge = i % rows + s.k + (s.largest ? 0 : 1);  // upper keeps columns from here on
    edge = edge < 0 ? 0 : edge > columns ? columns : edge;
    const int64_t at = i * columns * element, low = s.largest ? edge : 0;
    const int64_t high = s.largest ? columns : edge;
    memset(y.data + at, 0, columns * element);
    memcpy(y.data + at + low * element, x.data + at + low * element, (high - low) * element);
  }
}

// ---- NonZero, with as many columns as there can be, and how many count

bool prepare_non_zero(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0), *count = output_of(step, 1);
  if (!x || !y || y->dtype != DType::kI64 || y->rank != 2 || y->dims[0] != x->rank ||
      y->dims[1] != x->size || !attr_int(step, "padded", 0) ||
      (count && (count->dtype != DType::kI64 || count->size != 1)))
    return env.fail("needs an input, padded i64 places of its size and one i64 count");
  return true;
}

bool is_zero(const Tensor& x, int64_t i) {
  const uint8_t* at = x.data + i * dtype_bytes(x.dtype);
  if (is_float(x.dtype)) {
    double value;
    load_doubles(x.dtype, at, 1, 1, &value);
    return value == 0;
  }
  int64_t value;
  load_ints(x.dtype, at, 1, 1, &value);
  return value == 0;
}

void run_non_zero(const Step& step, int, int, int, void*) {
  const Tensor &x = *step.inputs[0], &y = *step.outputs[0];
  int64_t* places = y.as<int64_t>();
  int64_t found = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    if (is_zero(x, i)) continue;
    int64_t rest = i;
    for (int axis = x.rank; axis-- > 0; rest /= x.dims[axis])
      places[axis * x.size + found] = rest % x.dims[axis];
    ++found;
  }
  for (int axis = 0; axis < x.rank; ++axis)
    for (int64_t i = found; i < x.size; ++i) places[axis * x.size + i] = -1;
  if (const Tensor* count = output_of(step, 1)) count->as<int64_t>()[0] = found;
}

const Kernel kSearch[] = {
    {"ArgMax ArgMin", "any_arg", prepare_arg, run_arg, 0},
    {"TopK", "any_top_k", prepare_top_k, run_top_k, 0},
    {"CumSum CumProd", "any_cumulate", prepare_cumulate, run_cumulate, 0},
    {"OneHot", "copy_one_hot", prepare_one_hot, run_one_hot, 0},
    {"Trilu", "copy_trilu", prepare_trilu, run_trilu, 0},
    {"NonZero", "any_non_zero", prepare_non_zero, run_non_zero, kOneThread},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(search, kSearch)
