// Predictors and tensors of paddle_api.h over lite_runtime.h.
#include "paddle_api.h"

#include <cstdlib>
#include <string>

#include "lite_runtime.h"
#include "paddle_log.h"

namespace paddle {
namespace lite_api {

namespace {

constexpr size_t kFileAlign = 64;  // of a file in memory: lite_file_open_bytes
constexpr int64_t kMostElements = int64_t{1} << 40;

// By the numbers of lite_tensor_info::dtype.
PrecisionType precision_of(int32_t dtype) {
  static const PrecisionType kinds[] = {
      PrecisionType::kUnk,  PrecisionType::kFloat, PrecisionType::kFP16,  PrecisionType::kUnk,
      PrecisionType::kFP64, PrecisionType::kInt8,  PrecisionType::kUInt8, PrecisionType::kInt16,
      PrecisionType::kUnk,  PrecisionType::kInt32, PrecisionType::kUnk,   PrecisionType::kInt64,
      PrecisionType::kUnk,  PrecisionType::kBool};
  return dtype >= 0 && dtype <= 13 ? kinds[dtype] : PrecisionType::kUnk;
}

const char* name_of(PrecisionType type) {
  static const char* const names[] = {"an unknown type", "float", "int8", "int32", "any type", "fp16",
                                      "bool", "int64", "int16", "uint8", "double"};
  const int i = static_cast<int>(type);
  return i >= 0 && i <= 10 ? names[i] : names[0];
}

std::string text_of(const shape_t& shape) {
  std::string text;
  for (int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "a scalar" : text;
}

// -1 for a negative size and for more elements than anybody has memory for.
int64_t count_of(const shape_t& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > kMostElements || (size && count > kMostElements / size)) return -1;
    count *= size;
  }
  return count;
}

// Of a predictor's runs.
struct State {
  int good = 0;
  bool failed = false;  // the last one
};

// What a Tensor points to. An input may be asked for in a size or type that the program does not have: it
// then lies in `other`, so that the caller writes into memory of that size, and Run says what is wrong.
struct Slot {
  lite_program* program = nullptr;
  const State* runs = nullptr;
  int since = 0;  // runs before this value was kept
  int index = -1;
  bool input = false, refused = false;
  lite_tensor_info info{};
  shape_t shape;  // asked for
  PrecisionType precision = PrecisionType::kUnk;
  lod_t lod;
  std::vector<unsigned char> other;

  void set(lite_program* of, int tensor, const State* state) {
    program = of;
    runs = state;
    index = tensor;
    lite_program_tensor(of, tensor, &info);
    input = info.role == 1;
    shape = own_shape();
    precision = own_precision();
  }
  shape_t own_shape() const { return shape_t(info.dims, info.dims + info.rank); }
  PrecisionType own_precision() const { return precision_of(info.dtype); }
  bool fits() const { return shape == own_shape() && precision == own_precision(); }
  void* own() const { return lite_program_data(program, index); }
  bool has_value() const { return input || (!runs->failed && runs->good > since); }
};

bool one_sequence(const lod_t& lod) {
  for (const auto& level : lod)
    if (level.size() > 2) return false;
  return true;
}

bool ready(const Slot& slot) {
  if (!slot.fits()) {
    LITE_LOG("input '%s': expected %s of %s, got %s of %s; another size needs `lite convert --shape`",
             slot.info.name, text_of(slot.own_shape()).c_str(), name_of(slot.own_precision()),
             text_of(slot.shape).c_str(), name_of(slot.precision));
    return false;
  }
  if (!one_sequence(slot.lod)) {
    LITE_LOG("input '%s': more than one sequence; pad them to one size", slot.info.name);
    return false;
  }
  if (slot.refused) LITE_LOG("input '%s' has no memory since ShareExternalMemory failed", slot.info.name);
  return !slot.refused;
}

// An open file, which clones share.
struct Source {
  lite_file* file = nullptr;
  void* bytes = nullptr;

