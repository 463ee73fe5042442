// The Gaussian attack: a hostile peer sends normal numbers of mean 0 and standard deviation s in
// place of its row. The numbers are keyed by (seed, peer, round), the same for all receivers.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::noise {
namespace {

class Noise final : public Attack {
 public:
  explicit Noise(const AttackContext& context) : seed_(context.seed) {}

  std::vector<double> message(const AttackView& view, int, double strength) const override {
    std::vector<double> message = normal_numbers(view, seed_);
    for (double& value : message) value *= strength;
    return message;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

AttackKind descriptor() {
  return {.name = "noise",
          .summary = "normal random numbers in place of the row",
          .source = "Blanchard, El Mhamdi, Guerraoui and Stainer 2017",
          .parameters = {},
          .strength_help = "standard deviation of the numbers",
          .default_strength = published(200),
          .make = make_attack<Noise>};
}

}  // namespace gossamer::gossip::attacks::noise
