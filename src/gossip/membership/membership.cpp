#include "gossip/membership/membership.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace gossamer::gossip {
namespace {

constexpr Round kMostMargin = 1 << 20;

bool lost_by(std::uint32_t changes) { return changes % 2 != 0; }

}  // namespace

Membership::Membership(Exchange& exchange, Node& node, Plan plan)
    : exchange_(exchange), node_(node), endpoint_(node.endpoint()), plan_(std::move(plan)) {
  for (const int partner : partners_of(endpoint_.peer())) links_[partner];
  reachable_ = static_cast<std::size_t>(peers());
  endpoint_.on_news = [this](const ChunkHeader& head) { return heard(head); };
}

void Membership::say(int to, ControlMessage note, Round t, std::uint64_t donor_steps) {
  ChunkHeader head{endpoint_.peer(), to, t, 0, 0, 0, note};
  head.donor_steps = donor_steps;
  exchange_.link(endpoint_.peer(), to).send(Chunk(head, {}, {}));
}

void Membership::tell_link(int to, const News& news) {
  const ControlMessage message =
      lost_by(news.changes) ? ControlMessage::link_lost : ControlMessage::link_restored;
  ChunkHeader head{endpoint_.peer(), to, news.round, 0, 0, 0, message};
  head.link_state = {news.end.first, news.end.second, news.changes, news.old};
  exchange_.link(endpoint_.peer(), to).send(Chunk(head, {}, {}));
}

// ---- losses

void Membership::lost(int peer, const std::string& why) {
  OwnLink& link = this->link(peer);
  if (!link.up) return;
  const bool entered = link.entered;
  link = OwnLink::gone();
  std::erase(joiners_, peer);
  const Round t = endpoint_.round();
  endpoint_.lose(peer);
  if (donor_ == peer) {
    donor_.reset();
    place_.reset();
    ask_for_rows();
    wake();
  }
  if (!entered) return;
  tell({Change::Kind::lost, t, peer},
       fmt::format("{}; peer {} goes on without it", why, endpoint_.peer()));
  change_own(peer, t);
}

// It answers nothing any more. What counts between the two has come.
void Membership::left(int peer) {
  if (!link(peer).entered) lost(peer, fmt::format("peer {} has done its last round", peer));
}

Membership::Help Membership::help() const {
  if (!joining_) return Help::needed_no_more;
  if (donor_) return Help::asked;
  return std::ranges::any_of(links_, [](const auto& entry) { return entry.second.up; })
             ? Help::joiners
             : Help::nobody;
}

// ---- coming back

void Membership::back(int peer) {
  OwnLink& link = this->link(peer);
  GOSSAMER_CHECK(!link.up, "a link came back that was not lost");
  link.up = true;
  if (!joining_) say(peer, ControlMessage::resync, endpoint_.round());
}

/// The other end of a link that came back was in round `seen`: of the two the lower id proposes, or
/// who did before.
void Membership::meet(int peer, Round seen, bool again) {
  if (!again && peer < endpoint_.peer()) return;
  propose(peer, std::max(seen + 1, endpoint_.earliest_next()) + link(peer).margin, 0);
}

/// From round t on, which this peer has not begun.
void Membership::propose(int peer, Round t, std::uint64_t steps) {
  withdraw(peer);
  if (alone()) endpoint_.leap_to(t);
  endpoint_.enter(peer, t);
  link(peer).proposed = t;
  say(peer, ControlMessage::propose_round, t, steps);
}

void Membership::withdraw(int peer) {
  OwnLink& link = this->link(peer);
  if (link.proposed) endpoint_.lose(peer);
  link.proposed.reset();
}

/// To a proposal.
void Membership::answer(int peer, Round first) {
  if (first < endpoint_.earliest_next())
    return say(peer, ControlMessage::reject_round, endpoint_.earliest_next() - 1);
  if (alone())
    endpoint_.leap_to(first);  // nobody is left behind by it, and nobody waits for us to get there
  endpoint_.enter(peer, first);
  agreed(peer, first);
}

void Membership::agreed(int peer, Round first) {
  OwnLink& link = this->link(peer);
  link.proposed.reset();
  link.seen.reset();
  link.entered = true;
  link.margin = 1;
  tell({Change::Kind::back, first, peer},
       fmt::format("peer {} is back: from round {} on peer {} mixes with it again", peer, first,
                   endpoint_.peer()));
  // The other end is told too: that is the answer, and comes before all else that is said of later
  // rounds.
  change_own(peer, first);
  tell_links(peer);
}

void Membership::tell_links(int peer) {
  for (const auto& [end, changes] : known_) tell_link(peer, {end, changes, 0, true});
  // When rows begin again is not of a link any more that has changed since.
  const LinkEnd own{endpoint_.peer(), peer};
  for (const Round restart : restarts_)
    tell_link(peer, {own, known_of(own), restart - static_cast<Round>(peers())});
}

/// Nobody waits for this peer in any round.
bool Membership::alone() const {
  return std::ranges::none_of(
      links_, [](const auto& entry) { return entry.second.entered || entry.second.proposed; });
}

