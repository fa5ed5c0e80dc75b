// Runs the model once: sample MODEL.lite [INPUT.raw [BACKEND]]; see sample.c.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "lite_runtime.hpp"

template <typename T>
static void print(const lite::Tensor& tensor) {
  const size_t count = std::min<size_t>(tensor.count<T>(), 10);
  for (size_t k = 0; k < count; ++k) std::cout << ' ' << +tensor.as<T>()[k];  // +: bytes are numbers
}

static void print_values(const lite::Tensor& tensor) {
  switch (tensor.dtype) {
    case 1: return print<float>(tensor);
    case 4: return print<double>(tensor);
    case 5: return print<int8_t>(tensor);
    case 7: return print<int16_t>(tensor);
    case 2:  // the bits of fp16
    case 3:  // and of bf16
    case 8: return print<uint16_t>(tensor);
    case 9: return print<int32_t>(tensor);
    case 10: return print<uint32_t>(tensor);
    case 11: return print<int64_t>(tensor);
    case 12: return print<uint64_t>(tensor);
    default: return print<uint8_t>(tensor);  // 6 u8, 13 bool
  }
}

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) throw lite::Error("usage: sample MODEL.lite [INPUT.raw [BACKEND]]");
  lite::Options options;
  if (argc > 3) options.backend = argv[3];
  lite::Model model(argv[1], options);
  const lite::Tensor input = model.input(0);
  std::memset(input.data, 0, input.bytes);
  if (argc > 2) {
    std::ifstream file(argv[2], std::ios::binary);
    file.read(input.as<char>(), static_cast<std::streamsize>(input.bytes));
    if (!file.is_open() || file.bad()) throw lite::Error(std::string(argv[2]) + " cannot be read");
    if (!file || file.peek() != std::ifstream::traits_type::eof())
      throw lite::Error(std::string(argv[2]) + ": " + std::to_string(input.bytes) + " bytes are needed");
  }
  model.run();
  for (int i = 0; i < model.outputs(); ++i) {
    const lite::Tensor output = model.output(i);
    std::cout << output.name << ':';
    print_values(output);
    std::cout << '\n';
  }
  std::fprintf(stderr, "%s\n", model.choice().c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
