// Paddle-Lite's C++ interface for phones and boards (MobileConfig, PaddlePredictor, Tensor) over
// lite_runtime.h: programs that were written for it compile unchanged and run .lite files.
//
//   MobileConfig config;
//   config.set_model_from_file("model.lite");
//   auto predictor = CreatePaddlePredictor<MobileConfig>(config);  // null: the log says why
//   auto input = predictor->GetInput(0);
//   input->Resize({1, 3, 224, 224});
//   float* pixels = input->mutable_data<float>();
//   predictor->Run();
//   const float* scores = predictor->GetOutput(0)->data<float>();
//
// A file's sizes are fixed: Resize takes those that it was converted with. Errors are one line each in the
// log (standard error; on Android the system's log under "lite"), no exceptions. After a Run that failed,
// the outputs' sizes are 0 and data() is null. CxxConfig, which reads Paddle's own model files, is not here:
// `lite convert` does that beforehand.
#ifndef LITE_PADDLE_API_H
#define LITE_PADDLE_API_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "paddle_place.h"

namespace paddle {
namespace lite_api {

using shape_t = std::vector<int64_t>;
using lod_t = std::vector<std::vector<uint64_t>>;

enum class LiteModelType { kProtobuf, kNaiveBuffer, UNK };
enum PrecisionMode { LITE_PRECISION_NORMAL, LITE_PRECISION_LOW };
enum class L3CacheSetMethod { kDeviceL3Cache, kDeviceL2Cache, kAbsolute };

// Whether an OpenCL device can be used here, and computes in fp16 where that is asked. Drivers are tried
// in a child process, once.
PADDLE_LITE_API bool IsOpenCLBackendValid(bool check_fp16_valid = false);
// The first one's kind: 1 Adreno, 2 Mali, 3 PowerVR, 4 another; -1 where none can be used.
PADDLE_LITE_API int GetOpenCLDeviceType();

// An input, output or inner value of a predictor, which must outlive it.
struct PADDLE_LITE_API Tensor {
  explicit Tensor(void* raw);
  explicit Tensor(const void* raw);

  void Resize(const shape_t& shape);
  shape_t shape() const;

  // Dense elements in the file's order. T is float, double, bool, int8_t, uint8_t, int16_t, int32_t or
  // int64_t. Null where there is no value or it is of another type (the log says so).
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(Value(PrecisionTypeTrait<T>::Type()));
  }
  template <typename T>
  T* mutable_data(TargetType type = TargetType::kHost) const {
    return static_cast<T*>(Memory(PrecisionTypeTrait<T>::Type(), type));
  }
  template <typename T, TargetType type = TargetType::kHost>
  void CopyFromCpu(const T* from) {
    T* to = mutable_data<T>(type);
    if (to) memcpy(to, from, Count() * sizeof(T));
  }
  template <typename T>
  void CopyToCpu(T* to) const {
    const T* from = data<T>();
    if (from) memcpy(to, from, Count() * sizeof(T));
  }

  // The caller's memory in place of the tensor's own: at least its bytes, kept while it is used.
  void ShareExternalMemory(void* memory, size_t memory_size, TargetType target);

  TargetType target() const;
  PrecisionType precision() const;
  void SetPrecision(PrecisionType precision);
  lod_t lod() const;
  void SetLoD(const lod_t& lod);  // Run refuses more than one sequence: files hold padded batches
  bool IsInitialized() const;

 private:
  const void* Value(PrecisionType type) const;
  void* Memory(PrecisionType type, TargetType target) const;
  size_t Count() const;

  void* raw_;
};

// One model, for one thread at a time; clones share its weights and run in threads of their own.
class PADDLE_LITE_API PaddlePredictor {
 public:
  PaddlePredictor() = default;
  virtual ~PaddlePredictor() = default;

  // Null for an index that the model does not have.
  virtual std::unique_ptr<Tensor> GetInput(int i) = 0;
  virtual std::unique_ptr<const Tensor> GetOutput(int i) const = 0;
  virtual std::unique_ptr<Tensor> GetInputByName(const std::string& name) = 0;
  // Any value of the program; an inner one is kept from the next Run on. Null without such a name.
  virtual std::unique_ptr<const Tensor> GetTensor(const std::string& name) const = 0;
  virtual std::unique_ptr<Tensor> GetMutableTensor(const std::string& name) = 0;

  virtual void Run() = 0;

  virtual std::shared_ptr<PaddlePredictor> Clone() = 0;
  virtual std::shared_ptr<PaddlePredictor> Clone(const std::vector<std::string>& var_names) = 0;