// ---- joining

void Membership::join() {
  joining_ = true;
  for (auto& [peer, link] : links_) {
    link = OwnLink::gone();
    endpoint_.lose(peer);
    known_[{endpoint_.peer(), peer}] = 1;
  }
  reachable_ = 1;
}

/// One of those who run: who joins has nothing to give.
void Membership::ask_for_rows() {
  const auto found = std::ranges::find_if(
      links_, [](const auto& entry) { return entry.second.up && entry.second.seen; });
  endpoint_.expect_state_from(std::nullopt);
  if (found == links_.end()) return;
  donor_ = found->first;
  endpoint_.expect_state_from(donor_);
  say(*donor_, ControlMessage::request_state, 0);
  wake();
}

task<Round> Membership::await_admission() {
  GOSSAMER_CHECK(joining_, "a peer arrives that does not join");
  while (true) {
    while (!donor_) co_await changed();
    const int donor = *donor_;
    const bool whole = co_await node_.receive_state(donor);
    if (!whole) continue;
    while (donor_ == donor && !place_) co_await changed();
    if (donor_ != donor) continue;
    const Place place = *place_;
    node_.set_steps_done(place.steps);
    co_await node_.restart_rows();
    if (donor_ != donor || !place_ || place_->round != place.round)
      continue;  // the giver was lost meanwhile
    settle(place);
    co_return place.round;
  }
}

void Membership::settle(const Place& place) {
  plan_.message(fmt::format("peer {} joins in round {}", endpoint_.peer(), place.round));
  joining_ = false;
  const int donor = *std::exchange(donor_, std::nullopt);
  endpoint_.expect_state_from(std::nullopt);
  endpoint_.begin_at(place.round - 1);  // it has not begun the round in which it enters
  agreed(donor, place.round);
  for (auto& [peer, link] : links_) {
    if (!link.up || link.entered) continue;
    say(peer, ControlMessage::resync, place.round);
    if (link.seen) meet(peer, *link.seen);
  }
  endpoint_.begin_at(place.round);
}

void Membership::wake() {
  if (waiter_) exchange_.scheduler().post(std::exchange(waiter_, {}));
}

// ---- what partners say

Status Membership::heard(const ChunkHeader& head) {
  if (!links_.contains(head.from)) return protocol_error(head, "it is no partner of this peer");
  if (!link(head.from).up) return {};  // what was still on its way
  return has_link_state(head.control) ? heard_of_link(head) : heard_of_end(head);
}

Status Membership::heard_of_end(const ChunkHeader& head) {
  OwnLink& link = this->link(head.from);
  if (link.entered) return protocol_error(head, "it comes back where it was not lost");
  switch (head.control) {
    case ControlMessage::request_state:
      withdraw(head.from);
      if (std::ranges::find(joiners_, head.from) == joiners_.end()) joiners_.push_back(head.from);
      return {};
    case ControlMessage::resync:
      if (joining_) {
        link.seen = head.round;
        if (!donor_) ask_for_rows();
      } else if (!link.proposed) {
        meet(head.from, head.round);
      }
      return {};
    case ControlMessage::reject_round:
      if (!link.proposed || head.round < *link.proposed)
        return protocol_error(head, "it is late for what was not proposed");
      link.margin = std::min(2 * link.margin, kMostMargin);
      link.proposed.reset();
      endpoint_.lose(head.from);
      meet(head.from, head.round, true);
      return {};
    case ControlMessage::propose_round:
      if (!joining_) {
        if (link.proposed || std::ranges::find(joiners_, head.from) != joiners_.end())
          return protocol_error(head, "it proposes a round where that is ours to do");
        answer(head.from, head.round);
        return {};
      }
      if (donor_ != head.from || place_ || head.round < endpoint_.earliest_next())
        return protocol_error(head, "it says where to begin, and was not asked");
      place_ = Place{head.round, head.donor_steps};
      endpoint_.enter(
          head.from, head.round);  // its row of that round may come before we have taken the others
      wake();
      return {};
    default: return protocol_error(head, "it says of membership what is not known");
  }
}

Status Membership::heard_of_link(const ChunkHeader& head) {
  const LinkState& state = head.link_state;
  const LinkEnd end{state.end, state.neighbour};
  const News news{end, state.version, head.round, state.reachability_only};
  const bool is_link = std::max(end.first, end.second) < peers() &&
                       std::ranges::binary_search(partners_of(end.first), end.second);
  if (!is_link || news.changes == 0 ||
      lost_by(news.changes) != (head.control == ControlMessage::link_lost))
    return protocol_error(head, "it tells of a link that there is not");
  OwnLink& link = this->link(head.from);
  const bool to_us = end == LinkEnd{head.from, endpoint_.peer()};
  if (to_us && !lost_by(news.changes) && !news.old && link.proposed == head.round)
    agreed(head.from, head.round);
  if (link.entered) take(news, head.from);  // else all is told when it is
  return {};
}

