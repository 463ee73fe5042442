// The gradient of a loss in the samples: held to differences of the loss.
#include "train/graph/sample_gradients.hpp"

#include <cmath>

#include <doctest/doctest.h>
#include "train/model.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

SampleGradients gradients_of(const std::string& kind, const ModelContext& data, int batch,
                             const ParameterValues& values = {}) {
  auto model = make_model(kind, data, values);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto made = SampleGradients::make(*model, data, batch);
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  return std::move(*made);
}

std::vector<double> some_parameters(std::size_t count) {
  std::vector<double> parameters(count);
  for (std::size_t k = 0; k < count; ++k)
    parameters[k] = 0.3 * std::sin(1.0 + 1.7 * static_cast<double>(k));
  return parameters;
}

/// 1/16 steps: sums and differences of them are exact in float.
std::vector<float> some_samples(std::size_t count) {
  std::vector<float> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i] = static_cast<float>((7 * i + 3) % 16) / 16.0F;
  return samples;
}

}  // namespace

TEST_CASE("the gradient in the samples is the slope of the loss, for every model and channel") {
  const ModelContext data{.channels = 2, .height = 4, .width = 4, .classes = 3};
  constexpr int kBatch = 3;
  const std::vector<std::int32_t> labels{2, 0, 1};
  for (const char* kind : {"softmax", "mlp", "cnn"}) {
    CAPTURE(kind);
    SampleGradients gradients = gradients_of(kind, data, kBatch);
    const std::vector<double> parameters = some_parameters(gradients.parameters());
    std::vector<float> samples = some_samples(kBatch * 32);
    gradients.compute(parameters, samples, labels);
    const std::vector<double> found(gradients.in_samples().begin(), gradients.in_samples().end());
    REQUIRE(found.size() == samples.size());
    constexpr float kStep = 1.0F / 4096;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const float before = samples[i];
      samples[i] = before + kStep;
      gradients.compute(parameters, samples, labels);
      const double above = gradients.loss();
      samples[i] = before - kStep;
      gradients.compute(parameters, samples, labels);
      const double slope = (above - gradients.loss()) / (2 * static_cast<double>(kStep));
      samples[i] = before;
      CHECK(found[i] == doctest::Approx(slope).epsilon(1e-3).scale(0.01));
    }
  }
}

TEST_CASE("the gradient in the parameters is that of training") {
  const ModelContext data{.channels = 1, .height = 4, .width = 4, .classes = 3};
  SampleGradients gradients = gradients_of("mlp", data, 2);
  std::vector<double> parameters = some_parameters(gradients.parameters());
  const std::vector<float> samples = some_samples(32);
  const std::vector<std::int32_t> labels{1, 2};
  gradients.compute(parameters, samples, labels);
  const std::vector<double> found(gradients.in_parameters().begin(),
                                  gradients.in_parameters().end());
  for (std::size_t k = 0; k < parameters.size(); k += 7) {
    const double before = parameters[k];
    parameters[k] = before + 1e-6;
    gradients.compute(parameters, samples, labels);
    const double above = gradients.loss();
    parameters[k] = before - 1e-6;
    gradients.compute(parameters, samples, labels);
    CHECK(found[k] == doctest::Approx((above - gradients.loss()) / 2e-6).epsilon(1e-4).scale(0.01));
    parameters[k] = before;
  }
}

TEST_CASE("a regression has no classes to invert by") {
  const ModelContext data{.channels = 1, .height = 1, .width = 4, .classes = 0};
  const auto model = make_model("linear", data, {});
  REQUIRE(model.ok());
  const auto made = SampleGradients::make(*model, data, 1);
  REQUIRE(!made.ok());
  CHECK(made.error().message.find("it regresses on a target") != std::string::npos);
}
