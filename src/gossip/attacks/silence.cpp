// Silence: a hostile peer sends no row to honest peers in every k-th round. It declines these
// exchanges, so that its honest neighbours mix without it, as without a lost or late row. A policy
// under which they would wait for the row without end is refused.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::silence {
namespace {

struct Options {
  int every = 1;
};

}  // namespace

AttackKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "every", &Options::every,
      {.help = "k: no row is sent in every k-th round, of which attack.from is the first",
       .minimum = 1,
       .maximum = 1e6,
       .unit = "rounds"});
  return {.name = "silence",
          .summary = "no row in every k-th round",
          .source = "",
          .parameters = parameters.specs(),
          .silent_every = [](const ParameterValues& values) -> Result<Round> {
            GOSSAMER_TRY(const Options options, parameters.read("attack", values));
            return static_cast<Round>(options.every);
          }};
}

}  // namespace gossamer::gossip::attacks::silence
