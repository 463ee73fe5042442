// Parts of a round that several algorithms share. Thread: the scheduler's. The node outlives the
// task.
#pragma once

#include "gossip/node/node.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

/// A worker's round with servers that each own a part of the parameters: g ← ∇f_i(x; batch_i),
/// which goes to the servers; x, row 0, ← what they hold then.
task<void> push_and_pull(Node& node, Round t, int servers);

/// Push-sum's local steps: `steps` times x ← x − γ ∇f_i(z; batch_i), where (x, w) is row `sum` and
/// z = x/w row 0. At first z is x/w already; after the last step it is not yet.
task<void> push_sum_steps(Node& node, int sum, int steps);
/// Row 0 ← x/w, (x, w) being row `sum`.
task<void> divide_by_weight(Node& node, int sum);

}  // namespace gossamer::gossip
