// Written from the usage of Paddle-Lite's mobilenetv1_light_api: mobilenet MODEL SHAPE REPEATS POWER THREADS
// [OPENCL_FOLDER]. Fills the first input with ones, prints every output.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "paddle_api.h"
#include "paddle_use_kernels.h"
#include "paddle_use_ops.h"

using namespace paddle::lite_api;  // NOLINT

static int64_t product(const shape_t& shape) {
  int64_t n = 1;
  for (auto size : shape) n *= size;
  return n;
}

static shape_t parsed(const std::string& text) {
  shape_t shape;
  std::stringstream words(text);
  for (std::string word; std::getline(words, word, ',');) shape.push_back(std::atoll(word.c_str()));
  return shape;
}

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  MobileConfig config;
  config.set_model_from_file(argv[1]);
  config.set_power_mode(static_cast<paddle::lite_api::PowerMode>(std::atoi(argv[4])));
  config.set_threads(std::atoi(argv[5]));
  if (argc > 6) {
    const bool valid = ::IsOpenCLBackendValid(/*check_fp16_valid = false*/ false);
    std::cout << "opencl: " << (valid ? "yes" : "no") << std::endl;
    if (valid) {
      config.set_opencl_binary_path_name(argv[6], "kernels.bin");
      config.set_opencl_tune(CL_TUNE_NORMAL, argv[6], "tuned.params", 4);
      config.set_opencl_precision(CL_PRECISION_FP16);
    }
  }
  std::shared_ptr<PaddlePredictor> predictor = CreatePaddlePredictor<MobileConfig>(config);
  if (predictor == nullptr) return 1;
  std::cout << "version " << predictor->GetVersion() << std::endl;

  std::unique_ptr<Tensor> input(std::move(predictor->GetInput(0)));
  input->Resize(parsed(argv[2]));
  auto* data = input->mutable_data<float>();
  for (int64_t i = 0; i < product(input->shape()); ++i) data[i] = 1;
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    const auto start = std::chrono::steady_clock::now();
    predictor->Run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "run %d: %.3f ms\n", i, took.count());
  }
  for (size_t i = 0; i < predictor->GetOutputNames().size(); ++i) {
    std::unique_ptr<const Tensor> output(std::move(predictor->GetOutput(static_cast<int>(i))));
    std::printf("output %s of %zu dims:", predictor->GetOutputNames()[i].c_str(), output->shape().size());
    const float* values = output->data<float>();
    for (int64_t k = 0; k < product(output->shape()); ++k) std::printf(" %.7g", values[k]);
    std::printf("\n");
  }
  return 0;
}
