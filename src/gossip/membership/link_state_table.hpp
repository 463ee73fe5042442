// The link states of the network, as one peer knows them: for each end of a link the newest version
// that has reached this peer, and the peers that are reachable by the links that are up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

/// One end of a link: the peer at this end, and the peer at the other end.
using LinkEnd = std::pair<int, int>;
/// Counts the changes of a link end's state: odd when the peer has lost the link, even when it is
/// up. The higher version is the later one.
using LinkVersion = std::uint32_t;

inline bool is_lost(LinkVersion version) { return version % 2 != 0; }

/// A link is up where neither end has lost it.
class LinkStateTable {
 public:
  /// `partners`: the links of the network, by peer, ascending.
  LinkStateTable(int peer, std::shared_ptr<const std::vector<std::vector<int>>> partners)
      : peer_(peer), partners_(std::move(partners)) {}

  int peers() const { return static_cast<int>(partners_->size()); }
  bool is_link(LinkEnd end) const;
  /// 0 for a link end that was never lost.
  LinkVersion version(LinkEnd end) const;
  /// Stores the version if it is newer than the known one, and returns whether it is.
  bool merge(LinkEnd end, LinkVersion version);
  /// The next version of a link end that is lost, or up.
  LinkVersion next_version(LinkEnd end, bool lost) const;
  /// Of the link ends that were ever lost: at most two for each link of the network.
  const std::map<LinkEnd, LinkVersion>& versions() const { return versions_; }

  /// The peers that a path of links which are up leads to, this one included, ascending.
  std::vector<int> reachable() const { return reached_over(*partners_); }
  /// Whether every peer that this peer's values reach over links that are up, at any number of
  /// hops, also reaches this peer. With the participants of round t.
  bool is_strongly_connected(const topology::MixingSchedule& schedule, topology::Round t) const;

 private:
  using Arcs = std::vector<std::vector<int>>;  ///< by peer: the peers at the other ends, ascending
  /// The arcs of all rounds with some participants.
  struct ArcsAmong {
    std::vector<int> ids;
    const topology::MixingSchedule* schedule = nullptr;
    Arcs out, in;
  };

  std::vector<int> reached_over(const Arcs& arcs) const;
  const ArcsAmong& arcs_in(const topology::MixingSchedule& schedule, topology::Round t) const;

  int peer_;
  std::shared_ptr<const std::vector<std::vector<int>>> partners_;
  std::map<LinkEnd, LinkVersion> versions_;
  /// As of the last call of arcs_in(): a member may send very many changes of links, and a sequence
  /// may have to be drawn for the arcs.
  mutable ArcsAmong arcs_;
};

}  // namespace gossamer::gossip
