// Private gradients against the formula, computed sample by sample; what one sample can change; and
// noise that nobody can repeat.
#include "train/privacy/private_gradient.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/train/compiled_model_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr int kSamples = 200;
constexpr double kClip = 1.6;

PrivacyOptions options(const std::string& noise, double multiplier) {
  return {.clip = kClip, .noise_multiplier = multiplier, .noise = noise};
}

/// A small network on `kSamples` samples, its parameters, and a private gradient of it.
struct PrivateBench {
  Bench bench{chain({Dense{.units = 5, .activation = Activation::tanh}, Dense{.units = 3}},
                    Loss::softmax_cross_entropy),
              ModelContext{1, 2, 3, 3}, kSamples};
  gpu::BasicCpuDevice<double> device{2};
  std::vector<double> x = bench.parameters<double>();

  /// The gradient of one sample by itself.
  std::vector<double> of_sample(std::uint32_t sample) {
    std::vector<double> gradient(x.size());
    double loss = 0;
    const gpu::Job<double> job{.parameters = x.data(),
                               .gradient = gradient.data(),
                               .samples = &sample,
                               .batch = 1,
                               .loss = &loss};
    device.train(bench.task(), gpu::Pass::gradient, std::span(&job, 1));
    return gradient;
  }
  std::vector<double> clipped(std::uint32_t sample) {
    std::vector<double> gradient = of_sample(sample);
    const double norm =
        std::sqrt(std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0));
    for (double& value : gradient) value *= std::min(1.0, kClip / norm);
    return gradient;
  }

  std::vector<double> gradient(const PrivacyOptions& privacy, double batch,
                               std::span<const std::uint32_t> shard, std::uint64_t step = 0,
                               double* loss = nullptr) {
    std::vector<double> out(x.size());
    double sum = 0;
    PrivateGradient<double>(privacy, {}, kTestSeed, device, x.size())
        .compute(bench.task(), {.peer = 4,
                                .step = step,
                                .shard = shard,
                                .batch = batch,
                                .parameters = x.data(),
                                .gradient = out.data(),
                                .loss = loss != nullptr ? loss : &sum});
    return out;
  }
};

}  // namespace

TEST_CASE("a private gradient is the sum of clipped gradients with noise, over the batch size") {
  PrivateBench at;
  const std::vector<std::uint32_t> shard(at.bench.table.all.begin() + 10, at.bench.table.all.end());
  const double batch = 150, multiplier = 1.3;
  double loss = 0;
  const auto gradient = at.gradient(options("reproducible", multiplier), batch, shard, 6, &loss);

  RandomStream drawn(kTestSeed, 4, Purpose::private_batch, 6);
  RandomStream noise(kTestSeed, 4, Purpose::private_noise, 6);
  std::vector<double> expected(at.x.size());
  double losses = 0;
  int longer = 0, shorter = 0;
  for (const std::uint32_t sample : shard) {
    if (drawn.next_double() >= batch / static_cast<double>(shard.size())) continue;
    const auto whole = at.of_sample(sample), clipped = at.clipped(sample);
    (whole == clipped ? shorter : longer) += 1;
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += clipped[k];
    double one = 0;
    const gpu::Job<double> job{
        .parameters = at.x.data(), .samples = &sample, .batch = 1, .loss = &one};
    at.device.train(at.bench.task(), gpu::Pass::evaluate, std::span(&job, 1));
    losses += one;
  }
  CHECK(longer > 20);
  CHECK(shorter > 20);
  for (std::size_t k = 0; k < expected.size(); k += 2) {
    const double radius = std::sqrt(-2 * std::log1p(-noise.next_double()));
    const double angle = 2 * M_PI * noise.next_double();
    expected[k] += multiplier * kClip * radius * std::cos(angle);
    if (k + 1 < expected.size()) expected[k + 1] += multiplier * kClip * radius * std::sin(angle);
  }
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(gradient[k] == doctest::Approx(expected[k] / batch).epsilon(1e-10));
  CHECK(loss == doctest::Approx(losses / batch).epsilon(1e-12));
}

TEST_CASE("one sample more changes the sum by the clip at most, whatever the sample is") {
  PrivateBench at;
  for (float& feature : at.bench.table.features) feature *= 1000;  // gradients of any length
  const std::span<const std::uint32_t> all(at.bench.table.all);
  const auto privacy = options("reproducible", 0.05);
  for (std::size_t size = 90; size < 100; ++size) {
    const double batch = static_cast<double>(size);  // q = 1
    const auto without = at.gradient(privacy, batch, all.first(size)),
               with = at.gradient(privacy, batch + 1, all.first(size + 1));
    double square = 0;
    for (std::size_t k = 0; k < without.size(); ++k)
      square += std::pow(with[k] * (batch + 1) - without[k] * batch, 2);
    CHECK(std::sqrt(square) <= kClip * (1 + 1e-9));
    CHECK(square > 0);
  }
}

TEST_CASE("a gradient that is not finite is left out: neither the sum nor the loss tells of it") {
  PrivateBench at;
  const std::span<const std::uint32_t> all(at.bench.table.all);
  const auto privacy = options("reproducible", 0.05);
  double loss = 0, loss_without = 0;
  const auto without = at.gradient(privacy, 99, all.first(99), 0, &loss_without);
  for (const float evil :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::fill_n(at.bench.table.features.begin() + 99 * 6, 6, evil);
    loss = 0;
    const auto with = at.gradient(privacy, 100, all.first(100), 0, &loss);
    for (std::size_t k = 0; k < with.size(); ++k)
      CHECK(with[k] * 100 == doctest::Approx(without[k] * 99).epsilon(1e-12));
    CHECK(loss * 100 == doctest::Approx(loss_without * 99).epsilon(1e-12));
  }
}

