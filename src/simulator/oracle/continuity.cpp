// Checks of what lies between two rounds: rows stay as they are, or are reinitialised.
#include <algorithm>

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/trace_index.hpp"
#include "simulator/world/recording_trainer.hpp"

namespace gossamer::simulator {
namespace {

class Continuity {
 public:
  Continuity(const TraceIndex& index, Checks& checks) : index_(index), checks_(checks) {}

  void check(int a) {
    const RoundRecord* before = nullptr;
    for (const RoundRecord& record : index_.incarnation(a).rounds) {
      if (enters(a, before, record))
        checks_.expect(
            has_rows_of_neighbour(a, record) || (joined(a, before) && has_rows_of_donor(a, record)),
            "continuity",
            "peer {} takes part from round {} on, with rows that no neighbour began it "
            "with",
            index_.peer_of(a), record.round);
      else if (joined(a, before))
        checks_.expect(
            has_rows_of_donor(a, record), "continuity",
            "peer {} joined in round {} with rows, or a count of steps, that no partner had",
            index_.peer_of(a), record.round);
      if ((joined(a, before) || enters(a, before, record)) && !record.trained.empty())
        checks_.expect(record.trained.front().kept_steps == 0, "continuity",
                       "peer {} joined in round {} with the state of its optimizer after {} steps",
                       index_.peer_of(a), record.round, record.trained.front().kept_steps);
      for (std::size_t k = 0; k < index_.protocol.rows.size(); ++k) check_row(a, before, record, k);
      checks_.expect(is_next(a, before, record), "continuity", "peer {} did round {} out of order",
                     index_.peer_of(a), record.round);
      before = &record;
    }
  }

 private:
  /// Whether this is the first round of a peer that joined the network.
  bool joined(int a, const RoundRecord* before) const {
    return before == nullptr && index_.incarnation(a).joins;
  }
  /// Whether the peer took no part in a round between its last one and this one, so that it takes
  /// the rows of a donor.
  bool enters(int a, const RoundRecord* before, const RoundRecord& record) const {
    const int i = index_.peer_of(a);
    const topology::Participants& participants = index_.protocol.participants();
    if (before == nullptr) return index_.protocol.enters(i, record.round);
    return participants.missed(i, record.round) > participants.missed(i, before->round + 1);
  }

  /// The change with which the peer takes part in round t.
  Round change_of(int a, Round t) const {
    const int i = index_.peer_of(a);
    const auto changes = index_.protocol.participants().changes();
    Round last = 0;
    for (const topology::ParticipantChange& change : changes)
      if (change.first <= t && index_.protocol.enters(i, change.first)) last = change.first;
    return last;
  }

  /// A peer that takes part from a change on begins with the rows with which a neighbour begins the
  /// change's round, or, if both leave that out, their first one after it; under `deadline`, where
  /// the neighbour alone may leave it out, with those of its next round, or its last.
  bool has_rows_of_neighbour(int a, const RoundRecord& first) const {
    const auto partners =
        index_.protocol.algorithm->partners(index_.peer_of(a), *index_.protocol.schedule);
    const bool leaves_out = index_.protocol.policy == Policy::deadline;
    const Round change = change_of(a, first.round);
    for (int b = 0; b < index_.incarnations(); ++b) {
      if (!std::ranges::binary_search(partners, index_.peer_of(b))) continue;
      for (const RoundRecord& theirs : index_.incarnation(b).rounds) {
        if (theirs.round >= change && (theirs.round <= first.round || leaves_out) &&
            same_rows(theirs.begin, first))
          return true;
        if (leaves_out && !theirs.end.empty() && same_rows(theirs.end, first)) return true;
      }
    }
    return false;
  }

  bool same_rows(const std::vector<FloatRow>& rows, const RoundRecord& first) const {
    for (std::size_t k = 0; k < index_.protocol.rows.size(); ++k)
      if (index_.protocol.rows[k].is_transferred() && rows[k] != first.begin[k]) return false;
    return true;
  }

  /// A peer that joins begins with rows, and a number of steps, that a partner had at the beginning
  /// of its last round before.
  bool has_rows_of_donor(int a, const RoundRecord& first) const {
    const auto gave = [&](const Incarnation& donor) {
      const RoundRecord* last = nullptr;
      for (const RoundRecord& record : donor.rounds)
        if (record.round < first.round) last = &record;
      return last != nullptr && same_rows(last->begin, first) && last->steps == first.steps;
    };
    return std::ranges::any_of(index_.trace.incarnations, [&](const Incarnation& donor) {
      return index_.links().at(a, donor.peer, first.round) != nullptr && gave(donor);
    });
  }

