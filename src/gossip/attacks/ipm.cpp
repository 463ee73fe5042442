// Inner product manipulation: a hostile peer sends receiver i the mean of the honest rows with the
// opposite sign,
//   −ε · mean of x_k over k = i and the honest in-neighbours k of i.
// Xie et al. send −ε times the mean of the honest gradients to a server. The form for rows and
// neighbours, and ε = 0.1, are those of the experiments of He, Karimireddy and Jaggi 2022.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::ipm {
namespace {

class InnerProductManipulation final : public Attack {
 public:
  std::vector<double> message(const AttackView& view, int receiver, double epsilon) const override {
    std::vector<double> message = mean_of(view, view.honest_of(receiver));
    for (double& value : message) value *= -epsilon;
    return message;
  }
};

}  // namespace

AttackKind descriptor() {
  return {.name = "ipm",
          .summary = "inner product manipulation: −ε times the mean of the receiver's honest rows",
          .source = "Xie, Koyejo and Gupta 2020; He, Karimireddy and Jaggi 2022",
          .parameters = {},
          .strength_help = "ε",
          .default_strength = published(0.1),
          .reads_honest_rows = true,
          .make = make_attack<InnerProductManipulation>};
}

}  // namespace gossamer::gossip::attacks::ipm
