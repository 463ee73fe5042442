#include "gossip/membership/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::gossip {
namespace {

bool has_request_of(int peer, const std::vector<RowsRequest>& requests) {
  return std::ranges::find(requests, peer, &RowsRequest::from) != requests.end();
}

/// Both ends make the link anew. `why`: what peer `self` does.
void make_anew(Exchange& exchange, int self, int peer, const char* why) {
  exchange.faults().reset_link(self, peer,
                               {ErrorKind::lost_peer, fmt::format("peer {} {}", self, why)});
}

Status disagree(Exchange& exchange, int self, int peer) {
  const std::string why = fmt::format("peers {} and {} agreed on rounds that differ", peer, self);
  exchange.faults().reset_link(self, peer, {ErrorKind::lost_peer, why});
  return {};
}

}  // namespace

Membership::Membership(Exchange& exchange, Node& node, Options options)
    : exchange_(exchange),
      node_(node),
      endpoint_(node.endpoint()),
      options_(std::move(options)),
      handshake_(endpoint_, options_.partners_of(endpoint_.peer()), options_.changing != nullptr,
                 {[this](int peer, Round t) { return first_agreeable(peer, t); },
                  [this](int peer, Round first) { on_agreed(peer, first); },
                  [this](int to) {
                    if (participants_) participants_->send_all(to);
                  },
                  [this] { change_.notify(); }}),
      flooding_(exchange, node, options_,
                [this](int partner) { return handshake_.link(partner).active; }),
      catch_ups_(exchange, endpoint_, options_, flooding_,
                 [this](int partner) { return handshake_.link(partner).active; }),
      wait_([this] { endpoint_.messenger().notify(); },
            [this](Round t) {
              for (const auto& [peer, link] : handshake_.links())
                if (link.up) handshake_.send(peer, ControlMessage::change_begun, t);
            }),
      change_(exchange.scheduler()) {
  if (options_.changing != nullptr) begin_open();
  endpoint_.on_membership_message = [this](const ChunkHeader& header) {
    return on_control_message(header);
  };
}

/// Of the peers that take no part at the start, no process may run yet.
void Membership::begin_open() {
  participants_.emplace(
      exchange_, endpoint_, options_, flooding_,
      [this](int partner) -> const PartnerLink& { return handshake_.link(partner); });
  participants_->on_admitted = [this](int peer) {
    if (peer != endpoint_.peer()) offer_link(peer);
  };
  participants_->on_unaware = [this](int peer) {
    on_link_lost(peer,
                 fmt::format("peer {} did its last round before other peers took part", peer));
    exchange_.faults().part(endpoint_.peer(), peer);
  };
  // The others need no news of the lost link: peers in earlier rounds still count that peer among
  // the participants.
  participants_->on_gone = [this](int peer) {
    handshake_.link(peer) = PartnerLink::down();
    endpoint_.on_link_lost(peer);
    participants_->on_link_lost(peer);
    exchange_.faults().part(endpoint_.peer(), peer);
    change_.notify();
  };
  for (auto& [peer, link] : handshake_.links()) {
    if (options_.changing->participants().takes_part(peer, 0)) continue;
    link = PartnerLink::down();
    endpoint_.on_link_lost(peer);
  }
}

// ---- events from the network

void Membership::on_link_lost(int peer, const std::string& why) {
  PartnerLink& link = handshake_.link(peer);
  if (!link.up) return;
  const bool active = link.active;
  link = PartnerLink::down();
  std::erase_if(requests_, [peer](const RowsRequest& request) { return request.from == peer; });
  const Round t = endpoint_.round();
  endpoint_.on_link_lost(peer);
  if (participants_) participants_->on_link_lost(peer);
  if (donor_ == peer) {
    donor_.reset();
    start_.reset();
    request_state();
  }
  change_.notify();
  if (!active) return;
  flooding_.report({Event::Kind::link_lost, t, peer, why},
                   fmt::format("{}; peer {} continues without it", why, endpoint_.peer()));
  flooding_.publish(peer, t);
}

// The peer answers no proposal any more. The rows of active links have all arrived.
void Membership::on_peer_left(int peer) {
  if (handshake_.link(peer).active) {
    if (participants_) participants_->on_partner_left(peer);
    return;
  }
  on_link_lost(peer, fmt::format("peer {} has done its last round", peer));
  if (participants_) exchange_.faults().part(endpoint_.peer(), peer);
}

