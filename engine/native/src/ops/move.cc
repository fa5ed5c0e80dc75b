// Kernels that move elements of any type: Relayout, Transpose, Concat, Split, Slice, Expand, Tile,
// DepthToSpace, SpaceToDepth, Copy. Each is a list of strided copies made in prepare.
//
// All accept pitch (channel slices); the layout-changing ones also halos, because a strided view
// covers them.
#include "strided_copy.h"

namespace lite {

namespace {

// Copies of one step: from which input to which output, at which element offsets.
struct Part {
  CopyPlan plan;
  int input, output;
  int64_t from, to;  // elements
};
struct State {
  int count;
  Part* parts;
};

State* make_state(Step& step, Env& env, int parts) {
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return nullptr;
  state->parts = static_cast<Part*>(env.allocate(sizeof(Part) * (parts ? parts : 1)));
  if (!state->parts) return nullptr;
  state->count = parts;
  step.state = state;
  return state;
}

bool in_place(const CopyPlan& plan) {
  for (int i = 0; i < plan.rank; ++i)
    if (plan.axes[i].from != plan.axes[i].to) return false;
  return true;
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& state = *static_cast<const State*>(step.state);
  for (int i = 0; i < state.count; ++i) {
    const Part& part = state.parts[i];
    const int64_t element = part.plan.element;
    const uint8_t* from = step.inputs[part.input]->data + part.from * element;
    uint8_t* to = step.outputs[part.output]->data + part.to * element;
    if (from == to && in_place(part.plan)) continue;  // the planner laid the piece where it belongs
    run_copy(part.plan, from, to, thread, threads);
  }
}

bool one_to_one(const Step& step, Env& env, const Tensor** x, const Tensor** y) {
  *x = input_of(step, 0);
  *y = output_of(step, 0);
  if (!*x || !*y) return env.fail("needs an input and an output");
  if ((*x)->dtype != (*y)->dtype) return env.fail("input and output differ in type");
  return true;
}

// A whole copy over `rank` axes given as output-shaped counts.
bool single(Step& step, Env& env, const CopyAxis* axes, int rank, int64_t from, int64_t to) {
  State* state = make_state(step, env, 1);
  if (!state) return env.out_of_memory();
  Part& part = state->parts[0];
  part = {{}, 0, 0, from, to};
  plan_copy(axes, rank, dtype_bytes(step.inputs[0]->dtype), &part.plan);
  return true;
}

// perm[i]: input axis that output axis i holds. Default: reversed, as ONNX.
bool prepare_relayout(Step& step, Env& env) {
  const Tensor *x, *y;
  if (!one_to_one(step, env, &x, &y)) return false;
  int count;
  const int64_t* perm = attr_ints(step, "perm", &count);
  if (x->rank != y->rank || (perm && count != x->rank))
    return env.fail("perm of %d axes does not fit ranks %d and %d", count, x->rank, y->rank);
  int64_t from[kMaxRank], to[kMaxRank];
  const int64_t from_origin = strides_of(*x, from), to_origin = strides_of(*y, to);
  CopyAxis axes[kMaxRank];
  unsigned seen = 0;
  for (int i = 0; i < y->rank; ++i) {
    const int64_t axis = perm ? perm[i] : x->rank - 1 - i;
    if (axis < 0 || axis >= x->rank || (seen >> axis & 1) || y->dims[i] != x->dims[axis])
      return env.fail("perm is not a permutation that gives the output's shape");
    seen |= 1u << axis;
    axes[i] = {y->dims[i], from[axis], to[i]};
  }
  return single(step, env, axes, y->rank, from_origin, to_origin);
}

bool find_axis(const Step& step, Env& env, int rank, int64_t otherwise, int* axis) {
  int64_t value = attr_int(step, "axis", otherwise);
  if (value < 0) value += rank;
  if (value < 0 || value >= rank) return env.fail("axis is outside rank %d", rank);
  *axis = static_cast<int>(value);
  return true;
}

// `whole` is cut along `axis` into the other side's tensors, one after the other.
bool prepare_pieces(Step& step, Env& env, bool joining) {
  const Tensor* whole = joining ? output_of(step, 0) : input_of(step, 0);
  const int pieces = joining ? step.num_inputs : step.num_outputs;
  int axis = 0;
  if (!whole) return env.fail("needs an input and an output");
  if (!find_axis(step, env, whole->rank, 0, &axis)) return false;
  State* state = make_state(step, env, pieces);
  if (!state) return env.out_of_memory();
  int64_t whole_strides[kMaxRank], at = 0;
  const int64_t whole_origin = strides_of(*whole, whole_strides);
  state->count = 0;
  for (int i = 0; i < pieces; ++i) {
    const Tensor* piece = joining ? step.inputs[i] : step.outputs[i];
    if (!piece && joining) continue;
    if (!piece) return env.fail("an unwanted output of Split needs a tensor");
    bool fits = piece->rank == whole->rank && piece->dtype == whole->dtype;
    for (int d = 0; fits && d < whole->rank; ++d)
      fits = d == axis ? piece->dims[d] <= whole->dims[d] - at : piece->dims[d] == whole->dims[d];
    if (!fits) return env.fail("'%s' does not fit '%s'", piece->name, whole->name);
    int64_t strides[kMaxRank];
    const int64_t origin = strides_of(*piece, strides);
    const int64_t offset = whole_origin + at * whole_strides[axis];
    CopyAxis axes[kMaxRank];
    for (int d = 0; d < whole->rank; ++d)
      axes[d] = joining ? CopyAxis{piece->dims[d], strides[d], whole_strides[d]}
                        : CopyAxis{piece->dims[d], whole_strides[d], strides[d]};
    Part& part = state->parts[state->count++];
    part = joining ? Part{{}, i, 0, origin, offset} : Part{{}, 0, i, offset, origin};
    const int64_t element = dtype_bytes(whole->dtype);
    plan_copy(axes, whole->rank, element, &part.plan);
    int64_t start;
    if (part.plan.total && env.overlap(*piece, *whole, &start) &&
        (start != (offset - origin) * element || !in_place(part.plan)))
      return env.fail("'%s' lies in '%s', but not in its place", piece->name, whole->name);
    at += piece->dims[axis];
  }
  if (at != whole->dims[axis]) return env.fail("the pieces do not fill axis %d", axis);
  return true;
}
bool prepare_concat(Step& step, Env& env) { return prepare_pieces(step, env, true); }
bool prepare_split(Step& step, Env& env) { return prepare_pieces(step, env, false); }

int64_t clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }

// ONNX Slice: starts, ends, axes, steps as attributes. Bounds are clamped, negative ones wrap once.
bool prepare_slice(Step& step, Env& env) {
  const Tensor *x, *y;
  if (!one_to_one(step, env, &x, &y)) return false;
  int starts_count, ends_count, axes_count, steps_count;
  const int64_t* starts = attr_ints(step, "starts", &starts_count);
  const int64_t* ends = attr_ints(step, "ends", &ends_count);
  const int64_t* axes_given = attr_ints(step, "axes", &axes_count);
  const int64_t* steps = attr_ints(step, "steps", &steps_count);
  if (!starts || !ends || starts_count != ends_count || starts_count > x->rank ||
      (axes_count && axes_count != starts_count) || (steps_count && steps_count != starts_count) ||
      x->rank != y->rank)
    return env.fail("starts, ends, axes and steps do not fit rank %d or are not constant", x->rank);
  int64_t from[kMaxRank], to[kMaxRank];
  int64_t origin = strides_of(*x, from);
  const int64_t to_origin = strides_of(*y, to);
  CopyAxis axes[kMaxRank];
  for (int d = 0; d < x->rank; ++d) axes[d] = {x->dims[d], from[d], to[d]};
  unsigned seen = 0;
  for (int i = 0; i < starts_count; ++i) {
    int64_t axis = axes_count ? axes_given[i] : i;
    if (axis < 0) axis += x->rank;
    const int64_t stride = steps_count ? steps[i] : 1;
    if (axis < 0 || axis >= x->rank || (seen >> axis & 1) || stride == 0 || stride == INT64_MIN)
      return env.fail("axes or steps of the slice are not valid");
    seen |= 1u << axis;
    const int64_t dim = x->dims[axis];
    int64_t start = starts[i] < 0 ? starts[i] + dim : starts[i];
    int64_t end = ends[i] < 0 ? (ends[i] < INT64_MIN + dim ? INT64_MIN : ends[i] + dim) : ends[i];
    start = stride > 0 ? clamp(start, 0, dim) : clamp(start, 0, dim - 1);
    end = stride > 0 ? clamp(end, 0, dim) : clamp(end, -1, dim - 1);
    const int64_t span = stride > 0 ? end - start : start - end;
    const uint64_t pace =
        stride > 0 ? static_cast<uint64_t>(stride) : -static_cast<uint64_t>(stride);
    axes[axis].count = span > 0 ? static_cast<int64_t>((span - 1) / pace + 1) : 0;
    // A single element needs no stride, and an absurd one must not overflow.
    axes[axis].from = axes[axis].count > 1 ? from[axis] * stride : from[axis];
    if (axes[axis].count) origin += start * from[axis];
  }
  for (int d = 0; d < x->rank; ++d)
    if (axes[d].count != y->dims[d])
      return env.fail("axis %d of the output has %lld entries, the slice %lld", d,
                      static_cast<long long>(y->dims[d]), static_cast<long long>(axes[d].count));
  return single(step, env, axes, x->rank, origin, to_origin);
}

bool prepare_expand(Step& step, Env& env) {
  const Tensor *x, *y;
  if (!one_to_one(step, env, &x, &y)) return false;
  int64_t from[kMaxRank], to[kMaxRank];
  const int64_t from_origin = strides_of(*x, from), to_origin = strides_of(*y, to);
  CopyAxis axes[kMaxRank];
  const int lead = y->rank - x->rank;
  for (int d = 0; d < y->rank; ++d) {
    const int64_t have = d < lead ? 1 : x->dims[d - lead];
    if (lead < 0 || (have != 1 && have != y->dims[d]))
      return env.fail("the input's shape cannot be broadcast to the output's");
    axes[d] = {y->dims[d], have == 1 ? 0 : from[d - lead], to[d]};
  }
  if (lead < 0) return env.fail("the input has more axes than the output");
  return single(step, env, axes, y->rank, from_origin, to_origin);
}

bool prepare_tile(Step& step, Env& env) {
  const Tensor *x, *y;
  if (!one_to_one(step, env, &x, &y)) return false;
  if (x->rank != y->rank) return env.fail("input and output differ in rank");
  int64_t from[kMaxRank], to[kMaxRank];
  const int64_t from_origin = strides_of(*x, from), to_origin = strides_of(*y, to);
  CopyAxis axes[2 * kMaxRank];
  for (int d = 0; d < x->rank; ++d) {
    if (x->dims[d] == 0 ? y->dims[d] != 0 : y->dims[d] % x->dims[d] != 0)
      return env.fail("axis %d of the output is no multiple of the input's", d);
    const int64_t repeats = x->dims[d] ? y->dims[d] / x->dims[d] : 0;
    // Of an output without elements, the input's other axes may be of any size.
    axes[2 * d] = {repeats, 0, repeats > 1 ? to[d] * x->dims[d] : 0};
    axes[2 * d + 1] = {x->dims[d], from[d], to[d]};
  }
  return single(step, env, axes, 2 * x->rank, from_origin, to_origin);
}

// Channels-last. DCR: depth = (block_y, block_x, C); CRD: depth = (C, block_y, block_x).
bool prepare_depth_space(Step& step, Env& env, bool to_space) {
  const Tensor *x, *y;
  if (!one_to_one(step, env, &x, &y)) return false;
  const Tensor& deep = to_space ? *x : *y;
  const Tensor& wide = to_space ? *y : *x;
  const int64_t b = attr_int(step, "blocksize", 0);
  if (x->rank != 4 || y->rank != 4 || b < 1 || b > 4096 || deep.dims[0] != wide.dims[0] ||
      deep.dims[1] * b != wide.dims[1] || deep.dims[2] * b != wide.dims[2] ||
      deep.dims[3] != wide.dims[3] * b * b)
    return env.fail("blocksize %lld does not fit the shapes", static_cast<long long>(b));
  const bool crd = strcmp(attr_string(step, "mode", "DCR"), "CRD") == 0;
  int64_t ds[kMaxRank], ws[kMaxRank];
  const int64_t deep_origin = strides_of(deep, ds), wide_origin = strides_of(wide, ws);
  const int64_t c = wide.dims[3];
  const int64_t block_y = crd ? b : b * c, block_x = crd ? 1 : c, channel = crd ? b * b : 1;
  CopyAxis axes[6] = {{deep.dims[0], ds[0], ws[0]}, {deep.dims[1], ds[1], ws[1] * b},
                      {b, block_y, ws[1]},          {deep.dims[2], ds[2], ws[2] * b},
                      {b, block_x, ws[2]},          {c, channel, ws[3]}};
  if (!to_space)
    for (CopyAxis& axis : axes) axis = {axis.count, axis.to, axis.from};
  return to_space ? single(step, env, axes, 6, deep_origin, wide_origin)
                  : single(step, env, axes, 6, wide_origin, deep_origin);
}
bool prepare_depth_to_space(Step& step, Env& env) { return prepare_depth_space(step, env, true); }
bool prepare_space_to_depth(Step& step, Env& env) { return prepare_depth_space(step, env, false); }

constexpr uint32_t kFlags = kAcceptsPitch | kAcceptsHalo | kDivisible;
const Kernel kMove[] = {
    {"Relayout", "copy_relayout", prepare_relayout, run, kFlags},
    {"Concat", "copy_concat", prepare_concat, run, kFlags | kOverlaps},
    {"Split", "copy_split", prepare_split, run, kFlags | kOverlaps},
    {"Slice", "copy_slice", prepare_slice, run, kFlags},
    {"Expand", "copy_expand", prepare_expand, run, kFlags},
    {"Tile", "copy_tile", prepare_tile, run, kFlags},
    {"DepthToSpace", "copy_depth_to_space", prepare_depth_to_space, run, kFlags},
    {"SpaceToDepth", "copy_space_to_depth", prepare_space_to_depth, run, kFlags},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(move, kMove)
