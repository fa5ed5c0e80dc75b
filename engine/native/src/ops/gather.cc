// Kernels that read or write where an index tensor says: Gather, GatherElements, GatherND,
// ScatterND, ScatterElements. Elements of any type; indices i32 or i64, negative ones count
// from the end. An index out of range reads zeros and writes nothing: it comes from data, which
// must not crash a run.
#include "convert.h"

namespace lite {

namespace {

struct State {
  int64_t outer, axis, inner;  // of the data: (outer, axis, inner)
  int64_t count;               // indices, or index tuples
  int64_t depth, batch;        // ND: entries of a tuple, batch positions
  int64_t strides[kMaxRank], dims[kMaxRank];
};

bool is_index(const Tensor* t) { return t && (t->dtype == DType::kI64 || t->dtype == DType::kI32); }

int64_t index_at(const Tensor& t, int64_t i) {
  return t.dtype == DType::kI64 ? t.as<int64_t>()[i] : t.as<int32_t>()[i];
}

// -1 when out of range
int64_t wrapped(int64_t index, int64_t dim) {
  if (index < 0) index += dim;
  return index >= 0 && index < dim ? index : -1;
}

State* new_state(Step& step, Env& env) {
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  step.state = s;
  if (!s) env.out_of_memory();
  return s;
}

bool split_axis(const Step& step, Env& env, const Tensor& x, State* s) {
  int64_t axis = attr_int(step, "axis", 0);
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return env.fail("axis is outside rank %d", x.rank);
  s->outer = s->inner = 1;
  s->axis = x.dims[axis];
  for (int i = 0; i < x.rank; ++i) {
    if (i < axis) s->outer *= x.dims[i];
    if (i > axis) s->inner *= x.dims[i];
  }
  return true;
}

// ---- Gather

bool prepare_gather(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *indices = input_of(step, 1), *y = output_of(step, 0);
  if (!x || !is_index(indices) || !y || x->dtype != y->dtype)
    return env.fail("needs data, i32 or i64 indices and an output of the data's type");
  State* s = new_state(step, env);
  if (!s || !split_axis(step, env, *x, s)) return false;
  s->count = indices->size;
  int64_t total;
  if (__builtin_mul_overflow(s->outer * s->inner, s->count, &total) || total != y->size)
    return env.fail("output size does not fit data and indices");
  return true;
}

void run_gather(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &indices = *step.inputs[1], &y = *step.outputs[0];
  const int64_t bytes = s.inner * dtype_bytes(x.dtype);
  int64_t begin, end;
  share(s.outer * s.count, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end && bytes; ++i) {
    const int64_t at = wrapped(index_at(indices, i % s.count), s.axis);
    if (at < 0) memset(y.data + i * bytes, 0, bytes);
    else memcpy(y.data + i * bytes, x.data + (i / s.count * s.axis + at) * bytes, bytes);
  }
}

// ---- GatherElements, ScatterElements: `indices` has the output's (updates') shape

bool prepare_elements(Step& step, Env& env) {
  const bool scatter = strcmp(step.op, "ScatterElements") == 0;
  const Tensor *x = input_of(step, 0), *indices = input_of(step, 1), *y = output_of(step, 0);
  const Tensor* shaped = scatter ? input_of(step, 2) : y;
  if (!x || !is_index(indices) || !y || !shaped || x->dtype != y->dtype ||
      shaped->dtype != x->dtype || !same_dims(*indices, *shaped) || indices->rank != x->rank ||
      (scatter && !same_dims(*x, *y)))
    return env.fail("shapes or types of data, indices and output do not fit");
  State* s = new_state(step, env);
  if (!s || !split_axis(step, env, *x, s)) return false;
  int64_t axis = attr_int(step, "axis", 0);
  if (axis < 0) axis += x->rank;
  for (int i = 0; i < x->rank; ++i)
    if (i != axis && indices->dims[i] > x->dims[i])
      return env.fail("indices are larger than the data along axis %d", i);
  if (strcmp(attr_string(step, "reduction", "none"), "none") != 0)
    return env.fail("reductions are not supported");
  strides_of(*x, s->strides);
  s->batch = axis;
  return true;
}

// Offset in the data of position i of the indices, or -1.
int64_t element_offset(const State& s, const Tensor& indices, int64_t i, int64_t dim) {
  int64_t offset = 0, rest = i;
  for (int d = indices.rank - 1; d >= 0; --d) {
    const int64_t at = rest % indices.dims[d];
    rest /= indices.dims[d];
    if (d != s.batch) offset += at * s.strides[d];
  }
  const int64_t index = wrapped(index_at(indices, i), dim);
  return index < 0 ? -1 : offset + index * s.strides[s.batch];
}

void run_gather_elements(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &indices = *step.inputs[1], &y = *step.outputs[0];
  const int64_t bytes = dtype_bytes(x.dtype);
  int64_t begin, end;
  share(indices.size, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = element_offset(s, indices, i, s.axis);
    if (at < 0) memset(y.data + i * bytes, 0, bytes);
    else memcpy(y.data + i * bytes, x.data + at * bytes, bytes);
  }
}

void run_scatter_elements(const Step& step, int, int, int, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &indices = *step.inputs[1], &updates = *step.inputs[2];
  const Tensor& y = *step.outputs[0];
  const int64_t bytes = dtype_bytes(x.dtype);
  if (y.data != x.data && x.size) memcpy(y.data, x.data, x.size * bytes);
  for (int64_t i = 0; i < indices.size; ++i) {
    const int64_t at = element_offset(s, indices, i, s.axis);
    if (at >= 0) memcpy(y.data + at * bytes, updates.data + i * bytes, bytes);
  }
}

// ---- GatherND, ScatterND: the last axis of `indices` holds tuples

bool read_tuples(Step& step, Env& env, const Tensor& x, const Tensor& indices, State* s) {
  const int64_t batch = attr_int(step, "batch_dims", 0);
  if (indices.rank < 1 || batch < 0 || batch >= indices.rank || batch >= x.rank ||
      last_dim(indices) < 0 || last_dim(indices) > x.rank - batch)
    return env.fail("index tuples do not fit rank %d", x.rank);
  s->depth = last_dim(indices);
  s->count = row_count(indices);
  s->batch = s->inner = 1;
  for (int i = 0; i < batch; ++i) {
    if (x.dims[i] != indices.dims[i]) return env.fail("batch axis %d differs", i);
    s->batch *= x.dims[i];
  }
  int64_t strides[kMaxRank];
  strides_of(x, strides);
  for (int64_t k = 0; k < s->depth; ++k) {
    s->strides[k] = strides[batch + k];
    s->dims[k] = x.dims[batch + k];
  }
  for (int64_t i = batch + s->depth; i < x.rank; ++i) s->inner *= x.dims[i];
  s->axis = s->batch ? x.size / s->batch : 0;  // elements of one batch entry
  return true;
}

bool prepare_gather_nd(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *indices = input_of(step, 1), *y = output_of(step, 0);
  if (!x || !is_index(indices) || !y || x->dtype != y->dtype)
    return env.fail("needs data, i32 or i64 indices and an output of the data's type");
  State* s = new_state(step, env);
  if (!s || !read_tuples(step, env, *x, *indices, s)) return false;
  int64_t total;
  if (__builtin_mul_overflow(s->count, s->inner, &total) || total != y->size)
    return env.fail("output size does not fit data and indices");
  return true;
}

int64_t tuple_offset(const State& s, const Tensor& indices, int64_t tuple) {
  int64_t offset = 0;
  for (int64_t k = 0; k < s.depth; ++k) {
    const int64_t at = wrapped(index_at(indices, tuple * s.depth + k), s.dims[k]);
    if (at < 0) return -1;
    offset += at * s.strides[k];
  }
  return offset;
}

void run_gather_nd(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &indices = *step.inputs[1], &y = *step.outputs[0];
  const int64_t element = dtype_bytes(x.dtype), bytes = s.inner * element;
  const int64_t per_batch = s.batch ? s.count / s.batch : 0;
  int64_t begin, end;
  share(s.count, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end && bytes; ++i) {
    const int64_t at = tuple_offset(s, indices, i);
    if (at < 0) memset(y.data + i * bytes, 0, bytes);
    else memcpy(y.data + i * bytes, x.data + (i / per_batch * s.axis + at) * element, bytes);
  }
}

bool prepare_scatter_nd(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *indices = input_of(step, 1), *updates = input_of(step, 2);
  const Tensor* y = output_of(step, 0);
  if (!x || !is_index(indices) || !updates || !y || x->dtype != y->dtype ||
      updates->dtype != x->dtype || !same_dims(*x, *y))
    return env.fail("needs data, i32 or i64 indices, updates and an output like the data");
  State* s = new_state(step, env);
  if (!s || !read_tuples(step, env, *x, *indices, s)) return false;
  if (s->batch != 1 || strcmp(attr_string(step, "reduction", "none"), "none") != 0)
    return env.fail("reductions are not supported");
  int64_t total;
  if (__builtin_mul_overflow(s->count, s->inner, &total) || total != updates->size)
    return env.fail("updates do not fit data and indices");
  return true;
}

void run_scatter_nd(const Step& step, int, int, int, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &x = *step.inputs[0], &indices = *step.inputs[1], &updates = *step.inputs[2];
  const Tensor& y = *step.outputs[0];
  const int64_t element = dtype_bytes(x.dtype), bytes = s.inner * element;
  if (y.data != x.data && x.size) memcpy(y.data, x.data, x.size * element);
  for (int64_t i = 0; i < s.count && bytes; ++i) {
    const int64_t at = tuple_offset(s, indices, i);
    if (at >= 0) memcpy(y.data + at * element, updates.data + i * bytes, bytes);
  }
}

const Kernel kGather[] = {
    {"Gather", "copy_gather", prepare_gather, run_gather, 0},
    {"GatherElements", "copy_gather_elements", prepare_elements, run_gather_elements, 0},
    {"GatherND", "copy_gather_nd", prepare_gather_nd, run_gather_nd, 0},
    {"ScatterElements", "copy_scatter_elements", prepare_elements, run_scatter_elements,
     kOneThread},
    {"ScatterND", "copy_scatter_nd", prepare_scatter_nd, run_scatter_nd, kOneThread},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(gather, kGather)
