// Which program of a file runs here, and what runs where that one cannot.
#include "choose.h"

#include <charconv>
#include <initializer_list>
#include <stdio.h>
#include <stdlib.h>

#include "../opencl/executor.h"
#include "../opencl/text.h"
#include "../plugins/plugins.h"
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

// The program that suits the device best among those not tried yet: its section, -1: none is left.
int best_program(const lite_file* file, const opencl::DeviceInfo& info, const bool* tried) {
  int best = -1, found = -1;
  for (uint32_t i = 0; i < file->count; ++i) {
    const Section& s = file->sections[i];
    opencl::DevicePlan plan{};
    if (tried[i] || strncmp(s.tag, "OCL.", 4) != 0 ||
        !opencl::read_profile(file->data + s.offset, s.size, &plan))
      continue;
    const int points = suitability(plan, info);
    if (points <= best) continue;
    best = points;
    found = static_cast<int>(i);
  }
  return found;
}

// The best of the file's OpenCL programs that loads: first one that the device takes as a whole, then
// one that leaves steps to the CPU. nullptr with one line in `error`.
lite_program* opencl_program(lite_file* file, const lite_options& options, char* error,
                             size_t error_bytes) {
  opencl::Device* device = opencl::new_device(options, error, error_bytes);
  if (!device) return nullptr;
  say(error, error_bytes, "OpenCL: %s: the file has no program for this kind of device",
      device->info.name);
  for (bool whole : {true, false}) {
    bool tried[kMaxSections] = {};
    for (int i; (i = best_program(file, device->info, tried)) >= 0; tried[i] = true) {
      const Section& s = file->sections[i];
      const opencl::Onto onto{device, nullptr, whole};
      lite_program* p = load_program(file->data + s.offset, s.size, file->weights,
                                     file->weight_bytes, file->num_weights, mapping_of(*file), &onto,
                                     &options, error, error_bytes);
      if (!p) continue;
      p->source = file;
      p->part = file->data + s.offset;
      p->part_bytes = s.size;
      return p;
    }
  }
  opencl::close_device(device);
  return nullptr;
}

// Sections PLUG.n: the name of a backend in 64 bytes, then the program, in which its sub-graphs are steps.
constexpr size_t kNameBytes = 64;

// The n-th such section that the file has; its backend's name.
const Section* plugin_section(const lite_file* file, int n, char name[kNameBytes]) {
  for (uint32_t i = 0; i < file->count; ++i) {
    const Section& s = file->sections[i];
    if (strncmp(s.tag, "PLUG.", 5) != 0 || s.size <= kNameBytes || n-- > 0) continue;
    memcpy(name, file->data + s.offset, kNameBytes);
    name[kNameBytes - 1] = 0;
    return &s;
  }
  return nullptr;
}

// The file's program for a backend of another package: `wanted`, or with nullptr the first whose library
// is loaded. nullptr with one line in `error`, which is empty where the file has none.
lite_program* plugin_program(lite_file* file, const char* wanted, const lite_options& options,
                             char* error, size_t error_bytes) {
  char name[kNameBytes];
  *error = 0;
  for (int n = 0; const Section* s = plugin_section(file, n, name); ++n) {
    if (wanted && strcmp(wanted, name) != 0) continue;
    const char* library;
    char op[kNameBytes + 16];
    snprintf(op, sizeof op, "backend::%s", name);
    if (!plugin_kernel(op, &library)) {
      say(error, error_bytes, "%s: no library of this backend is loaded; name one with --library PATH", name);
      continue;
    }
    const uint8_t* program = file->data + s->offset + kNameBytes;
    lite_program* p = load_program(program, s->size - kNameBytes, file->weights, file->weight_bytes,
                                   file->num_weights, mapping_of(*file), nullptr, &options, error, error_bytes);
    if (!p) continue;
    snprintf(p->choice, sizeof p->choice, "%s: library %s", name, library);
    return p;
  }
  return nullptr;
}