void Membership::on_link_restored(int peer) {
  PartnerLink& link = handshake_.link(peer);
  GOSSAMER_CHECK(!link.up, "a link is restored that was not lost");
  link.up = true;
  if (joining_ || wait_.waits()) return;
  handshake_.send_resync(peer, endpoint_.round());
  if (participants_) offer_link(peer);
}

Status Membership::on_control_message(const ChunkHeader& header) {
  if (!handshake_.links().contains(header.from))
    return protocol_error(header, "it is no partner of this peer");
  if (!handshake_.link(header.from).up) return {};  // sent before the loss
  if (header.control == ControlMessage::change_begun) {
    wait_.note_begun(header.round);
    if (donor_ == header.from) endpoint_.on_donor_begins(header.from, header.round);
    return {};
  }
  if (header.control == ControlMessage::participant)
    return participants_
               ? participants_->receive(header)
               : protocol_error(header, "a change of participants in a run that is not open");
  if (header.control == ControlMessage::catch_up)
    return handshake_.link(header.from).active ? catch_ups_.receive(header) : Status();
  return has_link_state(header.control) ? on_link_state(header) : on_handshake(header);
}

Status Membership::on_link_state(const ChunkHeader& header) {
  GOSSAMER_TRY_STATUS(flooding_.check(header));
  const LinkState& state = header.link_state;
  PartnerLink& link = handshake_.link(header.from);
  const bool own_link = state.end == header.from && state.neighbour == endpoint_.peer();
  if (own_link && !is_lost(state.version) && !state.reachability_only &&
      link.proposed == header.round)
    handshake_.agree(header.from, header.round);
  if (!link.active) return {};  // all states are sent once it is
  return flooding_.receive(header);
}

// ---- the handshake that lets a restored link take effect

Status Membership::on_handshake(const ChunkHeader& header) {
  PartnerLink& link = handshake_.link(header.from);
  // In an open run a neighbour may make an offer anew while this peer accepts the first.
  if (link.active && participants_ && header.control == ControlMessage::offer_round)
    return disagree(exchange_, endpoint_.peer(), header.from);
  if (link.active) return protocol_error(header, "it restores a link that was not lost");
  switch (header.control) {
    case ControlMessage::request_state:
      handshake_.withdraw(header.from);
      if (!has_request_of(header.from, requests_)) requests_.push_back({header.from, header.round});
      if (participants_ && !wait_.waits()) participants_->admit(header.from);
      if (wait_.waits()) set_wait(wait_.until());
      return {};
    case ControlMessage::resync:
      wait_.note_begun(header.round);
      if (joining_ || wait_.waits()) {
        link.peers_round = header.round;
        if (joining_ && !donor_) request_state();
      } else if (!link.proposed) {
        handshake_.on_resync(header.from, header.round);
      }
      return {};
    case ControlMessage::reject_round: return handshake_.on_rejection(header);
    case ControlMessage::propose_round:
      if (joining_) return on_start_point(header);
      if (participants_ && link.proposed == header.round) return on_same_proposal(header);
      if (participants_ && !handshake_.yields_to(header.from)) return {};
      if (link.proposed || has_request_of(header.from, requests_))
        return protocol_error(header, "it proposes a round where this peer has to propose it");
      handshake_.on_proposal(header.from, header.round);
      return {};
    case ControlMessage::offer_round: return on_offer(header);
    default: return protocol_error(header, "it sends an unknown membership message");
  }
}

/// A peer that is to join takes part from its first round on, with the rows of its donor, so
/// its neighbours let their links take effect in that round, and wait for its first rows.
void Membership::offer_link(int peer) {
  const PartnerLink& link = handshake_.link(peer);
  const std::optional<Round> first = participants_->first_to_come(peer);
  if (joining_ || wait_.waits() || !link.up || link.active || link.offered || !first ||
      link.proposed == first || has_request_of(peer, requests_) ||
      first_agreeable(peer, *first) != *first)
    return;
  handshake_.propose(peer, *first, 0, ControlMessage::offer_round);
}

