#include "device_plan.h"

#include "../runtime/allocator.h"
#include "../runtime/reader.h"
#include "defines.h"
#include "expression.h"
#include "lite_runtime.h"

namespace lite::opencl {

namespace {

constexpr uint32_t kVersion = 3;  // 1 lacks the steps' kernels of the CPU, 2 their other ways
constexpr size_t kHeaderBytes = 64;

bool damaged(Env& env, const char* where) {
  return env.fail("the OpenCL program is truncated or damaged in its %s; convert the model again",
                  where);
}

template <class T>
T* room(Env& env, uint32_t count) {
  T* made = static_cast<T*>(env.allocator->allocate_array(count, sizeof(T)));
  if (!made) env.out_of_memory();
  return made;
}

struct Header {
  uint32_t strings_bytes, num_texts;
};

bool parse_profile(Reader& in, DevicePlan* plan) {
  char magic[4];
  in.take(magic, 4);
  plan->version = in.get<uint32_t>();
  const uint8_t device_class = in.get<uint8_t>();
  plan->lanes = in.get<uint8_t>();
  plan->needs = in.get<uint8_t>();
  in.get<uint8_t>();
  plan->columns = in.get<uint32_t>();
  plan->rows = in.get<uint32_t>();
  if (!in.good || memcmp(magic, "LCLP", 4) != 0 || !plan->version || plan->version > kVersion)
    return false;
  if (device_class > static_cast<uint8_t>(DeviceClass::kAdreno)) return false;
  plan->device_class = static_cast<DeviceClass>(device_class);
  return true;
}

bool parse_header(Reader& in, DevicePlan* plan, Header* header) {
  if (!parse_profile(in, plan)) return false;
  header->strings_bytes = in.get<uint32_t>();
  header->num_texts = in.get<uint32_t>();
  plan->num_buffers = in.get<uint32_t>();
  plan->num_places = in.get<uint32_t>();
  plan->num_constants = in.get<uint32_t>();
  plan->num_scratch = in.get<uint32_t>();
  plan->num_images = in.get<uint32_t>();
  plan->num_launches = in.get<uint32_t>();
  plan->num_steps = in.get<uint32_t>();
  plan->program_bytes = in.get<uint32_t>();
  plan->num_ways = plan->version > 2 ? in.get<uint32_t>() : 0;
  return in.holds(header->strings_bytes, 1) && in.holds(header->num_texts, 32) &&
         in.holds(plan->num_buffers, 8) && in.holds(plan->num_places, 8) &&
         in.holds(plan->num_constants, 8) && in.holds(plan->num_scratch, 8) &&
         in.holds(plan->num_images, 16) && in.holds(plan->num_launches, 44) &&
         in.holds(plan->num_steps, plan->version > 1 ? 24 : 16) && in.holds(plan->num_ways, 20) &&
         in.holds(plan->program_bytes, 1);
}

bool parse_texts(Reader& in, Env& env, uint32_t count, const KernelText** texts) {
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t hash[32];
    in.take(hash, sizeof hash);
    texts[i] = find_kernel_text(hash);
    if (in.good && !texts[i])
      return env.fail(
          "the OpenCL program needs kernels that this runtime does not have; trust the file if a custom "
          "operator brings them (--trust), or convert the model with lite-workbench %s", lite_version());
  }
  return in.good || damaged(env, "kernels");
}

bool parse_sizes(Reader& in, Env& env, uint32_t count, const uint64_t** out) {
  uint64_t* sizes = room<uint64_t>(env, count);
  if (!sizes) return false;
  *out = sizes;
  for (uint32_t i = 0; i < count; ++i) {
    sizes[i] = in.get<uint64_t>();
    if (!sizes[i] || sizes[i] > (uint64_t{1} << 40)) return damaged(env, "buffers");
  }
  return in.good || damaged(env, "buffers");
}

bool parse_constants(Reader& in, Env& env, DevicePlan* plan) {
  Constant* all = room<Constant>(env, plan->num_constants);
  if (!all) return false;
  plan->constants = all;
  for (uint32_t i = 0; i < plan->num_constants; ++i) {
    Constant& c = all[i];
    c.weight = in.get<uint32_t>();
    c.dtype = static_cast<DType>(in.get<uint8_t>());
    c.rank = in.get<uint8_t>();
    c.num_steps = in.get<uint8_t>();
    in.get<uint8_t>();
    if (!in.good || c.rank > kMaxRank || !dtype_bytes(c.dtype)) return damaged(env, "constants");
    in.take(c.dims, c.rank * sizeof(uint32_t));
    if (!in.holds(c.num_steps, 4)) return damaged(env, "constants");
    ConstantStep* steps = room<ConstantStep>(env, c.num_steps);
    if (!steps) return false;
    c.steps = steps;
    for (int k = 0; k < c.num_steps; ++k) {
      const uint8_t kind = in.get<uint8_t>();
      steps[k].count = in.get<uint8_t>();
      in.get<uint16_t>();
      if (kind > static_cast<uint8_t>(Operation::kWiden) || steps[k].count > kMaxRank)
        return damaged(env, "constants");
      steps[k].operation = static_cast<Operation>(kind);
      in.take(steps[k].values, steps[k].count * sizeof(uint32_t));
    }
  }
  return in.good || damaged(env, "constants");
}

bool parse_images(Reader& in, Env& env, DevicePlan* plan) {
  Image* all = room<Image>(env, plan->num_images);
  if (!all) return false;
  plan->images = all;
  for (uint32_t i = 0; i < plan->num_images; ++i) {
    all[i].width = in.get<uint32_t>();
    all[i].height = in.get<uint32_t>();
    all[i].dtype = static_cast<DType>(in.get<uint8_t>());
    in.get<uint8_t>();
    in.get<uint16_t>();
    all[i].constant = in.get<int32_t>();
    const bool number = all[i].dtype == DType::kF32 || all[i].dtype == DType::kF16 ||
                        all[i].dtype == DType::kU32;
    const bool inside = all[i].width && all[i].height && all[i].width <= plan->columns &&
                        all[i].height <= plan->rows;
    if (!in.good || !number || !inside || all[i].constant < -1 ||
        (all[i].constant >= 0 && static_cast<uint32_t>(all[i].constant) >= plan->num_constants))
      return damaged(env, "images");
  }
  return true;
}

// How many of a kind there are to refer to. The program's own tensors are checked by the executor.
uint32_t referred(const DevicePlan& plan, Argument kind) {
  switch (kind) {
    case Argument::kConstant: return plan.num_constants;
    case Argument::kScratch: return plan.num_scratch;
    case Argument::kImage: return plan.num_images;
    default: return UINT32_MAX;
  }
}

bool parse_launch(Reader& in, const Strings& strings, Env& env, const DevicePlan& plan,
                  const KernelText* const* texts, uint32_t num_texts, Launch* launch) {
  const uint32_t text = in.get<uint32_t>();
  launch->options = strings.at(in.get<uint32_t>());
  launch->kernel = strings.at(in.get<uint32_t>());
  launch->dimensions = in.get<uint32_t>();
  for (size_t& n : launch->grid) n = in.get<uint32_t>();
  for (size_t& n : launch->group) n = in.get<uint32_t>();
  launch->num_args = in.get<uint32_t>();
  if (!in.good || text >= num_texts || !launch->options || !launch->kernel ||
      launch->num_args > kMaxArguments || launch->dimensions < 1 || launch->dimensions > 3)
    return damaged(env, "launches");
  launch->text = texts[text];
  if (word_length(launch->kernel) != strlen(launch->kernel)) return damaged(env, "launches");
  for (uint32_t d = 0; d < 3; ++d) {
    const bool used = d < launch->dimensions;
    const size_t grid = launch->grid[d], group = launch->group[d];
    // Kernels number items and groups by ints.
    if (!group || !grid || grid > INT32_MAX || grid % group || (!used && grid != 1))
      return env.fail("kernel '%.60s': a grid of %zu in groups of %zu", launch->kernel, grid,
                      group);
  }
  uint8_t kinds[kMaxArguments + 4];
  in.take(kinds, (launch->num_args + 3) / 4 * 4);
  in.take(launch->values, launch->num_args * sizeof(uint32_t));
  if (!in.good) return damaged(env, "launches");
  for (uint32_t i = 0; i < launch->num_args; ++i) {
    if (kinds[i] < 1 || kinds[i] > static_cast<uint8_t>(Argument::kUlong))
      return damaged(env, "launches");
    launch->kinds[i] = static_cast<Argument>(kinds[i]);
    if (launch->values[i] >= referred(plan, launch->kinds[i])) {
      const bool scalar = launch->kinds[i] >= Argument::kInt;
      if (!scalar) return damaged(env, "launches");
    }
  }
  return check_defines(launch->options, env);
}

bool parse_host_kernel(Reader& in, const Strings& strings, DeviceStep* step) {
  const uint32_t name = in.get<uint32_t>();
  const uint32_t floats = in.get<uint32_t>();
  step->host_kernel = name == UINT32_MAX ? nullptr : strings.at(name);
  step->floats = floats != 0;
  return floats <= 1 && (name == UINT32_MAX || step->host_kernel) &&
         (!step->host_kernel || step->action == Action::kLaunches);
}

bool parse_steps(Reader& in, const Strings& strings, Env& env, DevicePlan* plan) {
  DeviceStep* all = room<DeviceStep>(env, plan->num_steps);
  if (!all) return false;
  plan->steps = all;
  for (uint32_t i = 0; i < plan->num_steps; ++i) {
    all[i].step = in.get<uint32_t>();
    const uint32_t action = in.get<uint32_t>();
    all[i].first = in.get<uint32_t>();
    all[i].count = in.get<uint32_t>();
    const bool ordered = !i || all[i].step > all[i - 1].step;
    if (!in.good || !ordered || action > 2 || all[i].first > plan->num_launches ||
        all[i].count > plan->num_launches - all[i].first || (action && all[i].count))
      return damaged(env, "steps");
    all[i].action = static_cast<Action>(action);
    all[i].origin = i;
    if (plan->version > 1 && !parse_host_kernel(in, strings, &all[i])) return damaged(env, "steps");
    if (!in.good) return damaged(env, "steps");
  }
  return true;
}

// What a table of measured ways can hold (tuning.cc).
bool is_key(const char* text) {
  size_t length = 0;
  for (; text && text[length]; ++length)
    if (text[length] < 0x20 || text[length] > 0x7e || text[length] == '"' || text[length] == '\\') return false;
  return text && length <= 500;
}

bool parse_ways(Reader& in, const Strings& strings, Env& env, DevicePlan* plan) {
  Way* all = room<Way>(env, plan->num_ways);
  if (!all) return false;
  plan->ways = all;
  for (uint32_t i = 0; i < plan->num_ways; ++i) {
    all[i].row = in.get<uint32_t>();
    all[i].size = strings.at(in.get<uint32_t>());
    all[i].name = strings.at(in.get<uint32_t>());
    all[i].first = in.get<uint32_t>();
    all[i].count = in.get<uint32_t>();
    if (!in.good || all[i].row >= plan->num_steps || !is_key(all[i].size) || !is_key(all[i].name) ||
        !all[i].count || all[i].first > plan->num_launches ||
        all[i].count > plan->num_launches - all[i].first)
      return damaged(env, "ways");
    const DeviceStep& step = plan->steps[all[i].row];
    const bool same = i && all[i].row == all[i - 1].row;
    const bool good = same ? strcmp(all[i].size, all[i - 1].size) == 0
                           : (!i || all[i].row > all[i - 1].row) && step.action == Action::kLaunches &&
                                 all[i].first == step.first && all[i].count == step.count;
    if (!good) return damaged(env, "ways");
  }
  return true;
}

}  // namespace

