#include "train/synthetic.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/linear_algebra/dense.hpp"
#include "tests/train/data_test_util.hpp"
#include "train/shards.hpp"

using namespace gossamer;
using namespace gossamer::train;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

Dataset made(const char* kind, int peers, const ParameterValues& values = {},
             std::uint64_t seed = 5) {
  auto data = make_dataset(kind, {peers, seed}, values);
  REQUIRE_MESSAGE(data.ok(), (data.ok() ? "" : data.error().message));
  return *data;
}

VectorXd optimum_of(const Dataset& data) {
  REQUIRE(data.optimum.has_value());
  return Eigen::Map<const VectorXd>(data.optimum->data(),
                                    static_cast<Eigen::Index>(data.optimum->size()));
}

/// f_p(x) = mean over p's samples of ½ (a·x − y)², by its definition.
struct Peer {
  MatrixXd features;  // a sample a row
  VectorXd targets;

  Peer(const Dataset& data, std::size_t peer) {
    const auto& shard = data.natural_shards.at(peer);
    features.resize(static_cast<Eigen::Index>(shard.size()), data.width);
    targets.resize(static_cast<Eigen::Index>(shard.size()));
    for (Eigen::Index s = 0; s < targets.size(); ++s) {
      const std::size_t sample = shard[static_cast<std::size_t>(s)];
      const float* row = data.features.data() + sample * data.feature_count();
      for (int k = 0; k < data.width; ++k) features(s, k) = row[k];
      targets[s] = data.targets[sample];
    }
  }
  VectorXd residual(const VectorXd& x) const { return features * x - targets; }
  double loss(const VectorXd& x) const {
    return residual(x).squaredNorm() / 2 / static_cast<double>(targets.size());
  }
  VectorXd gradient(const VectorXd& x) const {
    return features.transpose() * residual(x) / static_cast<double>(targets.size());
  }
  MatrixXd hessian() const {
    return features.transpose() * features / static_cast<double>(targets.size());
  }
};

std::vector<Peer> peers_of(const Dataset& data) {
  std::vector<Peer> peers;
  for (std::size_t p = 0; p < data.natural_shards.size(); ++p) peers.emplace_back(data, p);
  return peers;
}

template <class Term>
auto mean_over(const std::vector<Peer>& peers, Term term) {
  auto sum = decltype(term(peers[0]))(term(peers[0]));
  for (std::size_t p = 1; p < peers.size(); ++p) sum += term(peers[p]);
  return decltype(sum)(sum / static_cast<double>(peers.size()));
}

const std::vector<ParameterValues> kQuadratics = {
    {},
    {{"dimension", number(1)}},
    {{"dimension", number(7)}, {"condition", 1.0}, {"heterogeneity", 0.0}},
    {{"condition", 100.0}, {"heterogeneity", 10.0}, {"different_hessians", true}},
    {{"dimension", number(50)}, {"condition", 1e4}, {"heterogeneity", 0.1}},
};

}  // namespace

TEST_CASE("the optimum of a quadratic is where the mean gradient vanishes, and has length 1") {
  for (const ParameterValues& values : kQuadratics)
    for (int n : {1, 2, 16}) {
      const Dataset data = made("quadratic", n, values);
      const VectorXd optimum = optimum_of(data);
      const auto peers = peers_of(data);
      CHECK(data.count == data.train_count);
      CHECK(mean_over(peers, [&](const Peer& p) { return p.gradient(optimum); }).norm() <
            1e-12 * (1 + optimum.norm()));
      const double condition =
          values.contains("condition") ? std::get<double>(values.at("condition")) : 10;
      CHECK(optimum.norm() == doctest::Approx(1).epsilon(1e-6 * (1 + condition)));
    }
}

