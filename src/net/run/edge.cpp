#include "net/run/edge.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace gossamer::net {

void Edge::send(gossip::Chunk chunk) {
  GOSSAMER_CHECK(session != nullptr || lost, "a chunk before the network was joined");
  if (lost) return;
  if (started_channels && chunk.header.control == gossip::ControlMessage::none) {
    if (chunk.header.offset == 0) started_channels->insert(chunk.header.channel);
    else if (!started_channels->contains(chunk.header.channel)) return;
  }
  session->send(std::move(chunk));
}

EdgeTable::EdgeTable(const std::vector<std::pair<int, int>>& pairs,
                     const std::set<int>& newcomers) {
  for (const auto& [local, remote] : pairs) {
    Edge& edge = edges_[{local, remote}];
    edge.local = local;
    edge.remote = remote;
    edge.awaited = !newcomers.contains(remote);
  }
}

const Edge* EdgeTable::find(int local, int remote) const {
  const auto found = edges_.find({local, remote});
  return found == edges_.end() ? nullptr : &found->second;
}

Edge* EdgeTable::find(int local, int remote) {
  return const_cast<Edge*>(std::as_const(*this).find(local, remote));
}

const Edge& EdgeTable::at(int local, int remote) const {
  const Edge* edge = find(local, remote);
  GOSSAMER_CHECK(edge != nullptr, "a pair that the setup does not name");
  return *edge;
}

Edge& EdgeTable::at(int local, int remote) {
  return const_cast<Edge&>(std::as_const(*this).at(local, remote));
}

Edge& EdgeTable::of(const Session& session) {
  return at(session.options().local(), session.options().remote());
}

bool EdgeTable::all_sessions(const std::function<bool(const Session&)>& predicate) const {
  return std::ranges::all_of(edges_, [&](const auto& entry) {
    return !entry.second.session || predicate(*entry.second.session);
  });
}

}  // namespace gossamer::net