bool has_plugin_program(const lite_file* file, const char* wanted) {
  char name[kNameBytes];
  for (int n = 0; plugin_section(file, n, name); ++n)
    if (strcmp(wanted, name) == 0) return true;
  return false;
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

// What a program was loaded with, as far as it matters to the one that takes over.
lite_options options_of(const lite_program* p) {
  lite_options options{};
  options.threads = p->threads;
  options.pin = p->pin;
  options.max_isa = *p->max_isa ? p->max_isa : nullptr;
  options.memory_limit_bytes = static_cast<int64_t>(p->memory.limit_bytes);
  return options;
}

// The bound or own memory of an input or output, also where it is tapped.
uint8_t* port_data(const lite_program* p, int tensor) {
  return p->bound[tensor] ? p->bound[tensor] : p->own[tensor];
}

}  // namespace

namespace lite {

bool leave_step(lite_program* p) {
  opencl::Onto onto{};
  if (!p->source || !opencl::leave_failed_step(p, &onto)) return false;
  const lite_options options = options_of(p);
  char unused[1];
  lite_program* next =
      load_program(p->part, p->part_bytes, p->source->weights, p->source->weight_bytes,
                   p->source->num_weights, mapping_of(*p->source), &onto, &options, unused, sizeof unused);
  if (!next) {
    opencl::close_device(onto.device);
    return false;
  }
  next->source = p->source;
  next->part = p->part;
  next->part_bytes = p->part_bytes;
  next->to_cpu = p->to_cpu;
  p->next = next;
  return true;
}

bool fall_back(lite_program* p) {
  if (!p->to_cpu) return false;
  char reason[sizeof p->choice], error[sizeof p->choice];
  snprintf(reason, sizeof reason, "%s", p->env.error);
  const lite_options options = options_of(p);
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
  if (p->opencl) opencl::unload(p->opencl);
  p->opencl = nullptr;
  p->next = cpu;
  cpu->fell_back = true;
  snprintf(cpu->choice, sizeof cpu->choice, "cpu: %.*s", static_cast<int>(sizeof reason - 8), reason);
  return true;
}

bool run_next(lite_program* p) {
  lite_program* next = p->next;
  const Program& mine = p->program;
  // The same program with some steps on the CPU has the same tensors first; the CPU's own has others.
  for (int i = 0; i < mine.num_tensors; ++i) {
    if (!p->tapped[i]) continue;
    if (!next->part)
      return p->env.fail("'%s' is the device's, which failed; load the program with the backend cpu",
                         mine.tensors[i].name);
    if (lite_program_tap(next, i, 1, p->env.error, p->env.error_bytes)) return false;
  }
  for (int i = 0; i < mine.num_inputs; ++i)
    next->bound[next->program.inputs[i]] = port_data(p, mine.inputs[i]);
  for (int i = 0; i < mine.num_outputs; ++i)
    next->bound[next->program.outputs[i]] = port_data(p, mine.outputs[i]);
  if (lite_program_run(next, p->env.error, p->env.error_bytes)) return false;
  for (int i = 0; i < mine.num_tensors; ++i)
    if (p->tapped[i])
      memcpy(p->taps[i], lite_program_data(next, i), mine.tensors[i].size * dtype_bytes(mine.tensors[i].dtype));
  return true;
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
  if (target && has_plugin_program(file, target))
    return plugin_program(file, target, wanted, error, error_bytes);
  const Backend backend = asked(wanted, target);
  char lacks[300] = "";
  if (backend == kAuto) {
    lite_program* p = plugin_program(file, nullptr, wanted, lacks, sizeof lacks);
    if (p) {
      p->source = file;
      p->to_cpu = true;
      return p;
    }
  }
  const char* cpu_target = target ? target : lite_target();
  if (backend == kOpenCL && !has_opencl(file)) {
    say(error, error_bytes, "the file has no program for OpenCL; convert it with --targets opencl");
    return nullptr;
  }
  char reason[400];
  snprintf(reason, sizeof reason, "%s",
           backend == kCpu     ? "asked for"
           : has_opencl(file) ? "the file names it first"
           : *lacks           ? lacks
                              : "the file has no OpenCL program");
  const bool either = backend == kAuto && has_opencl(file);
  const bool opencl_first = backend == kOpenCL || (either && prefers_opencl(file));
  if (opencl_first) {
    lite_program* p = opencl_program(file, wanted, reason, sizeof reason);
    if (p) p->to_cpu = backend == kAuto;
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

const char* lite_program_choice(const lite_program* p) { return current(p)->choice; }

const char* lite_program_warning(const lite_program* p) {
  p = current(p);
  return p->fell_back ? p->choice : nullptr;
}

}  // extern "C"
