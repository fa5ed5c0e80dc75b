// Which program of a file runs here, and what runs where that one cannot.
#include "choose.h"

#include <charconv>
#include <initializer_list>
#include <stdio.h>
#include <stdlib.h>

#include "../opencl/executor.h"
#include "../opencl/measure.h"
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

// A program of the file that the CPU runs. One for a device would open it, though nobody asked for that.
lite_program* load_for_cpu(const lite_file* file, const void* program, size_t bytes, const lite_options& options,
                           char* error, size_t error_bytes) {
  if (opencl::is_device_plan(static_cast<const uint8_t*>(program), bytes)) {
    say(error, error_bytes, "the file's program for the CPU is one for OpenCL; convert the model again");
    return nullptr;
  }
  return load_program(program, bytes, file->weights, file->weight_bytes, file->num_weights, mapping_of(*file),
                      nullptr, &options, error, error_bytes);
}

bool is_fp32(const char* precision) { return precision && strcmp(precision, "fp32") == 0; }

}  // namespace

namespace lite {

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
  if (!program && !file->targets[0]) {
    say(error, error_bytes, "the file has no program: its input sizes are open, or a layer needs Python; `lite convert` "
        "says which, and --shape fixes sizes");
    return nullptr;
  }
  if (!program) {
    say(error, error_bytes,
        "the file has no program for '%s' (it has: %s); convert it with --targets %s", target, file->targets, target);
    return nullptr;
  }
  if (!meets_needs(file, target, error, error_bytes)) return nullptr;
  snprintf(tag, sizeof tag, "HALF.%s", target);
  const char* narrow = strcmp(target, "x86") == 0 ? "bf16" : "fp16";
  CpuFeatures cpu;
  size_t half_bytes;
  const void* half = lite_file_section(file, tag, &half_bytes);
  const bool able = detect_cpu(options.max_isa, &cpu) && (cpu.fp16 || cpu.avx512bf16);
  const char* precision = half && able && !is_fp32(options.precision) ? narrow : "fp32";
  if (options.precision && strcmp(options.precision, precision) != 0) {
    say(error, error_bytes, "precision %.20s: %s", options.precision,
        half && !able ? "this CPU does not compute in it"
                      : "the file has no program in it for this CPU; convert it with --precision");
    return nullptr;
  }
  if (precision == narrow) {
    program = half;
    bytes = half_bytes;
  }
  return load_for_cpu(file, program, bytes, options, error, error_bytes);
}

}  // namespace lite

namespace {

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

// Whether float values lie in halves on the device.
bool has_halves(const Program& program) {
  for (int i = 0; i < program.num_tensors; ++i)
    if (program.tensors[i].role == Role::kDevice && program.tensors[i].dtype == DType::kF16) return true;
  return false;
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
  opencl::Device* device = opencl::new_device(options, file->folder, error, error_bytes);
  if (!device) return nullptr;
  size_t bytes;
  if (const void* tuned = lite_file_section(file, "TUNED", &bytes))
    opencl::add_stored_tuning(device, static_cast<const char*>(tuned), bytes);
  say(error, error_bytes, "OpenCL: %s: the file has no program for this kind of device",
      device->info.name);
  char refused[200] = "";  // why the best program is not the one that runs
  for (bool whole : {true, false}) {
    bool tried[kMaxSections] = {};
    for (int i; (i = best_program(file, device->info, tried)) >= 0; tried[i] = true) {
      const Section& s = file->sections[i];
      const opencl::Onto onto{device, nullptr, whole};
      const auto load = [&] {
        return load_program(file->data + s.offset, s.size, file->weights, file->weight_bytes,
                            file->num_weights, mapping_of(*file), &onto, &options, error, error_bytes);
      };
      lite_program* p = load();
      if (p && options.tune) {
        opencl::detach(p);
        lite_program_free(p);
        opencl::measure(file, file->data + s.offset, s.size, options, device);
        p = load();
      }
      if (!p) {
        if (!*refused) snprintf(refused, sizeof refused, "%s", error);
        continue;
      }
      if (whole && *refused) {
        const size_t length = strlen(p->choice);
        snprintf(p->choice + length, sizeof p->choice - length, "; a better program is refused: %s", refused);
      }
      const char* found = has_halves(p->program) ? "fp16" : "fp32";
      if (options.precision && strcmp(options.precision, found) != 0) {
        say(error, error_bytes, "precision %.20s: the file's OpenCL programs are in %s; convert it with "
            "--precision opencl=%.20s", options.precision, found, options.precision);
        lite_program_free(p);  // with the device
        return nullptr;
      }
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
    lite_program* p = load_for_cpu(file, program, s->size - kNameBytes, options, error, error_bytes);
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

// What the options and LITE_BACKEND ask for; false with one line in `error` for what is not here. The
// variable has Python's words.
bool asked(const lite_options& options, const char* target, Backend* out, char* error,
           size_t error_bytes) {
  *out = static_cast<Backend>(options.backend);
  if (target) *out = strcmp(target, "opencl") == 0 ? kOpenCL : kCpu;
  const char* word = getenv("LITE_BACKEND");
  if (target || options.backend != kAuto || !word || !*word || strcmp(word, "auto") == 0) return true;
  *out = strcmp(word, "opencl") == 0 ? kOpenCL : kCpu;
  if (*out == kOpenCL || strcmp(word, lite_target()) == 0) return true;
  return say(error, error_bytes, "LITE_BACKEND='%.40s': not one of auto, %s, opencl, which this runtime "
             "executes", word, lite_target());
}

bool is_precision(const char* word) {
  return !word || is_fp32(word) || strcmp(word, "fp16") == 0 || strcmp(word, "bf16") == 0;
}

}  // namespace

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
  if (!is_precision(wanted.precision)) {
    say(error, error_bytes, "precision '%.40s' is not one of fp32, fp16, bf16", wanted.precision);
    return nullptr;
  }
  Backend backend;
  if (!asked(wanted, target, &backend, error, error_bytes)) return nullptr;
  if (target && has_plugin_program(file, target))
    return plugin_program(file, target, wanted, error, error_bytes);
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
  if (p->fell_back) return p->choice;
  return p->opencl ? opencl::device_warning(p->opencl) : nullptr;
}

const char* lite_program_tuning(const lite_program* p) {
  p = current(p);
  return p->opencl ? opencl::tuning_summary(p->opencl) : nullptr;
}

}  // extern "C"