TEST_CASE(
    "the largest eigenvalue of the mean Hessian is 1, and the condition number is what was asked "
    "for") {
  for (const ParameterValues& values : kQuadratics) {
    const Dataset data = made("quadratic", 6, values);
    const auto peers = peers_of(data);
    const double condition =
        values.contains("condition") ? std::get<double>(values.at("condition")) : 10;
    const MatrixXd mean_hessian = mean_over(peers, [](const Peer& p) { return p.hessian(); });
    CHECK(symmetric_eigenvalues(mean_hessian).maxCoeff() == doctest::Approx(1).epsilon(1e-5));
    if (data.width == 1) continue;
    for (const Peer& peer : peers) {
      const VectorXd spectrum = symmetric_eigenvalues(peer.hessian());
      CHECK(spectrum.maxCoeff() / spectrum.minCoeff() == doctest::Approx(condition).epsilon(1e-2));
    }
    const double difference = (peers[0].hessian() - peers[1].hessian()).norm();
    if (values.contains("different_hessians")) CHECK(difference > 0.1);
    else CHECK(difference < 1e-5);
  }
}

TEST_CASE("heterogeneity is the root mean square of the peers' gradients at the optimum") {
  for (bool different : {false, true})
    for (double zeta : {0.0, 0.1, 1.0, 100.0}) {
      const Dataset data =
          made("quadratic", 9, {{"heterogeneity", zeta}, {"different_hessians", different}});
      const VectorXd optimum = optimum_of(data);
      const double square = mean_over(
          peers_of(data), [&](const Peer& p) { return p.gradient(optimum).squaredNorm(); });
      CHECK(std::sqrt(square) == doctest::Approx(zeta).epsilon(1e-4).scale(1e-3));
    }
  // A single peer cannot differ from others.
  const Dataset alone = made("quadratic", 1, {{"heterogeneity", 5.0}});
  CHECK(Peer(alone, 0).loss(optimum_of(alone)) < 1e-10);
}

TEST_CASE(
    "gradient descent with step 1/L goes to the optimum at the rate of the condition number") {
  const Dataset data = made("quadratic", 4, {{"condition", 20.0}});
  const auto peers = peers_of(data);
  const VectorXd optimum = optimum_of(data);
  VectorXd x = VectorXd::Zero(data.width);
  for (int step = 0; step < 400; ++step)
    x -= mean_over(peers, [&](const Peer& p) { return p.gradient(x); });
  CHECK((x - optimum).norm() <= 1.01 * std::pow(1 - 1.0 / 20, 400) + 1e-13);
}

TEST_CASE("gradient noise is passed on, and bad numbers are refused") {
  CHECK(made("quadratic", 2, {{"gradient_noise", 0.25}}).gradient_noise == 0.25);
  const auto refusal = [](const char* kind, int peers, const ParameterValues& values) {
    const auto data = make_dataset(kind, {peers, 0}, values);
    REQUIRE_FALSE(data.ok());
    CHECK(data.error().kind == ErrorKind::invalid);
    return data.error().message;
  };
  CHECK(refusal("quadratic", 2, {{"condition", 0.5}}).find("data.condition") != std::string::npos);
  CHECK(refusal("quadratic", 2, {{"dimension", number(0)}}).find("data.dimension") !=
        std::string::npos);
  CHECK(refusal("quadratic", 1000, {{"dimension", number(4096)}}).find("give fewer peers") !=
        std::string::npos);
  CHECK(refusal("linear", 1000, {{"samples", number(1000000000)}}).find("give fewer peers") !=
        std::string::npos);
  CHECK(refusal("quadratic", 0, {}).find("0 peers") != std::string::npos);
  CHECK(refusal("linear", 3, {{"noise", -1.0}}).find("data.noise") != std::string::npos);
}

TEST_CASE("a peer's data do not depend on how many peers there are") {
  for (const ParameterValues& values :
       {ParameterValues{}, ParameterValues{{"dimension", number(5)}}}) {
    const Dataset few = made("linear", 3, values), many = made("linear", 8, values);
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(Peer(few, p).features == Peer(many, p).features);
      CHECK(Peer(few, p).targets == Peer(many, p).targets);
      CHECK(Peer(few, p).features != Peer(few, (p + 1) % 3).features);
    }
  }
  CHECK(Peer(made("quadratic", 2), 1).features == Peer(made("quadratic", 5), 1).features);
  CHECK(Peer(made("quadratic", 2), 1).features != Peer(made("quadratic", 2, {}, 6), 1).features);
}

