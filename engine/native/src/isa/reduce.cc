// f32_reduce: reductions of a float tensor over any axes.
//
// Axes are merged into runs of kept and reduced ones. When the innermost run is kept, lanes are
// outputs; when it is reduced, a row is reduced across its lanes. Sums are taken in two levels
// (run, then total), which keeps the rounding error of long sums small.
#include <cmath>

#include "transcendental.h"

#include "lite_kernel.h"

namespace lite::LITE_ISA {

namespace {

enum class Fold { kSum, kMax, kMin, kProduct };
enum class Map { kNone, kAbs, kSquare };
enum class Finish { kNone, kScale, kSqrt, kLog };

struct Axis {
  int64_t count, stride;
};

struct State {
  Axis kept[kMaxRank], reduced[kMaxRank];  // outermost first
  int num_kept, num_reduced;
  int64_t outputs, cells;  // products of the counts
  bool lanes_kept;         // the innermost run is kept (its stride is 1)
  Fold fold;
  Map map;
  Finish finish;
  float scale;
  bool log_sum_exp;
};

template <Fold fold>
LITE_INLINE F combine(F acc, F v) {
  switch (fold) {
    case Fold::kSum: return acc + v;
    case Fold::kMax: return maximum(acc, v);
    case Fold::kMin: return minimum(acc, v);
    case Fold::kProduct: return acc * v;
  }
  return acc;
}
template <Map map>
LITE_INLINE F mapped(F v) {
  return map == Map::kAbs ? abs(v) : map == Map::kSquare ? v * v : v;
}
template <Fold fold>
LITE_INLINE float neutral() {
  return fold == Fold::kSum       ? 0.0f
         : fold == Fold::kProduct ? 1.0f
         : fold == Fold::kMax     ? -__builtin_inff()
                                  : __builtin_inff();
}

// Offset of run `index` of all axes but the last.
int64_t offset_of(const Axis* axes, int count, int64_t index) {
  int64_t offset = 0;
  for (int i = count - 1; i >= 0; --i) {
    offset += index % axes[i].count * axes[i].stride;
    index /= axes[i].count;
  }
  return offset;
}

float finished(const State& s, float v) {
  switch (s.finish) {
    case Finish::kNone: return v;
    case Finish::kScale: return v * s.scale;
    case Finish::kSqrt: return sqrtf(v);
    case Finish::kLog: return logf(v);
  }
  return v;
}

// Of `count` vectors, in chains that do not wait for each other.
template <Fold fold, Map map, class Read>
LITE_INLINE F fold_vectors(int64_t count, Read read) {
  constexpr int kChains = 4;
  F parts[kChains];
  LITE_UNROLL for (int i = 0; i < kChains; ++i) parts[i] = splat(neutral<fold>());
  int64_t i = 0;
  for (; i + kChains <= count; i += kChains)
    LITE_UNROLL for (int j = 0; j < kChains; ++j)
      parts[j] = combine<fold>(parts[j], mapped<map>(read(i + j)));
  for (; i < count; ++i) parts[0] = combine<fold>(parts[0], mapped<map>(read(i)));
  return combine<fold>(combine<fold>(parts[0], parts[1]), combine<fold>(parts[2], parts[3]));
}

// Vectors of outputs that are computed together: whole cache lines, and as many chains.
constexpr int kWide = 4;

// n (at most kWide * kLanes) outputs, neighbours in memory.
template <Fold fold, Map map>
void reduce_lanes(const State& s, const float* x, int n, float* y) {
  const Axis& run = s.reduced[s.num_reduced - 1];
  F total[kWide], part[kWide];
  int lanes[kWide];
  for (int v = 0; v < kWide; ++v) {
    const int left = n - v * kLanes;
    lanes[v] = left < 0 ? 0 : left < kLanes ? left : kLanes;
    total[v] = splat(neutral<fold>());
  }
  for (int64_t r = 0; r < s.cells / run.count; ++r) {
    const float* row = x + offset_of(s.reduced, s.num_reduced - 1, r);
    for (F& p : part) p = splat(neutral<fold>());
    const auto add_rows = [&](auto read) __attribute__((always_inline)) {
      for (int64_t i = 0; i < run.count; ++i)
        LITE_UNROLL for (int v = 0; v < kWide; ++v)
          part[v] = combine<fold>(part[v], mapped<map>(read(row + i * run.stride + v * kLanes, v)));
    };
    if (n == kWide * kLanes) add_rows([](const float* p, int) __attribute__((always_inline)) { return load(p); });
    else add_rows([&](const float* p, int v) __attribute__((always_inline)) { return load_part(p, lanes[v]); });
    for (int v = 0; v < kWide; ++v) total[v] = combine<fold>(total[v], part[v]);
  }
  for (int i = 0; i < n; ++i) y[i] = finished(s, total[i / kLanes][i % kLanes]);
}

template <Fold fold, Map map>
float reduce_row(const State& s, const float* x) {
  const Axis& run = s.reduced[s.num_reduced - 1];
  float total = neutral<fold>();
  for (int64_t r = 0; r < s.cells / run.count; ++r) {
    const float* row = x + offset_of(s.reduced, s.num_reduced - 1, r);
    const int64_t vectors = run.stride == 1 ? run.count / kLanes : 0;
    F part = fold_vectors<fold, map>(
        vectors, [&](int64_t i) __attribute__((always_inline)) { return load(row + i * kLanes); });
    int64_t i = vectors * kLanes;
    for (int lane = 0; i < run.count; ++i, lane = (lane + 1) % kLanes) {
      const F v = mapped<map>(splat(row[i * run.stride]));
      part[lane] = combine<fold>(splat(part[lane]), v)[0];
    }
    F folded = splat(total);
    LITE_UNROLL for (int lane = 0; lane < kLanes; ++lane)
      folded = combine<fold>(folded, splat(part[lane]));
    total = folded[0];
  }
  return total;
}

template <Fold fold, Map map>
void reduce(const State& s, const float* x, float* y, int thread, int threads) {
  int64_t begin, end;
  if (!s.lanes_kept) {
    share(s.outputs, 1, thread, threads, &begin, &end);
    for (int64_t o = begin; o < end; ++o)
      y[o] = finished(s, reduce_row<fold, map>(s, x + offset_of(s.kept, s.num_kept, o)));
    return;
  }
  const int64_t inner = s.kept[s.num_kept - 1].count;
  const int64_t width = kWide * kLanes, groups = (inner + width - 1) / width;
  share(s.outputs / inner * groups, 1, thread, threads, &begin, &end);
  for (int64_t g = begin; g < end; ++g) {
    const int64_t row = g / groups, column = g % groups * width;
    const int n = static_cast<int>(inner - column < width ? inner - column : width);
    reduce_lanes<fold, map>(s, x + offset_of(s.kept, s.num_kept - 1, row) + column, n, y + row * inner + column);
  }
}

// ln sum e^x, shifted by the maximum; scalar: rare.
void log_sum_exp(const State& s, const float* x, float* y, int thread, int threads) {
  int64_t begin, end;
  share(s.outputs, 1, thread, threads, &begin, &end);
  for (int64_t o = begin; o < end; ++o) {
    const float* from = x + offset_of(s.kept, s.num_kept, o);
    const float top = reduce_row<Fold::kMax, Map::kNone>(s, from);
    const float shift = std::isfinite(top) ? top : 0;
    double total = 0;
    for (int64_t i = 0; i < s.cells; ++i)
      total += expf(from[offset_of(s.reduced, s.num_reduced, i)] - shift);
    y[o] = static_cast<float>(::log(total)) + shift;
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const float* x = step.inputs[0]->as<float>();
  float* y = step.outputs[0]->as<float>();
  if (s.outputs == 0) return;
  if (s.log_sum_exp) return log_sum_exp(s, x, y, thread, threads);
  switch (s.fold) {
    case Fold::kMax: return reduce<Fold::kMax, Map::kNone>(s, x, y, thread, threads);
    case Fold::kMin: return reduce<Fold::kMin, Map::kNone>(s, x, y, thread, threads);
    case Fold::kProduct: return reduce<Fold::kProduct, Map::kNone>(s, x, y, thread, threads);
    case Fold::kSum: break;
  }
  if (s.map == Map::kAbs) reduce<Fold::kSum, Map::kAbs>(s, x, y, thread, threads);
  else if (s.map == Map::kSquare) reduce<Fold::kSum, Map::kSquare>(s, x, y, thread, threads);
  else reduce<Fold::kSum, Map::kNone>(s, x, y, thread, threads);
}

struct Row {
  const char* op;
  Fold fold;
  Map map;
  Finish finish;
};
const Row kRows[] = {
    {"ReduceSum", Fold::kSum, Map::kNone, Finish::kNone},
    {"ReduceMean", Fold::kSum, Map::kNone, Finish::kScale},
    {"ReduceMax", Fold::kMax, Map::kNone, Finish::kNone},
    {"ReduceMin", Fold::kMin, Map::kNone, Finish::kNone},
    {"ReduceProd", Fold::kProduct, Map::kNone, Finish::kNone},
    {"ReduceL1", Fold::kSum, Map::kAbs, Finish::kNone},
    {"ReduceL2", Fold::kSum, Map::kSquare, Finish::kSqrt},
    {"ReduceSumSquare", Fold::kSum, Map::kSquare, Finish::kNone},
    {"ReduceLogSum", Fold::kSum, Map::kNone, Finish::kLog},
    {"ReduceLogSumExp", Fold::kSum, Map::kNone, Finish::kNone},
};

// Which axes are reduced, as a bit mask.
bool read_axes(const Step& step, Env& env, int rank, unsigned* mask) {
  int count;
  const int64_t* axes = attr_ints(step, "axes", &count);
  if (count == 0) {
    const bool keep_all = attr_int(step, "noop_with_empty_axes", 0) != 0;
    *mask = keep_all ? 0 : (1u << rank) - 1;
    return true;
  }
  *mask = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank)
      return env.fail("axis %lld is outside rank %d", static_cast<long long>(axes[i]), rank);
    *mask |= 1u << axis;
  }
  return true;
}

void add_axis(Axis* axes, int* count, bool continues, int64_t dim, int64_t stride) {
  if (continues) {
    axes[*count - 1] = {axes[*count - 1].count * dim, stride};
  } else {
    axes[(*count)++] = {dim, stride};
  }
}

bool prepare(Step& step, Env& env) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  if (!x || !y || x->dtype != DType::kF32 || y->dtype != DType::kF32 || input_of(step, 1))
    return env.fail("needs one f32 input, an f32 output and constant axes");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  unsigned mask;
  if (!read_axes(step, env, x->rank, &mask)) return false;
  for (const Row& row : kRows)
    if (strcmp(row.op, step.op) == 0) s->fold = row.fold, s->map = row.map, s->finish = row.finish;
  s->log_sum_exp = strcmp(step.op, "ReduceLogSumExp") == 0;
  int64_t strides[kMaxRank];
  strides_of(*x, strides);
  s->outputs = s->cells = 1;
  int last = -1;  // 1: the previous axis was reduced, 0: kept
  for (int d = 0; d < x->rank; ++d) {
    const int reduced = mask >> d & 1;
    (reduced ? s->cells : s->outputs) *= x->dims[d];
    if (reduced) add_axis(s->reduced, &s->num_reduced, last == 1, x->dims[d], strides[d]);
    else add_axis(s->kept, &s->num_kept, last == 0, x->dims[d], strides[d]);
    last = reduced;
  }
  s->lanes_kept = last == 0;
  if (s->num_reduced == 0) s->reduced[s->num_reduced++] = {1, 1};
  if (y->size != s->outputs)
    return env.fail("output has %lld elements, the reduction gives %lld",
                    static_cast<long long>(y->size), static_cast<long long>(s->outputs));
  if (s->outputs > 0 && s->cells == 0) return env.fail("reduces an axis without elements");
  s->scale = 1.0f / static_cast<float>(s->cells);
  return true;
}

const Kernel kReduce[] = {
    {"ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
     "ReduceLogSum ReduceLogSumExp",
     "f32_reduce", prepare, run, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(reduce, kReduce)
