// The components of the network that are left at the end of a run, and when changes of their links
// were over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {

/// Incarnations that links still connect, ascending.
using Component = std::vector<int>;

/// When changes of a component's links were over.
struct Quiescence {
  /// The last round in which a link of the component that counted was lost, or one was restored;
  /// kNever: none was.
  Round last = kNever;
  /// All peers of the component learned of it in time, without the restoration of a further link.
  bool announced = false;
  Time since{0};   ///< from then on every link that is up counts
  Round from = 0;  ///< and from this round on nothing changes
};

/// Of incarnations that are alive at the end and did a round.
std::vector<Component> components_of(const TraceIndex& index);
/// Of those among them that take part in the last round.
std::vector<Component> components_at_the_end(const TraceIndex& index);
Quiescence quiescence_of(const TraceIndex& index, const Component& component);
/// An incarnation that counted ended after its last rounds, and peers that had done theirs did not
/// notice.
bool ended_unnoticed(const TraceIndex& index, const Component& component);
/// The round in which the incarnation is to take part again, if it is alive at the end and waits
/// for the rows of a donor; 0: in any, because it joins. Some wait for ever, because nobody is left
/// who has rows (check_joins).
std::optional<Round> awaited_round(const TraceIndex& index, int a);
/// The latest round that the peer may have agreed on, by a time, as the first one of a restored
/// link.
Round latest_agreed_round(const TraceIndex& index, int a, Time when);
/// Whether the two have a link at the end.
inline bool linked(const TraceIndex& index, int a, int b) {
  return index.links().at_the_end(a, b) != nullptr;
}
/// "0, 1, 4": the peers.
std::string names_of(const TraceIndex& index, const Component& component);

}  // namespace gossamer::simulator