  ~Source() {
    lite_file_close(file);
    free(bytes);
  }
};

std::string path_of(const MobileConfig& config) {
  if (!config.lite_model_file().empty()) return config.lite_model_file();
  const std::string& path = config.model_dir();
  FILE* inside = fopen((path + "/model.lite").c_str(), "rb");
  if (!inside) return path;
  fclose(inside);
  return path + "/model.lite";
}

bool open_source(const MobileConfig& config, Source* source, char* error, size_t size) {
  if (!config.is_model_from_memory()) {
    const std::string path = path_of(config);
    if (path.empty()) snprintf(error, size, "the config has no model; call set_model_from_file");
    else source->file = lite_file_open(path.c_str(), error, size);
    return source->file != nullptr;
  }
  if (!config.param_buffer().empty()) {
    snprintf(error, size, "set_model_buffer: expected one buffer with a whole .lite file");
    return false;
  }
  const std::string& from = config.model_buffer();
  if (posix_memalign(&source->bytes, kFileAlign, from.size() + 1)) {
    source->bytes = nullptr;
    snprintf(error, size, "out of memory");
    return false;
  }
  memcpy(source->bytes, from.data(), from.size());
  source->file = lite_file_open_bytes(source->bytes, from.size(), error, size);
  return source->file != nullptr;
}

// Null after writing `error`.
lite_program* open_program(const ConfigBase& config, lite_file* file, char* error, size_t size) {
  const std::string device = std::to_string(config.get_device_id());
  lite_options options{};
  options.threads = config.threads();
  options.pin = config.power_mode() == LITE_POWER_HIGH;
  if (config.get_device_id() >= 0) options.device = device.c_str();
  if (!config.opencl_binary_path().empty()) options.cache_dir = config.opencl_binary_path().c_str();
  if (config.opencl_precision() == CL_PRECISION_FP32) options.precision = "fp32";
  if (config.opencl_precision() == CL_PRECISION_FP16) {
    options.precision = "fp16";
    lite_program* program = lite_file_program(file, nullptr, &options, error, size);
    if (program) return program;
    LITE_LOG("CL_PRECISION_FP16: %s; the file's own precision is used", error);
    options.precision = nullptr;
  }
  return lite_file_program(file, nullptr, &options, error, size);
}

std::unique_ptr<Tensor> tensor_of(Slot* slot) {
  return std::unique_ptr<Tensor>(new Tensor(static_cast<void*>(slot)));
}

class Predictor : public PaddlePredictor {
 public:
  // Null when the program cannot be loaded, with a line in the log.
  static std::shared_ptr<PaddlePredictor> make(const ConfigBase& config,
                                               const std::shared_ptr<Source>& source) {
    char error[512] = "";
    lite_program* program = open_program(config, source->file, error, sizeof error);
    if (!program) {
      LITE_LOG("%s", error);
      return nullptr;
    }
    return std::make_shared<Predictor>(config, source, program);
  }

  Predictor(const ConfigBase& config, const std::shared_ptr<Source>& source, lite_program* program)
      : config_(config), source_(source), program_(program) {
    inputs_.resize(static_cast<size_t>(lite_program_num_inputs(program)));
    outputs_.resize(static_cast<size_t>(lite_program_num_outputs(program)));
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs_[i].set(program, lite_program_input(program, static_cast<int>(i)), &runs_);
    for (size_t i = 0; i < outputs_.size(); ++i)
      outputs_[i].set(program, lite_program_output(program, static_cast<int>(i)), &runs_);
    LITE_LOG("runs on %s", lite_program_choice(program));
  }
  ~Predictor() override { lite_program_free(program_); }
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  std::unique_ptr<Tensor> GetInput(int i) override { return at(inputs_, i, "input"); }
  std::unique_ptr<const Tensor> GetOutput(int i) const override { return at(outputs_, i, "output"); }
  std::unique_ptr<Tensor> GetInputByName(const std::string& name) override {
    for (Slot& slot : inputs_)
      if (name == slot.info.name) return tensor_of(&slot);
    LITE_LOG("no input is called '%s'", name.c_str());
    return nullptr;
  }
  std::unique_ptr<const Tensor> GetTensor(const std::string& name) const override { return find(name); }
  std::unique_ptr<Tensor> GetMutableTensor(const std::string& name) override { return find(name); }

  void Run() override {
    bool good = true;
    for (const Slot& slot : inputs_) good = ready(slot) && good;
    char error[512] = "";
    if (good && lite_program_run(program_, error, sizeof error)) {
      LITE_LOG("%s", error);
      good = false;
    }
    runs_.failed = !good;
    runs_.good += good;
    const char* warning = lite_program_warning(program_);
    if (warning && !warned_) LITE_LOG("%s", warning);
    warned_ = warned_ || warning;
  }

  std::shared_ptr<PaddlePredictor> Clone() override { return make(config_, source_); }
  std::shared_ptr<PaddlePredictor> Clone(const std::vector<std::string>&) override { return Clone(); }

  std::string GetVersion() const override { return lite_version(); }
  std::vector<std::string> GetInputNames() override { return names(inputs_); }
  std::vector<std::string> GetOutputNames() override { return names(outputs_); }
  std::vector<std::string> GetParamNames() override {
    std::vector<std::string> out;
    lite_tensor_info info;
    for (int i = 0; i < lite_program_num_tensors(program_); ++i)
      if (lite_program_tensor(program_, i, &info) == 0 && info.role == 3) out.push_back(info.name);
    return out;
  }
  bool TryShrinkMemory() override { return false; }
  void SaveOptimizedModel(const std::string& path, LiteModelType, bool) override {
    LITE_LOG("%s: models are not written on the device; use `lite convert`", path.c_str());
  }

