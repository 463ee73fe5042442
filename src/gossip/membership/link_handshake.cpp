#include "gossip/membership/link_handshake.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::gossip {

LinkHandshake::LinkHandshake(Endpoint& endpoint, const std::vector<int>& partners, bool may_cross,
                             Owner owner)
    : endpoint_(endpoint), may_cross_(may_cross), owner_(std::move(owner)) {
  for (const int partner : partners) links_[partner];
}

bool LinkHandshake::is_isolated() const {
  return std::ranges::none_of(
      links_, [](const auto& entry) { return entry.second.active || entry.second.proposed; });
}

bool LinkHandshake::awaits_proposal() const {
  return std::ranges::any_of(links_, [](const auto& entry) {
    const PartnerLink& link = entry.second;
    return link.up && !link.active && link.peers_round && !link.proposed;
  });
}

void LinkHandshake::send(int to, ControlMessage message, Round t, std::uint64_t donor_steps) {
  ChunkHeader header = control_header(endpoint_.peer(), to, message, t);
  header.donor_steps = donor_steps;
  endpoint_.messenger().send_control(header);
}

void LinkHandshake::send_resync(int to, Round t) {
  owner_.before_resync(to);
  send(to, ControlMessage::resync, t);
}

void LinkHandshake::synchronise(Round first) {
  for (auto& [peer, link] : links_) {
    if (!link.up || link.active || link.proposed) continue;
    send_resync(peer, first);
    if (link.peers_round) on_resync(peer, *link.peers_round);
  }
}

void LinkHandshake::on_resync(int peer, Round peers_round, bool rejected) {
  if (!rejected && peer < endpoint_.peer()) return;
  const Round t = std::max(peers_round + 1, endpoint_.earliest_next()) + links_.at(peer).margin;
  propose(peer, owner_.first_agreeable(peer, t), 0);
}

void LinkHandshake::propose(int peer, Round t, std::uint64_t steps, ControlMessage message) {
  withdraw(peer);
  if (is_isolated()) endpoint_.skip_to_round(t);
  endpoint_.on_link_restored(peer, t);
  endpoint_.view().set_proposed(peer, true);
  links_.at(peer).proposed = t;
  owner_.on_change();
  send(peer, message, t, steps);
}

void LinkHandshake::withdraw(int peer) {
  PartnerLink& link = links_.at(peer);
  if (link.proposed) endpoint_.on_link_lost(peer);
  link.proposed.reset();
}

void LinkHandshake::on_proposal(int peer, Round first) {
  if (const Round least = owner_.first_agreeable(peer, first); first < least)
    return send(peer, ControlMessage::reject_round, least - 1);
  // No neighbour waits for an isolated peer, so it may skip rounds.
  if (is_isolated()) endpoint_.skip_to_round(first);
  endpoint_.on_link_restored(peer, first);
  agree(peer, first);
}

bool LinkHandshake::yields_to(int peer) {
  if (links_.at(peer).proposed && endpoint_.peer() < peer) return false;
  withdraw(peer);
  return true;
}

Status LinkHandshake::on_rejection(const ChunkHeader& header) {
  PartnerLink& link = links_.at(header.from);
  if (!link.proposed || header.round < *link.proposed) {
    if (may_cross_) return {};  // this peer has made its proposal anew meanwhile, or withdrawn it
    return protocol_error(header, "it rejects a round that was not proposed");
  }
  link.margin = std::min(2 * link.margin, kLargestMargin);
  link.proposed.reset();
  endpoint_.on_link_lost(header.from);
  on_resync(header.from, header.round, true);
  return {};
}

void LinkHandshake::agree(int peer, Round first) {
  PartnerLink& link = links_.at(peer);
  endpoint_.view().set_proposed(peer, false);
  link.proposed.reset();
  link.peers_round.reset();
  link.active = true;
  link.margin = 1;
  owner_.on_change();
  owner_.on_agreed(peer, first);
}

void LinkHandshake::take_offer(int peer, Round first) {
  PartnerLink& link = links_.at(peer);
  if (link.offered) endpoint_.on_link_lost(peer);
  link.offered = first;
  // It has rows to give, and may have sent no resync: one that has joined meanwhile.
  if (!link.peers_round) link.peers_round = first;
  endpoint_.on_link_restored(peer, first);
}

void LinkHandshake::answer_offers() {
  for (auto& [peer, link] : links_) {
    const auto offered = std::exchange(link.offered, std::nullopt);
    if (!offered) continue;
    const Round least = std::max(endpoint_.earliest_next(), *offered);
    if (owner_.first_agreeable(peer, least) == *offered) {
      agree(peer, *offered);
      continue;
    }
    endpoint_.on_link_lost(peer);
    on_proposal(peer, *offered);
  }
}

std::vector<int> LinkHandshake::drop_offers() {
  std::vector<int> dropped;
  for (auto& [peer, link] : links_) {
    if (!std::exchange(link.offered, std::nullopt)) continue;
    endpoint_.on_link_lost(peer);
    dropped.push_back(peer);
  }
  return dropped;
}

}  // namespace gossamer::gossip
