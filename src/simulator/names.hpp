// The simulator uses the protocol's vocabulary (rounds, rows, links, policies) without a prefix.
#pragma once

namespace gossamer {

namespace gossip {}

namespace simulator {
using namespace gossip;
}

}  // namespace gossamer
