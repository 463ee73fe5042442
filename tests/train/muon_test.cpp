// Muon against its formulas in plain loops, through the device's update; and which tensors of a
// model it steps with.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gpu/cpu_device.hpp"
#include "train/muon/muon_learner.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// A matrix in double, with as few operations as the formulas need.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;

  Matrix(std::size_t rows, std::size_t columns)
      : rows(rows), columns(columns), values(rows * columns) {}
  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

Matrix transposed(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.columns; ++j) t.at(j, i) = a.at(i, j);
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t k = 0; k < a.columns; ++k)
      for (std::size_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}

/// fa · A + fb · B
Matrix sum(double fa, const Matrix& a, double fb, const Matrix& b) {
  Matrix c(a.rows, a.columns);
  for (std::size_t i = 0; i < c.values.size(); ++i)
    c.values[i] = fa * a.values[i] + fb * b.values[i];
  return c;
}

/// Jordan 2024, `zeropower_via_newtonschulz5`, without its bfloat16.
Matrix orthogonalised(Matrix x, int iterations) {
  const bool turned = x.rows > x.columns;
  if (turned) x = transposed(x);
  double square = 0;
  for (const double value : x.values) square += value * value;
  for (double& value : x.values) value /= std::sqrt(square) + 1e-7;
  for (int i = 0; i < iterations; ++i) {
    const Matrix a = product(x, transposed(x));
    const Matrix b = sum(-4.7750, a, 2.0315, product(a, a));
    x = sum(3.4445, x, 1, product(b, x));
  }
  return turned ? transposed(x) : x;
}

/// Jordan 2024, `muon_update`, and the step with it, for weights [inputs, outputs].
struct Weights {
  Matrix x, momentum;

  void take(const gpu::UpdateRule& rule, double rate, const Matrix& gradient) {
    momentum = sum(rule.momentum, momentum, 1 - rule.momentum, gradient);
    const Matrix direction =
        rule.nesterov ? sum(1 - rule.momentum, gradient, rule.momentum, momentum) : momentum;
    const double inputs = static_cast<double>(x.rows), outputs = static_cast<double>(x.columns);
    const double scale = std::sqrt(std::max(1.0, outputs / inputs));
    x = sum(1 - rate * rule.weight_decay, x, -rate * scale,
            orthogonalised(direction, rule.iterations));
  }
};

std::vector<double> normal(std::size_t count, std::uint64_t stream) {
  RandomStream random(11, kNoPeer, Purpose::test, stream);
  std::vector<double> values(count);
  for (double& value : values) value = random.next_normal();
  return values;
}

constexpr gpu::UpdateRule kMuon{
    .momentum = 0.95, .nesterov = true, .weight_decay = 0.1, .kind = gpu::UpdateRule::Kind::muon};

double worst(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Three classes in six dimensions, two peers, two hidden layers.
LearnerRequest small_request() {
  auto data = std::make_shared<Dataset>();
  data->name = "test", data->channels = 6, data->classes = 3;
  data->count = data->train_count = 40;
  const std::vector<double> features = normal(6 * 40, 1);
  data->features.assign(features.begin(), features.end());
  for (int i = 0; i < 40; ++i) data->labels.push_back(i % 3);
  LearnerRequest request;
  request.data = data;
  request.shards = {{}, {}};
  for (std::uint32_t i = 0; i < 40; ++i) request.shards[i % 2].push_back(i);
  request.model = chain({Dense{.units = 5, .activation = Activation::tanh},
                         Dense{.units = 4, .activation = Activation::tanh}, Dense{.units = 3}},
                        Loss::softmax_cross_entropy);
  request.sampling.batch = 0;
  request.optimizer = make_optimizer("muon", {{"weight_decay", 0.1}}, {}).value();
  request.seed = 4;
  return request;
}

std::unique_ptr<Learner<double>> muon_learner(gpu::BasicDevice<double>& device) {
  LearnerRequest request = small_request();
  const OptimizerOptions optimizer = request.optimizer;
  return make_muon_learner(make_learner<double>(std::move(request), device).value(), optimizer,
                           device);
}

struct PeerRows {
  explicit PeerRows(const Learner<double>& learner)
      : x(2, learner.parameters()),
        m(2, learner.parameters()),
        v(2, learner.parameters()),
        g(2, learner.parameters()),
        losses(2) {
    for (int p = 0; p < 2; ++p) learner.initialise(p, x.row(static_cast<std::size_t>(p)));
  }
  std::vector<StepRequest<double>> requests(std::uint64_t first, int steps) {
    std::vector<StepRequest<double>> all;
    for (std::size_t p = 0; p < 2; ++p)
      all.push_back({.peer = static_cast<int>(p),
                     .first_step = first,
                     .steps = steps,
                     .parameters = x.row(p).data(),
                     .state = {m.row(p).data(), v.row(p).data()},
                     .gradient = g.row(p).data(),
                     .loss = &losses[p]});
    return all;
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (std::size_t p = 0; p < 2; ++p) all.insert(all.end(), x.row(p).begin(), x.row(p).end());
    return all;
  }
  Rows<double> x, m, v, g;
  std::vector<double> losses;
};

}  // namespace

