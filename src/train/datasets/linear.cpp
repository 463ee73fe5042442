// Noisy linear regression, generated per peer, its optimum known:
//   a ~ N(0, Σ),  y = w_i·a + noise · N(0, 1),  w_i = w* + heterogeneity · δ_i,  E‖δ_i‖² = 1,
//   ‖w*‖ = 1
// Σ has eigenvalues from 1 down to 1/condition in random directions, the same for all peers. Test
// samples come from the peers' distributions in turn. The reported optimum is that of the training
// samples as drawn, not w*.
#include <cmath>

#include "train/synthetic.hpp"

namespace gossamer::train::datasets::linear {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

struct LinearOptions {
  int dimension = 20;
  double condition = 10;
  double heterogeneity = 0.5;
  double noise = 0.1;
  int samples = 100;
  int test_samples = 1000;
};

const ParameterSet<LinearOptions>& parameters() {
  static const ParameterSet<LinearOptions> set =
      ParameterSet<LinearOptions>()
          .add("dimension", &LinearOptions::dimension,
               {.help = "d: features", .minimum = 1, .maximum = 4096})
          .add(
              "condition", &LinearOptions::condition,
              {.help =
                   "largest over smallest eigenvalue of the features' covariance; the largest is 1",
               .minimum = 1,
               .maximum = 1e6})
          .add("heterogeneity", &LinearOptions::heterogeneity,
               {.help = "root mean square distance of the peers' true weights w_i from w*, which "
                        "has length 1",
                .minimum = 0,
                .maximum = 1e3})
          .add("noise", &LinearOptions::noise,
               {.help = "standard deviation of the targets' noise", .minimum = 0, .maximum = 1e3})
          .add("samples", &LinearOptions::samples,
               {.help = "training samples of each peer", .minimum = 1, .maximum = 1e9})
          .add("test_samples", &LinearOptions::test_samples,
               {.help = "total number of test samples, drawn from the peers' distributions in turn",
                .minimum = 0,
                .maximum = 1e9});
  return set;
}

/// The part of the law that all peers share.
struct Law {
  MatrixXd root;     ///< Q Λ^½: covariance Σ = root rootᵀ
  VectorXd weights;  ///< w*
  double heterogeneity, noise;
  std::uint64_t seed;
};

/// The step numbers of a peer's streams, by what they draw.
enum class Draw : std::uint64_t { weights = 0, train = 1, test = 2 };

RandomStream peer_stream(const Law& law, std::size_t peer, Draw draw) {
  return {law.seed, static_cast<std::uint32_t>(peer), Purpose::data,
          static_cast<std::uint64_t>(draw)};
}

Law draw_law(const LinearOptions& options, std::uint64_t seed) {
  RandomStream shared(seed, kNoPeer, Purpose::data);
  const VectorXd weights = normal_vector(options.dimension, shared).normalized();
  const VectorXd half = log_spectrum(options.dimension, options.condition).cwiseSqrt();
  return {random_orthogonal(options.dimension, shared) * half.asDiagonal(), weights,
          options.heterogeneity, options.noise, seed};
}

VectorXd peer_weights(const Law& law, std::size_t peer) {
  RandomStream random = peer_stream(law, peer, Draw::weights);
  const auto d = static_cast<int>(law.weights.size());
  return law.weights + law.heterogeneity / std::sqrt(d) * normal_vector(d, random);
}

void write_sample(Dataset& data, std::size_t sample, const Law& law, const VectorXd& weights,
                  RandomStream& random) {
  const VectorXd features = law.root * normal_vector(data.width, random);
  Eigen::Map<Eigen::VectorXf>(data.features.data() + sample * data.feature_count(), data.width) =
      features.cast<float>();
  data.targets[sample] =
      static_cast<float>(weights.dot(features) + law.noise * random.next_normal());
}

Result<Dataset> make(const DatasetContext& context, const ParameterValues& values) {
  GOSSAMER_TRY(const LinearOptions options, parameters().read("data", values));
  GOSSAMER_TRY(Dataset data, regression_table("linear", options.dimension, context.peers,
                                              static_cast<std::size_t>(options.samples),
                                              static_cast<std::size_t>(options.test_samples)));
  const Law law = draw_law(options, context.seed);
  const auto n = static_cast<std::size_t>(context.peers);
  for (std::size_t p = 0; p < n; ++p) {
    const VectorXd weights = peer_weights(law, p);
    RandomStream train = peer_stream(law, p, Draw::train), test = peer_stream(law, p, Draw::test);
    for (const std::uint32_t sample : data.natural_shards[p])
      write_sample(data, sample, law, weights, train);
    for (std::size_t sample = data.train_count + p; sample < data.count; sample += n)
      write_sample(data, sample, law, weights, test);
  }
  if (data.train_count >=
      data.feature_count()) {  // with fewer samples than weights there is no single optimum
    const VectorXd optimum = regression_optimum(data);
    data.optimum.emplace(optimum.begin(), optimum.end());
  }
  return data;
}

}  // namespace

DatasetKind descriptor() {
  return {
      .name = "linear",
      .summary = "noisy linear regression generated per peer, with its optimum in closed form",
      .source = "least squares; the normal equations are solved in double on the samples as stored",
      .parameters = parameters().specs(),
      .make = make};
}

}  // namespace gossamer::train::datasets::linear
