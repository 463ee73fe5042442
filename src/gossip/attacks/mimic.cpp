// Mimic: all hostile peers send the row of one honest peer i*, which thereby counts several times.
// In the first rounds (the warm-up) the attackers learn the direction z in which the honest rows
// differ most, by Oja's rule,
//   u = Σ_i (x_i − μ) (x_i − μ)ᵀ z,   z ← t/(1+t) z + 1/(1+t) u/‖u‖,   z ← z/‖z‖,
// with μ the mean of the honest rows, t the number of earlier rounds, and a random z at first. They
// mimic the peer with the largest zᵀ x_i, and stay with the last one after the warm-up.
//
// Karimireddy et al. take gradients for x_i and the mean over the rounds for μ. Rows move all the
// time, so μ is here the mean of one round.
#include <algorithm>
#include <cmath>

#include "base/philox.hpp"
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::mimic {
namespace {

struct Options {
  int warmup = 100;
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

/// False if v is 0 or not finite, and stays as it is.
bool normalise(std::vector<double>& v) {
  const double norm = std::sqrt(dot(v, v));
  if (!(norm > 0) || !std::isfinite(norm)) return false;
  for (double& value : v) value /= norm;
  return true;
}

class Mimic final : public Attack {
 public:
  Mimic(const Options& options, const AttackContext& context)
      : warmup_(static_cast<Round>(options.warmup)), seed_(context.seed) {}

  void observe(const AttackView& view) override {
    if (seen_ >= warmup_) return;
    const std::vector<int> honest = view.honest();
    if (z_.empty()) {
      RandomStream random(seed_, kNoPeer, Purpose::attack);
      z_.resize(view.own.size());
      for (double& value : z_) value = random.next_normal();
    }
    const std::vector<double> mean = mean_of(view, honest);
    std::vector<double> u(z_.size());
    for (const int i : honest) {
      const std::vector<double> difference = difference_to(view, i, mean);
      const double along = dot(difference, z_);
      for (std::size_t k = 0; k < u.size(); ++k) u[k] += along * difference[k];
    }
    if (normalise(u)) {
      const double t = static_cast<double>(seen_);
      for (std::size_t k = 0; k < u.size(); ++k) z_[k] = (t * z_[k] + u[k]) / (1 + t);
      normalise(z_);
    }
    const auto along_z = [&](int i) { return dot(difference_to(view, i, mean), z_); };
    target_ = *std::ranges::max_element(honest, {}, along_z);
    ++seen_;
  }

  std::vector<double> message(const AttackView& view, int, double) const override {
    const std::vector<float>& row = view.rows[static_cast<std::size_t>(target_)];
    return {row.begin(), row.end()};
  }

 private:
  static std::vector<double> difference_to(const AttackView& view, int peer,
                                           std::span<const double> mean) {
    const std::vector<float>& row = view.rows[static_cast<std::size_t>(peer)];
    std::vector<double> difference(row.begin(), row.end());
    for (std::size_t k = 0; k < mean.size(); ++k) difference[k] -= mean[k];
    return difference;
  }

  Round warmup_;
  std::uint64_t seed_;
  Round seen_ = 0;  ///< rounds of the warm-up so far
  std::vector<double> z_;
  int target_ = 0;
};

}  // namespace

AttackKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "warmup", &Options::warmup,
      {.help = "rounds in which the attackers choose the peer that they mimic",
       .minimum = 1,
       .maximum = 1e9,
       .unit = "rounds"});
  return {.name = "mimic",
          .summary = "the row of the honest peer that differs most from the others",
          .source = "Karimireddy, He and Jaggi 2022",
          .parameters = parameters.specs(),
          .reads_honest_rows = true,
          .remembers = true,
          .make = [](const ParameterValues& values,
                     const AttackContext& context) -> Result<MakeAttack> {
            GOSSAMER_TRY(const Options options, parameters.read("attack", values));
            return MakeAttack([=] { return std::make_unique<Mimic>(options, context); });
          }};
}

}  // namespace gossamer::gossip::attacks::mimic
