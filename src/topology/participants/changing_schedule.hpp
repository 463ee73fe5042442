// The schedule of a run whose participants change: with each change the topology is made anew, for
// the peers that take part from then on.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// make_schedule() of a request with participants. Each part's W is checked as if it were a run of
/// its own, and begins with its own round 0. Errors of a part name the round from which it lasts.
Result<std::unique_ptr<MixingSchedule>> make_changing_schedule(const ScheduleRequest& request);

}  // namespace gossamer::topology
