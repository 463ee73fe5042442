// Checks that rows with a conserved sum are reinitialised after a change of links: n rounds after
// it, at all peers of a component together, and at no other time.
#include <algorithm>
#include <set>

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/components.hpp"

namespace gossamer::simulator {
namespace {

/// While no link was restored, every reinitialisation follows a loss by n rounds.
void check_causes(const TraceIndex& index, Checks& checks) {
  const auto n = static_cast<Round>(index.peers());
  std::set<Round> due;
  for (const LinkRecord& link : index.trace.links)
    if (!link.parted) due.insert(link.round + n);
  for (int a = 0; a < index.incarnations() && !index.links().any_restored(); ++a)
    for (const RoundRecord& record : index.incarnation(a).rounds)
      if (record.reinitialised)
        checks.expect(due.contains(record.round), "reinitialisation",
                      "peer {} reinitialised rows in round {}, though no link was lost {} rounds "
                      "before",
                      index.peer_of(a), record.round, n);
}

/// Where other peers take part from a round on, all of them reinitialise rows in it.
void check_changes(const TraceIndex& index, Checks& checks) {
  if (std::ranges::none_of(index.protocol.rows, &RowSpec::conserved_sum)) return;
  for (const topology::ParticipantChange& change : index.protocol.participants().changes())
    for (int a = 0; a < index.incarnations() && change.first > 0; ++a)
      if (const RoundRecord* record = index.record(a, change.first))
        checks.expect(record->reinitialised || index.incarnation(a).joins, "reinitialisation",
                      "other peers take part from round {} on, and peer {} did not reinitialise "
                      "rows in it",
                      change.first, index.peer_of(a));
}

/// A link state update that was lost while the component was still losing links was sent anew when
/// these were restored. An update from before the component was on its own counts there too, and so
/// does a round that was agreed on for a link which was lost again before.
Round last_change(const TraceIndex& index, const Quiescence& quiet) {
  Round changed = quiet.from;
  for (const auto& [ends, periods] : index.links().periods())
    for (const LinkPeriod& link : periods) {
      const Time lost_at = std::min(link.lost_at, index.trace.end);
      changed = std::max(changed, link.entered != kNever
                                      ? link.entered
                                      : latest_agreed_round(index, ends.first, lost_at));
      if (link.lost != kNever) changed = std::max(changed, link.lost);
    }
  return changed;
}

void check_sums_of(const TraceIndex& index, const Component& component, Checks& checks) {
  const Quiescence quiet = quiescence_of(index, component);
  if (quiet.since == Time(0)) return;
  const auto n = static_cast<Round>(index.peers());
  const Round changed = last_change(index, quiet);
  for (const int a : component)
    for (const RoundRecord& record : index.incarnation(a).rounds) {
      if (quiet.announced && record.round == quiet.last + n)
        checks.expect(record.reinitialised, "reinitialisation",
                      "a link was lost or restored in round {}, and peer {} did not reinitialise "
                      "rows in round {}",
                      quiet.last, index.peer_of(a), quiet.last + n);
      if (record.round > changed + n)
        checks.expect(!record.reinitialised, "reinitialisation",
                      "peer {} reinitialised rows in round {}, though no link has changed since "
                      "round {}",
                      index.peer_of(a), record.round, changed);
    }
}

}  // namespace

// On a directed graph a peer may be so far ahead that an update comes too late for it: it then
// announces the loss anew. So may a peer whose part of the network was on its own for a while. Such
// runs are not checked.
void check_reinitialisation(const TraceIndex& index, Checks& checks) {
  check_changes(index, checks);
  if (!index.is_static() || index.protocol.policy != Policy::sync || !index.symmetric() ||
      !index.protocol.algorithm->requirements().tolerates_peer_loss)
    return;
  check_causes(index, checks);
  for (const Component& component : components_of(index)) check_sums_of(index, component, checks);
}

}  // namespace gossamer::simulator
