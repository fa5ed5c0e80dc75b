// Runs the model once: sample MODEL.lite [INPUT.raw [BACKEND]]; see sample.c.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "lite_runtime.hpp"

int main(int argc, char** argv) try {
  if (argc < 2) throw lite::Error("usage: sample MODEL.lite [INPUT.raw [BACKEND]]");
  lite::Options options;
  if (argc > 3) options.backend = argv[3];
  lite::Model model(argv[1], options);
  const lite::Tensor input = model.input(0);
  std::memset(input.data, 0, input.bytes);
  if (argc > 2) {
    std::ifstream file(argv[2], std::ios::binary);
    file.read(input.as<char>(), static_cast<std::streamsize>(input.bytes));
    if (!file || file.peek() != std::ifstream::traits_type::eof())
      throw lite::Error(std::string(argv[2]) + ": " + std::to_string(input.bytes) + " bytes are needed");
  }
  model.run();
  for (int i = 0; i < model.outputs(); ++i) {
    const lite::Tensor output = model.output(i);
    std::printf("%s:", output.name.c_str());
    const size_t count = output.dtype == 1 ? std::min<size_t>(output.count<float>(), 10) : 0;
    for (size_t k = 0; k < count; ++k) std::printf(" %.6g", output.as<float>()[k]);
    std::printf("\n");
  }
  std::fprintf(stderr, "%s\n", model.choice().c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
