#include "gossip/membership/participant_flooding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace gossamer::gossip {
namespace {

/// More changes than a run has rounds for; even, so that to each one by which a peer leaves there
/// is a later one.
constexpr ParticipantVersion kMostVersion = 1U << 31;

/// Changes to come of one peer. A change takes effect within 2 G rounds, and in a multiple of G.
constexpr std::size_t kMostToCome = 16;

/// A peer changes at most twice in a round. Without this bound a member could use up the versions
/// of a peer, which could never take part again.
bool is_possible(ParticipantVersion version, Round first) {
  return version > 0 && version < kMostVersion && (version - 1) / 2 <= first;
}

/// How many rounds apart two neighbours can be, with any participants.
Round largest_distance(Exchange& exchange) {
  const ExchangeOptions& options = exchange.options();
  const auto period = static_cast<Round>(exchange.schedule().longest_period());
  GOSSAMER_CHECK(period > 0 && (options.policy == Policy::sync || options.policy == Policy::stale),
                 "an open run keeps neighbours in step");
  return options.policy == Policy::stale ? period + options.staleness - 1 : period;
}

/// The peers that peer i exchanges rows with in a round of matrix w.
std::set<int> neighbours_of(int i, const topology::MixingMatrix& w) {
  std::set<int> neighbours(w.out_neighbours(i).begin(), w.out_neighbours(i).end());
  for (const topology::Neighbour& neighbour : w.in_neighbours(i)) neighbours.insert(neighbour.peer);
  return neighbours;
}

}  // namespace

ParticipantFlooding::ParticipantFlooding(Exchange& exchange, Endpoint& endpoint,
                                         const MembershipOptions& options,
                                         LinkStateFlooding& link_states,
                                         std::function<const PartnerLink&(int partner)> link)
    : exchange_(exchange),
      endpoint_(endpoint),
      options_(options),
      link_states_(link_states),
      link_(std::move(link)),
      notice_(static_cast<Round>(options.partners->size() - 1) * largest_distance(exchange) + 1),
      changes_(options.changing->participants().at(0).peers) {}

/// The first round in which news that is announced now has reached all. Rounds that this peer is
/// about to leave out do not count: it may have agreed with a neighbour on the one that follows.
Round ParticipantFlooding::known_to_all_from() const {
  return endpoint_.earliest_next() - 1 + notice_;
}

/// The first round in which a change that is announced now may take effect.
Round ParticipantFlooding::next_free() const {
  return (known_to_all_from() + notice_ - 1) / notice_ * notice_;
}

/// Whether the peer at the other end learns of a change from round `first` on in time: the link has
/// taken effect before that was announced.
bool ParticipantFlooding::is_in_step(int peer, Round first) const {
  return in_step_.contains(peer) || endpoint_.view().present_since(peer) + notice_ <= first;
}

/// The changes that a partner has sent; null: none.
const ParticipantChanges* ParticipantFlooding::received_from(int partner) const {
  const auto found = received_.find(partner);
  return found == received_.end() ? nullptr : &found->second;
}

// ---- changes

void ParticipantFlooding::admit(int peer) {
  const ParticipantVersion latest = changes_.latest(peer);
  if (!takes_part(latest) && latest < kMostVersion) announce(peer, latest + 1, next_free());
}

std::optional<Round> ParticipantFlooding::first_to_come(int peer) const {
  const Round first = changes_.latest_since(peer);
  const bool comes = takes_part(changes_.latest(peer)) && first >= endpoint_.earliest_next();
  return comes ? std::optional(first) : std::nullopt;
}

bool ParticipantFlooding::leave() {
  // The others wait for a peer that has asked for rows, and it knows no round that they are in.
  const int self = endpoint_.peer();
  if (follows_ && !leaves_once_joined_)
    options_.message(fmt::format("peer {} leaves once it has joined", self));
  if (follows_) return !std::exchange(leaves_once_joined_, true);
  const Round first = next_free();
  const topology::Participants& participants = options_.changing->participants();
  if (!takes_part(changes_.latest(self)) || !participants.takes_part(self, now())) return false;
  const std::vector<int>& present = participants.at(now()).peers;
  const bool any_stays = std::ranges::any_of(
      present, [&](int peer) { return peer != self && changes_.takes_part_at(peer, first); });
  if (any_stays) announce(self, changes_.latest(self) + 1, first);
  return any_stays;
}

