// lite_run: runs a .lite file without Python.
//
//   lite_run model.lite [--input name=file]... [--output DIR] [--threads N] [--runs N] [--warmup N]
//            [--steady SECONDS] [--profile FILE.json] [--tap NAME,...] [--tap-dir DIR] [--target T] [--max-isa ISA]
//            [--pin] [--info] [--backend auto|cpu|opencl] [--device D] [--cache-dir DIR] [--check]
//            [--dump DIR] [--precision fp32|fp16|bf16] [--library LIB.so]... [--trust] [--tune]
//   lite_run pipeline.lite --image PHOTO|--sound FILE.wav [--draw FILE.png] [--times]   a pipeline's answer, as JSON
//   lite_run pipeline.lite --stream FOLDER|- [--fps N]   an answer for each frame; - is Motion JPEG on standard input
//   lite_run --kernels   lists the kernel tables: instruction set, kernel, operators
//   lite_run --list-devices [--probe-seconds N]   OpenCL here, as JSON: libraries, devices
//
// Inputs are .npy or raw files; one that is not given is zero, with --check random. Outputs are written as DIR/NAME.npy.
// --steady warms up until the times of runs do not change any more, for so many seconds at most.
// --dump writes every value that a step makes. --check runs the model on the CPU as well and compares
// the outputs, before the runs that are asked for; layers that are wrong on the device run on the CPU. --backend, --device and --cache-dir are those of lite_options (LITE_BACKEND,
// LITE_OPENCL_DEVICE and LITE_CACHE_DIR where they are not given).
// --tune measures the file's variants of layers on the OpenCL device and keeps which is the fastest in the cache
// folder, as `lite tune` does, or beside the file; later runs take it.
// --library loads kernels of a shared library (lite_plugin.h), --trust those that the file carries, and its
// OpenCL kernels; their code runs in this process, or on the device.
// Exit codes: 0 good, 1 failed (one line on standard error), 2 wrong usage.
#include <charconv>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lite_run_app.h"
#include "lite_run_check.h"
#include "lite_run_measure.h"
#include "lite_run_npy.h"
#include "lite_run_profile.h"
#include "lite_run_stream.h"
#include "platform/files.h"
#include "screen.h"

