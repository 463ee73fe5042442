// Runs with two hostile peers, and what a run with an attack is refused for.
#pragma once

#include <string>

#include "tests/peer/test_util.hpp"

namespace gossamer::peer::testing {

inline Overrides attacked(const std::string& kind, const Overrides& more = {}) {
  return Overrides{"attack.kind=" + kind, "attack.peers=[2, 5]"} + more;
}

/// Empty, if a network of nine peers can run with the settings.
inline std::string attack_refusal_of(const Overrides& overrides) {
  const auto setup = make_setup(configured(Overrides{"run.peers=9"} + overrides));
  return setup.ok() ? "" : setup.error().message;
}

}  // namespace gossamer::peer::testing
