// C++ over lite_runtime.h: objects that free themselves, errors as exceptions. C++17, header only.
//
//   lite::Model model("model.lite");
//   std::copy(pixels.begin(), pixels.end(), model.input(0).as<float>());
//   model.run();
//   const float* scores = model.output(0).as<float>();
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

// An input or output: its memory belongs to the model.
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

// One model, for one thread at a time. Movable, not copyable.
class Model {
 public:
  explicit Model(const std::string& path, int threads = 0) {
    char error[512] = "";
    file_.reset(lite_file_open(path.c_str(), error, sizeof error));
    if (!file_) throw Error(error);
    lite_options options{};
    options.threads = threads;
    program_.reset(lite_file_program(file_.get(), nullptr, &options, error, sizeof error));
    if (!program_) throw Error(path + ": " + error);
  }

  int inputs() const { return lite_program_num_inputs(program_.get()); }
  int outputs() const { return lite_program_num_outputs(program_.get()); }
  Tensor input(int i) { return tensor(lite_program_input(program_.get(), i)); }
  Tensor output(int i) { return tensor(lite_program_output(program_.get(), i)); }

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
