// Spectral heterogeneity: a hostile peer sends receiver i
//   x_i + ε v_i Σ_k v_k x_k,
// with the sum over the honest peers, and v, of norm 1, an eigenvector of the second smallest
// eigenvalue of the Laplacian of the honest peers (the Fiedler vector), with edges of weight
// (W[i][j] + W[j][i]) / 2. The two parts of the honest graph that are connected least, by whose
// difference Σ_k v_k x_k rows converge most slowly, are pushed apart. Where several vectors have
// that eigenvalue, as on a ring or if the honest graph is not connected, v is one of them.
//
// The paper searches ε for each message (attack.line_search).
#include <memory>
#include <utility>

#include "base/linear_algebra/dense.hpp"
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::spectral_heterogeneity {
namespace {

class SpectralHeterogeneity final : public Attack {
 public:
  /// `fiedler`: v, which the hostile peers share; the first of them makes it.
  explicit SpectralHeterogeneity(std::shared_ptr<std::vector<double>> fiedler)
      : fiedler_(std::move(fiedler)) {}

  void observe(const AttackView& view) override {
    if (fiedler_->empty()) *fiedler_ = fiedler_vector(view);
    difference_.assign(view.own.size(), 0.0);
    for (const int k : view.honest()) {
      const std::vector<float>& row = view.rows[static_cast<std::size_t>(k)];
      for (std::size_t c = 0; c < row.size(); ++c)
        difference_[c] += entry(k) * static_cast<double>(row[c]);
    }
  }

  std::vector<double> message(const AttackView& view, int receiver, double epsilon) const override {
    const std::vector<float>& x = view.rows[static_cast<std::size_t>(receiver)];
    std::vector<double> message(x.begin(), x.end());
    for (std::size_t c = 0; c < message.size(); ++c)
      message[c] += epsilon * entry(receiver) * difference_[c];
    return message;
  }

 private:
  double entry(int peer) const { return (*fiedler_)[static_cast<std::size_t>(peer)]; }

  /// [n]: v, and 0 at hostile peers.
  static std::vector<double> fiedler_vector(const AttackView& view) {
    const std::vector<int> honest = view.honest();
    const auto peers = static_cast<Eigen::Index>(honest.size());
    std::vector<double> vector(static_cast<std::size_t>(view.w.peers()));
    if (peers < 2) return vector;  // one peer has no parts
    std::vector<Eigen::Index> index(vector.size(), -1);
    for (Eigen::Index i = 0; i < peers; ++i)
      index[static_cast<std::size_t>(honest[static_cast<std::size_t>(i)])] = i;
    // The constant vector, of eigenvalue 0, comes last, beyond the others, which are 2 at most.
    Eigen::MatrixXd laplacian =
        Eigen::MatrixXd::Constant(peers, peers, 3 / static_cast<double>(peers));
    for (const int receiver : honest)
      for (const topology::Neighbour& neighbour : view.w.in_neighbours(receiver)) {
        const Eigen::Index i = index[static_cast<std::size_t>(receiver)],
                           j = index[static_cast<std::size_t>(neighbour.peer)];
        if (j < 0) continue;
        const double half = neighbour.weight / 2;
        laplacian(i, j) -= half;
        laplacian(j, i) -= half;
        laplacian(i, i) += half;
        laplacian(j, j) += half;
      }
    const Eigen::VectorXd fiedler = symmetric_eigen(laplacian).vectors.col(0);
    for (Eigen::Index i = 0; i < peers; ++i)
      vector[static_cast<std::size_t>(honest[static_cast<std::size_t>(i)])] = fiedler(i);
    return vector;
  }

  std::shared_ptr<std::vector<double>> fiedler_;
  std::vector<double> difference_;  ///< [d]: Σ_k v_k x_k of the round
};

}  // namespace

AttackKind descriptor() {
  return {.name = "spectral_heterogeneity",
          .summary =
              "the receiver's row, moved away from the part of the honest graph that is "
              "connected least to its own",
          .source = "Gaucher, Dieuleveut and Hendrikx 2025 (CS+)",
          .parameters = {},
          .strength_help = "ε; the paper searches it (attack.line_search)",
          .default_strength = published(1),
          .reads_honest_rows = true,
          .needs_fixed_graph = true,
          .make = [](const ParameterValues& values, const AttackContext&) -> Result<MakeAttack> {
            GOSSAMER_TRY_STATUS(check_values("attack", {}, values));
            return MakeAttack([fiedler = std::make_shared<std::vector<double>>()] {
              return std::make_unique<SpectralHeterogeneity>(fiedler);
            });
          }};
}

}  // namespace gossamer::gossip::attacks::spectral_heterogeneity
