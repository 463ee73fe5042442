// Sign flipping, also called bit flipping: a hostile peer sends −s x, where x is its own row.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::sign_flip {
namespace {

class SignFlip final : public Attack {
 public:
  std::vector<double> message(const AttackView& view, int, double strength) const override {
    std::vector<double> message(view.own.begin(), view.own.end());
    for (double& value : message) value *= -strength;
    return message;
  }
};

}  // namespace

AttackKind descriptor() {
  return {.name = "sign_flip",
          .summary = "the own row with the opposite sign, times the strength",
          .source = "Li, Xu, Chen, Giannakis and Ling 2019 (RSA)",
          .parameters = {},
          .strength_help = "s of −s x",
          .default_strength = published(1),
          .make = make_attack<SignFlip>};
}

}  // namespace gossamer::gossip::attacks::sign_flip
