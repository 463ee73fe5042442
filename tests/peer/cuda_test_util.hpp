// Utilities of the tests of runs on an emulated GPU.
#pragma once

#include <string>
#include <vector>

#include "gossip/algorithm.hpp"
#include "tests/cuda_emulation/control.hpp"
#include "tests/peer/test_util.hpp"
#include "tests/text_test_util.hpp"

namespace gossamer::peer::testing {

inline const Overrides kOnGpu{"local.device=cuda"};
/// The last record evaluates on a few samples: the emulation takes as long for 355 as for 50
/// rounds.
inline const Overrides kDigits{"run.peers=8",          "data.batch=8",
                               "log.every=0",          "optimizer.rate=0.05",
                               "data.validation=0.02", "data.evaluate=validation"};

inline Overrides rounds(int count) { return {"run.rounds=" + std::to_string(count)}; }

/// Each algorithm of the catalog; algorithms with an order in both orders.
inline std::vector<Overrides> algorithms() {
  std::vector<Overrides> all;
  for (const gossip::AlgorithmKind& kind : gossip::algorithms::catalog()) {
    all.push_back({"algorithm.kind=" + kind.name});
    for (const ParameterSpec& spec : kind.parameters)
      if (spec.name == "order") all.push_back(all.back() + Overrides{"algorithm.order=awc"});
      else if (spec.name == "local_steps") all.back().push_back("algorithm.local_steps=2");
  }
  return all;
}

}  // namespace gossamer::peer::testing
