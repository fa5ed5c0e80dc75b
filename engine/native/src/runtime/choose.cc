// Which program of a file runs here, and what runs where that one cannot.
#include "choose.h"

#include <charconv>
#include <stdio.h>
#include <stdlib.h>

#include "../opencl/executor.h"
#include "../opencl/text.h"
#include "dispatch.h"
#include "lite_file.h"

using namespace lite;
using opencl::say;

namespace {

enum Backend : int32_t { kAuto, kCpu, kOpenCL };
const char* const kBackends[] = {"auto", "cpu", "opencl"};

// "0.12.3" as one comparable number; what follows a part's digits is left out.
long version_number(const char* text) {
  long number = 0;
  for (int part = 0; part < 3; ++part) {
    int value = 0;
    std::from_chars(text, text + strlen(text), value);
    number = number * 1000 + (value < 0 ? 0 : value > 999 ? 999 : value);
    text = strchr(text, '.');
    text = text ? text + 1 : "";
  }
  return number;
}

bool has_word(const char* list, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = strstr(list, word); at; at = strstr(at + 1, word))
    if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return true;
  return false;
}

// Compares NEEDS with this runtime and this processor.
bool meets_needs(const lite_file* file, const char* target, char* error, size_t bytes) {
  size_t size;
  const char* needs = static_cast<const char*>(lite_file_section(file, "NEEDS", &size));
  if (!needs) return true;
  char text[1024];
  if (size > sizeof text - 1) size = sizeof text - 1;
  memcpy(text, needs, size);
  text[size] = 0;
  char* rest;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    char* words;
    const char* key = strtok_r(line, " ", &words);
    if (!key) continue;
    for (char* word = strtok_r(nullptr, " ", &words); word; word = strtok_r(nullptr, " ", &words)) {
      if (strcmp(key, "engine") == 0 && version_number(word) > version_number(lite_version())) {
        say(error, bytes, "the file needs runtime %s or newer, this is %s; use a newer lite_run",
             word, lite_version());
        return false;
      }
      if (strcmp(key, target) == 0 && !has_word(lite_cpu_features(), word)) {
        say(error, bytes, "the file needs a CPU with %s, this one has: %s", word,
             lite_cpu_features());
        return false;
      }
    }
  }
  return true;
}

lite_program* cpu_program(lite_file* file, const char* target, const lite_options& options,
                          char* error, size_t error_bytes) {
  char tag[16];
  snprintf(tag, sizeof tag, "PROG.%s", section_word(target));
  if (strcmp(target, lite_target()) != 0) {
    say(error, error_bytes, "this runner executes target '%s', not '%s'; use the %s runner",
        lite_target(), target, target);
    return nullptr;
  }
  size_t bytes;
  const void* program = lite_file_section(file, tag, &bytes);
  if (!program) {
    say(error, error_bytes,
        "the file has no program for '%s' (it has: %s); convert it with --targets %s", target,
        file->targets[0] ? file->targets : "none", target);
    return nullptr;
  }
  if (!meets_needs(file, target, error, error_bytes)) return nullptr;
  snprintf(tag, sizeof tag, "HALF.%s", target);
  CpuFeatures cpu;
  size_t half_bytes;
  const void* half = lite_file_section(file, tag, &half_bytes);
  if (half && detect_cpu(options.max_isa, &cpu) && (cpu.fp16 || cpu.avx512bf16)) {
    program = half;
    bytes = half_bytes;
  }
  return load_program(program, bytes, file->weights, file->weight_bytes, file->num_weights,
                      mapping_of(*file), nullptr, &options, error, error_bytes);
}