Status Membership::on_offer(const ChunkHeader& header) {
  if (!participants_) return protocol_error(header, "an offer in a run that is not open");
  if (donor_ == header.from) return {};  // which takes it back as this peer asks it for rows
  if (joining_ && header.round < endpoint_.earliest_next())
    return protocol_error(header, "it offers a round in which no peer can join");
  if (joining_) {
    handshake_.take_offer(header.from, header.round);
    if (!donor_) request_state();
  } else if (handshake_.link(header.from).proposed == header.round) {
    return on_same_proposal(header);
  } else if (handshake_.yields_to(header.from)) {
    handshake_.on_proposal(header.from, header.round);
  }
  return {};
}

/// Of an open run: both ends propose the same round. It may have begun, and the other end's row of
/// it follows, so neither of them may reject it.
Status Membership::on_same_proposal(const ChunkHeader& header) {
  if (participants_->first_agreeable(header.from, header.round) != header.round)
    return disagree(exchange_, endpoint_.peer(), header.from);
  handshake_.agree(header.from, header.round);
  return {};
}

/// The donor's proposal to this joining peer.
Status Membership::on_start_point(const ChunkHeader& header) {
  if (donor_ != header.from || start_ || header.round < endpoint_.earliest_next() ||
      header.round > exchange_.options().rounds || header.donor_steps > kMostLocalSteps)
    return protocol_error(header, "it proposes a start that was not requested, or is impossible");
  start_ = StartPoint{header.round, header.donor_steps};
  // Its row of that round may arrive before this peer has taken the rows that it joins with.
  endpoint_.on_link_restored(header.from, header.round);
  change_.notify();
  return {};
}

Round Membership::first_agreeable(int peer, Round t) {
  const Round first = catch_ups_.first_agreeable(t, handshake_.is_isolated());
  return participants_ ? participants_->first_agreeable(peer, first) : first;
}

/// Both ends of a link agree that it takes effect from round `first` on.
void Membership::on_agreed(int peer, Round first) {
  // The peer has rows. Granting what it asked for before would propose a round for an active link.
  std::erase_if(requests_, [peer](const RowsRequest& request) { return request.from == peer; });
  flooding_.report(
      {Event::Kind::link_restored, first, peer, {}},
      participants_ ? fmt::format("from round {} on peer {} mixes with peer {}", first,
                                  endpoint_.peer(), peer)
                    : fmt::format("peer {} is back: from round {} on peer {} mixes with it again",
                                  peer, first, endpoint_.peer()));
  // The other end receives this update too: it is the acceptance of its proposal, and precedes
  // every update of later rounds.
  flooding_.publish(peer, first);
  flooding_.send_all(peer);
  catch_ups_.on_link_active(peer, first);
  if (participants_) participants_->send_all(peer);
}

// ---- joining

void Membership::join(std::optional<Round> again) {
  joining_ = true;
  first_ = again.value_or(0);
  donor_.reset();
  start_.reset();
  wait_.set(std::nullopt);
  if (again) endpoint_.begin_at(0);  // a donor may be behind the round that this peer waited for
  for (auto& [peer, link] : handshake_.links()) {
    const bool was_up = std::exchange(link, PartnerLink::down()).up;
    endpoint_.on_link_lost(peer);
    if (again && was_up)
      make_anew(exchange_, endpoint_.peer(), peer, "joins anew, because it lost its donor");
  }
  flooding_.begin_lost();
  if (participants_) participants_->follow(std::nullopt);
}

void Membership::set_wait(std::optional<Round> until) {
  wait_.set(until);
  if (!until) return handshake_.synchronise(endpoint_.round());
  // The peers that asked for rows are to ask others.
  for (const RowsRequest& request : std::exchange(requests_, {}))
    make_anew(exchange_, endpoint_.peer(), request.from, "takes no part, and gives no rows");
}

Membership::DonorSearch Membership::donor_search() const {
  if (!joining_ && !wait_.waits()) return DonorSearch::not_needed;
  if (std::ranges::none_of(handshake_.links(), [](const auto& entry) { return entry.second.up; }))
    return donor_ ? DonorSearch::requested : DonorSearch::no_neighbour;
  return donor_ || wait_.waits() ? DonorSearch::requested : DonorSearch::only_joining;
}

