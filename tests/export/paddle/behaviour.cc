// What the interface promises beside answers: behaviour MODEL. Prints one line for each promise that is broken.
#include <cstdio>
#include <thread>
#include <vector>

#include "paddle_api.h"

using namespace paddle::lite_api;  // NOLINT

static int broken = 0;
#define PROMISE(what)                                  \
  do {                                                 \
    if (!(what)) std::printf("%s\n", #what), ++broken; \
  } while (0)

static std::vector<float> answer(PaddlePredictor* of, float value) {
  auto input = of->GetInput(0);
  const std::vector<float> values(3 * 20 * 20, value);
  input->CopyFromCpu<float, TargetType::kARM>(values.data());
  of->Run();
  const auto output = of->GetOutput(0);
  std::vector<float> scores(static_cast<size_t>(output->shape()[1]));
  output->CopyToCpu(scores.data());
  return scores;
}

int main(int, char** argv) {
  MobileConfig config;
  config.set_model_dir(argv[1]);
  config.set_threads(0);
  PROMISE(config.threads() == 1);
  config.set_nnadapter_device_names({"npu"});
  PROMISE(!config.check_nnadapter_device_name("npu"));
  PROMISE(MobileConfig().power_mode() == LITE_POWER_NO_BIND);
  auto predictor = CreatePaddlePredictor(config);
  if (!predictor) return 1;
  PROMISE(predictor->GetInputNames() == std::vector<std::string>{"x"});
  PROMISE(!predictor->GetInput(1) && !predictor->GetOutput(-1) && !predictor->GetInputByName("no"));
  PROMISE(!predictor->GetTensor("no") && !predictor->TryShrinkMemory());

  auto input = predictor->GetInput(0);
  const shape_t own = input->shape();
  PROMISE(own == (shape_t{1, 3, 20, 20}) && input->precision() == PRECISION(kFloat));
  auto output = predictor->GetOutput(0);
  PROMISE(!output->IsInitialized() && !output->data<float>());
  const auto first = answer(predictor.get(), 1), other = answer(predictor.get(), -1);
  PROMISE(first != other && output->IsInitialized());
  PROMISE(output->data<float>() && !output->data<int64_t>());

  // Another size or type: the memory is there, Run refuses, and the outputs are empty.
  input->Resize({1, 3, 64, 64});
  float* wide = input->mutable_data<float>();
  for (int i = 0; i < 3 * 64 * 64; ++i) wide[i] = 1;
  predictor->Run();
  PROMISE(!output->data<float>() && output->shape() == (shape_t{0, 0}));
  input->Resize({1, -3});
  input->Resize({int64_t{1} << 40, int64_t{1} << 40});
  PROMISE(input->shape() == (shape_t{1, 3, 64, 64}));
  input->Resize(own);
  input->mutable_data<int64_t>()[3 * 20 * 20 - 1] = 1;
  predictor->Run();
  PROMISE(!output->data<float>());
  PROMISE(answer(predictor.get(), 1) == first);

  input->SetLoD({{0, 1}});
  PROMISE(answer(predictor.get(), 1) == first && input->lod() == (lod_t{{0, 1}}));
  input->SetLoD({{0, 1, 2}});
  predictor->Run();
  PROMISE(!output->IsInitialized());
  input->SetLoD({});

  std::vector<float> mine(3 * 20 * 20, -1);
  input->ShareExternalMemory(mine.data(), mine.size() * sizeof(float), TARGET(kHost));
  predictor->Run();
  PROMISE(output->data<float>()[0] == other[0]);
  input->ShareExternalMemory(mine.data(), 8, TARGET(kHost));
  predictor->Run();
  PROMISE(!output->data<float>());

  // Clones run at the same time, each with an input of its own.
  auto clone = predictor->Clone();
  std::vector<float> there;
  std::thread thread([&] { there = answer(clone.get(), -1); });
  const auto here = answer(predictor.get(), 1);
  thread.join();
  PROMISE(here == first && there == other);
  predictor.reset();
  PROMISE(answer(clone.get(), 1) == first);

  // An inner value from the next run on.
  std::string inner = argv[2];
  auto tapped = clone->GetTensor(inner);
  PROMISE(tapped && !tapped->data<float>());
  clone->Run();
  PROMISE(tapped && tapped->data<float>());

  MobileConfig buffer;
  buffer.set_model_buffer("abc", 3, "d", 1);
  PROMISE(buffer.is_model_from_memory() && !CreatePaddlePredictor(buffer));
  buffer.set_model_from_buffer("not a model", 11);
  PROMISE(!CreatePaddlePredictor(buffer) && !CreatePaddlePredictor(MobileConfig()));
  PROMISE(GetOpenCLDeviceType() == -1 || IsOpenCLBackendValid());
  return broken;
}