  void check_row(int a, const RoundRecord* before, const RoundRecord& record, std::size_t k) {
    const RowSpec& spec = index_.protocol.rows[k];
    if (!spec.survives) return;
    const bool joins = joined(a, before) || enters(a, before, record);
    const SavedState* saved = before == nullptr && !joins ? saved_state(a) : nullptr;
    const bool keeps = saved != nullptr && (spec.is_transferred() || !uses_earlier_rows());
    const bool starts =
        (before == nullptr || joins) && !keeps && (!joins || !spec.is_transferred());
    const bool reinitialised = record.reinitialised &&
                               spec.rejoin == RowSpec::Rejoin::reinitialise &&
                               std::ranges::any_of(index_.protocol.rows, &RowSpec::conserved_sum);
    if (starts || reinitialised)
      checks_.expect(record.begin[k] == initial_row(a, before, record, k), "continuity",
                     "peer {} did not begin round {} with the initial values of row {}",
                     index_.peer_of(a), record.round, spec.name);
    else if (keeps)
      checks_.expect(record.begin[k] == saved->rows[k], "continuity",
                     "peer {} resumed in round {} with values of row {} that it had not saved",
                     index_.peer_of(a), record.round, spec.name);
    else if (!joins)
      checks_.expect(record.begin[k] == before->end[k], "continuity",
                     "peer {} changed row {} between rounds {} and {}", index_.peer_of(a),
                     spec.name, before->round, record.round);
  }

  /// The state from which the incarnation resumed; null where it resumed from none.
  const SavedState* saved_state(int a) const {
    if (!index_.trace.resumption || a >= index_.peers()) return nullptr;
    const std::vector<SavedState>& states = index_.trace.resumption->states;
    const auto found = std::ranges::find(states, index_.peer_of(a), &SavedState::peer);
    return found == states.end() ? nullptr : &*found;
  }

  /// Rows that are accounted with messages under way are then reinitialised when a peer resumes.
  bool uses_earlier_rows() const {
    return index_.protocol.policy == Policy::stale || index_.protocol.policy == Policy::async;
  }

  FloatRow initial_row(int a, const RoundRecord* before, const RoundRecord& record,
                       std::size_t k) const {
    const RowSpec& spec = index_.protocol.rows[k];
    const std::size_t width = index_.width(static_cast<Channel>(k));
    FloatRow row;
    if (spec.initial == RowSpec::Initial::parameters) {
      const bool first = before == nullptr && !joined(a, before) && !enters(a, before, record) &&
                         saved_state(a) == nullptr;
      row = first ? start_of(index_.scenario, index_.peer_of(a)) : record.begin[0];
      row.resize(static_cast<std::size_t>(index_.scenario.length));
    }
    row.resize(width - spec.extra, 0.0F);
    row.resize(width, spec.extra_initial);
    return row;
  }

  /// A round in which the peer takes part follows the one before. A peer under `deadline` may leave
  /// rounds out, and so may peers together: all those that links which count join, or one that has
  /// no such link.
  bool is_next(int a, const RoundRecord* before, const RoundRecord& record) const {
    const topology::Participants& participants = index_.protocol.participants();
    const int i = index_.peer_of(a);
    if (!participants.takes_part(i, record.round)) return false;
    if (joined(a, before)) return true;
    if (before == nullptr)
      return participants.next_round(i, index_.trace.first_round()) == record.round;
    if (record.round <= before->round) return false;
    if (index_.protocol.policy == Policy::deadline) return true;
    for (Round t = before->round + 1; t < record.round; ++t)
      if (participants.takes_part(i, t) && !may_leave_out(a, t)) return false;
    return true;
  }

  bool may_leave_out(int a, Round t) const {
    for (const int j :
         index_.protocol.algorithm->partners(index_.peer_of(a), *index_.protocol.schedule))
      if (const LinkPeriod* link = index_.links().at(a, j, t);
          link != nullptr && link->covers(t) && t >= link->entered &&
          index_.record(link->other, t) != nullptr)
        return false;
    return true;
  }

  const TraceIndex& index_;
  Checks& checks_;
};

}  // namespace

void check_continuity(const TraceIndex& index, Checks& checks) {
  const std::vector<std::string>& errors = index.trace.errors;
  checks.expect(errors.empty(), "errors", "{}", errors.empty() ? "" : errors.front());
  Continuity continuity(index, checks);
  for (int a = 0; a < index.incarnations(); ++a) continuity.check(a);
}

}  // namespace gossamer::simulator
