#include "peer/leak/gradient_inversion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "train/model.hpp"

namespace gossamer::peer {
namespace {

constexpr double kStep = 0.2;         // the first step, as a part of the data's range
constexpr double kDifference = 1e-6;  // of the central difference, as a part of ‖θ‖
constexpr int kStarts = 3;            // some end in a local minimum
constexpr double kBeta1 = 0.9, kBeta2 = 0.999;

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

/// The steps fall to a tenth after 3/8, 5/8 and 7/8 of the iterations, as in the paper.
double step_size(int iteration, int iterations) {
  double step = kStep;
  for (const int eighths : {3, 5, 7})
    if (8 * static_cast<std::int64_t>(iteration) >= eighths * static_cast<std::int64_t>(iterations))
      step /= 10;
  return step;
}

}  // namespace

Result<GradientInversion> GradientInversion::make(const Config& config, const train::Dataset& data,
                                                  int iterations) {
  const train::ModelContext context{.channels = data.channels,
                                    .height = data.height,
                                    .width = data.width,
                                    .classes = data.classes};
  GOSSAMER_TRY(const train::ModelSpec model,
               train::make_model(config.model.kind, context, config.model.values));
  GOSSAMER_TRY(train::SampleGradients gradients,
               train::SampleGradients::make(model, context, config.shards.batch));
  return GradientInversion(std::move(gradients), data, iterations);
}

GradientInversion::GradientInversion(train::SampleGradients gradients, const train::Dataset& data,
                                     int iterations)
    : gradients_(std::move(gradients)), data_(data), iterations_(iterations) {
  const auto [lowest, highest] = std::ranges::minmax(data.features);
  lowest_ = lowest;
  highest_ = highest;
}

std::vector<std::vector<float>> GradientInversion::invert(std::span<const float> parameters,
                                                          std::span<const double> gradient,
                                                          std::span<const std::int32_t> labels,
                                                          std::uint64_t seed) {
  const std::size_t features = data_.feature_count();
  const std::vector<double> row(parameters.begin(), parameters.end());
  std::mt19937_64 random(seed);
  std::vector<float> best;
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < kStarts; ++start) {
    const double objective = search(row, gradient, labels, random);
    if (start > 0 && objective >= least) continue;
    least = objective;
    best = best_;
  }
  std::vector<std::vector<float>> found;
  for (std::size_t i = 0; i < labels.size(); ++i)
    found.emplace_back(best.begin() + static_cast<std::ptrdiff_t>(i * features),
                       best.begin() + static_cast<std::ptrdiff_t>((i + 1) * features));
  return found;
}

/// Leaves the best samples in best_, and returns their objective.
double GradientInversion::search(std::span<const double> parameters,
                                 std::span<const double> gradient,
                                 std::span<const std::int32_t> labels, std::mt19937_64& random) {
  const std::size_t values = labels.size() * data_.feature_count();
  const double range = static_cast<double>(highest_) - static_cast<double>(lowest_);
  samples_.resize(values);
  for (float& value : samples_)
    value =
        lowest_ + static_cast<float>(range * std::ldexp(static_cast<double>(random() >> 11), -53));
  std::vector<double> first(values), second(values);
  best_ = samples_;
  double least = std::numeric_limits<double>::infinity();
  double power1 = 1, power2 = 1;
  for (int k = 0; k < iterations_; ++k) {
    if (const double objective = descend(parameters, gradient, labels); objective < least) {
      least = objective;
      best_ = samples_;
    }
    const double step = range * step_size(k, iterations_);
    power1 *= kBeta1;
    power2 *= kBeta2;
    for (std::size_t i = 0; i < values; ++i) {
      const double sign = (slope_[i] > 0) - (slope_[i] < 0);
      first[i] = kBeta1 * first[i] + (1 - kBeta1) * sign;
      second[i] = kBeta2 * second[i] + (1 - kBeta2) * sign * sign;
      const double change = first[i] / (1 - power1) / (std::sqrt(second[i] / (1 - power2)) + 1e-8);
      samples_[i] = std::clamp(samples_[i] - static_cast<float>(step * change), lowest_, highest_);
    }
  }
  return least;
}

/// The objective at x, and its gradient in slope_.
double GradientInversion::descend(std::span<const double> parameters,
                                  std::span<const double> gradient,
                                  std::span<const std::int32_t> labels) {
  gradients_.compute(parameters, samples_, labels);
  const std::span<const double> here = gradients_.in_parameters();
  const double length = std::sqrt(dot(here, here)), wanted = std::sqrt(dot(gradient, gradient)),
               product = dot(here, gradient);
  slope_.assign(samples_.size(), 0.0);
  if (length == 0 || wanted == 0) return 1;

  // v: the gradient of the cosine's distance in ∇θ L.
  std::vector<double> direction(here.size());
  for (std::size_t k = 0; k < here.size(); ++k)
    direction[k] = (product / (length * length) * here[k] - gradient[k]) / (length * wanted);
  const double norm = std::sqrt(dot(direction, direction));
  if (norm > 0) {
    const double size = kDifference * (std::sqrt(dot(parameters, parameters)) + 1) / norm;
    std::vector<double> moved(parameters.size());
    for (const double sign : {1.0, -1.0}) {
      for (std::size_t k = 0; k < moved.size(); ++k)
        moved[k] = parameters[k] + sign * size * direction[k];
      gradients_.compute(moved, samples_, labels);
      const std::span<const double> in_samples = gradients_.in_samples();
      for (std::size_t i = 0; i < slope_.size(); ++i)
        slope_[i] += sign * in_samples[i] / (2 * size);
    }
  }
  return 1 - product / (length * wanted);
}

}  // namespace gossamer::peer
