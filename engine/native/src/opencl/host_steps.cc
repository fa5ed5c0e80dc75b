#include "host_steps.h"

#include <stdio.h>

#include "ops/convert.h"

namespace lite::opencl {

namespace {

constexpr uint64_t kMost = INT32_MAX / 2;  // tensors or steps

// The longer lists of tensors, steps and rows, as they grow.
struct Mover {
  lite_program* p;
  Executor& x;
  const void* const* weights;
  const size_t* weight_bytes;
  size_t num_weights;
  Tensor* tensors = nullptr;
  Storage* storage = nullptr;
  Step* steps = nullptr;
  DeviceStep* rows = nullptr;
  int32_t num_tensors = 0, num_steps = 0;
  uint32_t num_rows = 0;
  uint64_t mirrors = 0, arena_bytes = 0;  // where a step's mirrors go; the end of the longest so far
  size_t staging_bytes = 0;

  template <class T>
  T* room(uint64_t count) {
    T* made = static_cast<T*>(p->memory.allocate_array(count, sizeof(T)));
    if (!made) p->env.out_of_memory();
    return made;
  }

  const char* named(const char* before, const char* name, const char* after) {
    const size_t bytes = strlen(before) + strlen(name) + strlen(after) + 1;
    char* text = room<char>(bytes);
    if (text) snprintf(text, bytes, "%s%s%s", before, name, after);
    return text;
  }

  bool makes_room() {
    const Program& program = p->program;
    uint64_t more = 0;
    for (uint32_t i = 0; i < x.plan.num_steps; ++i) {
      const Step& step = program.steps[x.plan.steps[i].step];
      if (x.left.rows[i]) more += static_cast<uint64_t>(step.num_inputs) + step.num_outputs;
    }
    if (more + program.num_tensors > kMost || more + program.num_steps > kMost)
      return p->env.fail("the program has too many steps");
    tensors = room<Tensor>(program.num_tensors + more);
    storage = room<Storage>(program.num_tensors + more);
    steps = room<Step>(program.num_steps + more);
    rows = room<DeviceStep>(x.plan.num_steps + more);
    int32_t* place_of = room<int32_t>(program.num_tensors + more);
    if (!tensors || !storage || !steps || !rows || !place_of) return false;
    num_tensors = program.num_tensors;
    memcpy(tensors, program.tensors, num_tensors * sizeof(Tensor));
    memcpy(storage, program.storage, num_tensors * sizeof(Storage));
    memcpy(place_of, x.place_of, num_tensors * sizeof(int32_t));
    for (uint64_t i = 0; i < more; ++i) place_of[num_tensors + i] = -1;
    x.place_of = place_of;
    arena_bytes = program.arena_bytes;
    return true;
  }

  // The parser's tables of a step's tensors, which lie in the program's own memory.
  void refer(const Step& step) {
    Tensor** table = const_cast<Tensor**>(step.inputs);
    for (int32_t i = 0; i < step.num_inputs + step.num_outputs; ++i)
      if (table[i]) table[i] = &tensors[table[i]->index];
  }

  Tensor* mirror(const Tensor& t, bool floats) {
    Tensor& made = tensors[num_tensors];
    made = t;
    made.index = num_tensors;
    if (floats && t.dtype == DType::kF16) made.dtype = DType::kF32;
    made.pitch = last_dim(t);
    made.bytes = static_cast<size_t>(t.size) * dtype_bytes(made.dtype);
    made.name = named("", t.name, ":host");
    if (!made.name) return nullptr;
    ++num_tensors;
    return &made;
  }

  // A constant: as it is, or its halves as floats.
  Tensor* weight_of(Tensor* t, bool floats) {
    if (!floats || t->dtype != DType::kF16) return t;
    const Storage& root = storage[storage[t->index].root];
    const uint64_t at = root.offset + (root.root == t->index ? 0 : storage[t->index].offset);
    const size_t have = static_cast<uint32_t>(root.weight) < num_weights ? weight_bytes[root.weight] : 0;
    const uint8_t* data = have ? static_cast<const uint8_t*>(weights[root.weight]) + at : nullptr;
    if (!is_dense(*t) || at > have || t->bytes > have - at ||
        reinterpret_cast<uintptr_t>(data) % sizeof(uint16_t)) {
      p->env.fail("weight '%s' has no halves for the CPU", t->name);
      return nullptr;
    }
    Tensor* made = mirror(*t, floats);
    float* values = made ? room<float>(t->size) : nullptr;
    if (!values) return nullptr;
    halves_to_floats(reinterpret_cast<const uint16_t*>(data), t->size, values);
    made->role = Role::kWeight;
    made->data = reinterpret_cast<uint8_t*>(values);
    storage[made->index] = {made->index, made->index, -1, 0, kNoTurns, 1};
    return made;
  }

