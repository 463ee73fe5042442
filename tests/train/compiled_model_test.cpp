// Compiling networks: layers that do not fit are refused, and a job's bits depend on its own inputs
// only.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/text_test_util.hpp"
#include "tests/train/compiled_model_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr ModelContext kImage{.channels = 2, .height = 6, .width = 6, .classes = 3};

std::string layers_refusal(const std::vector<Operator>& layers, const ModelContext& data = kImage,
                           int batch = 2) {
  const auto network =
      CompiledModel::compile(chain(layers, Loss::softmax_cross_entropy), data, batch);
  REQUIRE_FALSE(network.ok());
  return network.error().message;
}

/// All kinds of layers.
ModelSpec varied() {
  return chain({Convolution{.channels = 6, .kernel = 3, .padding = 1},
                GroupNorm{.groups = 3, .activation = Activation::relu}, MaxPool{.size = 2},
                Dense{.units = 19, .activation = Activation::tanh}, Dense{.units = 3}},
               Loss::softmax_cross_entropy);
}

}  // namespace

TEST_CASE("operations that do not fit are refused by name") {
  CHECK(contains(layers_refusal({}), "no operations"));
  CHECK(contains(layers_refusal({Dense{.units = 0}}),
                 "operation '0.dense': a dense operation needs"));
  CHECK(contains(layers_refusal({Dense{.units = 4}}), "4 values, but 3"));
  CHECK(contains(layers_refusal({Convolution{.channels = 2, .kernel = 7}, Dense{.units = 3}}),
                 "6 × 6"));
  CHECK(contains(
      layers_refusal({Convolution{.channels = 2, .kernel = 3, .padding = 3}, Dense{.units = 3}}),
      "padding 3"));
  CHECK(contains(layers_refusal({Dense{.units = 3}, MaxPool{.size = 2}}), "operation '1.pool'"));
  CHECK(contains(layers_refusal({GroupNorm{.groups = 4}, Dense{.units = 3}}), "do not divide 2"));
  CHECK(contains(layers_refusal({Dense{.units = 2'000'000'000}}, kImage, 64), "too large"));
  CHECK(
      contains(layers_refusal({Convolution{.channels = 1'000'000'000, .kernel = 3}}), "too large"));
  CHECK(contains(layers_refusal({Dense{.units = 3}}, {.width = 3}), "regress"));
  CHECK_FALSE(
      CompiledModel::compile(chain({Dense{.units = 1}}, Loss::squared_error), kImage, 1).ok());
}

TEST_CASE("one by one, sixteen together, four threads, misaligned rows: the same bits") {
  constexpr std::size_t kPeers = 16;
  const Bench bench(varied(), kImage, 5);
  const std::size_t d = bench.network.parameters();
  using Outcome = std::vector<double>;  // losses, parameters, the optimizer's rows
  gpu::UpdateRule rule;
  const auto train = [&](int threads, std::size_t offset, bool one_by_one) {
    gpu::CpuDevice device(threads);
    Rows<float> x(kPeers, d, offset), v(kPeers, d, offset), w(kPeers, d, offset),
        g(kPeers, d, offset);
    std::vector<double> losses(kPeers), rates(3, 0.1);
    std::vector<std::uint32_t> samples;
    for (std::uint32_t i = 0; i < 15; ++i) samples.push_back((i * 7) % 5);
    std::vector<gpu::Job<float>> jobs;
    for (std::size_t p = 0; p < kPeers; ++p) {
      bench.network.initialise<float>(1, static_cast<std::uint32_t>(p), x.row(p));
      jobs.push_back({.parameters = x.row(p).data(),
                      .state = {v.row(p).data(), w.row(p).data()},
                      .gradient = g.row(p).data(),
                      .samples = samples.data(),
                      .batch = 5,
                      .steps = 3,
                      .rates = rates.data(),
                      .peer = static_cast<std::uint32_t>(p),
                      .loss = &losses[p]});
    }
    gpu::Task task = bench.task();
    task.rule = rule;
    task.noise = {.deviation = 0.01, .seed = 4};
    if (one_by_one)
      for (const auto& job : jobs) device.train(task, gpu::Pass::step, std::span(&job, 1));
    else device.train(task, gpu::Pass::step, jobs);
    Outcome outcome = losses;
    for (std::size_t p = 0; p < kPeers; ++p) {
      outcome.insert(outcome.end(), x.row(p).begin(), x.row(p).end());
      outcome.insert(outcome.end(), v.row(p).begin(), v.row(p).end());
      outcome.insert(outcome.end(), w.row(p).begin(), w.row(p).end());
    }
    return outcome;
  };
  for (const gpu::UpdateRule& each :
       {gpu::UpdateRule{.momentum = 0.9, .nesterov = true, .weight_decay = 1e-3},
        {.weight_decay = 1e-3, .kind = gpu::UpdateRule::Kind::adam}}) {
    rule = each;
    const Outcome expected = train(1, 0, false);
    CHECK(expected[0] > 0);
    CHECK(expected == train(1, 0, true));
    CHECK(expected == train(4, 0, false));
    CHECK(expected == train(3, 1, false));
    CHECK(expected == train(1, 3, true));
  }
}

TEST_CASE("a smaller batch than the program's is that batch") {
  Bench five(varied(), kImage, 5), two(varied(), kImage, 2);
  const auto row = five.parameters<double>();
  std::vector<double> gradient(row.size());
  double loss = 0;
  auto copy = row;
  const gpu::Job<double> job{.parameters = copy.data(),
                             .gradient = gradient.data(),
                             .samples = five.table.all.data(),
                             .batch = 2,
                             .loss = &loss};
  gpu::Task task = five.task();
  task.tables = {two.table.view()};
  gpu::BasicCpuDevice<double>(1).train(task, gpu::Pass::gradient, std::span(&job, 1));
  double other_loss = 0;
  CHECK(gradient == two.gradient(row, &other_loss));
  CHECK(loss == other_loss);
}

TEST_CASE("hits count the samples whose largest output is their label") {
  Bench bench(chain({Dense{.units = 3}}, Loss::softmax_cross_entropy), {.width = 1, .classes = 3},
              4);
  bench.table.labels = {0, 2, 2, 1};
  std::vector<double> row{0, 0, 0, 0, 0, 1};  // always class 2
  std::int64_t hits = 0;
  bench.loss(row, &hits);
  CHECK(hits == 2);
}

TEST_CASE_TEMPLATE("outputs with a NaN or an infinity are no hits", Real, float, double) {
  constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN(),
                 kInfinity = std::numeric_limits<Real>::infinity();
  Bench bench(chain({Dense{.units = 3}}, Loss::softmax_cross_entropy), {.width = 1, .classes = 3},
              3);
  bench.table.labels = {0, 1, 2};
  for (const Real wrong : {kNan, kInfinity})
    for (std::size_t at = 3; at < 6; ++at) {  // the biases
      std::vector<Real> row(6);
      row[at] = wrong;
      std::int64_t hits = 0;
      CHECK(std::isnan(bench.loss(row, &hits)));
      CHECK(hits == 0);
    }
}