void ParticipantFlooding::begin_round(Round t) {
  // All were to leave at once, and stay: without this change it would leave with the next one.
  const int self = endpoint_.peer();
  if (!takes_part(changes_.latest(self)) && changes_.latest_since(self) <= t) admit(self);
  for (const auto& [partner, first] : std::map(left_)) {
    if (!options_.changing->participants().takes_part(partner, t)) on_gone(partner);
    else if (first && *first <= t) on_unaware(partner);
  }
  const auto differs = [&](int neighbour) {
    const ParticipantChanges* theirs = received_from(neighbour);
    if (theirs == nullptr || !link_(neighbour).active ||
        endpoint_.view().present_since(neighbour) > t)
      return false;
    return std::ranges::any_of(theirs->by_peer(), [&](const auto& entry) {
      const int peer = entry.first;
      return theirs->latest(peer) == changes_.latest(peer) &&
             theirs->takes_part_at(peer, t) != changes_.takes_part_at(peer, t);
    });
  };
  for (const int neighbour : neighbours_of(endpoint_.peer(), *exchange_.schedule().at(t)))
    if (differs(neighbour)) reset(neighbour, t);
}

/// Adopts a change that is news, and tells all partners: the one that it is from, too, learns that
/// this peer knows it.
void ParticipantFlooding::announce(int peer, ParticipantVersion version, Round first) {
  options_.message(fmt::format("peer {} {} from round {} on", peer,
                               takes_part(version) ? "takes part" : "takes no part", first));
  adopt(peer, version, first);
  for (const int partner : options_.partners_of(endpoint_.peer()))
    pass_on(partner, peer, version, first);
  if (takes_part(version)) on_admitted(peer);
}

void ParticipantFlooding::adopt(int peer, ParticipantVersion version, Round first) {
  changes_.add(peer, version, first);
  options_.changing->set_changes(changes_.timeline(static_cast<int>(options_.partners->size())));
  for (auto& [partner, unaware_from] : left_)
    unaware_from = std::min(unaware_from.value_or(first), first);
}

// ---- messages

void ParticipantFlooding::send(int to, int peer, ParticipantVersion version, Round first) {
  ChunkHeader header = control_header(endpoint_.peer(), to, ControlMessage::participant, first);
  header.link_state = {peer, 0, version, false};
  endpoint_.messenger().send_control(header);
}

/// A link that takes effect too late for the news to pass over it is made anew: what its ends know
/// is compared then.
void ParticipantFlooding::pass_on(int to, int peer, ParticipantVersion version, Round first) {
  const PartnerLink& link = link_(to);
  if (!link.up) return;
  const ParticipantChanges* theirs = received_from(to);
  const bool knows = theirs != nullptr && theirs->has(peer, version, first);
  if (link.active && !knows && !is_in_step(to, first)) return reset(to, first);
  send(to, peer, version, first);
}

void ParticipantFlooding::reset(int peer, Round first) {
  exchange_.faults().reset_link(
      endpoint_.peer(), peer,
      {ErrorKind::lost_peer,
       fmt::format("other peers take part from round {} on, and the link to peer {} takes effect "
                   "too late for that to be known beyond it",
                   first, peer)});
}

void ParticipantFlooding::send_all(int to) {
  for (const auto& [peer, versions] : changes_.by_peer())
    for (const auto& [version, first] : versions) send(to, peer, version, first);
}

void ParticipantFlooding::on_link_lost(int peer) {
  in_step_.erase(peer);
  received_.erase(peer);
  left_.erase(peer);
}

void ParticipantFlooding::on_partner_left(int partner) {
  const ParticipantChanges* theirs = received_from(partner);
  std::optional<Round>& unaware_from = left_[partner];
  for (const auto& [peer, versions] : changes_.by_peer()) {
    const auto [version, first] = *versions.rbegin();
    if (theirs == nullptr || !theirs->has(peer, version, first))
      unaware_from = std::min(unaware_from.value_or(first), first);
  }
}

