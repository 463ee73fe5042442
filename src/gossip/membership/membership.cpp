#include "gossip/membership/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::gossip {
namespace {

bool has_request_of(int peer, const std::vector<RowsRequest>& requests) {
  return std::ranges::find(requests, peer, &RowsRequest::from) != requests.end();
}

}  // namespace

Membership::Membership(Exchange& exchange, Node& node, Options options)
    : exchange_(exchange),
      node_(node),
      endpoint_(node.endpoint()),
      options_(std::move(options)),
      flooding_(exchange, node, options_,
                [this](int partner) { return links_.at(partner).active; }),
      catch_ups_(exchange, endpoint_, options_, flooding_,
                 [this](int partner) { return links_.at(partner).active; }),
      wait_([this] { endpoint_.messenger().notify(); },
            [this](Round t) {
              for (const auto& [peer, link] : links_)
                if (link.up) send_control(peer, ControlMessage::change_begun, t);
            }),
      change_(exchange.scheduler()) {
  for (const int partner : options_.partners_of(endpoint_.peer())) links_[partner];
  endpoint_.on_membership_message = [this](const ChunkHeader& header) {
    return on_control_message(header);
  };
}

void Membership::send_control(int to, ControlMessage message, Round t, std::uint64_t donor_steps) {
  ChunkHeader header = control_header(endpoint_.peer(), to, message, t);
  header.donor_steps = donor_steps;
  endpoint_.messenger().send_control(header);
}

// ---- events from the network

void Membership::on_link_lost(int peer, const std::string& why) {
  PartnerLink& link = links_.at(peer);
  if (!link.up) return;
  const bool active = link.active;
  link = PartnerLink::down();
  std::erase_if(requests_, [peer](const RowsRequest& request) { return request.from == peer; });
  const Round t = endpoint_.round();
  endpoint_.on_link_lost(peer);
  if (donor_ == peer) {
    donor_.reset();
    start_.reset();
    request_state();
    change_.notify();
  }
  if (!active) return;
  flooding_.report({Event::Kind::link_lost, t, peer, why},
                   fmt::format("{}; peer {} continues without it", why, endpoint_.peer()));
  flooding_.publish(peer, t);
}

// The peer answers no proposal any more. The rows of active links have all arrived.
void Membership::on_peer_left(int peer) {
  if (!links_.at(peer).active)
    on_link_lost(peer, fmt::format("peer {} has done its last round", peer));
}

void Membership::on_link_restored(int peer) {
  PartnerLink& link = links_.at(peer);
  GOSSAMER_CHECK(!link.up, "a link is restored that was not lost");
  link.up = true;
  if (!joining_ && !wait_.waits()) send_control(peer, ControlMessage::resync, endpoint_.round());
}

Status Membership::on_control_message(const ChunkHeader& header) {
  if (!links_.contains(header.from)) return protocol_error(header, "it is no partner of this peer");
  if (!links_.at(header.from).up) return {};  // sent before the loss
  if (header.control == ControlMessage::change_begun) {
    wait_.note_begun(header.round);
    return {};
  }
  if (header.control == ControlMessage::catch_up)
    return links_.at(header.from).active ? catch_ups_.receive(header) : Status();
  return has_link_state(header.control) ? on_link_state(header) : on_handshake(header);
}

Status Membership::on_link_state(const ChunkHeader& header) {
  GOSSAMER_TRY_STATUS(flooding_.check(header));
  const LinkState& state = header.link_state;
  PartnerLink& link = links_.at(header.from);
  const bool own_link = state.end == header.from && state.neighbour == endpoint_.peer();
  if (own_link && !is_lost(state.version) && !state.reachability_only &&
      link.proposed == header.round)
    activate(header.from, header.round);
  if (!link.active) return {};  // all states are sent once it is
  return flooding_.receive(header);
}

// ---- the handshake that lets a restored link take effect