  // A tensor of the device on the host.
  Tensor* host_of(const Tensor& t, bool floats) {
    if (x.place_of[storage[t.index].root] < 0 || has_halo(t)) {
      p->env.fail("'%s' cannot be brought to the CPU", t.name);
      return nullptr;
    }
    Tensor* made = mirror(t, floats);
    if (!made) return nullptr;
    made->role = Role::kArena;
    storage[made->index] = {made->index, made->index, -1, mirrors, kNoTurns, 1};
    if (made->bytes > SIZE_MAX / 2 - mirrors) {
      p->env.out_of_memory();
      return nullptr;
    }
    mirrors = (mirrors + made->bytes + kAlign - 1) / kAlign * kAlign;
    if (mirrors > arena_bytes) arena_bytes = mirrors;
    if (t.bytes > staging_bytes) staging_bytes = t.bytes;
    return made;
  }

  void append(const Step& step, const DeviceStep* row) {
    steps[num_steps] = step;
    steps[num_steps].index = num_steps;
    if (row) {
      rows[num_rows] = *row;
      rows[num_rows++].step = static_cast<uint32_t>(num_steps);
    }
    ++num_steps;
  }

  bool copy(Tensor* from, Tensor* to, const DeviceStep& of, Action action) {
    Step step{};
    Tensor** table = room<Tensor*>(2);
    step.name = named("Copy ", (action == Action::kFetch ? from : to)->name, "");
    if (!table || !step.name) return false;
    table[0] = from;
    table[1] = to;
    step.op = "Copy";
    step.phases = 1;
    step.inputs = table;
    step.outputs = table + 1;
    step.num_inputs = step.num_outputs = 1;
    set_variant(step, "copy");
    const DeviceStep row = {0, action, 0, 0, nullptr, false, of.origin};
    append(step, &row);
    return true;
  }

  bool move(Step step, const DeviceStep& row) {
    const int32_t ports = step.num_inputs + step.num_outputs;
    Tensor** table = room<Tensor*>(ports);
    if (!table) return false;
    mirrors = (p->program.arena_bytes + kAlign - 1) / kAlign * kAlign;
    for (int32_t i = 0; i < ports; ++i) {
      Tensor* t = step.inputs[i];  // outputs follow
      if (!t) continue;
      const bool weight = tensors[storage[t->index].root].role == Role::kWeight;
      table[i] = weight ? weight_of(t, row.floats) : host_of(*t, row.floats);
      if (!table[i]) return false;
      if (i < step.num_inputs && !weight && !copy(t, table[i], row, Action::kFetch)) return false;
    }
    Tensor* const* device = step.inputs;
    step.inputs = table;
    step.outputs = table + step.num_inputs;
    if (strlen(row.host_kernel) >= sizeof step.variant)
      return p->env.fail("step '%s': kernel name is too long", step.name);
    set_variant(step, "%s", row.host_kernel);
    append(step, nullptr);
    for (int32_t i = step.num_inputs; i < ports; ++i)
      if (table[i] && !copy(table[i], device[i], row, Action::kStore)) return false;
    return true;
  }

  bool all() {
    if (!makes_room()) return false;
    Program& program = p->program;
    uint32_t at = 0;
    for (int32_t i = 0; i < program.num_steps; ++i) {
      const Step& step = program.steps[i];
      refer(step);
      const bool known = at < x.plan.num_steps && x.plan.steps[at].step == static_cast<uint32_t>(i);
      const DeviceStep* row = known ? &x.plan.steps[at++] : nullptr;
      if (!row || !x.left.rows[row->origin]) append(step, row);
      else if (!move(step, *row)) return false;
    }
    program.tensors = tensors;
    program.storage = storage;
    program.steps = steps;
    program.num_tensors = num_tensors;
    program.num_steps = num_steps;
    program.arena_bytes = arena_bytes;
    x.plan.steps = rows;
    x.plan.num_steps = num_rows;
    x.staging = room<uint8_t>(staging_bytes);
    return x.staging != nullptr;
  }
};

bool as_floats(const Tensor& device, const Tensor& host) {
  return device.dtype == DType::kF16 && host.dtype == DType::kF32;
}

}  // namespace

bool move_to_host(lite_program* p, const void* const* weights, const size_t* weight_bytes,
                  size_t num_weights) {
  Executor& x = *p->opencl;
  if (!x.left.count) return true;
  return Mover{p, x, weights, weight_bytes, num_weights}.all();
}

void to_host(const Tensor& device, const uint8_t* bytes, const Tensor& host) {
  const int64_t each = dtype_bytes(device.dtype), width = last_dim(device), rows = row_count(device);
  for (int64_t i = 0; i < rows && device.size; ++i) {
    const uint8_t* row = bytes + i * device.pitch * each;
    if (!as_floats(device, host)) memcpy(host.data + i * width * each, row, width * each);
    else halves_to_floats(reinterpret_cast<const uint16_t*>(row), width, host.as<float>() + i * width);
  }
}

void from_host(const Tensor& host, const Tensor& device, uint8_t* bytes) {
  const int64_t each = dtype_bytes(device.dtype), width = last_dim(device), rows = row_count(device);
  for (int64_t i = 0; i < rows && device.size; ++i) {
    uint8_t* row = bytes + i * device.pitch * each;
    if (!as_floats(device, host)) memcpy(row, host.data + i * width * each, width * each);
    else floats_to_halves(host.as<float>() + i * width, width, reinterpret_cast<uint16_t*>(row));
  }
}

}  // namespace lite::opencl
