// Equivocation: a hostile peer sends different rows to different neighbours,
//   x + s (‖x‖/√d) v  to receivers of even id,   x − s (‖x‖/√d) v  to those of odd id,
// where x is its own row and v are d normal numbers, keyed by (seed, peer, round). The messages to
// equally many receivers of each sort have the mean x, and drive the receivers apart.
#include <cmath>

#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::different {
namespace {

class Different final : public Attack {
 public:
  explicit Different(const AttackContext& context) : seed_(context.seed) {}

  std::vector<double> message(const AttackView& view, int receiver,
                              double strength) const override {
    std::vector<double> message(view.own.begin(), view.own.end());
    double square = 0;
    for (const double value : message) square += value * value;
    const double root = std::sqrt(square / static_cast<double>(message.size()));
    const double factor = (receiver % 2 == 0 ? 1 : -1) * strength * root;
    const std::vector<double> numbers = normal_numbers(view, seed_);
    for (std::size_t k = 0; k < message.size(); ++k) message[k] += factor * numbers[k];
    return message;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

AttackKind descriptor() {
  return {.name = "different",
          .summary = "different rows to different neighbours: the own row, plus and minus noise",
          .source = "equivocation: Lamport, Shostak and Pease 1982",
          .parameters = {},
          .strength_help = "size of the noise, relative to the root mean square of the row",
          .default_strength = published(1),
          .make = make_attack<Different>};
}

}  // namespace gossamer::gossip::attacks::different