 private:
  static std::unique_ptr<Tensor> at(std::vector<Slot>& slots, int i, const char* what) {
    if (i >= 0 && static_cast<size_t>(i) < slots.size())
      return tensor_of(&slots[static_cast<size_t>(i)]);
    LITE_LOG("%s %d: the model has %zu", what, i, slots.size());
    return nullptr;
  }
  static std::vector<std::string> names(const std::vector<Slot>& slots) {
    std::vector<std::string> out;
    for (const Slot& slot : slots) out.push_back(slot.info.name);
    return out;
  }
  std::unique_ptr<Tensor> find(const std::string& name) const {
    const int tensor = lite_program_find(program_, name.c_str());
    for (auto* slots : {&inputs_, &outputs_})
      for (Slot& slot : *slots)
        if (slot.index == tensor) return tensor_of(&slot);
    char error[512] = "there is no such value, or the converter fused it into another";
    if (tensor < 0 || lite_program_tap(program_, tensor, 1, error, sizeof error)) {
      LITE_LOG("'%s': %s", name.c_str(), error);
      return nullptr;
    }
    auto& slot = taps_[name];
    if (!slot) {
      slot.reset(new Slot);
      slot->set(program_, tensor, &runs_);
      slot->since = runs_.good;
    }
    return tensor_of(slot.get());
  }

  ConfigBase config_;
  std::shared_ptr<Source> source_;
  lite_program* program_;
  State runs_;
  bool warned_ = false;
  mutable std::vector<Slot> inputs_, outputs_;
  mutable std::map<std::string, std::unique_ptr<Slot>> taps_;
};

Slot& slot_of(void* raw) { return *static_cast<Slot*>(raw); }

}  // namespace

Tensor::Tensor(void* raw) : raw_(raw) {}
Tensor::Tensor(const void* raw) : raw_(const_cast<void*>(raw)) {}

void Tensor::Resize(const shape_t& shape) {
  Slot& slot = slot_of(raw_);
  if (count_of(shape) < 0 || !slot.input)
    LITE_LOG("'%s' cannot be resized to %s", slot.info.name, text_of(shape).c_str());
  else
    slot.shape = shape;
}

shape_t Tensor::shape() const {
  const Slot& slot = slot_of(raw_);
  return !slot.input && slot.runs->failed ? shape_t(slot.shape.size(), 0) : slot.shape;
}

size_t Tensor::Count() const { return static_cast<size_t>(count_of(shape())); }

const void* Tensor::Value(PrecisionType type) const {
  const Slot& slot = slot_of(raw_);
  if (!slot.has_value()) {
    LITE_LOG("'%s' has no value: %s", slot.info.name,
             slot.runs->failed ? "the last Run failed" : "call Run first");
    return nullptr;
  }
  if (type != slot.precision) {
    LITE_LOG("'%s' holds %s, data<%s>() was called", slot.info.name, name_of(slot.precision), name_of(type));
    return nullptr;
  }
  return slot.fits() ? slot.own() : slot.other.data();
}

void* Tensor::Memory(PrecisionType type, TargetType target) const {
  Slot& slot = slot_of(raw_);
  if (!slot.input) return const_cast<void*>(Value(type));
  if (!PrecisionTypeLength(type)) {
    LITE_LOG("'%s': mutable_data takes float, double, bool and integers", slot.info.name);
    return nullptr;
  }
  if (target == TargetType::kOpenCL || target == TargetType::kMetal)
    LITE_LOG("'%s': the memory is the CPU's; the runtime brings it to the device", slot.info.name);
  slot.precision = type;
  slot.refused = false;
  if (slot.fits()) return slot.own();
  slot.other.resize(static_cast<size_t>(count_of(slot.shape)) * PrecisionTypeLength(type));
  return slot.other.data();
}

void Tensor::ShareExternalMemory(void* memory, size_t memory_size, TargetType) {
  Slot& slot = slot_of(raw_);
  const bool port = slot.input || slot.info.role == 2;
  slot.refused = !port || !slot.fits() || memory_size < slot.info.bytes ||
                 lite_program_bind(slot.program, slot.index, memory, slot.info.bytes);
  if (slot.refused)
    LITE_LOG("ShareExternalMemory: '%s' takes %zu aligned bytes for %s of %s, got %zu", slot.info.name,
             slot.info.bytes, text_of(slot.own_shape()).c_str(), name_of(slot.own_precision()), memory_size);
}

TargetType Tensor::target() const { return TargetType::kHost; }
PrecisionType Tensor::precision() const { return slot_of(raw_).precision; }
void Tensor::SetPrecision(PrecisionType precision) {
  Slot& slot = slot_of(raw_);
  if (slot.input) slot.precision = precision;
}
lod_t Tensor::lod() const { return slot_of(raw_).lod; }
void Tensor::SetLoD(const lod_t& lod) { slot_of(raw_).lod = lod; }
bool Tensor::IsInitialized() const { return slot_of(raw_).has_value(); }

template <>
std::shared_ptr<PaddlePredictor> CreatePaddlePredictor(const MobileConfig& config) {
  auto source = std::make_shared<Source>();
  char error[512] = "";
  if (open_source(config, source.get(), error, sizeof error)) return Predictor::make(config, source);
  LITE_LOG("%s", error);
  return nullptr;
}

}  // namespace lite_api
}  // namespace paddle
