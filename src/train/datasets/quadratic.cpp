// Quadratic functions, one a peer: the textbook problem of distributed optimisation, with its
// optimum known.
//   f_i(x) = ½ (x − b_i)ᵀ A_i (x − b_i),   i = 0..n−1, x of d values
// As linear regression: peer i has d samples, the rows of M_i = √d · U_i Λ^½ Q_iᵀ, with
// targets M_i b_i, so that the mean of ½ (m·x − y)² over them is f_i with A_i = M_iᵀ M_i / d = Q_i
// Λ Q_iᵀ. U_i, a random rotation, gives every sample a component in every direction. Full gradients
// (data.batch = 0) are gradients of f_i; smaller batches add sampling noise.
#include <cmath>

#include "base/linear_algebra/dense.hpp"
#include "train/synthetic.hpp"

namespace gossamer::train::datasets::quadratic {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

struct QuadraticOptions {
  int dimension = 20;
  double condition = 10;
  double heterogeneity = 1;
  bool different_hessians = false;
  double gradient_noise = 0;
};

const ParameterSet<QuadraticOptions>& parameters() {
  static const ParameterSet<QuadraticOptions> set =
      ParameterSet<QuadraticOptions>()
          .add("dimension", &QuadraticOptions::dimension,
               {.help = "d: length of x, and number of samples of each peer",
                .minimum = 1,
                .maximum = 4096})
          .add("condition", &QuadraticOptions::condition,
               {.help = "largest over smallest eigenvalue of each A_i",
                .minimum = 1,
                .maximum = 1e6})
          .add("heterogeneity", &QuadraticOptions::heterogeneity,
               {.help =
                    "zeta: root mean square over the peers of |grad f_i(x*)|; 0: every b_i is x*",
                .minimum = 0,
                .maximum = 1e3})
          .add("different_hessians", &QuadraticOptions::different_hessians,
               {.help = "true: each A_i has eigenvectors of its own; false: all A_i are equal"})
          .add("gradient_noise", &QuadraticOptions::gradient_noise,
               {.help = "standard deviation of normal noise in each coordinate of each gradient",
                .minimum = 0});
  return set;
}

/// The functions before they become samples. roots[i] = Λ^½ Q_iᵀ, so that A_i = roots[i]ᵀ roots[i];
/// one root if all A_i are equal.
struct Functions {
  std::vector<MatrixXd> roots;
  std::vector<VectorXd> minimisers;  ///< b_i

  const MatrixXd& root(std::size_t peer) const { return roots[roots.size() == 1 ? 0 : peer]; }
  VectorXd times_hessian(std::size_t peer, const VectorXd& x) const {
    return root(peer).transpose() * (root(peer) * x);
  }
};

/// L = 1: all A_i are scaled together so that the largest eigenvalue of their mean is 1, and step
/// sizes are in units of 1/L.
MatrixXd scale_to_unit(std::vector<MatrixXd>& roots) {
  MatrixXd mean = MatrixXd::Zero(roots[0].cols(), roots[0].cols());
  for (const MatrixXd& root : roots)
    mean += gram_of_columns(root) / static_cast<double>(roots.size());
  const double largest = symmetric_eigenvalues(mean).maxCoeff();
  for (MatrixXd& root : roots) root /= std::sqrt(largest);
  return mean / largest;
}

/// b_i = x* + s (δ_i − δ*), δ_i standard normal, δ* = (Σ A_i)⁻¹ Σ A_i δ_i: then Σ A_i (x* − b_i) =
/// 0, so x* is the optimum, and s sets the root mean square of ‖A_i (x* − b_i)‖ to zeta. A single
/// peer has b_0 = x* for any zeta.
void place_minimisers(Functions& functions, const MatrixXd& mean_hessian, const VectorXd& optimum,
                      double heterogeneity) {
  const auto n = static_cast<double>(functions.minimisers.size());
  VectorXd moment = VectorXd::Zero(optimum.size());
  for (std::size_t p = 0; p < functions.minimisers.size(); ++p)
    moment += functions.times_hessian(p, functions.minimisers[p]) / n;
  const VectorXd centre = solve_semidefinite(mean_hessian, moment);
  double square = 0;
  for (std::size_t p = 0; p < functions.minimisers.size(); ++p)
    square += functions.times_hessian(p, functions.minimisers[p] - centre).squaredNorm() / n;
  const double scale = n > 1 && heterogeneity > 0 ? heterogeneity / std::sqrt(square) : 0;
  for (VectorXd& b : functions.minimisers) b = optimum + scale * (b - centre);
}

Functions draw_functions(const QuadraticOptions& options, const DatasetContext& context) {
  RandomStream shared(context.seed, kNoPeer, Purpose::data);
  const VectorXd optimum = normal_vector(options.dimension, shared).normalized();
  const VectorXd half = log_spectrum(options.dimension, options.condition).cwiseSqrt();
  Functions functions;
  if (!options.different_hessians)
    functions.roots.push_back(half.asDiagonal() *
                              random_orthogonal(options.dimension, shared).transpose());
  for (int p = 0; p < context.peers; ++p) {
    RandomStream random(context.seed, static_cast<std::uint32_t>(p), Purpose::data);
    functions.minimisers.push_back(normal_vector(options.dimension, random));
    if (options.different_hessians)
      functions.roots.push_back(half.asDiagonal() *
                                random_orthogonal(options.dimension, random).transpose());
  }
  const MatrixXd mean_hessian = scale_to_unit(functions.roots);
  place_minimisers(functions, mean_hessian, optimum, options.heterogeneity);
  return functions;
}

/// Peer p's d samples. Targets come from the features as rounded, so that b_i stays f_i's
/// minimiser.
void write_samples(Dataset& data, const Functions& functions, std::size_t peer,
                   std::uint64_t seed) {
  const int d = data.width;
  RandomStream random(seed, static_cast<std::uint32_t>(peer), Purpose::data, 1);
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::size_t first = peer * static_cast<std::size_t>(d);
  Eigen::Map<RowMajor> features(data.features.data() + first * static_cast<std::size_t>(d), d, d);
  features =
      product(random_orthogonal(d, random), functions.root(peer), std::sqrt(d)).cast<float>();
  Eigen::Map<Eigen::VectorXf>(data.targets.data() + first, d) =
      (features.cast<double>() * functions.minimisers[peer]).cast<float>();
}

Result<Dataset> make(const DatasetContext& context, const ParameterValues& values) {
  GOSSAMER_TRY(const QuadraticOptions options, parameters().read("data", values));
  GOSSAMER_TRY(Dataset data, regression_table("quadratic", options.dimension, context.peers,
                                              static_cast<std::size_t>(options.dimension), 0));
  const Functions functions = draw_functions(options, context);
  for (std::size_t p = 0; p < functions.minimisers.size(); ++p)
    write_samples(data, functions, p, context.seed);
  const VectorXd optimum = regression_optimum(data);
  data.optimum.emplace(optimum.begin(), optimum.end());
  data.gradient_noise = options.gradient_noise;
  return data;
}

}  // namespace

DatasetKind descriptor() {
  return {
      .name = "quadratic",
      .summary =
          "generated quadratic functions, one per peer, with known optimum; condition, "
          "heterogeneity and noise are parameters",
      .source = "after Koloskova et al. 2020 (A unified theory of decentralized SGD), section 6",
      .parameters = parameters().specs(),
      .make = make};
}

}  // namespace gossamer::train::datasets::quadratic