  virtual std::string GetVersion() const = 0;
  virtual std::vector<std::string> GetInputNames() = 0;
  virtual std::vector<std::string> GetOutputNames() = 0;
  virtual std::vector<std::string> GetParamNames() = 0;
  virtual bool TryShrinkMemory() = 0;  // false: memory is planned when the file is made
  virtual void SaveOptimizedModel(const std::string& model_dir,
                                  LiteModelType model_type = LiteModelType::kProtobuf,
                                  bool record_info = false) = 0;  // logs that files are not written here
};

class PADDLE_LITE_API ConfigBase {
 public:
  explicit ConfigBase(PowerMode mode = LITE_POWER_NO_BIND, int threads = 1);

  // A .lite file, or a folder with model.lite in it.
  void set_model_dir(const std::string& path) { model_dir_ = path; }
  const std::string& model_dir() const { return model_dir_; }
  void set_threads(int threads);
  int threads() const { return threads_; }
  void set_power_mode(PowerMode mode);
  PowerMode power_mode() const { return mode_; }
  void set_x86_math_num_threads(int threads) { set_threads(threads); }
  int x86_math_num_threads() const { return threads_; }

  // Compiled OpenCL kernels are kept in the folder `path`, under names of their own.
  void set_opencl_binary_path_name(const std::string& path, const std::string& name);
  const std::string& opencl_binary_path() const { return opencl_path_; }
  // Logged: variants and work-group sizes are those of the file.
  void set_opencl_tune(CLTuneMode mode = CL_TUNE_NONE, const std::string& path = "",
                       const std::string& name = "", size_t lws_repeats = 4);
  // What OpenCL computes in. fp32 makes a file without it run on the CPU or fail; fp16 is a wish.
  void set_opencl_precision(CLPrecisionType precision = CL_PRECISION_AUTO);
  CLPrecisionType opencl_precision() const { return opencl_precision_; }
  void set_device_id(int id) { device_id_ = id; }  // number of the OpenCL device
  int get_device_id() const { return device_id_; }

  // Other vendors' hardware, which this runtime does not drive: accepted with a line in the log.
  void set_subgraph_model_cache_dir(const std::string& path);
  bool check_nnadapter_device_name(const std::string& name);  // false
  void set_nnadapter_device_names(const std::vector<std::string>& names);
  void set_nnadapter_context_properties(const std::string& properties);
  void set_nnadapter_model_cache_dir(const std::string& path);
  void set_nnadapter_model_cache_buffers(const std::string& token, const std::vector<char>& buffer);
  void set_nnadapter_dynamic_shape_info(
      const std::map<std::string, std::vector<std::vector<int64_t>>>& shapes);
  void set_metal_lib_path(const std::string& path);
  void set_metal_use_mps(bool on);
  void set_metal_use_aggressive(bool on);
  void set_metal_use_memory_reuse(bool on);
  void set_metal_device(void* device);
  void add_discarded_pass(const std::string& pass);

 private:
  std::string model_dir_, opencl_path_;
  int threads_ = 1, device_id_ = -1;  // -1: the first
  PowerMode mode_ = LITE_POWER_NO_BIND;
  CLPrecisionType opencl_precision_ = CL_PRECISION_AUTO;
};

class PADDLE_LITE_API MobileConfig : public ConfigBase {
 public:
  void set_model_from_file(const std::string& path);
  // The bytes of a .lite file, which are copied.
  void set_model_from_buffer(const std::string& bytes);
  void set_model_from_buffer(std::string&& bytes);
  void set_model_from_buffer(const char* bytes, size_t size);
  // The form with weights in a buffer of their own: CreatePaddlePredictor refuses it.
  void set_model_buffer(const char* model, size_t model_size, const char* param, size_t param_size);

  const std::string& lite_model_file() const { return file_; }
  bool is_model_from_memory() const { return from_memory_; }
  bool model_from_memory() const { return from_memory_; }
  const std::string& model_buffer() const { return buffer_; }
  const std::string& param_buffer() const { return param_; }

  void set_precision_mode(PrecisionMode mode) { precision_mode_ = mode; }
  PrecisionMode precision_mode() const { return precision_mode_; }
  void SetArmL3CacheSize(L3CacheSetMethod method = L3CacheSetMethod::kDeviceL3Cache,
                         int absolute_val = -1);
  bool check_fp16_valid();  // whether this ARM CPU computes in fp16

 private:
  std::string file_, buffer_, param_;
  bool from_memory_ = false;
  PrecisionMode precision_mode_ = LITE_PRECISION_NORMAL;
};

// Null where the model cannot be run here; the log says why and how to fix it.
template <typename ConfigT>
PADDLE_LITE_API std::shared_ptr<PaddlePredictor> CreatePaddlePredictor(const ConfigT& config);
template <>
PADDLE_LITE_API std::shared_ptr<PaddlePredictor> CreatePaddlePredictor(const MobileConfig& config);

}  // namespace lite_api
}  // namespace paddle

#endif