bool is_device_plan(const uint8_t* bytes, size_t size) {
  return size >= 4 && memcmp(bytes, "LCLP", 4) == 0;
}

bool read_profile(const uint8_t* bytes, size_t size, DevicePlan* plan) {
  Reader in{bytes, size, true};
  return size >= kHeaderBytes && parse_profile(in, plan);
}

bool parse_device_plan(const uint8_t* bytes, size_t size, Env& env, DevicePlan* plan) {
  Reader in{bytes, size, true};
  Header header;
  if (!parse_header(in, plan, &header)) return damaged(env, "header");
  char* text = room<char>(env, header.strings_bytes + 1);
  const KernelText** texts = room<const KernelText*>(env, header.num_texts);
  Place* places = room<Place>(env, plan->num_places);
  Launch* launches = room<Launch>(env, plan->num_launches);
  if (!text || !texts || !places || !launches) return false;
  in.take(text, header.strings_bytes);
  const Strings strings{text, header.strings_bytes};
  if (!parse_texts(in, env, header.num_texts, texts) ||
      !parse_sizes(in, env, plan->num_buffers, &plan->buffers))
    return false;
  in.take(places, plan->num_places * sizeof(Place));
  plan->places = places;
  if (!parse_constants(in, env, plan) ||
      !parse_sizes(in, env, plan->num_scratch, &plan->scratch) || !parse_images(in, env, plan))
    return false;
  plan->launches = launches;
  for (uint32_t i = 0; i < plan->num_launches; ++i)
    if (!parse_launch(in, strings, env, *plan, texts, header.num_texts, &launches[i])) return false;
  if (!parse_steps(in, strings, env, plan) || !parse_ways(in, strings, env, plan)) return false;
  if (in.left != plan->program_bytes) return damaged(env, "end");
  plan->program = in.next;
  return true;
}

}  // namespace lite::opencl
