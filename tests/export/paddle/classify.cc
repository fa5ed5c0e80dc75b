// Written from the native part of Paddle-Lite's image classification demo: the model from a buffer, a class
// that prepares bytes of an image (height × width × 3), runs, and sorts the scores.
// classify MODEL IMAGE.raw WIDTH HEIGHT POWER_MODE
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "paddle_api.h"

struct Result {
  int class_id;
  float score;
};

static paddle::lite_api::PowerMode power_mode_of(const std::string& mode) {
  if (mode == "LITE_POWER_HIGH") return paddle::lite_api::LITE_POWER_HIGH;
  if (mode == "LITE_POWER_LOW") return paddle::lite_api::LITE_POWER_LOW;
  if (mode == "LITE_POWER_FULL") return paddle::lite_api::LITE_POWER_FULL;
  if (mode == "LITE_POWER_RAND_HIGH") return paddle::lite_api::LITE_POWER_RAND_HIGH;
  if (mode == "LITE_POWER_RAND_LOW") return paddle::lite_api::LITE_POWER_RAND_LOW;
  return paddle::lite_api::LITE_POWER_NO_BIND;
}

class Classifier {
 public:
  Classifier(const std::string& model, int threads, const std::string& mode) {
    paddle::lite_api::MobileConfig config;
    config.set_model_from_buffer(model);
    config.set_threads(threads);
    config.set_power_mode(power_mode_of(mode));
    predictor_ = paddle::lite_api::CreatePaddlePredictor<paddle::lite_api::MobileConfig>(config);
  }

  std::vector<Result> predict(const std::vector<unsigned char>& pixels, int width, int height) {
    auto input = predictor_->GetInputByName(predictor_->GetInputNames()[0]);
    input->Resize({1, 3, height, width});
    float* to = input->mutable_data<float>();
    const size_t plane = static_cast<size_t>(width) * height;
    for (size_t c = 0; c < 3; ++c)
      for (size_t i = 0; i < plane; ++i) to[c * plane + i] = pixels[i * 3 + c] / 255.f;
    predictor_->Run();
    auto output = predictor_->GetOutput(0);
    const auto shape = output->shape();
    std::vector<float> scores(static_cast<size_t>(shape[shape.size() - 1]));
    output->CopyToCpu(scores.data());
    std::vector<Result> results;
    for (size_t i = 0; i < scores.size(); ++i) results.push_back({static_cast<int>(i), scores[i]});
    std::sort(results.begin(), results.end(),
              [](const Result& a, const Result& b) { return a.score > b.score; });
    return results;
  }

 private:
  std::shared_ptr<paddle::lite_api::PaddlePredictor> predictor_;
};

template <typename T>
static T file_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return T(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  Classifier classifier(file_of<std::string>(argv[1]), 2, argv[5]);
  const auto pixels = file_of<std::vector<unsigned char>>(argv[2]);
  for (const Result& r : classifier.predict(pixels, std::stoi(argv[3]), std::stoi(argv[4])))
    std::printf("%d %.7g\n", r.class_id, r.score);
  return 0;
}
