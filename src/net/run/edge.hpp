// The edges of a network as one process sees them: for each pair of a hosted peer and a peer of
// another process, its link, its session, and the attempts to connect it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gossip/link.hpp"
#include "net/relay/detour.hpp"
#include "net/run/admission.hpp"
#include "net/session/session.hpp"
#include "net/startup/connector.hpp"

namespace gossamer::net {

/// A pair and its connection. Of the two peers the one with the lower id connects.
struct Edge final : gossip::Link {
  int local = 0, remote = 0;
  bool awaited = true;  ///< before the network runs
  /// While an attempt is under way, for a first connection or for another one of the session.
  std::unique_ptr<Connector> connector;
  /// While another way is looked for.
  std::unique_ptr<Detour> detour;
  Route route;  ///< of the latest connection; direct before the first
  /// Once connected. A closed session stays until there is another.
  std::unique_ptr<Session> session;
  std::optional<PublicKey> key;         ///< that the other end of the latest connection has proved
  std::uint64_t sessions = 0;           ///< that there have been, this one included
  std::uint64_t requested_session = 0;  ///< id of the session that was last asked for
  /// Why the last connection that the other end made did not last: a clause after "peer 3: ".
  std::string remote_attempt;

  /// The link carries nothing, and the layers above know that, or will ask. Set while the network
  /// runs and there is no session, or none from which a frame has come: the other end may have
  /// given up a connection while it was made.
  bool lost = false;
  bool parted = false;  ///< the last session ends because the other end has left, and may come back
  /// Of a session that began after joining: the channels on which the beginning of a message was
  /// sent over it.
  std::optional<std::set<gossip::Channel>> started_channels;
  /// Counted frames of the session up to the last one of figures (SendQueue::pushed).
  std::uint64_t figures_sent = 0;
  Admission admission;
  std::string last_rejection;  ///< the last reason why the other end rejected this one

  bool connects() const { return local < remote; }
  /// This process has made the latest connection, to the address of the other end.
  bool called() const {
    return route.way == (connects() ? Route::Way::direct : Route::Way::reversed);
  }
  /// There is a session, though perhaps without a connection at the moment.
  bool connected() const { return session != nullptr && !session->closed(); }
  bool attached() const { return connected() && session->attached(); }
  bool carries() const { return connected() && !lost && !session->remote().said_goodbye; }
  bool has_session(std::uint64_t id) const {
    return id != 0 && connected() && session->options().id == id;
  }

  /// Drops the chunk if the link is lost, or if the beginning of its message was sent over a
  /// session that is gone.
  void send(gossip::Chunk chunk) override;
  bool delays_writer() const override { return connected() && session->queue().delays_writer(); }
};

/// All edges of a process, by (local, remote). Edges keep their address.
class EdgeTable {
 public:
  /// `pairs`: (hosted peer, peer of another process), each pair once.
  /// `newcomers`: other ends that are not awaited.
  EdgeTable(const std::vector<std::pair<int, int>>& pairs, const std::set<int>& newcomers);

  auto begin() { return edges_.begin(); }
  auto end() { return edges_.end(); }
  auto begin() const { return edges_.begin(); }
  auto end() const { return edges_.end(); }

  /// Null if there is none.
  Edge* find(int local, int remote);
  const Edge* find(int local, int remote) const;
  /// A pair that is not in the table is a bug.
  Edge& at(int local, int remote);
  const Edge& at(int local, int remote) const;
  Edge& of(const Session& session);
  /// Whether the predicate holds of every session that there is.
  bool all_sessions(const std::function<bool(const Session&)>& predicate) const;

 private:
  std::map<std::pair<int, int>, Edge> edges_;
};

}  // namespace gossamer::net
