// Label flipping: a hostile peer trains on its shard with class c relabelled as C − 1 − c, where C
// is the number of classes, and sends the honest messages of this training.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::label_flip {

AttackKind descriptor() {
  return {.name = "label_flip",
          .summary = "honest messages of a training with class c relabelled as C − 1 − c",
          .source = "Biggio, Nelson and Laskov 2012; Karimireddy, He and Jaggi 2022",
          .parameters = {},
          .poison = [](const ParameterValues& values) -> Result<Poisoning> {
            GOSSAMER_TRY_STATUS(check_values("attack", {}, values));
            return Poisoning(LabelFlip{});
          }};
}

}  // namespace gossamer::gossip::attacks::label_flip