// How well a program suits a device: -1 not at all, else the larger the better.
int suitability(const opencl::DevicePlan& plan, const opencl::DeviceInfo& info) {
  using opencl::DeviceClass;
  const bool own = plan.device_class == info.device_class;
  const bool cpu = info.device_class == DeviceClass::kCpu;
  if (!own && (cpu || plan.device_class != DeviceClass::kGpu)) return -1;
  if (plan.lanes > info.lanes && cpu) return -1;
  if (plan.needs & ~info.features()) return -1;
  if (plan.columns > info.image_columns || plan.rows > info.image_rows) return -1;
  int points = own * 1000 + plan.lanes;  // what needs more makes more of the device
  if (plan.needs & opencl::kMatrixUnits) points += 400;
  if (plan.needs & opencl::kDots) points += 200;
  if (plan.needs & opencl::kFp16) points += 100;
  return points;
}

// The best of the file's OpenCL programs that loads; nullptr with one line in `error`.
lite_program* opencl_program(lite_file* file, const lite_options& options, char* error,
                             size_t error_bytes) {
  opencl::Device* device = opencl::new_device(options, error, error_bytes);
  if (!device) return nullptr;
  say(error, error_bytes, "OpenCL: %s: the file has no program for this kind of device",
      device->info.name);
  bool tried[kMaxSections] = {};
  for (;;) {
    int best = -1, found = -1;
    for (uint32_t i = 0; i < file->count; ++i) {
      const Section& s = file->sections[i];
      opencl::DevicePlan plan{};
      if (tried[i] || strncmp(s.tag, "OCL.", 4) != 0 ||
          !opencl::read_profile(file->data + s.offset, s.size, &plan))
        continue;
      const int points = suitability(plan, device->info);
      if (points > best) {
        best = points;
        found = static_cast<int>(i);
      }
    }
    if (found < 0) break;
    tried[found] = true;
    const Section& s = file->sections[found];
    lite_program* p = load_program(file->data + s.offset, s.size, file->weights,
                                   file->weight_bytes, file->num_weights,
                                   mapping_of(*file), device, &options, error, error_bytes);
    if (p) return p;
  }
  opencl::close_device(device);
  return nullptr;
}

// Whether the file names OpenCL before this machine's CPU.
bool prefers_opencl(const lite_file* file) {
  char own[16];
  snprintf(own, sizeof own, "PROG.%s", section_word(lite_target()));
  for (uint32_t i = 0; i < file->count; ++i) {
    if (strncmp(file->sections[i].tag, "OCL.", 4) == 0) return true;
    if (strncmp(file->sections[i].tag, own, 8) == 0) return false;
  }
  return false;
}

bool has_opencl(const lite_file* file) { return strstr(file->targets, "opencl") != nullptr; }

// What the options and LITE_BACKEND ask for.
Backend asked(const lite_options& options, const char* target) {
  if (target) return strcmp(target, "opencl") == 0 ? kOpenCL : kCpu;
  const char* word = getenv("LITE_BACKEND");
  if (options.backend != kAuto || !word) return static_cast<Backend>(options.backend);
  if (strcmp(word, "opencl") == 0) return kOpenCL;
  return strcmp(word, "x86") == 0 || strcmp(word, "arm") == 0 ? kCpu : kAuto;
}

}  // namespace