namespace {

constexpr int kMaxList = 256;

struct Arguments {
  const char* model = nullptr;
  const char* inputs[kMaxList];
  int num_inputs = 0;
  char* taps[kMaxList];
  int num_taps = 0;
  const char* output = nullptr;
  const char* profile = nullptr;
  const char* tap_dir = nullptr;
  const char* dump = nullptr;
  const char* target = nullptr;
  const char *image = nullptr, *draw = nullptr, *stream = nullptr;
  lite_options options{};
  int runs = 1, warmup = 0, steady_s = 0, fps = 0;
  bool info = false, check = false, times = false, trust = false;
};

char error_text[1024];

int failed(const char* format, ...) __attribute__((format(printf, 1, 2)));
int failed(const char* format, ...) {
  char said[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(said, sizeof said, format, args);
  va_end(args);
  say_line(stderr, "error: %s", said);
  return 1;
}

void print_usage(FILE* to) {
  fprintf(to,
          "usage: lite_run model.lite [--input name=file.npy]... [--output DIR] "
          "[--threads N] [--runs N] [--warmup N] [--steady SECONDS]\n"
          "       [--profile FILE.json] [--tap NAME,...] [--tap-dir DIR] [--target %s] "
          "[--max-isa ISA] [--pin] [--info]\n"
          "       [--backend auto|cpu|opencl] [--device D] [--cache-dir DIR] [--check] [--dump DIR]\n"
          "       [--precision fp32|fp16|bf16] [--library LIB.so]... [--trust] [--tune]\n"
          "       lite_run pipeline.lite --image PHOTO|--sound FILE.wav [--draw FILE.png] "
          "[--times]\n"
          "       lite_run pipeline.lite --stream FOLDER|- [--fps N]\n"
          "       lite_run --kernels\n"
          "       lite_run --list-devices [--probe-seconds N]\n",
          lite_target());
}

int usage(const char* why) {
  say_line(stderr, "error: %s", why);
  print_usage(stderr);
  return 2;
}

bool number(const char* text, int low, int high, int* out) {
  int value = 0;
  const char* end = text + strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < low || value > high) return false;
  *out = value;
  return true;
}

bool backend(const char* text, int32_t* out) {
  for (int i = 0; const char* name = lite_backend_name(i); ++i)
    if (strcmp(text, name) == 0) return *out = i, true;
  return false;
}

bool split_taps(const char* text, Arguments* args) {
  char* list = strdup(text);
  if (!list) return false;
  for (char* name = strtok(list, ","); name; name = strtok(nullptr, ",")) {
    if (args->num_taps == kMaxList) return false;
    args->taps[args->num_taps++] = name;
  }
  return true;
}

// One line per row of the kernel tables: instruction set, kernel, operators.
int print_kernels() {
  lite_kernel_info info;
  for (int i = 0; lite_kernel(i, &info) == 0; ++i)
    printf("%s %s %s\n", info.isa, info.name, info.ops);
  return 0;
}

int list_devices(int argc, char** argv) {
  int seconds = 0;
  if (argc != 2 && (argc != 4 || strcmp(argv[2], "--probe-seconds") != 0 ||
                    !number(argv[3], 1, 3600, &seconds)))
    return usage("--list-devices takes nothing but --probe-seconds N");
  char* text = lite_opencl_report(lite::own_path(), seconds);
  if (!text) return failed("out of memory");
  fputs(text, stdout);
  lite_text_free(text);
  return 0;
}

int parse(int argc, char** argv, Arguments* args) {
  for (int i = 1; i < argc; ++i) {
    const char* arg = argv[i];
    if (strncmp(arg, "--", 2) != 0) {
      if (args->model) return usage("more than one model is given");
      args->model = arg;
      continue;
    }
    const struct {
      const char* name;
      bool* set;
    } flags[] = {{"--info", &args->info}, {"--check", &args->check}, {"--times", &args->times}, {"--trust", &args->trust}};
    bool flag = false;
    for (const auto& f : flags)
      if (strcmp(arg, f.name) == 0) flag = *f.set = true;
    if (flag) continue;
    if (strcmp(arg, "--tune") == 0) {
      args->options.tune = 1;
      continue;
    }
    if (strcmp(arg, "--pin") == 0) {
      args->options.pin = 1;
      continue;
    }
    if (i + 1 == argc) return usage("an option without its value, or an unknown one");
    const char* value = argv[++i];
    bool good = true;
    if (strcmp(arg, "--input") == 0) {
      good = args->num_inputs < kMaxList;
      if (good) args->inputs[args->num_inputs++] = value;
    } else if (strcmp(arg, "--output") == 0) args->output = value;
    else if (strcmp(arg, "--profile") == 0) args->profile = value;
    else if (strcmp(arg, "--image") == 0 || strcmp(arg, "--sound") == 0) args->image = value;
    else if (strcmp(arg, "--draw") == 0) args->draw = value;
    else if (strcmp(arg, "--stream") == 0) args->stream = value;
    else if (strcmp(arg, "--fps") == 0) good = number(value, 1, 100000, &args->fps);
    else if (strcmp(arg, "--tap") == 0) good = split_taps(value, args);
    else if (strcmp(arg, "--dump") == 0) args->dump = value;
    else if (strcmp(arg, "--tap-dir") == 0) args->tap_dir = value;
    else if (strcmp(arg, "--target") == 0) args->target = value;
    else if (strcmp(arg, "--max-isa") == 0) args->options.max_isa = value;
    else if (strcmp(arg, "--device") == 0) args->options.device = value;
    else if (strcmp(arg, "--cache-dir") == 0) args->options.cache_dir = value;
    else if (strcmp(arg, "--precision") == 0) args->options.precision = value;
    else if (strcmp(arg, "--library") == 0) {
      if (lite_plugin_load(value, error_text, sizeof error_text)) return failed("%s", error_text);
    } else if (strcmp(arg, "--backend") == 0) good = backend(value, &args->options.backend);
    else if (strcmp(arg, "--threads") == 0) good = number(value, 1, 64, &args->options.threads);
    else if (strcmp(arg, "--runs") == 0) good = number(value, 1, 1000000, &args->runs);
    else if (strcmp(arg, "--steady") == 0) good = number(value, 1, 3600, &args->steady_s);
    else if (strcmp(arg, "--warmup") == 0) good = number(value, 0, 1000000, &args->warmup);
    else good = false;
    if (!good) {
      static char why[300];
      snprintf(why, sizeof why, "%.100s %.100s is not understood", arg, value);
      return usage(why);
    }
  }
  return args->model ? 0 : usage("no model is given");
}

void print_tensor(FILE* out, const lite_tensor_info& t) {
  fputs("{\"name\": ", out);
  print_json_text(out, t.name);
  fprintf(out, ", \"dtype\": \"%s\", \"shape\": [", dtype_text(t.dtype));
  for (int i = 0; i < t.rank; ++i)
    fprintf(out, i ? ", %lld" : "%lld", static_cast<long long>(t.dims[i]));
  fputs("]}", out);
}

void print_ports(FILE* out, const lite_program* p, bool inputs) {
  const int count = inputs ? lite_program_num_inputs(p) : lite_program_num_outputs(p);
  fprintf(out, "\"%s\": [", inputs ? "inputs" : "outputs");
  for (int i = 0; i < count; ++i) {
    lite_tensor_info t;
    lite_program_tensor(p, inputs ? lite_program_input(p, i) : lite_program_output(p, i), &t);
    if (i) fputs(", ", out);
    print_tensor(out, t);
  }
  fputs("]", out);
}

void print_info(const lite_file* file, const lite_program* p) {
  printf(
      "{\"version\": \"%s\", \"target\": \"%s\", \"cpu\": \"%s\", \"isas\": \"%s\", "
      "\"targets\": \"%s\",\n ",
      lite_version(), lite_target(), lite_cpu_features(), lite_isas(), lite_file_targets(file));
  print_ports(stdout, p, true);
  fputs(",\n ", stdout);
  print_ports(stdout, p, false);
  fputs(",\n \"choice\": ", stdout);
  print_json_text(stdout, lite_program_choice(p));
  lite_memory_info memory;
  lite_program_memory(p, &memory);
  printf(
      ",\n \"steps\": %d, \"threads\": %d, \"arena_bytes\": %zu, \"packed_bytes\": %zu, "
      "\"scratch_bytes\": %zu, \"weight_bytes\": %zu}\n",
      lite_program_num_steps(p), lite_program_threads(p), memory.arena_bytes, memory.packed_bytes,
      memory.scratch_bytes, memory.weight_bytes);
}

// Names of tensors become file names: anything but letters, digits, '.', '-' and '_' turns into
// '_'.
void file_name(char* out, size_t bytes, const char* folder, const char* name) {
  int at = snprintf(out, bytes, "%s/", folder);
  if (at < 0 || static_cast<size_t>(at) + 6 > bytes) return;
  for (; *name && static_cast<size_t>(at) + 6 < bytes; ++name) {
    const char c = *name;
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '.' || c == '-' || c == '_';
    out[at++] = plain ? c : '_';
  }
  snprintf(out + at, bytes - at, ".npy");
}

bool write_tensor(lite_program* p, int tensor, const char* folder) {
  lite_tensor_info info;
  lite_program_tensor(p, tensor, &info);
  lite::make_folder(folder);
  char path[4096] = "";
  file_name(path, sizeof path, folder, info.name);
  const void* data = lite_program_data(p, tensor);
  if (data && write_npy(path, info, data, error_text, sizeof error_text)) return true;
  failed("%s %s", path, data ? error_text : "has no data");
  return false;
}

// Inputs that are not given are zeros; with --check, numbers by which a wrong layer shows. Zeros are written: memory
// that never was is one page again and again, and a layer that reads it takes another time than with any real input.
bool start_inputs(lite_program* p, bool check) {
  for (int k = 0; k < lite_program_num_inputs(p); ++k) {
    lite_tensor_info info;
    const int tensor = lite_program_input(p, k);
    lite_program_tensor(p, tensor, &info);
    void* data = lite_program_data(p, tensor);
    if (!data) return failed("input '%s': out of memory", info.name), false;
    if (check) fill_with_numbers(info, data);
    else memset(data, 0, info.bytes);
  }
  return true;
}

bool load_inputs(lite_program* p, const Arguments& args) {
  if (!start_inputs(p, args.check)) return false;
  for (int i = 0; i < args.num_inputs; ++i) {
    const char* equals = strchr(args.inputs[i], '=');
    if (!equals) return failed("--input %s: write name=file", args.inputs[i]), false;
    bool found = false;
    for (int k = 0; k < lite_program_num_inputs(p) && !found; ++k) {
      lite_tensor_info info;
      const int tensor = lite_program_input(p, k);
      lite_program_tensor(p, tensor, &info);
      const size_t length = equals - args.inputs[i];
      if (strlen(info.name) != length || strncmp(info.name, args.inputs[i], length) != 0) continue;
      found = true;
      void* data = lite_program_data(p, tensor);
      if (!read_input(equals + 1, info, data, error_text, sizeof error_text))
        return failed("input '%s': %s %s", info.name, equals + 1, error_text), false;
    }
    if (!found)
      return failed("--input %s: the model has no such input; see --info", args.inputs[i]), false;
  }
  return true;
}

bool tap_all(lite_program* p, const Arguments& args, int* tensors) {
  for (int i = 0; i < args.num_taps; ++i) {
    tensors[i] = lite_program_find(p, args.taps[i]);
    if (tensors[i] < 0)
      return failed("--tap %s: the program has no such tensor", args.taps[i]), false;
    if (lite_program_tap(p, tensors[i], 1, error_text, sizeof error_text))
      return failed("--tap %s: %s", args.taps[i], error_text), false;
  }
  return true;
}

// Taps whatever a step writes and --dump wants.
bool dumped(const lite_program* p, int tensor) {
  lite_tensor_info info;
  return lite_program_tensor(p, tensor, &info) == 0 && info.role != 1 && info.role != 3;
}

bool dump_all(lite_program* p) {
  for (int i = 0; i < lite_program_num_tensors(p); ++i)
    if (dumped(p, i) && lite_program_tap(p, i, 1, error_text, sizeof error_text))
      return failed("--dump: %s", error_text), false;
  return true;
}

// Once: what was measured; where the CPU ran what the device was to run; what is wrong with a folder.
void tell(const lite_program* p, bool tune) {
  const char* measured = tune ? lite_program_tuning(p) : nullptr;
  if (tune) say_line(stderr, "tuning: %s", measured ? measured : lite_program_choice(p));
  if (const char* text = lite_program_warning(p)) say_line(stderr, "warning: %s", text);
}

bool execute(lite_file* file, lite_program* p, const Arguments& args) {
  if (args.info) {
    print_info(file, p);
    return true;
  }
  int taps[kMaxList];
  if (!load_inputs(p, args) || !tap_all(p, args, taps) || (args.dump && !dump_all(p))) return false;
  if (args.check && !agrees_with_cpu(file, p, args.options, error_text, sizeof error_text))
    return failed("%s", error_text), false;
  const Measuring how{args.runs, args.warmup, args.steady_s, args.profile};
  if (!run_all(p, how, error_text, sizeof error_text)) return failed("%s", error_text), false;
  tell(p, args.options.tune);
  const char* tap_dir = args.tap_dir ? args.tap_dir : args.output ? args.output : ".";
  for (int i = 0; i < args.num_taps; ++i)
    if (!write_tensor(p, taps[i], tap_dir)) return false;
  for (int i = 0; args.dump && i < lite_program_num_tensors(p); ++i)
    if (dumped(p, i) && !write_tensor(p, i, args.dump)) return false;
  for (int i = 0; args.output && i < lite_program_num_outputs(p); ++i)
    if (!write_tensor(p, lite_program_output(p, i), args.output)) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  static Arguments args;
  lite::use_utf8(&argc, &argv);
  if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
    return print_usage(stdout), 0;
  if (argc == 2 && strcmp(argv[1], "--kernels") == 0) return print_kernels();
  if (argc > 1 && strcmp(argv[1], "--list-devices") == 0) return list_devices(argc, argv);
  if (argc > 1 && strncmp(argv[1], "--probe-", 8) == 0) return lite_opencl_child(argc, argv);
  if (const int wrong = parse(argc, argv, &args)) return wrong;
  if (!args.options.cache_dir) args.options.cache_dir = getenv("LITE_CACHE_DIR");
  args.options.timed = args.profile != nullptr;
  lite_file* file = lite_file_open(args.model, error_text, sizeof error_text);
  if (!file) return failed("%s", error_text);
  if (args.trust && lite_file_trust(file, error_text, sizeof error_text)) {
    lite_file_close(file);
    return failed("%s: %s", args.model, error_text);
  }
  if (args.image || args.stream) {
    const bool answered =
        args.stream ? answer_stream(file, args.options, args.stream, args.fps, error_text, sizeof error_text)
                    : answer_image(file, args.options, args.image, args.draw, args.times, args.runs, error_text,
                                   sizeof error_text);
    lite_file_close(file);
    return answered ? 0 : failed("%s: %s", args.model, error_text);
  }
  lite_program* program =
      lite_file_program(file, args.target, &args.options, error_text, sizeof error_text);
  if (!program) {
    lite_file_close(file);
    return failed("%s: %s", args.model, error_text);
  }
  const bool good = execute(file, program, args);
  lite_program_free(program);
  lite_file_close(file);
  return good ? 0 : 1;
}