Status Membership::on_handshake(const ChunkHeader& header) {
  PartnerLink& link = links_.at(header.from);
  if (link.active) return protocol_error(header, "it restores a link that was not lost");
  switch (header.control) {
    case ControlMessage::request_state:
      withdraw_proposal(header.from);
      if (!has_request_of(header.from, requests_)) requests_.push_back({header.from, header.round});
      if (wait_.waits()) set_wait(wait_.until());
      return {};
    case ControlMessage::resync:
      wait_.note_begun(header.round);
      if (joining_ || wait_.waits()) {
        link.peers_round = header.round;
        if (joining_ && !donor_) request_state();
      } else if (!link.proposed) {
        on_resync(header.from, header.round);
      }
      return {};
    case ControlMessage::reject_round:
      if (!link.proposed || header.round < *link.proposed)
        return protocol_error(header, "it rejects a round that was not proposed");
      link.margin = std::min(2 * link.margin, kLargestMargin);
      link.proposed.reset();
      endpoint_.on_link_lost(header.from);
      on_resync(header.from, header.round, true);
      return {};
    case ControlMessage::propose_round:
      if (joining_) return on_start_point(header);
      if (link.proposed || has_request_of(header.from, requests_))
        return protocol_error(header, "it proposes a round where this peer has to propose it");
      on_proposal(header.from, header.round);
      return {};
    default: return protocol_error(header, "it sends an unknown membership message");
  }
}

/// The donor's proposal to this joining peer.
Status Membership::on_start_point(const ChunkHeader& header) {
  if (donor_ != header.from || start_ || header.round < endpoint_.earliest_next())
    return protocol_error(header, "it proposes a start that was not requested");
  start_ = StartPoint{header.round, header.donor_steps};
  // Its row of that round may arrive before this peer has taken the rows that it joins with.
  endpoint_.on_link_restored(header.from, header.round);
  change_.notify();
  return {};
}

/// The other end of a restored link was in round `peers_round`. The lower id proposes; after a
/// rejection, the end that proposed before.
void Membership::on_resync(int peer, Round peers_round, bool rejected) {
  if (!rejected && peer < endpoint_.peer()) return;
  const Round t = std::max(peers_round + 1, endpoint_.earliest_next()) + links_.at(peer).margin;
  propose(peer, catch_ups_.first_agreeable(t, is_isolated()), 0);
}

/// Proposes that the link takes effect from round t on, which this peer has not started.
void Membership::propose(int peer, Round t, std::uint64_t steps) {
  withdraw_proposal(peer);
  if (is_isolated()) endpoint_.skip_to_round(t);
  endpoint_.on_link_restored(peer, t);
  links_.at(peer).proposed = t;
  send_control(peer, ControlMessage::propose_round, t, steps);
}

void Membership::withdraw_proposal(int peer) {
  PartnerLink& link = links_.at(peer);
  if (link.proposed) endpoint_.on_link_lost(peer);
  link.proposed.reset();
}

void Membership::on_proposal(int peer, Round first) {
  if (const Round least = catch_ups_.first_agreeable(first, is_isolated()); first < least)
    return send_control(peer, ControlMessage::reject_round, least - 1);
  // No neighbour waits for an isolated peer, so it may skip rounds.
  if (is_isolated()) endpoint_.skip_to_round(first);
  endpoint_.on_link_restored(peer, first);
  activate(peer, first);
}

/// Both ends agree on `first`.
void Membership::activate(int peer, Round first) {
  PartnerLink& link = links_.at(peer);
  link.proposed.reset();
  link.peers_round.reset();
  link.active = true;
  link.margin = 1;
  flooding_.report({Event::Kind::link_restored, first, peer, {}},
                   fmt::format("peer {} is back: from round {} on peer {} mixes with it again",
                               peer, first, endpoint_.peer()));
  // The other end receives this update too: it is the acceptance of its proposal, and precedes
  // every update of later rounds.
  flooding_.publish(peer, first);
  flooding_.send_all(peer);
  catch_ups_.on_link_active(peer, first);
}

/// No neighbour waits for this peer in any round.
bool Membership::is_isolated() const {
  return std::ranges::none_of(
      links_, [](const auto& entry) { return entry.second.active || entry.second.proposed; });
}

