#include "train/synthetic.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/linear_algebra/dense.hpp"

namespace gossamer::train {

Eigen::VectorXd log_spectrum(int dimension, double condition) {
  Eigen::VectorXd values = Eigen::VectorXd::Ones(dimension);
  for (int k = 1; k < dimension; ++k)
    values[k] = std::pow(condition, -static_cast<double>(k) / (dimension - 1));
  return values;
}

Eigen::VectorXd normal_vector(int count, RandomStream& random) {
  Eigen::VectorXd values(count);
  for (double& value : values) value = random.next_normal();
  return values;
}

Eigen::MatrixXd random_orthogonal(int dimension, RandomStream& random) {
  Eigen::MatrixXd normal(dimension, dimension);
  for (int column = 0; column < dimension; ++column)
    normal.col(column) = normal_vector(dimension, random);
  auto [q, r_diagonal] = qr(normal);
  for (int column = 0; column < dimension; ++column)
    if (r_diagonal(column) < 0) q.col(column) = -q.col(column);
  return q;
}

Result<Dataset> regression_table(const char* name, int dimension, int peers, std::size_t per_peer,
                                 std::size_t test) {
  if (peers < 1)
    return invalid_error(fmt::format("data: '{}' cannot be made for {} peers", name, peers));
  constexpr double kMostValues = 0x1p28;
  const double values =
      (static_cast<double>(peers) * static_cast<double>(per_peer) + static_cast<double>(test)) *
      dimension;
  if (values > kMostValues)
    return invalid_error(fmt::format(
        "data: '{}' for {} peers with {} samples each, {} test samples and {} dimensions would "
        "have "
        "{:.3g} values, and the most is {:.3g}; give fewer peers, samples or dimensions",
        name, peers, per_peer, test, dimension, values, kMostValues));
  Dataset data;
  data.name = name;
  data.width = dimension;
  data.train_count = static_cast<std::size_t>(peers) * per_peer;
  data.count = data.train_count + test;
  data.features.assign(data.count * data.feature_count(), 0);
  data.targets.assign(data.count, 0);
  for (std::size_t begin = 0; begin < data.train_count; begin += per_peer) {
    data.natural_shards.emplace_back(per_peer);
    std::iota(data.natural_shards.back().begin(), data.natural_shards.back().end(),
              static_cast<std::uint32_t>(begin));
  }
  return data;
}

Eigen::VectorXd regression_optimum(const Dataset& data) {
  const auto dimension = static_cast<Eigen::Index>(data.feature_count());
  Eigen::MatrixXd hessian = Eigen::MatrixXd::Zero(dimension, dimension);
  Eigen::VectorXd moment = Eigen::VectorXd::Zero(dimension);
  for (const auto& shard : data.natural_shards) {
    const auto samples = static_cast<Eigen::Index>(shard.size());
    Eigen::MatrixXd features(dimension, samples);  // one sample a column
    Eigen::VectorXd targets(samples);
    for (Eigen::Index s = 0; s < samples; ++s) {
      const std::size_t sample = shard[static_cast<std::size_t>(s)];
      features.col(s) = Eigen::Map<const Eigen::VectorXf>(
                            data.features.data() + sample * data.feature_count(), dimension)
                            .cast<double>();
      targets[s] = data.targets[sample];
    }
    hessian += gram_of_rows(features) / static_cast<double>(samples);
    moment += features * targets / static_cast<double>(samples);
  }
  return solve_semidefinite(hessian, moment, 1);
}

}  // namespace gossamer::train
