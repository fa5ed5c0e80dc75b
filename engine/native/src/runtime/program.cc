// The program format, version 1 or 2 (written by lite_engine/plan/program.py). Little-endian, packed.
//
//   header   char magic[4] "LPRG"; u32 version; u64 arena_bytes; u32 strings_bytes, num_tensors,
//            num_steps, num_inputs, num_outputs, num_weights; version 2: u32 samples, first, end; u64 whole_bytes
//   strings  strings_bytes bytes of 0-terminated UTF-8; a name below is its offset here
//   inputs   u32 tensor[num_inputs];  outputs  u32 tensor[num_outputs]
//   tensor   u32 name; u8 dtype, role, rank, turns; i32 alias_of (-1: none); u32 weight (role 3 only);
//            u64 offset; i64 pitch; i32 halo[4]; i32 halo_value; i64 dims[rank]; version 2, role 4, no
//            alias: u64 whole
//   step     u32 name, op, kernel, num_inputs, num_outputs, num_attrs; i32 tensor[num_inputs +
//            num_outputs] (-1: absent); num_attrs times: u32 name, kind, count and the values:
//            i64[count] (kind 1), f64[count] (kind 2) or u8[count] (kind 3)
//
// dtype and role are the numbers of lite_kernel.h; a program of the CPU alone has no role 5. `offset` is in bytes: into the arena, into the
// weight, or, for an alias, from the first byte of the tensor it aliases. A tensor of role input or
// output that is no alias has memory of its own (offset 0) and is dense. An alias has its root's
// role, except that an output may alias anything: the runtime then copies it at the end of a run.
// Version 2: steps [first, end) take turns over `samples` (turns.h). `turns` is 1 for memory of the samples of one
// turn in the place of the batch that `dims` name, 2 for an alias that moves over the samples of what it aliases and
// stands behind all others, else 0. With 1, `offset` is into memory that only such tensors share, and as if a turn
// took one sample. Where a turn takes the whole batch, the arena has whole_bytes, and a tensor is at `whole` there.
#include "program.h"

#include "reader.h"
#include "turns.h"

