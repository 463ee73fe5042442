// Checks of the participants of an open run.
#include <algorithm>

#include <fmt/ranges.h>

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {

namespace {

/// Whether `a` lost its link to peer j in round t: its other end had sent its row before.
bool breaks(const TraceIndex& index, int a, int j, Round t) {
  const LinkPeriod* link = index.links().at(a, j, t);
  return link != nullptr && link->lost == t;
}

}  // namespace

void check_participants(const TraceIndex& index, Checks& checks) {
  if (!index.scenario.open) return;
  for (int a = 0; a < index.incarnations(); ++a)
    for (const RoundRecord& record : index.incarnation(a).rounds)
      checks.expect(std::ranges::binary_search(record.participants, index.peer_of(a)),
                    "participants", "peer {} did round {}, in which peers {} take part",
                    index.peer_of(a), record.round, fmt::join(record.participants, ", "));
  for (const auto& [key, used] : index.used()) {
    const auto& [a, t, channel, j] = key;
    const RoundRecord* other = index.record(used.incarnation, used.round);
    if (used.values == 0 || used.round != t || other == nullptr) continue;
    if (breaks(index, a, j, t) || breaks(index, used.incarnation, index.peer_of(a), t)) continue;
    checks.expect(other->participants == index.record(a, t)->participants, "participants",
                  "in round {} peer {} takes peers {} for participants, and peer {}, whose row it "
                  "mixes, peers {}",
                  t, index.peer_of(a), fmt::join(index.record(a, t)->participants, ", "), j,
                  fmt::join(other->participants, ", "));
  }
}

}  // namespace gossamer::simulator