TEST_CASE("secret noise and secret batches differ each time, and have the declared deviation") {
  PrivateBench at;
  const std::span<const std::uint32_t> all(at.bench.table.all);
  const auto whole = [&] { return at.gradient(options("secret", 2), kSamples, all); };
  const auto first = whole(), second = whole();
  CHECK(first != second);
  double square = 0;
  int count = 0;
  for (int repeat = 0; repeat < 40; ++repeat) {
    const auto a = whole(), b = whole();
    for (std::size_t k = 0; k < a.size(); ++k)
      square += std::pow((a[k] - b[k]) * kSamples, 2) / 2, ++count;
  }
  // 2,000 squares of normals: the mean is within 15 % but for a chance of 1e-6.
  REQUIRE(count > 2000);
  CHECK(std::sqrt(square / count) == doctest::Approx(2 * kClip).epsilon(0.075));

  // With hardly any noise, the gradients of two small batches differ because the batches do.
  const auto few = [&] { return at.gradient(options("secret", 1e-9), 20, all); };
  const auto a = few(), b = few();
  double distance = 0;
  for (std::size_t k = 0; k < a.size(); ++k) distance += std::pow(a[k] - b[k], 2);
  CHECK(distance > 1e-6);
}

TEST_CASE("a batch without samples is noise alone, and a large one is summed in parts") {
  PrivateBench at;
  const std::span<const std::uint32_t> all(at.bench.table.all);
  double loss = 0;
  const auto gradient = at.gradient(options("reproducible", 1e-6), 1e-9 * kSamples, all, 0, &loss);
  CHECK(loss == 0);
  double sum = 0;
  for (const double value : gradient) sum += std::abs(value);
  CHECK(sum > 0);

  const auto summed = at.gradient(options("reproducible", 1e-9), kSamples, all);
  std::vector<double> expected(at.x.size());
  for (const std::uint32_t sample : all) {
    const auto clipped = at.clipped(sample);
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += clipped[k] / kSamples;
  }
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(summed[k] == doctest::Approx(expected[k]).epsilon(1e-6));
}

namespace {

/// Bits of an edge and a step, from a public seed; counts how often each end asks.
struct CountedPairs final : PairSecrets {
  struct Stream final : BitSource {
    explicit Stream(const RandomStream& stream) : stream(stream) {}
    void fill(std::span<std::uint64_t> numbers) override {
      for (std::uint64_t& number : numbers) number = stream.next_u64();
    }
    RandomStream stream;
  };
  std::unique_ptr<BitSource> bits(int peer, int partner, std::uint64_t step) override {
    ++asked;
    const auto edge =
        static_cast<std::uint32_t>(100 * std::min(peer, partner) + std::max(peer, partner));
    return std::make_unique<Stream>(RandomStream(kTestSeed, edge, Purpose::test, step));
  }
  int asked = 0;
};

}  // namespace

TEST_CASE("noise that neighbours share cancels in the sum, and has its deviation at each of them") {
  PrivateBench at;
  const std::span<const std::uint32_t> all(at.bench.table.all);
  const auto pairs = std::make_shared<CountedPairs>();
  const double shared = 20;
  // Peer 1 has the neighbours 0 and 2, which have it alone.
  const PairNoiseRequest request{shared, {{1}, {0, 2}, {1}}, pairs};
  const auto gradients = [&](const PairNoiseRequest& noise, std::uint64_t step) {
    std::vector<std::vector<double>> made;
    PrivateGradient<double> computes(options("reproducible", 1), noise, kTestSeed, at.device,
                                     at.x.size());
    for (int peer = 0; peer < 3; ++peer) {
      std::vector<double>& gradient = made.emplace_back(at.x.size());
      double loss = 0;
      computes.compute(at.bench.task(), {.peer = peer,
                                         .step = step,
                                         .shard = all,
                                         .batch = kSamples,
                                         .parameters = at.x.data(),
                                         .gradient = gradient.data(),
                                         .loss = &loss});
    }
    return made;
  };
  std::vector<double> squares(3);
  int count = 0;
  for (std::uint64_t step = 0; step < 80; ++step) {
    const auto with = gradients(request, step), without = gradients({}, step);
    for (std::size_t k = 0; k < at.x.size(); ++k, ++count) {
      double sum = 0;
      for (std::size_t peer = 0; peer < 3; ++peer) {
        const double noise = (with[peer][k] - without[peer][k]) * kSamples;
        squares[peer] += noise * noise;
        sum += noise;
      }
      CHECK(std::abs(sum) < 1e-9 * shared);
    }
  }
  CHECK(pairs->asked == 80 * 4);
  // 2,000 squares of normals and more: the mean is within 15 % but for a chance of 1e-6.
  REQUIRE(count > 2000);
  for (std::size_t peer = 0; peer < 3; ++peer)
    CHECK(std::sqrt(squares[peer] / count) ==
          doctest::Approx(shared * std::sqrt(peer == 1 ? 2.0 : 1.0)).epsilon(0.075));
}
