// A little is enough: a hostile peer sends receiver i, at each coordinate,
//   μ − z σ,
// where μ and σ are mean and standard deviation of x_k over k = i and the honest in-neighbours k of
// i, as in the experiments of He, Karimireddy and Jaggi 2022. With m hostile peers of n,
// s = ⌊n/2 + 1⌋ − m honest peers make a majority with them, and
//   z = Φ⁻¹((n − m − s) / (n − m)),
// Φ the distribution function of a standard normal number: about s honest values at a coordinate
// lie farther from the mean than the message does.
#include <fmt/format.h>

#include <cmath>

#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::alie {
namespace {

/// Φ⁻¹(p), 0 < p < 1, by bisection.
double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

Result<double> largest_z(int n, int m) {
  const int s = n / 2 + 1 - m, honest = n - m;
  if (s <= 0)
    return invalid_error(
        fmt::format("attack.strength: {} of {} peers are hostile, which is a majority, and then "
                    "'alie' has no z of its own; set attack.strength to a z, as 1.5",
                    m, n));
  const double share = static_cast<double>(honest - s) / honest;
  constexpr double kRounding = 1e-9;
  if (share > 0.5 + kRounding) return normal_quantile(share);
  return invalid_error(
      fmt::format("attack.strength: with {} hostile of {} peers the z of 'alie' is not positive, "
                  "and the attack has no effect; set attack.strength to a z, as 1.5, or name more "
                  "hostile peers",
                  m, n));
}

class LittleIsEnough final : public Attack {
 public:
  std::vector<double> message(const AttackView& view, int receiver, double z) const override {
    const std::vector<int> honest = view.honest_of(receiver);
    std::vector<double> message = mean_of(view, honest);
    if (honest.size() < 2) return message;
    std::vector<double> squares(message.size());
    for (const int i : honest) {
      const std::vector<float>& row = view.rows[static_cast<std::size_t>(i)];
      for (std::size_t k = 0; k < message.size(); ++k) {
        const double difference = static_cast<double>(row[k]) - message[k];
        squares[k] += difference * difference;
      }
    }
    const auto freedom = static_cast<double>(honest.size() - 1);
    for (std::size_t k = 0; k < message.size(); ++k)
      message[k] -= z * std::sqrt(squares[k] / freedom);
    return message;
  }
};

}  // namespace

AttackKind descriptor() {
  return {.name = "alie",
          .summary =
              "a little is enough: z standard deviations below the mean of the receiver's "
              "honest rows, at each coordinate",
          .source = "Baruch, Baruch and Goldberg 2019; He, Karimireddy and Jaggi 2022",
          .parameters = {},
          .strength_help = "z; by default from the numbers of peers and of hostile peers",
          .default_strength = largest_z,
          .reads_honest_rows = true,
          .make = make_attack<LittleIsEnough>};
}

}  // namespace gossamer::gossip::attacks::alie