/// Asks a neighbour that runs: another joining peer has no rows to send.
void Membership::request_state() {
  const auto found = std::ranges::find_if(handshake_.links(), [](const auto& entry) {
    return entry.second.up && entry.second.peers_round;
  });
  endpoint_.starting_rows().request_from(std::nullopt);
  if (found == handshake_.links().end()) return;
  donor_ = found->first;
  if (participants_) follow_donor();
  endpoint_.starting_rows().request_from(donor_);
  handshake_.send(*donor_, ControlMessage::request_state, first_);
  change_.notify();
}

/// The neighbours that wait for this peer's first rows are to go on: it begins later.
void Membership::follow_donor() {
  participants_->follow(donor_);
  for (const int peer : handshake_.drop_offers()) {
    if (peer == donor_) continue;
    make_anew(exchange_, endpoint_.peer(), peer, "asks another peer for rows, and begins later");
  }
}

task<Round> Membership::await_admission() {
  GOSSAMER_CHECK(joining_, "a peer waits for admission that does not join");
  while (true) {
    while (!donor_) co_await change_.next();
    const int donor = *donor_;
    const bool whole =
        co_await node_.receive_state(donor, exchange_.options().requested_channel(), 0);
    if (!whole) continue;
    while (donor_ == donor && !start_) co_await change_.next();
    if (donor_ != donor) continue;
    const StartPoint start = *start_;
    node_.set_steps_done(start.steps);
    co_await node_.reinitialise_rows();
    co_await node_.reset_optimizer();
    if (donor_ != donor || !start_ || start_->round != start.round)
      continue;  // the donor was lost meanwhile
    complete_join(start);
    // In an open run the donor may be no neighbour: this peer would run ahead alone, and its
    // neighbours would have to catch up with it.
    while (participants_ && handshake_.awaits_proposal()) co_await change_.next();
    co_return start.round;
  }
}

void Membership::complete_join(const StartPoint& start) {
  options_.message(fmt::format("peer {} joins in round {}", endpoint_.peer(), start.round));
  joining_ = false;
  const int donor = *std::exchange(donor_, std::nullopt);
  endpoint_.starting_rows().request_from(std::nullopt);
  endpoint_.begin_at(start.round - 1);  // the round of the start point has not begun
  if (participants_) participants_->on_rows_exchanged(donor);
  handshake_.agree(donor, start.round);
  if (participants_) {
    participants_->end_following();
    handshake_.answer_offers();
  }
  handshake_.synchronise(start.round);
  endpoint_.begin_at(start.round);
  if (participants_) participants_->leave_if_asked();
}

// ---- calls of the engine

task<bool> Membership::begin_round(Round t) {
  if (participants_) participants_->begin_round(t);
  catch_ups_.begin_round(t);
  const bool due = flooding_.begin_round(t);
  if (due && node_.conserves_sums()) co_await node_.reinitialise_sums();
  const Round next = endpoint_.earliest_next();
  // The next round may be one that is left out, and is known to be by this peer only. From a peer
  // that leaves with the next round, a joining one would begin alone.
  const bool gives = !catch_ups_.any_to_come() &&
                     exchange_.schedule().participants().takes_part(endpoint_.peer(), next);
  const auto may_join = [&](const RowsRequest& request) {
    if (!gives || request.first > next) return false;
    return !participants_ || participants_->first_to_come(request.from).value_or(0) <= next;
  };
  const auto later = std::ranges::stable_partition(requests_, may_join);
  const std::vector<RowsRequest> granted(requests_.begin(), later.begin());
  requests_.erase(requests_.begin(), later.begin());
  for (const RowsRequest& request : granted) {
    if (participants_) {
      participants_->send_all(request.from);
      participants_->on_rows_exchanged(request.from);
    }
    node_.send_state(request.from, exchange_.options().requested_channel(), 0);
    handshake_.propose(request.from, next, node_.steps_done());
  }
  // Peers that get their rows in a later round are to know that this peer goes on.
  for (const RowsRequest& request : requests_)
    if (exchange_.options().row_limit > Time(0))
      handshake_.send(request.from, ControlMessage::change_begun, t);
  co_return due;
}

}  // namespace gossamer::gossip
