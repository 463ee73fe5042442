// Checks that links which are up once all faults are over are used again.
#include <algorithm>

#include "simulator/oracle/bounds.hpp"
#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/components.hpp"

namespace gossamer::simulator {
namespace {

class Liveness {
 public:
  Liveness(const TraceIndex& index, const Component& component, Checks& checks)
      : index_(index),
        component_(component),
        quiet_(quiescence_of(index, component)),
        checks_(checks) {}

  /// Every link that is up counts.
  void check_use() {
    const Policy policy = index_.protocol.policy;
    if (quiet_.since == Time(0) || (policy != Policy::sync && policy != Policy::stale)) return;
    for (const int a : component_)
      for (const RoundRecord& record : index_.incarnation(a).rounds) {
        if (record.round < quiet_.from || record.end.empty()) continue;
        if (policy == Policy::stale && record.round < static_cast<Round>(index_.scenario.staleness))
          continue;
        for (const topology::Neighbour& j :
             index_.w(a, record.round).in_neighbours(index_.peer_of(a)))
          for (Channel c = 0; c < channels(); ++c) {
            const UsedRow* used = index_.find_used(a, record.round, c, j.peer);
            if (used == nullptr || !is_partner(a, used->incarnation)) continue;
            checks_.expect(used->values == index_.width(c), "liveness",
                           "the link between peers {} and {} is up, and does not count in round {}",
                           index_.peer_of(a), j.peer, record.round);
          }
      }
  }

  /// A peer that waits for a part of the network that is behind waits until that part has caught
  /// up.
  void check_waits() {
    const std::optional<Time> limit = longest_wait(index_.scenario, index_.protocol);
    if (!limit || quiet_.since == Time(0)) return;
    for (const int a : component_) {
      const RoundRecord* last = nullptr;
      for (const RoundRecord& record : index_.incarnation(a).rounds) {
        if (last != nullptr) {
          const Time waited = record.began - std::max(last->began, quiet_.since);
          checks_.expect(waited <= *limit, "waiting",
                         "peer {} waits {:.3g} s in round {}, and {:.3g} s are enough for any part "
                         "of the network to catch up",
                         index_.peer_of(a), seconds(waited), last->round, seconds(*limit));
        }
        last = &record;
      }
    }
  }

  /// Under `async` a row that has arrived is used in every round until a newer one arrives. The
  /// first row that b sends to `a` in quiescence leaves before b's next round begins, and has
  /// arrived a few round trips later.
  void check_freshness() {
    if (index_.protocol.policy != Policy::async ||
        !index_.protocol.algorithm->requirements().tolerates_peer_loss)
      return;
    for (const int a : component_)
      for (const int b : component_)
        if (a != b && linked(index_, a, b)) check_freshness(a, b);
  }

  /// Under `deadline` a late row is left out, and its sender is not waited for the next time; so no
  /// single link is bound to count. But in quiescence some link of a component counts in any 32 + 2
  /// n rounds in a row: peers that are out of step wait for each other again, after 4, 8, 16
  /// rounds, …, and a peer that is far behind leaves rounds out. Where a round takes less time than
  /// a row in flight, links are busy with one row for several rounds, which then do not count.
  void check_exchanges() {
    if (index_.protocol.policy != Policy::deadline ||
        !index_.protocol.algorithm->requirements().trainer)
      return;
    if (way_ms() > index_.scenario.steps.step_ms * index_.protocol.algorithm->steps_per_round())
      return;
    const std::map<Round, bool> counts = counting_rounds();
    const std::size_t enough = 32 + 2 * static_cast<std::size_t>(index_.peers());
    std::size_t unused = 0;
    for (const auto& [t, any] : counts) {
      unused = any ? 0 : unused + 1;
      if (counts.size() >= enough)
        checks_.expect(unused < enough, "freshness",
                       "in {} rounds up to round {}, no link between the peers {} counts", unused,
                       t, names_of(index_, component_));
    }
  }