Status ParticipantFlooding::receive(const ChunkHeader& header) {
  const int peer = header.link_state.end;
  const ParticipantVersion version = header.link_state.version;
  const Round first = header.round;
  if (peer >= static_cast<int>(options_.partners->size()) || !is_possible(version, first) ||
      first == 0 || first % notice_ != 0)
    return protocol_error(header,
                          "it announces a change of participants that no peer can announce");
  const std::vector<int>& at_start = options_.changing->participants().at(0).peers;
  received_.try_emplace(header.from, at_start).first->second.add(peer, version, first);
  if (!follows_) return receive_news(header);
  if (donor_ == header.from) adopt(peer, version, first);
  return {};
}

/// Of a peer that follows no donor.
Status ParticipantFlooding::receive_news(const ChunkHeader& header) {
  const int peer = header.link_state.end;
  const ParticipantVersion version = header.link_state.version, known = changes_.latest(peer);
  const Round first = header.round;
  // It is kept as what the partner knows, so what this peer never knew is charged too.
  if (version < known)
    return changes_.has(peer, version, first) ? Status() : link_states_.charge(header);
  const bool active = link_(header.from).active;
  const bool in_step = active && is_in_step(header.from, first);
  const bool in_time = first >= (in_step ? endpoint_.earliest_next() : known_to_all_from());
  if (version == known) {
    // Both parts have made the same change theirs: where that is possible, in the earlier round.
    const Round own = changes_.latest_since(peer);
    if (own == 0 || first == own || (first > own && is_in_step(header.from, own))) return {};
    if (first > own || !in_time) {
      if (active && endpoint_.view().present_since(header.from) < std::max(first, own))
        reset(header.from, first);
      return {};
    }
  }
  GOSSAMER_TRY_STATUS(link_states_.charge(header));
  if (peer == endpoint_.peer() && !takes_part(version)) {
    // A member lies, or an earlier process of this peer was asked to leave and has ended. It takes
    // part from the round on in which it would leave, or from which on all know.
    options_.message(fmt::format(
        "peer {0} says that peer {1} leaves, which peer {1} has not announced: it stays",
        header.from, peer));
    const Round from = in_time && first >= known_to_all_from() ? first : next_free();
    announce(peer, version + 1, is_possible(version + 1, from) ? from : from + notice_);
    return {};
  }
  // Its sender may have it from another peer, so it is not blamed.
  if (changes_.to_come(peer, now()) >= kMostToCome) return {};
  announce(peer, version, in_time ? first : next_free());
  if (!in_time && active) reset(header.from, first);
  return {};
}

// ---- of a peer that joins

void ParticipantFlooding::follow(std::optional<int> donor) {
  follows_ = true;
  donor_ = donor;
  changes_ = ParticipantChanges(options_.changing->participants().at(0).peers);
  options_.changing->set_changes({});
}

void ParticipantFlooding::end_following() {
  follows_ = false;
  donor_.reset();
  for (const auto& [partner, theirs] : received_)
    for (const auto& [peer, versions] : theirs.by_peer())
      if (const ParticipantVersion version = theirs.latest(peer); version > changes_.latest(peer))
        announce(peer, version, next_free());
}

void ParticipantFlooding::leave_if_asked() {
  if (std::exchange(leaves_once_joined_, false) && !leave())
    options_.message(
        fmt::format("peer {} does not leave: no other peer would stay", endpoint_.peer()));
}

Round ParticipantFlooding::first_agreeable(int partner, Round t) const {
  const ParticipantChanges* theirs = received_from(partner);
  // Parts that have made the same changes theirs for different rounds differ in between.
  if (theirs != nullptr)
    for (const auto& [peer, versions] : theirs->by_peer())
      t = std::max(t, changes_.last_difference(peer, *theirs));
  const auto is_news = [&](int peer, ParticipantVersion version, Round first) {
    return first > now() && (theirs == nullptr || !theirs->has(peer, version, first));
  };
  Round first_possible = t;
  do {
    t = first_possible;
    for (const auto& [peer, versions] : changes_.by_peer())
      for (const auto& [version, first] : versions)
        if (t + notice_ > first && is_news(peer, version, first))
          first_possible = std::max(first_possible, first);
  } while (first_possible > t);
  return t;
}

}  // namespace gossamer::gossip