namespace lite {

bool fall_back(lite_program* p) {
  if (!p->source) return false;
  char reason[sizeof p->choice], error[sizeof p->choice];
  snprintf(reason, sizeof reason, "%s", p->env.error);
  lite_options options{};
  options.threads = p->threads;
  options.pin = p->pin;
  options.max_isa = *p->max_isa ? p->max_isa : nullptr;
  options.memory_limit_bytes = static_cast<int64_t>(p->memory.limit_bytes);
  lite_program* cpu = cpu_program(p->source, lite_target(), options, error, sizeof error);
  if (!cpu) return p->env.fail("%.200s; and the CPU cannot take over: %.150s", reason, error);
  const Program &mine = p->program, &other = cpu->program;
  bool same = mine.num_inputs == other.num_inputs && mine.num_outputs == other.num_outputs;
  const struct {
    const int32_t *mine, *other;
    int count;
  } ports[] = {{mine.inputs, other.inputs, mine.num_inputs},
               {mine.outputs, other.outputs, mine.num_outputs}};
  for (const auto& port : ports)
    for (int i = 0; same && i < port.count; ++i) {
      const Tensor &a = mine.tensors[port.mine[i]], &b = other.tensors[port.other[i]];
      same = strcmp(a.name, b.name) == 0 && a.dtype == b.dtype && a.rank == b.rank &&
             memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) == 0;
    }
  if (!same) {
    lite_program_free(cpu);
    return p->env.fail("%s", reason);
  }
  opencl::unload(p->opencl);
  p->opencl = nullptr;
  p->cpu = cpu;
  snprintf(p->choice, sizeof p->choice, "cpu: %.*s", static_cast<int>(sizeof reason - 8), reason);
  return true;
}

bool run_fallback(lite_program* p) {
  lite_program* cpu = p->cpu;
  const Program& mine = p->program;
  for (int i = 0; i < mine.num_inputs; ++i)
    cpu->bound[cpu->program.inputs[i]] =
        static_cast<uint8_t*>(lite_program_data(p, mine.inputs[i]));
  for (int i = 0; i < mine.num_outputs; ++i)
    cpu->bound[cpu->program.outputs[i]] =
        static_cast<uint8_t*>(lite_program_data(p, mine.outputs[i]));
  return lite_program_run(cpu, p->env.error, p->env.error_bytes) == 0;
}

}  // namespace lite

extern "C" {

lite_program* lite_file_program(lite_file* file, const char* target, const lite_options* options,
                                char* error, size_t error_bytes) {
  const lite_options defaults{};
  const lite_options& wanted = options ? *options : defaults;
  if (wanted.backend < kAuto || wanted.backend > kOpenCL) {
    say(error, error_bytes, "backend %d is not one of 0 (auto), 1 (cpu), 2 (opencl)",
        wanted.backend);
    return nullptr;
  }
  const Backend backend = asked(wanted, target);
  const char* cpu_target = target ? target : lite_target();
  if (backend == kOpenCL && !has_opencl(file)) {
    say(error, error_bytes, "the file has no program for OpenCL; convert it with --targets opencl");
    return nullptr;
  }
  char reason[400];
  snprintf(reason, sizeof reason, "%s",
           backend == kCpu     ? "asked for"
           : has_opencl(file) ? "the file names it first"
                              : "the file has no OpenCL program");
  const bool either = backend == kAuto && has_opencl(file);
  const bool opencl_first = backend == kOpenCL || (either && prefers_opencl(file));
  if (opencl_first) {
    lite_program* p = opencl_program(file, wanted, reason, sizeof reason);
    if (p && backend == kAuto) p->source = file;
    if (p) return p;
    if (backend == kOpenCL) {
      say(error, error_bytes, "%s", reason);
      return nullptr;
    }
  }
  lite_program* p = cpu_program(file, cpu_target, wanted, error, error_bytes);
  if (p) snprintf(p->choice, sizeof p->choice, "cpu: %.390s", reason);
  if (p || !either) return p;
  char cpu_reason[400];
  snprintf(cpu_reason, sizeof cpu_reason, "%s", error);
  if (!opencl_first) p = opencl_program(file, wanted, reason, sizeof reason);
  if (!p) {
    say(error, error_bytes, "%.390s; %.390s", reason, cpu_reason);
    return nullptr;
  }
  const size_t said = strlen(p->choice);
  snprintf(p->choice + said, sizeof p->choice - said, "; cpu: %s", cpu_reason);
  return p;
}

const char* lite_backend_name(int backend) {
  return backend >= kAuto && backend <= kOpenCL ? kBackends[backend] : nullptr;
}

const char* lite_program_choice(const lite_program* p) { return p->choice; }

}  // extern "C"