TEST_CASE_TEMPLATE("Muon follows its formulas for ten steps, whatever the matrix's shape", Real,
                   float, double) {
  gpu::BasicCpuDevice<Real> device(2);
  struct Shape {
    std::size_t rows, columns;
  };
  for (const auto& [rows, columns] :
       {Shape{5, 5}, Shape{7, 3}, Shape{3, 7}, Shape{1, 6}, Shape{6, 1}, Shape{40, 33}})
    for (const bool nesterov : {true, false}) {
      CAPTURE(rows);
      CAPTURE(columns);
      gpu::UpdateRule rule = kMuon;
      rule.nesterov = nesterov;
      Weights expected{Matrix(rows, columns), Matrix(rows, columns)};
      expected.x.values = normal(rows * columns, 2);
      std::vector<Real> x(expected.x.values.begin(), expected.x.values.end()), m(x.size()), g(x);
      for (int step = 0; step < 10; ++step) {
        Matrix gradient(rows, columns);
        gradient.values = normal(rows * columns, 10 + static_cast<std::uint64_t>(step));
        g.assign(gradient.values.begin(), gradient.values.end());
        expected.take(rule, 0.1 / (1 + step), gradient);
        const gpu::UpdateJob<Real> job{.parameters = x.data(),
                                       .state = {m.data(), nullptr},
                                       .gradient = g.data(),
                                       .length = x.size(),
                                       .rate = 0.1 / (1 + step),
                                       .step = static_cast<std::uint64_t>(step),
                                       .columns = static_cast<int>(columns)};
        device.update(rule, std::span(&job, 1));
      }
      const double tolerance = sizeof(Real) == 4 ? 2e-4 : 1e-11;
      CHECK(worst({x.begin(), x.end()}, expected.x.values) < tolerance);
      CHECK(worst({m.begin(), m.end()}, expected.momentum.values) < tolerance);
    }
}

TEST_CASE("a step of Muon has singular values near the rate, and none for no gradient") {
  gpu::BasicCpuDevice<double> device(1);
  gpu::UpdateRule rule = kMuon;
  rule.momentum = 0, rule.weight_decay = 0;
  for (const double size : {1e-3, 1.0, 1e3}) {
    Matrix x(12, 8);
    std::vector<double> m(x.values.size()), g = normal(x.values.size(), 3);
    for (double& value : g) value *= size;
    const gpu::UpdateJob<double> job{.parameters = x.values.data(),
                                     .state = {m.data(), nullptr},
                                     .gradient = g.data(),
                                     .length = m.size(),
                                     .rate = 1,
                                     .columns = 8};
    device.update(rule, std::span(&job, 1));
    const Matrix gram = product(transposed(x), x);
    for (std::size_t k = 0; k < 8; ++k) {  // the diagonal is a mean of squared singular values
      CHECK(gram.at(k, k) > 0.4);
      CHECK(gram.at(k, k) < 1.5);
    }
    std::fill(g.begin(), g.end(), 0.0);
    const std::vector<double> before = x.values;
    std::fill(m.begin(), m.end(), 0.0);
    device.update(rule, std::span(&job, 1));
    CHECK(x.values == before);
  }
}

