#include "constants.h"

#include <stdlib.h>

#include "../ops/convert.h"

namespace lite::opencl {

namespace {

// G of F(4,3) at the points 0, ±3/4, ±3/2, ∞ of winograd.cl: weights (3) → points (6). Lavin 2016,
// section 4.3.
constexpr double kPoints[6][3] = {
    {64.0 / 81, 0, 0},
    {-128.0 / 243, -32.0 / 81, -8.0 / 27},
    {-128.0 / 243, 32.0 / 81, -8.0 / 27},
    {32.0 / 243, 16.0 / 81, 8.0 / 27},
    {32.0 / 243, -16.0 / 81, 8.0 / 27},
    {0, 0, 1},
};
constexpr uint64_t kMaxElements = uint64_t{1} << 40;

bool misfit(Env& env) {
  return env.fail("a packed weight of the OpenCL program does not fit its weight");
}

// Fills bytes from dims; false when the product leaves the sane range.
bool measure(Array* a, size_t limit) {
  uint64_t size = 1, bound = 1;
  for (int i = 0; i < a->rank; ++i) {
    if (a->dims[i] > kMaxElements) return false;
    bound *= a->dims[i] ? a->dims[i] : 1;
    if (bound > kMaxElements) return false;
    size *= a->dims[i];
  }
  a->bytes = size * dtype_bytes(a->dtype);
  return !limit || a->bytes <= limit;
}

bool make(Array* a, size_t limit, Env& env) {
  if (!measure(a, limit)) return misfit(env);
  a->data = static_cast<uint8_t*>(calloc(a->bytes + 4, 1));
  return a->data || env.out_of_memory();
}

uint64_t count_of(const Array& a) { return a.bytes / dtype_bytes(a.dtype); }

// Copies `dims` elements from one array into another; strides in elements.
template <class T>
void copy_strided(const T* from, T* to, int rank, const uint64_t* dims, const uint64_t* from_steps,
                  const uint64_t* to_steps) {
  if (rank == 0) {
    *to = *from;
    return;
  }
  uint64_t index[kMaxRank] = {}, rows = 1;
  for (int i = 0; i + 1 < rank; ++i) rows *= dims[i];
  const uint64_t n = dims[rank - 1], read = from_steps[rank - 1], write = to_steps[rank - 1];
  if (!n) return;
  for (uint64_t row = 0; row < rows; ++row) {
    const T* source = from;
    T* target = to;
    for (int i = 0; i + 1 < rank; ++i) {
      source += index[i] * from_steps[i];
      target += index[i] * to_steps[i];
    }
    for (uint64_t k = 0; k < n; ++k) target[k * write] = source[k * read];
    for (int i = rank - 2; i >= 0 && ++index[i] == dims[i]; --i) index[i] = 0;
  }
}

void copy(const Array& from, const Array& to, const uint64_t* dims, const uint64_t* from_steps,
          const uint64_t* to_steps) {
  switch (dtype_bytes(from.dtype)) {
    case 1: return copy_strided(from.data, to.data, from.rank, dims, from_steps, to_steps);
    case 2:
      return copy_strided(reinterpret_cast<const uint16_t*>(from.data),
                          reinterpret_cast<uint16_t*>(to.data), from.rank, dims, from_steps,
                          to_steps);
    case 4:
      return copy_strided(reinterpret_cast<const uint32_t*>(from.data),
                          reinterpret_cast<uint32_t*>(to.data), from.rank, dims, from_steps,
                          to_steps);
    default:
      return copy_strided(reinterpret_cast<const uint64_t*>(from.data),
                          reinterpret_cast<uint64_t*>(to.data), from.rank, dims, from_steps,
                          to_steps);
  }
}

void row_major(const Array& a, uint64_t* steps) {
  uint64_t step = 1;
  for (int i = a.rank - 1; i >= 0; --i) {
    steps[i] = step;
    step *= a.dims[i];
  }
}

bool reshape(const ConstantStep& step, size_t limit, Env& env, Array* a) {
  const size_t before = a->bytes;
  a->rank = step.count;
  for (int i = 0; i < a->rank; ++i) a->dims[i] = step.values[i];
  return (measure(a, limit) && a->bytes == before) || misfit(env);
}

bool transpose(const ConstantStep& step, size_t limit, Env& env, const Array& a, Array* out) {
  if (step.count != a.rank) return misfit(env);
  uint64_t own[kMaxRank], from[kMaxRank], to[kMaxRank];
  row_major(a, own);
  uint32_t seen = 0;
  *out = a;
  for (int i = 0; i < a.rank; ++i) {
    const uint32_t axis = step.values[i];
    if (axis >= static_cast<uint32_t>(a.rank)) return misfit(env);
    seen |= 1u << axis;
    out->dims[i] = a.dims[axis];
    from[i] = own[axis];
  }
  if (seen != (1u << a.rank) - 1) return misfit(env);
  if (!make(out, limit, env)) return false;
  row_major(*out, to);
  copy(a, *out, out->dims, from, to);
  return true;
}

bool pad(const ConstantStep& step, size_t limit, Env& env, const Array& a, Array* out) {
  if (step.count != a.rank) return misfit(env);
  *out = a;
  for (int i = 0; i < a.rank; ++i) {
    if (step.values[i] < a.dims[i]) return misfit(env);
    out->dims[i] = step.values[i];
  }
  if (!make(out, limit, env)) return false;
  if (!a.bytes) return true;
  uint64_t from[kMaxRank], to[kMaxRank];
  row_major(a, from);
  row_major(*out, to);
  copy(a, *out, a.dims, from, to);
  return true;
}

bool convert(DType from, DType to, size_t limit, Env& env, const Array& a, Array* out) {
  if (a.dtype != from) return misfit(env);
  *out = a;
  out->dtype = to;
  if (!make(out, limit, env)) return false;
  const uint64_t n = count_of(a);
  const float* floats = reinterpret_cast<const float*>(a.data);
  const uint16_t* halves = reinterpret_cast<const uint16_t*>(a.data);
  if (to == DType::kF16)
    for (uint64_t i = 0; i < n; ++i)
      reinterpret_cast<uint16_t*>(out->data)[i] = float_to_half(floats[i]);
  else
    for (uint64_t i = 0; i < n; ++i)
      reinterpret_cast<float*>(out->data)[i] = half_to_float(halves[i]);
  return true;
}

bool scale(const ConstantStep& step, Env& env, Array* a) {
  if (a->dtype != DType::kF32 || step.count != 1) return misfit(env);
  float factor;
  memcpy(&factor, step.values, sizeof factor);
  float* values = reinterpret_cast<float*>(a->data);
  for (uint64_t i = 0, n = count_of(*a); i < n; ++i) values[i] *= factor;
  return true;
}

// (O, 3, 3, C) → (36, C, O). Sums in the order of constants.py; CMake keeps the compiler from
// joining a product and a sum (-ffp-contract=off).
bool winograd(size_t limit, Env& env, const Array& a, Array* out) {
  const bool square = a.rank == 4 && a.dims[1] == 3 && a.dims[2] == 3;
  if (a.dtype != DType::kF32 || !square) return misfit(env);
  const uint64_t count = a.dims[0], channels = a.dims[3];
  *out = a;
  out->rank = 3;
  out->dims[0] = 36;
  out->dims[1] = channels;
  out->dims[2] = count;
  if (!make(out, limit, env)) return false;
  const float* taps = reinterpret_cast<const float*>(a.data);
  float* points = reinterpret_cast<float*>(out->data);
  for (uint64_t c = 0; c < channels; ++c)
    for (uint64_t o = 0; o < count; ++o) {
      const float* w = taps + o * 9 * channels + c;
      for (int p = 0; p < 6; ++p) {
        double row[3];
        for (int j = 0; j < 3; ++j)
          row[j] = kPoints[p][0] * w[j * channels] + kPoints[p][1] * w[(3 + j) * channels] +
                   kPoints[p][2] * w[(6 + j) * channels];
        for (int q = 0; q < 6; ++q) {
          const double sum =
              kPoints[q][0] * row[0] + kPoints[q][1] * row[1] + kPoints[q][2] * row[2];
          points[((p * 6 + q) * channels + c) * count + o] = static_cast<float>(sum);
        }
      }
    }
  return true;
}

// The elements of one axis in the opposite order.
bool reverse(const ConstantStep& step, size_t limit, Env& env, const Array& a, Array* out) {
  if (step.count != 1 || step.values[0] >= static_cast<uint32_t>(a.rank)) return misfit(env);
  *out = a;
  if (!make(out, limit, env)) return false;
  const uint64_t n = a.dims[step.values[0]];
  size_t bytes = dtype_bytes(a.dtype);  // of an element of that axis
  for (int i = static_cast<int>(step.values[0]) + 1; i < a.rank; ++i) bytes *= a.dims[i];
  for (size_t whole = 0; whole < a.bytes; whole += n * bytes)
    for (uint64_t k = 0; k < n; ++k)
      memcpy(out->data + whole + (n - 1 - k) * bytes, a.data + whole + k * bytes, bytes);
  return true;
}

bool flip(Env& env, Array* a) {
  if (a->dtype != DType::kU8) return misfit(env);
  a->dtype = DType::kI8;
  for (size_t i = 0; i < a->bytes; ++i) a->data[i] ^= 0x80;
  return true;
}

// Bytes less a zero point, as i16.
bool widen(const ConstantStep& step, size_t limit, Env& env, const Array& a, Array* out) {
  if ((a.dtype != DType::kI8 && a.dtype != DType::kU8) || step.count != 1) return misfit(env);
  *out = a;
  out->dtype = DType::kI16;
  if (!make(out, limit, env)) return false;
  int16_t* values = reinterpret_cast<int16_t*>(out->data);
  for (size_t i = 0; i < a.bytes; ++i) {
    const uint32_t value = a.dtype == DType::kI8 ? static_cast<int8_t>(a.data[i]) : a.data[i];
    values[i] = static_cast<int16_t>(value - step.values[0]);
  }
  return true;
}

bool apply(const ConstantStep& step, size_t limit, Env& env, Array* a) {
  if (step.operation == Operation::kReshape) return reshape(step, limit, env, a);
  if (step.operation == Operation::kScale) return scale(step, env, a);
  if (step.operation == Operation::kFlip) return flip(env, a);
  Array out{};
  bool good = false;
  switch (step.operation) {
    case Operation::kTranspose: good = transpose(step, limit, env, *a, &out); break;
    case Operation::kPad: good = pad(step, limit, env, *a, &out); break;
    case Operation::kHalf:
      good = convert(DType::kF32, DType::kF16, limit, env, *a, &out);
      break;
    case Operation::kFloat:
      good = convert(DType::kF16, DType::kF32, limit, env, *a, &out);
      break;
    case Operation::kReverse: good = reverse(step, limit, env, *a, &out); break;
    case Operation::kWiden: good = widen(step, limit, env, *a, &out); break;
    default: good = winograd(limit, env, *a, &out); break;
  }
  if (!good) return false;
  free(a->data);
  *a = out;
  return true;
}

}  // namespace

bool evaluate(const Constant& constant, const void* weight, size_t weight_bytes, size_t limit,
              Env& env, Array* out) {
  *out = {};
  out->dtype = constant.dtype;
  out->rank = constant.rank;
  for (int i = 0; i < out->rank; ++i) out->dims[i] = constant.dims[i];
  if (!measure(out, limit) || out->bytes != weight_bytes) return misfit(env);
  if (!make(out, limit, env)) return false;
  if (weight_bytes) memcpy(out->data, weight, weight_bytes);
  for (int i = 0; i < constant.num_steps; ++i)
    if (!apply(constant.steps[i], limit, env, out)) {
      free(out->data);
      *out = {};
      return false;
    }
  return true;
}

}  // namespace lite::opencl