 private:
  Channel channels() const { return static_cast<Channel>(index_.protocol.rows.size()); }
  bool is_partner(int a, int b) const {
    return std::ranges::binary_search(component_, b) && linked(index_, a, b);
  }
  bool is_in_neighbour(int a, int b, Round t) const {
    const auto in_neighbours = index_.w(a, t).in_neighbours(index_.peer_of(a));
    return std::ranges::find(in_neighbours, index_.peer_of(b), &topology::Neighbour::peer) !=
           in_neighbours.end();
  }

  void check_freshness(int a, int b) {
    const Time settled_at = std::max(quiet_.since, faults_end(index_.scenario));
    const std::vector<RoundRecord>& sent = index_.incarnation(b).rounds;
    const auto first = std::ranges::find_if(sent, [&](const RoundRecord& record) {
      return record.began >= settled_at && record.round >= quiet_.from &&
             is_in_neighbour(a, b, record.round);
    });
    if (first == sent.end() || std::next(first) == sent.end()) return;
    const Time due = std::next(first)->began + settling_time(index_.scenario, index_.protocol);
    for (const RoundRecord& record : index_.incarnation(a).rounds) {
      if (record.began < due || record.round < quiet_.from || record.end.empty() ||
          !is_in_neighbour(a, b, record.round))
        continue;
      const Incarnation& sender = index_.incarnation(b);
      if (sender.finished && record.began >= sender.finished_at)
        break;  // it no longer answers proposals about a restored link
      for (Channel c = 0; c < channels(); ++c) {
        if (!index_.travels(c)) continue;
        const UsedRow& used = index_.used(a, record.round, c, sender.peer);
        checks_.expect(used.values == index_.width(c) && used.round >= first->round, "freshness",
                       "peer {} uses nothing in round {} that peer {} sent since its round {}",
                       index_.peer_of(a), record.round, sender.peer, first->round);
      }
    }
  }

  /// The time that a round's rows take to a neighbour.
  double way_ms() const {
    const Scenario& scenario = index_.scenario;
    double bytes = 0;
    for (Channel c = 0; c < channels(); ++c)
      if (index_.travels(c))
        bytes += static_cast<double>(index_.width(c)) *
                 (4 + static_cast<double>(kFrameOverheadBytes) / scenario.chunk_values);
    const double passage_ms = scenario.network.bandwidth_mbit_s > 0
                                  ? 2 * bytes * 8e-3 / scenario.network.bandwidth_mbit_s
                                  : 0;
    return scenario.network.latency_ms + scenario.network.jitter_ms + passage_ms;
  }

  /// The rounds in which W joins two partners of the component, and whether any such link counts.
  std::map<Round, bool> counting_rounds() const {
    const Time settled_at = std::max(quiet_.since, faults_end(index_.scenario)) +
                            settling_time(index_.scenario, index_.protocol);
    std::map<Round, bool> counts;
    for (const int a : component_)
      for (const RoundRecord& record : index_.incarnation(a).rounds) {
        if (record.began < settled_at || record.round < quiet_.from || record.end.empty()) continue;
        for (const topology::Neighbour& j :
             index_.w(a, record.round).in_neighbours(index_.peer_of(a)))
          for (Channel c = 0; c < channels(); ++c) {
            const UsedRow* used = index_.find_used(a, record.round, c, j.peer);
            if (used == nullptr || !is_partner(a, used->incarnation)) continue;
            const UsedRow* back =
                index_.find_used(used->incarnation, record.round, c, index_.peer_of(a));
            if (back == nullptr || back->incarnation != a) continue;
            bool& any = counts[record.round];
            any = any || (used->values == index_.width(c) && back->values == index_.width(c));
          }
      }
    return counts;
  }

  const TraceIndex& index_;
  const Component& component_;
  Quiescence quiet_;
  Checks& checks_;
};

}  // namespace

void check_liveness(const TraceIndex& index, Checks& checks) {
  for (const Component& component : components_of(index)) {
    Liveness liveness(index, component, checks);
    liveness.check_use();
    liveness.check_waits();
    liveness.check_freshness();
    liveness.check_exchanges();
  }
}

}  // namespace gossamer::simulator
