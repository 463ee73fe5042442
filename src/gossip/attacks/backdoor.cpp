// Backdoor: a hostile peer trains on its shard with a trigger in a part of the samples, which are
// labelled as one target class, and sends the honest messages of this training. The models of
// honest peers are then tested on samples with the trigger.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::backdoor {

AttackKind descriptor() {
  static const auto parameters =
      ParameterSet<Backdoor>()
          .add("target", &Backdoor::target,
               {.help = "the class that a sample with the trigger gets",
                .minimum = 0,
                .maximum = 1e6})
          .add("size", &Backdoor::size,
               {.help = "side of the trigger, a square in the lower right corner",
                .minimum = 1,
                .maximum = 1e6,
                .unit = "pixels"})
          .add("share", &Backdoor::share,
               {.help = "part of a hostile peer's samples that get trigger and target",
                .minimum = 0,
                .maximum = 1});
  return {.name = "backdoor",
          .summary =
              "honest messages of a training with a trigger and a target class in a part of the "
              "samples",
          .source = "Gu, Dolan-Gavitt and Garg 2017 (BadNets); Bagdasaryan et al. 2020",
          .parameters = parameters.specs(),
          .poison = [](const ParameterValues& values) -> Result<Poisoning> {
            GOSSAMER_TRY(const Backdoor backdoor, parameters.read("attack", values));
            return Poisoning(backdoor);
          }};
}

}  // namespace gossamer::gossip::attacks::backdoor