// ---- joining

void Membership::join(std::optional<Round> again) {
  joining_ = true;
  first_ = again.value_or(0);
  donor_.reset();
  start_.reset();
  wait_.set(std::nullopt);
  if (again) endpoint_.begin_at(0);  // a donor may be behind the round that this peer waited for
  for (auto& [peer, link] : links_) {
    const bool was_up = std::exchange(link, PartnerLink::down()).up;
    endpoint_.on_link_lost(peer);
    if (again && was_up)
      exchange_.faults().reset_link(
          endpoint_.peer(), peer,
          {ErrorKind::lost_peer,
           fmt::format("peer {} joins anew, because it lost its donor", endpoint_.peer())});
  }
  flooding_.begin_lost();
}

void Membership::set_wait(std::optional<Round> until) {
  wait_.set(until);
  if (!until) return synchronise_links(endpoint_.round());
  // The peers that asked for rows are to ask others.
  for (const RowsRequest& request : std::exchange(requests_, {}))
    exchange_.faults().reset_link(
        endpoint_.peer(), request.from,
        {ErrorKind::lost_peer,
         fmt::format("peer {} takes no part, and gives no rows", endpoint_.peer())});
}

Membership::DonorSearch Membership::donor_search() const {
  if (!joining_ && !wait_.waits()) return DonorSearch::not_needed;
  if (std::ranges::none_of(links_, [](const auto& entry) { return entry.second.up; }))
    return donor_ ? DonorSearch::requested : DonorSearch::no_neighbour;
  return donor_ || wait_.waits() ? DonorSearch::requested : DonorSearch::only_joining;
}

/// Asks a neighbour that runs: another joining peer has no rows to send.
void Membership::request_state() {
  const auto found = std::ranges::find_if(
      links_, [](const auto& entry) { return entry.second.up && entry.second.peers_round; });
  endpoint_.starting_rows().request_from(std::nullopt);
  if (found == links_.end()) return;
  donor_ = found->first;
  endpoint_.starting_rows().request_from(donor_);
  send_control(*donor_, ControlMessage::request_state, first_);
  change_.notify();
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
    if (donor_ != donor || !start_ || start_->round != start.round)
      continue;  // the donor was lost meanwhile
    complete_join(start);
    co_return start.round;
  }
}

void Membership::complete_join(const StartPoint& start) {
  options_.message(fmt::format("peer {} joins in round {}", endpoint_.peer(), start.round));
  joining_ = false;
  const int donor = *std::exchange(donor_, std::nullopt);
  endpoint_.starting_rows().request_from(std::nullopt);
  endpoint_.begin_at(start.round - 1);  // the round of the start point has not begun
  activate(donor, start.round);
  synchronise_links(start.round);
  endpoint_.begin_at(start.round);
}

/// Begins the handshake on links that were restored while this peer had no round.
void Membership::synchronise_links(Round first) {
  for (auto& [peer, link] : links_) {
    if (!link.up || link.active || link.proposed) continue;
    send_control(peer, ControlMessage::resync, first);
    if (link.peers_round) on_resync(peer, *link.peers_round);
  }
}

// ---- calls of the engine

task<bool> Membership::begin_round(Round t) {
  catch_ups_.begin_round(t);
  const bool due = flooding_.begin_round(t);
  if (due && node_.conserves_sums()) co_await node_.reinitialise_sums();
  // The next round may be one that is left out, and is known to be by this peer only.
  if (catch_ups_.any_to_come()) co_return due;
  const Round next = endpoint_.earliest_next();
  const auto later = std::ranges::stable_partition(
      requests_, [next](const RowsRequest& request) { return request.first <= next; });
  const std::vector<RowsRequest> granted(requests_.begin(), later.begin());
  requests_.erase(requests_.begin(), later.begin());
  for (const RowsRequest& request : granted) {
    node_.send_state(request.from, exchange_.options().requested_channel(), 0);
    propose(request.from, next, node_.steps_done());
  }
  co_return due;
}

}  // namespace gossamer::gossip
