// What a view of a run shows, as the JSON of the page (docs/WATCH.md) and in Prometheus' text
// format.
#pragma once

#include <string>

#include "peer/watch/run_view.hpp"

namespace gossamer::peer {

/// The answer to /state.
std::string state_json(const ViewSnapshot& snapshot);

/// The answer to /rounds/R.
std::string round_json(std::uint64_t round, const ReplayedRound& replayed);

/// The answer to /metrics, of a snapshot of everything: Prometheus' text format 0.0.4. A value that
/// is not known has no line.
std::string metrics_text(const ViewSnapshot& snapshot);

}  // namespace gossamer::peer