/// This peer's end of a link is not what the others know it to be: they are told.
void Membership::change_own(int peer, Round t, bool old) {
  constexpr Changes kMost = std::numeric_limits<Changes>::max();
  const LinkEnd end{endpoint_.peer(), peer};
  const bool lost = !link(peer).entered;
  const Changes known = known_of(end), more = lost_by(known) == lost ? 2 : 1;
  // Counts so high are made up, and cannot be put right.
  const Changes changes = known <= kMost - more ? known + more : kMost - (lost ? 0 : 1);
  take({end, changes, t, old}, endpoint_.peer());
}

/// News, from `from`, goes on to everybody else, where it says more than what is known.
void Membership::take(const News& news, int from) {
  const auto [end, changes, t, old] = news;
  const bool newer = changes > known_of(end), own = from == endpoint_.peer();
  if (newer) {
    known_[end] = changes;
    if (node_.keeps_sums()) endpoint_.keep_sums(leads_back());
  }
  const Round restart = t + static_cast<Round>(peers()),
              now = std::max(attended_, endpoint_.round());
  const bool due = !old && restart > now && restart < exchange_.options().rounds;
  const bool begins_again = due && restarts_.insert(restart).second;
  if (!newer && !begins_again && !own) return;
  for (const auto& [partner, link] : links_)
    if (partner != from && link.entered) tell_link(partner, news);
  // Too late, and nothing begins again later: all once more. Those who are behind need the first
  // too, and before it; those who are further ahead hear it too, and tell it anew themselves.
  if (newer && !old && restart <= now && restarts_.upper_bound(now) == restarts_.end())
    take({end, changes, now}, endpoint_.peer());
  if (newer && end.first == endpoint_.peer() && lost_by(known_of(end)) == link(end.second).entered)
    change_own(end.second, 0, true);  // as it was in an earlier life
  say_who_is_there();
}

Membership::Changes Membership::known_of(LinkEnd end) const {
  const auto known = known_.find(end);
  return known == known_.end() ? 0 : known->second;
}

void Membership::say_who_is_there() {
  const std::vector<int> here = reachable();
  if (here.size() == std::exchange(reachable_, here.size())) return;
  std::vector<int> gone;
  for (int peer = 0; peer < peers(); ++peer)
    if (!std::ranges::binary_search(here, peer)) gone.push_back(peer);
  tell({Change::Kind::reach, endpoint_.round(), static_cast<int>(here.size())},
       gone.empty() ? fmt::format("all {} peers are within reach", peers())
                    : fmt::format("peer {} is out of reach; {} of {} peers go on",
                                  fmt::join(gone, ", "), here.size(), peers()));
}

void Membership::tell(const Change& change, const std::string& words) {
  plan_.message(words);
  plan_.on_change(change);
}

task<bool> Membership::begin_round(Round t) {
  const bool begins_again = restarts(t);
  if (begins_again && node_.keeps_sums()) co_await node_.restart_sums();
  for (const int joiner : std::exchange(joiners_, {})) {
    node_.send_state(joiner);
    propose(joiner, endpoint_.earliest_next(), node_.steps_done());
  }
  co_return begins_again;
}

/// Whether rows with a conserved sum begin again between the last call and round t.
bool Membership::restarts(Round t) {
  attended_ = t;
  const auto end = restarts_.upper_bound(t);
  const bool any = end != restarts_.begin();
  restarts_.erase(restarts_.begin(), end);
  return any;
}

std::vector<int> Membership::reachable() const { return reached(*plan_.partners); }

// Random matchings have no period, and no direction.
bool Membership::leads_back() const {
  std::vector<std::vector<int>> gives(plan_.partners->size()),
      in_neighbours(plan_.partners->size());
  for (int t = 0; t < exchange_.schedule().period(); ++t) {
    const auto w = exchange_.schedule().at(static_cast<Round>(t));
    for (int i = 0; i < peers(); ++i)
      for (const topology::Neighbour& j : w->in_neighbours(i)) {
        in_neighbours[static_cast<std::size_t>(i)].push_back(j.peer);
        gives[static_cast<std::size_t>(j.peer)].push_back(i);
      }
  }
  return reached(gives) == reached(in_neighbours);
}

/// By arcs whose links carry, ascending.
std::vector<int> Membership::reached(const std::vector<std::vector<int>>& arcs) const {
  std::vector<bool> seen(arcs.size());
  std::vector<int> reached{endpoint_.peer()};
  seen[static_cast<std::size_t>(endpoint_.peer())] = true;
  const auto carries = [this](int a, int b) {
    return !lost_by(known_of({a, b})) && !lost_by(known_of({b, a}));
  };
  for (std::size_t k = 0; k < reached.size(); ++k)
    for (const int next : arcs[static_cast<std::size_t>(reached[k])]) {
      if (seen[static_cast<std::size_t>(next)] || !carries(reached[k], next)) continue;
      seen[static_cast<std::size_t>(next)] = true;
      reached.push_back(next);
    }
  std::ranges::sort(reached);
  return reached;
}

}  // namespace gossamer::gossip
