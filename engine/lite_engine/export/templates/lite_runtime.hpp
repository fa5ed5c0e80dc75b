// C++ over lite_runtime.h: objects that free themselves, errors as exceptions. C++17, header only.
//
//   lite::Model model("model.lite");
//   std::copy(pixels.begin(), pixels.end(), model.input(0).as<float>());
//   model.run();
//   const float* scores = model.output(0).as<float>();
//
//   lite::Options options;
//   options.backend = "opencl";
//   lite::Model gpu("model.lite", options);
//   std::puts(gpu.choice().c_str());  // what was chosen, and why
#ifndef LITE_RUNTIME_HPP
#define LITE_RUNTIME_HPP

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lite_runtime.h"

namespace lite {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An input or output: its memory belongs to the model. `data` is valid until the next run, in which an
// OpenCL device may move it.
struct Tensor {
  std::string name;
  int dtype = 0;  // numbers of the program format: 1 is float
  std::vector<int64_t> shape;
  void* data = nullptr;
  size_t bytes = 0;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  template <typename T>
  size_t count() const {
    return bytes / sizeof(T);
  }
};

// A layer that differs on the device: the relative L2 error of what it writes, and the value that is
// off most.
struct Difference {
  std::string layer, op, kernel;
  double error = 0;
  int64_t index = 0;
  double device = 0, cpu = 0;
};

// As lite_options: empty texts and zeros leave the choice to the file and the machine.
struct Options {
  int threads = 0;              // 0: one per processor
  std::string backend = "auto"; // "auto", "cpu" or "opencl"
  std::string device;           // OpenCL device: its number or part of its name
  std::string cache_dir;        // folder for compiled OpenCL kernels
  std::string precision;        // "fp32", "fp16" or "bf16"
  bool tune = false;            // the device measures the file's OpenCL variants of layers and keeps
                                // the fastest in cache_dir, or beside the file
};

// One model, for one thread at a time. Movable, not copyable.
class Model {
 public:
  explicit Model(const std::string& path, int threads = 0)
      : Model(path, Options{threads, "auto", "", "", "", false}) {}

  Model(const std::string& path, const Options& wanted) {
    char error[512] = "";
    file_.reset(lite_file_open(path.c_str(), error, sizeof error));
    if (!file_) throw Error(error);
    lite_options options{};
    options.threads = wanted.threads;
    options.backend = number_of(wanted.backend);
    options.device = given(wanted.device);
    options.cache_dir = given(wanted.cache_dir);
    options.precision = given(wanted.precision);
    options.tune = wanted.tune;
    program_.reset(lite_file_program(file_.get(), nullptr, &options, error, sizeof error));
    if (!program_) throw Error(path + ": " + error);
  }

  int inputs() const { return lite_program_num_inputs(program_.get()); }
  int outputs() const { return lite_program_num_outputs(program_.get()); }
  Tensor input(int i) { return tensor(lite_program_input(program_.get(), i)); }
  Tensor output(int i) { return tensor(lite_program_output(program_.get(), i)); }

  // "opencl: NAME, …" or "cpu: reason".
  std::string choice() const { return lite_program_choice(program_.get()); }
  // Why the CPU runs what the device was to run; empty where it does not.
  std::string warning() const { return text_of(lite_program_warning(program_.get())); }
  // With Options::tune: what was measured; empty where nothing was.
  std::string tuning() const { return text_of(lite_program_tuning(program_.get())); }

  // Runs again on the inputs, on the device and layer by layer on the CPU: the first layer that differs by
  // more than `tolerance`; with an empty name where none does, or where no device runs any.
  Difference check(double tolerance) {
    char error[512] = "";
    lite_layer_check first{};
    if (lite_program_check(program_.get(), tolerance, &first, error, sizeof error) < 0) throw Error(error);
    if (!first.name) return {};
    return {first.name, first.op, first.kernel, first.error, first.index, first.device, first.cpu};
  }

  // Leaves layers of the device to the CPU from the next run on; choice() and warning() give the reason.
  void leave(const std::vector<std::string>& layers, const std::string& reason) {
    char error[512] = "";
    std::vector<const char*> names;
    for (const std::string& layer : layers) names.push_back(layer.c_str());
    if (lite_program_leave(program_.get(), names.data(), static_cast<int>(names.size()), reason.c_str(), error,
                           sizeof error))
      throw Error(error);
  }

  void run() {
    char error[512] = "";
    if (lite_program_run(program_.get(), error, sizeof error)) throw Error(error);
  }

 private:
  struct CloseFile {
    void operator()(lite_file* file) const { lite_file_close(file); }
  };
  struct FreeProgram {
    void operator()(lite_program* program) const { lite_program_free(program); }
  };

  static std::string text_of(const char* text) { return text ? text : ""; }

  static const char* given(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

  static int number_of(const std::string& backend) {
    for (int i = 0; const char* name = lite_backend_name(i); ++i)
      if (backend == name) return i;
    throw Error("backend '" + backend + "' is not one of auto, cpu, opencl");
  }

  Tensor tensor(int index) {
    lite_tensor_info info;
    if (index < 0 || lite_program_tensor(program_.get(), index, &info))
      throw Error("the model has no such input or output");
    void* data = lite_program_data(program_.get(), index);
    if (!data) throw Error("out of memory");
    return {info.name, info.dtype, {info.dims, info.dims + info.rank}, data, info.bytes};
  }

  std::unique_ptr<lite_file, CloseFile> file_;  // outlives its program
  std::unique_ptr<lite_program, FreeProgram> program_;
};

}  // namespace lite
#endif
