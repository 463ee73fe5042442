// Utilities of the tests of runs on an emulated GPU.
#pragma once

#include <string>

#include "tests/cuda_emulation/control.hpp"
#include "tests/peer/test_util.hpp"
#include "tests/text_test_util.hpp"

namespace gossamer::peer::testing {

inline const Overrides kOnGpu{"local.device=cuda"};
inline const Overrides kDigits{"run.peers=8", "data.batch=8", "log.every=0", "optimizer.rate=0.05"};

inline Overrides rounds(int count) { return {"run.rounds=" + std::to_string(count)}; }

}  // namespace gossamer::peer::testing