namespace lite {

namespace {

constexpr uint32_t kVersion = 2;
constexpr int64_t kMaxElements = int64_t{1} << 44;  // keeps every byte count far from overflow
constexpr uint32_t kMaxSamples = 1 << 16;           // that take turns

bool truncated(Env& env, const char* where) {
  return env.fail("program is truncated or damaged in its %s; convert the model again", where);
}

// Fills size and bytes from dims, pitch and halo; false when a product leaves the sane range.
bool measure(Tensor* tensor) {
  // `bound` takes empty axes as 1: any partial product of dims stays in range for kernels, too.
  // So does `rows`, so that strides stay in range where there is no element.
  int64_t size = 1, bound = 1, rows = 1;
  for (int i = 0; i < tensor->rank; ++i) {
    const int64_t dim = tensor->dims[i];
    if (dim < 0 || dim > kMaxElements) return false;
    if (__builtin_mul_overflow(bound, dim ? dim : 1, &bound) || bound > kMaxElements) return false;
    size *= dim;
    if (i + 1 == tensor->rank) break;
    int64_t extent = tensor->dims[i];
    if (tensor->rank == 4 && i == 1) extent += tensor->halo[0] + tensor->halo[2];
    if (tensor->rank == 4 && i == 2) extent += tensor->halo[1] + tensor->halo[3];
    if (__builtin_mul_overflow(rows, extent ? extent : 1, &rows) || rows > kMaxElements) return false;
  }
  tensor->size = size;
  const int64_t last = last_dim(*tensor);
  if (tensor->pitch < last || tensor->pitch > kMaxElements) return false;
  int64_t span = 0;
  if (__builtin_mul_overflow(rows - 1, tensor->pitch, &span) || __builtin_add_overflow(span, last, &span) ||
      span > kMaxElements)
    return false;
  const uint64_t bytes = size > 0 ? static_cast<uint64_t>(span) * dtype_bytes(tensor->dtype) : 0;
  tensor->bytes = static_cast<size_t>(bytes);
  return bytes <= SIZE_MAX / 2;
}

// Sets the samples of one turn in the place of the batch that a tensor names, of which it may have more.
bool take_turns(Env& env, const Samples& of, uint8_t turns, Tensor* tensor, Storage* storage) {
  storage->repeats = 1;
  if (!turns) return true;
  if (turns > kMoving || tensor->rank < 2 || tensor->role == Role::kWeight || !of.samples ||
      tensor->dims[0] != of.samples)
    return env.fail("tensor %d '%s': it has no samples to take turns", tensor->index, tensor->name);
  storage->turns = static_cast<TurnsOf>(turns);
  storage->repeats = of.samples / of.each;
  tensor->dims[0] = of.each;
  return true;
}

// Its bytes in the arena, or in the memory for what is kept during a turn.
bool fits_memory(const Storage& storage, const Tensor& tensor, Program* program) {
  const bool kept = storage.turns == kKept && program->turns.each < program->turns.samples;
  if (!kept) return storage.offset <= program->arena_bytes && tensor.bytes <= program->arena_bytes - storage.offset;
  const uint64_t end = storage.offset + tensor.bytes;  // offset <= 2^44 * 2^16
  if (end > SIZE_MAX / 2) return false;
  if (end > program->kept_bytes) program->kept_bytes = end;
  return true;
}

bool parse_tensor(Reader& in, const Strings& strings, Env& env, int index, Program* program) {
  Tensor& tensor = program->tensors[index];
  Storage& storage = program->storage[index];
  tensor.index = index;
  tensor.name = strings.at(in.get<uint32_t>());
  tensor.dtype = static_cast<DType>(in.get<uint8_t>());
  const uint8_t role = in.get<uint8_t>();
  tensor.rank = in.get<uint8_t>();
  const uint8_t turns = in.get<uint8_t>();
  storage.root = in.get<int32_t>();
  const uint32_t weight = in.get<uint32_t>();
  storage.offset = in.get<uint64_t>();
  tensor.pitch = in.get<int64_t>();
  in.take(tensor.halo, sizeof tensor.halo);
  tensor.halo_value = in.get<int32_t>();
  if (!in.good || !tensor.name) return truncated(env, "tensor table");
  const char* name = tensor.name;
  const uint8_t last_role = static_cast<uint8_t>(program->has_device ? Role::kDevice : Role::kArena);
  if (dtype_bytes(tensor.dtype) == 0 || role < 1 || role > last_role || tensor.rank > kMaxRank)
    return env.fail("tensor %d '%s': unknown type, role or rank", index, name);
  tensor.role = static_cast<Role>(role);
  if (!in.take(tensor.dims, tensor.rank * sizeof(int64_t))) return truncated(env, "tensor table");
  if (!take_turns(env, program->turns, turns, &tensor, &storage)) return false;
  for (int side : tensor.halo)
    if (side < 0 || side > 4096 || (side && tensor.rank != 4))
      return env.fail("tensor %d '%s': halo does not fit its rank", index, name);
  if (!measure(&tensor) || tensor.size > kMaxElements / storage.repeats ||
      static_cast<uint64_t>(tensor.size * storage.repeats) > SIZE_MAX / 2 / dtype_bytes(tensor.dtype))
    return env.fail("tensor %d '%s': shape is out of range", index, name);

  if (storage.root < -1 || storage.root >= program->num_tensors || storage.root == index)
    return env.fail("tensor %d '%s': aliases tensor %d", index, name, storage.root);
  const bool alias = storage.root >= 0;
  const bool moves = storage.turns == kMoving;
  if (moves && !alias) return env.fail("tensor %d '%s': it moves over nothing", index, name);
  if (!moves && program->num_named < index) return env.fail("tensor %d '%s': it stands behind views", index, name);
  if (!moves) program->num_named = index + 1;
  storage.over = moves ? storage.root : index;
  storage.weight = -1;
  if (tensor.role == Role::kWeight && !alias) {
    if (weight >= program->num_weights)
      return env.fail("tensor %d '%s': weight %u is not in the table", index, name, weight);
    storage.weight = static_cast<int32_t>(weight);
  }
  if (tensor.role == Role::kInput || tensor.role == Role::kOutput) {
    if (!alias && (!is_dense(tensor) || storage.offset))
      return env.fail("tensor %d '%s': inputs and outputs are dense", index, name);
  }
  if (storage.turns == kKept && !alias) {
    if (tensor.role != Role::kArena || storage.offset > kMaxElements)
      return env.fail("tensor %d '%s': it is kept outside the arena", index, name);
    storage.offset *= tensor.dims[0];
  }
  if (tensor.role == Role::kArena && !alias) {
    const uint64_t whole = program->turns.samples ? in.get<uint64_t>() : storage.offset;
    if (!in.good) return truncated(env, "tensor table");
    if (program->turns.each == program->turns.samples) storage.offset = whole;
    if (!fits_memory(storage, tensor, program))
      return env.fail("tensor %d '%s': lies outside the arena", index, name);
  }
  if (storage.offset % dtype_bytes(tensor.dtype))
    return env.fail("tensor %d '%s': offset is not a multiple of its element", index, name);
  if (!alias) storage.root = index;
  return true;
}

// An alias stays within its root, wherever it moves.
bool stays_inside(const Tensor& t, const Storage& storage, const Storage& root_storage, const Tensor& root,
                  uint64_t offset) {
  if ((storage.turns == kKept) != (root_storage.turns == kKept)) return false;
  int64_t strides[kMaxRank], moved = 0;
  strides_of(t, strides);
  if (storage.turns == kMoving &&
      (__builtin_mul_overflow(strides[0], t.dims[0] * (storage.repeats - 1), &moved) || moved < 0 ||
       __builtin_mul_overflow(moved, dtype_bytes(t.dtype), &moved)))
    return false;
  const uint64_t end = static_cast<uint64_t>(moved) + t.bytes;
  return offset <= root.bytes && end <= root.bytes - offset;
}

// Follows alias chains to their roots, adds the offsets up and checks that every alias stays
// inside.
bool resolve_aliases(Env& env, Program* program) {
  for (int i = 0; i < program->num_tensors; ++i) {
    Tensor& tensor = program->tensors[i];
    Storage& storage = program->storage[i];
    if (storage.root == i) continue;
    uint64_t offset = 0;
    int at = i, hops = 0;
    // Roots already resolved end the walk at once; a cycle runs out of hops.
    for (; program->storage[at].root != at; at = program->storage[at].root) {
      if (__builtin_add_overflow(offset, program->storage[at].offset, &offset) || ++hops > 64)
        return env.fail("tensor %d '%s': aliases form a cycle or are too deep", i, tensor.name);
    }
    const Tensor& root = program->tensors[at];
    if (!stays_inside(tensor, storage, program->storage[at], root, offset))
      return env.fail("tensor %d '%s': lies outside '%s', which it aliases", i, tensor.name,
                      root.name);
    // The arena is aligned to anything, what a caller or a file gives to its own element.
    const int64_t each = dtype_bytes(tensor.dtype);
    const bool wider = root.role != Role::kArena && each > dtype_bytes(root.dtype);
    if (wider || (program->storage[at].offset + offset) % static_cast<uint64_t>(each))
      return env.fail("tensor %d '%s': its elements are not aligned in '%s', which it aliases", i, tensor.name,
                      root.name);
    if (tensor.role != root.role && tensor.role != Role::kOutput)
      return env.fail("tensor %d '%s': its role is not that of '%s', which it aliases", i,
                      tensor.name, root.name);
    storage.root = at;
    storage.offset = offset;
  }
  return true;
}

bool parse_attr(Reader& in, const Strings& strings, Env& env, Attr* attr) {
  attr->name = strings.at(in.get<uint32_t>());
  const uint32_t kind = in.get<uint32_t>();
  const uint32_t count = in.get<uint32_t>();
  if (!in.good || !attr->name || kind < 1 || kind > 3) return truncated(env, "attributes");
  const size_t each = kind == 3 ? 1 : 8;
  if (count > INT32_MAX || !in.holds(count, each)) return truncated(env, "attributes");
  attr->kind = static_cast<AttrKind>(kind);
  attr->count = static_cast<int32_t>(count);
  void* values = env.allocator->allocate(count * each + 1);  // a string stays 0-terminated
  if (!values) return env.out_of_memory();
  in.take(values, count * each);
  attr->ints = static_cast<const int64_t*>(values);
  return true;
}

bool parse_step(Reader& in, const Strings& strings, Env& env, int index, Program* program) {
  Step& step = program->steps[index];
  step.index = index;
  step.phases = 1;
  step.name = strings.at(in.get<uint32_t>());
  step.op = strings.at(in.get<uint32_t>());
  const char* kernel = strings.at(in.get<uint32_t>());
  const uint32_t num_inputs = in.get<uint32_t>();
  const uint32_t num_outputs = in.get<uint32_t>();
  const uint32_t num_attrs = in.get<uint32_t>();
  if (!in.good || !step.name || !step.op || !kernel) return truncated(env, "steps");
  const uint64_t ports = uint64_t{num_inputs} + num_outputs;
  if (!in.holds(ports, 4) || !in.holds(num_attrs, 12)) return truncated(env, "steps");
  Allocator& memory = *env.allocator;
  Tensor** table = static_cast<Tensor**>(memory.allocate_array(ports, sizeof(Tensor*)));
  Attr* attrs = static_cast<Attr*>(memory.allocate_array(num_attrs, sizeof(Attr)));
  if (!table || !attrs) return env.out_of_memory();
  for (uint64_t i = 0; i < ports; ++i) {
    const int32_t tensor = in.get<int32_t>();
    if (tensor < -1 || tensor >= program->num_tensors)
      return env.fail("step %d '%s': tensor %d does not exist", index, step.name, tensor);
    table[i] = tensor < 0 ? nullptr : &program->tensors[tensor];
    if (i < num_inputs || tensor < 0) continue;
    const Role role = program->tensors[program->storage[tensor].root].role;
    if (role == Role::kWeight || role == Role::kInput)
      return env.fail("step %d '%s': writes '%s', which is a weight or an input", index, step.name,
                      table[i]->name);
  }
  step.inputs = table;
  step.outputs = table + num_inputs;
  step.num_inputs = static_cast<int32_t>(num_inputs);
  step.num_outputs = static_cast<int32_t>(num_outputs);
  step.attrs = attrs;
  step.num_attrs = static_cast<int32_t>(num_attrs);
  for (uint32_t i = 0; i < num_attrs; ++i)
    if (!parse_attr(in, strings, env, &attrs[i])) return false;
  // The kernel's name waits in `variant` until dispatch finds the kernel.
  set_variant(step, "%s", kernel);
  if (strlen(kernel) >= sizeof step.variant)
    return env.fail("step %d '%s': kernel name is too long", index, step.name);
  return true;
}

bool parse_ports(Reader& in, Env& env, Program* program, uint32_t count, int32_t** out) {
  *out = static_cast<int32_t*>(env.allocator->allocate_array(count, sizeof(int32_t)));
  if (!*out) return env.out_of_memory();
  in.take(*out, count * sizeof(int32_t));
  for (uint32_t i = 0; i < count; ++i)
    if ((*out)[i] < 0 || (*out)[i] >= program->num_tensors)
      return env.fail("input or output %u is tensor %d, which does not exist", i, (*out)[i]);
  return true;
}

bool check_ports(Env& env, const Program& program) {
  for (int i = 0; i < program.num_inputs; ++i) {
    const int t = program.inputs[i];
    if (program.tensors[t].role != Role::kInput || program.storage[t].root != t)
      return env.fail("input %d '%s' is not an input tensor", i, program.tensors[t].name);
  }
  for (int i = 0; i < program.num_outputs; ++i) {
    const int t = program.outputs[i];
    if (program.tensors[t].role != Role::kOutput || !is_dense(program.tensors[t]) || program.storage[t].turns)
      return env.fail("output %d '%s' is not a dense output tensor", i, program.tensors[t].name);
  }
  return true;
}

// The rest of a header of version 2; `arena_bytes` is then what a run takes with these turns.
bool parse_turns(Reader& in, Env& env, uint32_t num_steps, uint64_t* arena_bytes, Samples* turns) {
  const uint32_t samples = in.get<uint32_t>(), first = in.get<uint32_t>(), end = in.get<uint32_t>();
  const uint64_t whole_bytes = in.get<uint64_t>();
  if (!in.good) return truncated(env, "header");
  if (samples < 2 || samples > kMaxSamples || first >= end || end > num_steps)
    return env.fail("steps %u to %u do not take turns over %u samples", first, end, samples);
  const int64_t each = samples_of_turn(samples, env.threads);
  *turns = {static_cast<int32_t>(samples), static_cast<int32_t>(first), static_cast<int32_t>(end),
            static_cast<int32_t>(each)};
  if (each == samples) *arena_bytes = whole_bytes;
  return true;
}

}  // namespace

bool parse_program(const uint8_t* bytes, size_t size, Env& env, Program* program) {
  Reader in{bytes, size, true};
  char magic[4];
  in.take(magic, 4);
  const uint32_t version = in.get<uint32_t>();
  if (!in.good || memcmp(magic, "LPRG", 4) != 0) return env.fail("not a program: wrong magic");
  if (version < 1 || version > kVersion)
    return env.fail("program version %u, this runtime reads 1 to %u; convert the model again", version,
                    kVersion);
  uint64_t arena_bytes = in.get<uint64_t>();
  const uint32_t strings_bytes = in.get<uint32_t>();
  const uint32_t num_tensors = in.get<uint32_t>();
  const uint32_t num_steps = in.get<uint32_t>();
  const uint32_t num_inputs = in.get<uint32_t>();
  const uint32_t num_outputs = in.get<uint32_t>();
  program->num_weights = in.get<uint32_t>();
  if (!in.good || !in.holds(strings_bytes, 1) || !in.holds(num_tensors, 52) ||
      !in.holds(num_steps, 24) || !in.holds(num_inputs, 4) || !in.holds(num_outputs, 4))
    return truncated(env, "header");
  if (version > 1 && !parse_turns(in, env, num_steps, &arena_bytes, &program->turns)) return false;
  if (arena_bytes > SIZE_MAX / 2)
    return env.fail("arena of %llu bytes is out of range",
                    static_cast<unsigned long long>(arena_bytes));
  if (program->num_weights > INT32_MAX || num_tensors > INT32_MAX / 2)
    return truncated(env, "header");
  program->arena_bytes = arena_bytes;
  program->num_tensors = static_cast<int32_t>(num_tensors);
  program->num_steps = static_cast<int32_t>(num_steps);
  program->num_inputs = static_cast<int32_t>(num_inputs);
  program->num_outputs = static_cast<int32_t>(num_outputs);

  Allocator& memory = *env.allocator;
  char* text = static_cast<char*>(memory.allocate_array(size_t{strings_bytes} + 1, 1));
  program->tensors = static_cast<Tensor*>(memory.allocate_array(num_tensors, sizeof(Tensor)));
  program->storage = static_cast<Storage*>(memory.allocate_array(num_tensors, sizeof(Storage)));
  program->steps = static_cast<Step*>(memory.allocate_array(num_steps, sizeof(Step)));
  if (!text || !program->tensors || !program->storage || !program->steps)
    return env.out_of_memory();
  in.take(text, strings_bytes);
  const Strings strings{text, strings_bytes};
  if (!parse_ports(in, env, program, num_inputs, &program->inputs) ||
      !parse_ports(in, env, program, num_outputs, &program->outputs))
    return false;
  for (int i = 0; i < program->num_tensors; ++i)
    if (!parse_tensor(in, strings, env, i, program)) return false;
  if (!resolve_aliases(env, program) || !check_ports(env, *program)) return false;
  for (int i = 0; i < program->num_steps; ++i)
    if (!parse_step(in, strings, env, i, program)) return false;
  if (!in.good || in.left) return truncated(env, "end");
  return true;
}

}  // namespace lite
