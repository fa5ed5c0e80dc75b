// The enumerations of Paddle-Lite's paddle_place.h: names and numbers are that interface's.
#pragma once

#include <cstddef>
#include <cstdint>

#define PADDLE_LITE_API __attribute__((visibility("default")))

namespace paddle {
namespace lite_api {

enum class TargetType : int {
  kUnk, kHost, kX86, kCUDA, kARM, kOpenCL, kAny, kFPGA, kNPU, kXPU, kBM, kMLU, kRKNPU, kAPU,
  kHuaweiAscendNPU, kImaginationNNA, kIntelFPGA, kMetal, kNNAdapter, NUM
};

enum class PrecisionType : int {
  kUnk, kFloat, kInt8, kInt32, kAny, kFP16, kBool, kInt64, kInt16, kUInt8, kFP64, NUM
};

enum class DataLayoutType : int {
  kUnk, kNCHW, kAny, kNHWC, kImageDefault, kImageFolder, kImageNW, kMetalTexture2DArray,
  kMetalTexture2D, NUM
};

// Which cores run: LITE_POWER_HIGH pins each thread to one of the fastest ones, LITE_POWER_FULL and
// LITE_POWER_NO_BIND leave it to the system. The other three do so as well, with a line in the log.
enum PowerMode {
  LITE_POWER_HIGH,
  LITE_POWER_LOW,
  LITE_POWER_FULL,
  LITE_POWER_NO_BIND,
  LITE_POWER_RAND_HIGH,
  LITE_POWER_RAND_LOW
};

enum CLTuneMode { CL_TUNE_NONE, CL_TUNE_RAPID, CL_TUNE_NORMAL, CL_TUNE_EXHAUSTIVE };

enum CLPrecisionType { CL_PRECISION_AUTO, CL_PRECISION_FP32, CL_PRECISION_FP16 };

// Bytes of an element; 0 for kUnk, kAny and NUM.
inline size_t PrecisionTypeLength(PrecisionType type) {
  switch (type) {
    case PrecisionType::kInt8:
    case PrecisionType::kUInt8:
    case PrecisionType::kBool:
      return 1;
    case PrecisionType::kInt16:
    case PrecisionType::kFP16:
      return 2;
    case PrecisionType::kFloat:
    case PrecisionType::kInt32:
      return 4;
    case PrecisionType::kInt64:
    case PrecisionType::kFP64:
      return 8;
    default:
      return 0;
  }
}

// The precision of a C++ type.
template <typename T>
struct PrecisionTypeTrait {
  static constexpr PrecisionType Type() { return PrecisionType::kUnk; }
};
#define LITE_PRECISION_OF(type, precision)                                        \
  template <>                                                                     \
  struct PrecisionTypeTrait<type> {                                               \
    static constexpr PrecisionType Type() { return PrecisionType::precision; }    \
  }
LITE_PRECISION_OF(float, kFloat);
LITE_PRECISION_OF(double, kFP64);
LITE_PRECISION_OF(bool, kBool);
LITE_PRECISION_OF(int8_t, kInt8);
LITE_PRECISION_OF(uint8_t, kUInt8);
LITE_PRECISION_OF(int16_t, kInt16);
LITE_PRECISION_OF(int32_t, kInt32);
LITE_PRECISION_OF(int64_t, kInt64);
#undef LITE_PRECISION_OF

#define TARGET(item) paddle::lite_api::TargetType::item
#define PRECISION(item) paddle::lite_api::PrecisionType::item
#define DATALAYOUT(item) paddle::lite_api::DataLayoutType::item

// Where a kernel runs, in what, and how its values lie.
struct Place {
  TargetType target = TargetType::kUnk;
  PrecisionType precision = PrecisionType::kUnk;
  DataLayoutType layout = DataLayoutType::kUnk;
  int16_t device = 0;

  Place() = default;
  Place(TargetType where, PrecisionType what = PrecisionType::kFloat,
        DataLayoutType how = DataLayoutType::kNCHW, int16_t number = 0)
      : target(where), precision(what), layout(how), device(number) {}

  bool is_valid() const {
    return target != TargetType::kUnk && precision != PrecisionType::kUnk &&
           layout != DataLayoutType::kUnk;
  }
  bool operator==(const Place& other) const {
    return target == other.target && precision == other.precision && layout == other.layout &&
           device == other.device;
  }
  bool operator!=(const Place& other) const { return !(*this == other); }
};

}  // namespace lite_api
}  // namespace paddle
