// No attack: all peers are honest. The default.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::none {

AttackKind descriptor() {
  return {.name = "none", .summary = "all peers are honest", .source = "", .parameters = {}};
}

}  // namespace gossamer::gossip::attacks::none