TEST_CASE("linear: the optimum is the least-squares solution") {
  for (int n : {1, 4, 16})
    for (double condition : {1.0, 1e3}) {
      const Dataset data = made("linear", n, {{"condition", condition}, {"heterogeneity", 2.0}});
      const VectorXd optimum = optimum_of(data);
      const auto peers = peers_of(data);
      CHECK(mean_over(peers, [&](const Peer& p) { return p.gradient(optimum); }).norm() <
            1e-13 * (1 + optimum.norm()));
      const double best = mean_over(peers, [&](const Peer& p) { return p.loss(optimum); });
      RandomStream random(1, 0, Purpose::test);
      for (int trial = 0; trial < 20; ++trial) {
        const VectorXd elsewhere = optimum + 1e-3 * normal_vector(data.width, random);
        CHECK(mean_over(peers, [&](const Peer& p) { return p.loss(elsewhere); }) > best);
      }
    }
}

TEST_CASE("linear: covariance, noise and heterogeneity are what was asked for") {
  const ParameterValues large = {
      {"samples", number(20000)}, {"condition", 50.0}, {"noise", 0.3}, {"heterogeneity", 0.0}};
  const Dataset data = made("linear", 2, large);
  const auto peers = peers_of(data);
  const VectorXd spectrum =
      symmetric_eigenvalues(mean_over(peers, [](const Peer& p) { return p.hessian(); }));
  CHECK(spectrum.maxCoeff() == doctest::Approx(1).epsilon(0.05));
  CHECK(spectrum.maxCoeff() / spectrum.minCoeff() == doctest::Approx(50).epsilon(0.05));
  CHECK(optimum_of(data).norm() == doctest::Approx(1).epsilon(0.05));
  const double loss = mean_over(peers, [&](const Peer& p) { return p.loss(optimum_of(data)); });
  CHECK(std::sqrt(2 * loss) == doctest::Approx(0.3).epsilon(0.02));

  const Dataset apart =
      made("linear", 64, {{"heterogeneity", 2.0}, {"noise", 0.0}, {"samples", number(40)}});
  double square = 0;
  VectorXd mean = VectorXd::Zero(apart.width);
  std::vector<VectorXd> own;  // w_i: without noise, each peer's own least-squares solution
  for (const Peer& peer : peers_of(apart))
    own.push_back(solve_semidefinite(gram_of_columns(peer.features),
                                     peer.features.transpose() * peer.targets));
  for (const VectorXd& w : own) mean += w / 64;
  for (const VectorXd& w : own) square += (w - mean).squaredNorm() / 63;
  CHECK(std::sqrt(square) == doctest::Approx(2).epsilon(0.1));
}

TEST_CASE("linear: test samples follow the training samples' law") {
  const Dataset data =
      made("linear", 3, {{"noise", 0.2}, {"heterogeneity", 0.0}, {"test_samples", number(5000)}});
  CHECK(data.test_count() == 5000);
  const VectorXd optimum = optimum_of(data);
  double square = 0;
  for (std::size_t s = data.train_count; s < data.count; ++s) {
    const Eigen::Map<const Eigen::VectorXf> features(
        data.features.data() + s * data.feature_count(), data.width);
    const double error = optimum.dot(features.cast<double>()) - data.targets[s];
    square += error * error / 5000;
  }
  CHECK(std::sqrt(square) == doctest::Approx(0.2).epsilon(0.1));
  const Dataset none =
      made("linear", 3, {{"noise", 0.2}, {"heterogeneity", 0.0}, {"test_samples", number(0)}});
  CHECK(none.test_count() == 0);
  CHECK(optimum_of(none) == optimum);
}

TEST_CASE("linear: fewer samples than weights have no single optimum") {
  CHECK_FALSE(made("linear", 2, {{"samples", number(9)}}).optimum.has_value());
  CHECK(made("linear", 2, {{"samples", number(10)}}).optimum.has_value());
}

TEST_CASE("random rotations are orthogonal and spectra reach from 1 to 1/condition") {
  RandomStream random(3, 0, Purpose::test);
  for (int d : {1, 2, 33}) {
    const MatrixXd q = random_orthogonal(d, random);
    CHECK((q.transpose() * q - MatrixXd::Identity(d, d)).norm() < 1e-13 * d);
  }
  const VectorXd spectrum = log_spectrum(5, 16);
  for (int k = 0; k < 5; ++k) CHECK(spectrum[k] == doctest::Approx(std::pow(2.0, -k)));
  CHECK(log_spectrum(1, 100)[0] == 1);
}