TEST_CASE("Muon steps with the weights of hidden layers, and AdamW with everything else") {
  gpu::BasicCpuDevice<double> device(1);
  const auto learner = muon_learner(device);
  const OptimizerOptions optimizer = small_request().optimizer;
  PeerRows rows(*learner);
  std::vector<Weights> hidden;
  std::vector<double> expected(rows.x.row(0).begin(), rows.x.row(0).end()), first(expected.size()),
      second(expected.size());
  for (int step = 0; step < 4; ++step) {
    PeerRows at(*learner);
    std::copy(expected.begin(), expected.end(), at.x.row(0).begin());
    auto gradients = at.requests(static_cast<std::uint64_t>(step), 1);
    learner->gradient(std::span(gradients).first(1));
    const std::span<const double> g = at.g.row(0);
    std::size_t matrix = 0;
    for (const ParameterBlock& block : learner->blocks()) {
      if (block.name == "0.dense.weights" || block.name == "1.dense.weights") {
        Matrix x(static_cast<std::size_t>(block.shape[0]),
                 static_cast<std::size_t>(block.shape[1])),
            gradient = x;
        if (step == 0) hidden.push_back({x, x});
        Weights& weights = hidden[matrix++];
        for (std::size_t i = 0; i < block.length; ++i) {
          weights.x.values[i] = expected[block.offset + i];
          gradient.values[i] = g[block.offset + i];
        }
        weights.take(optimizer.rule, 0.02, gradient);
        for (std::size_t i = 0; i < block.length; ++i)
          expected[block.offset + i] = weights.x.values[i];
        continue;
      }
      for (std::size_t i = block.offset; i < block.offset + block.length; ++i) {
        first[i] = 0.9 * first[i] + 0.1 * g[i];
        second[i] = 0.95 * second[i] + 0.05 * g[i] * g[i];
        const double mean = first[i] / (1 - std::pow(0.9, step + 1)),
                     square = second[i] / (1 - std::pow(0.95, step + 1));
        expected[i] -= 3e-4 * (mean / (std::sqrt(square) + 1e-10) + 0.1 * expected[i]);
      }
    }
    REQUIRE(matrix == 2);
  }
  auto steps = rows.requests(0, 4);
  learner->local_steps(steps);
  CHECK(worst({rows.x.row(0).begin(), rows.x.row(0).end()}, expected) < 1e-9);
  CHECK(rows.losses[0] > 0);
}

TEST_CASE("Muon: the same bits in one call or in several, alone or with other peers") {
  gpu::BasicCpuDevice<double> device(3);
  const auto learner = muon_learner(device);
  PeerRows once(*learner), thrice(*learner), alone(*learner);
  auto requests = once.requests(0, 3);
  learner->local_steps(requests);
  for (std::uint64_t step = 0; step < 3; ++step) {
    auto one = thrice.requests(step, 1);
    learner->local_steps(one);
    for (std::size_t p = 0; p < 2; ++p) {
      auto own = alone.requests(step, 1);
      learner->local_steps(std::span(own).subspan(p, 1));
    }
  }
  CHECK(once.values() == thrice.values());
  CHECK(once.values() == alone.values());
  CHECK(learner->workspace_bytes() > 0);
}

TEST_CASE("the options of Muon are read, and what is out of range is refused") {
  const auto made = make_optimizer("muon", {{"rate", 0.1}, {"adamw_rate", 0.01}}, {});
  REQUIRE(made.ok());
  CHECK(made->rule.kind == gpu::UpdateRule::Kind::muon);
  CHECK(made->rule.momentum == 0.95);
  CHECK(made->rule.nesterov);
  CHECK(made->rule.state_rows() == 2);
  CHECK(made->other_rule.kind == gpu::UpdateRule::Kind::adamw);
  CHECK(made->other_rate_factor == doctest::Approx(0.1));
  for (const char* key : {"momentum", "beta1", "beta2"})
    CHECK(make_optimizer("muon", {{key, 1.0}}, {})
              .error()
              .message.starts_with(std::string("optimizer.") + key));
  CHECK(make_optimizer("muon", {{"iterations", std::int64_t{0}}}, {})
            .error()
            .message.starts_with("optimizer.iterations"));
  CHECK(make_optimizer("muon", {{"adamw_rate", 0.0}}, {})
            .error()
            .message.starts_with("optimizer.adamw_rate"));
}
