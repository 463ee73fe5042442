#include "gossip/membership/link_state_flooding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/id_list.hpp"
#include "topology/participants/changing_schedule.hpp"

namespace gossamer::gossip {

LinkStateFlooding::LinkStateFlooding(Exchange& exchange, Node& node,
                                     const MembershipOptions& options,
                                     std::function<bool(int partner)> is_active)
    : exchange_(exchange),
      node_(node),
      endpoint_(node.endpoint()),
      options_(options),
      is_active_(std::move(is_active)),
      table_(endpoint_.peer(), options.partners),
      delay_(static_cast<Round>(table_.peers())),
      reachable_(options.partners->size()) {
  if (options.changing == nullptr) return;
  // The links of peers that take no part at the start count as lost at both ends.
  for (int peer = 0; peer < table_.peers(); ++peer) {
    if (options.changing->participants().takes_part(peer, 0)) continue;
    for (const int partner : options.partners_of(peer)) {
      table_.merge({peer, partner}, 1);
      table_.merge({partner, peer}, 1);
    }
  }
  reachable_ = table_.reachable().size();
}

Status LinkStateFlooding::check(const ChunkHeader& header) const {
  const LinkState& state = header.link_state;
  if (table_.is_link({state.end, state.neighbour}) && state.version != 0 &&
      is_lost(state.version) == (header.control == ControlMessage::link_lost))
    return {};
  return protocol_error(header, "it sends the state of a link that does not exist");
}

LinkStateFlooding::~LinkStateFlooding() {
  if (forward_timer_) exchange_.scheduler().cancel(*forward_timer_);
}

// A change of a link has an update of each end, and under policies without a common round each peer
// may announce one more reinitialisation because of it.
double LinkStateFlooding::largest_burst() const {
  std::size_t ends = options_.partners->size();
  for (const auto& partners : *options_.partners) ends += partners.size();
  return 1024 + 16 * static_cast<double>(ends);
}

bool LinkStateFlooding::Budget::take(Time now, double size) {
  const double refill = size * seconds(now - filled_) / seconds(kRefillTime);
  tokens_ = std::min(size, tokens_.value_or(size) + refill);
  filled_ = now;
  if (*tokens_ < 1) return false;
  --*tokens_;
  return true;
}

/// The reinitialisation of an update is to come within the run.
bool LinkStateFlooding::is_due_later(const Update& update) const {
  const Round due = due_round(update);
  return !update.reachability_only && due > now() && due < exchange_.options().rounds;
}

bool LinkStateFlooding::is_news(const Update& update) const {
  return update.version > table_.version(update.end) ||
         (is_due_later(update) && !reinitialisations_.contains(due_round(update)));
}

Status LinkStateFlooding::receive(const ChunkHeader& header) {
  const LinkState& state = header.link_state;
  const Update update{
      {state.end, state.neighbour}, state.version, header.round, state.reachability_only};
  // Before anything is forwarded: the neighbours of this peer charge it for what it forwards.
  if (is_news(update)) GOSSAMER_TRY_STATUS(charge(header));
  merge(update, header.from);
  return {};
}

Status LinkStateFlooding::charge(const ChunkHeader& header) {
  if (received_[header.from].take(exchange_.scheduler().now(), largest_burst())) return {};
  return protocol_error(header, fmt::format("it sends more than {:.0f} changes of links in {:g} s",
                                            largest_burst(), seconds(kRefillTime)));
}

/// Too much has been forwarded in a short time. The states that are known when the timer fires are
/// sent then: newer states replace those that were not sent.
void LinkStateFlooding::forward_later() {
  if (forward_timer_) return;
  forward_timer_ = exchange_.scheduler().after(kRefillTime, [this] {
    forward_timer_.reset();
    for (const int partner : options_.partners_of(endpoint_.peer()))
      if (is_active_(partner))
        for (const auto& [end, version] : table_.versions()) send(partner, {end, version, 0, true});
  });
}

void LinkStateFlooding::publish(int peer, Round t, bool reachability_only) {
  const LinkEnd end{endpoint_.peer(), peer};
  merge({end, table_.next_version(end, !is_active_(peer)), t, reachability_only}, endpoint_.peer());
}

/// Stores an update from `from`, and forwards it to all other partners if it is new.
void LinkStateFlooding::merge(const Update& update, int from) {
  const auto& [end, version, round, reachability_only] = update;
  const bool newer = table_.merge(end, version), own = from == endpoint_.peer();
  if (newer) update_conservation();
  const Round due = due_round(update), now = this->now();
  if (!reachability_only && (newer || due > now)) {
    // A member may name any round: it must not keep the others from checkpoints until then.
    if (round <= now + delay_) reinitialised_from_ = std::max(reinitialised_from_, due + 1);
    else if (!is_due_later(update))
      last_changed_from_ = std::min(last_changed_from_.value_or(round), round);
  }
  const bool scheduled = is_due_later(update) && reinitialisations_.insert(due).second;
  if (!newer && !scheduled && !own) return;
  // Half of what a partner takes from this peer: it is never charged for what others invent.
  const bool forwards = forwarded_.take(exchange_.scheduler().now(), largest_burst() / 2) ||
                        (own && !reachability_only);
  if (!forwards) forward_later();
  for (const int partner : options_.partners_of(endpoint_.peer()))
    if (forwards && partner != from && is_active_(partner)) send(partner, update);
  // The update's reinitialisation is past and no later one is scheduled: publish it as one of this
  // round. Peers that are behind need the first one too, and before it; peers that are ahead do the
  // same as this one.
  if (newer && !reachability_only && due <= now &&
      reinitialisations_.upper_bound(now) == reinitialisations_.end())
    merge({end, version, now}, endpoint_.peer());
  // An update of an earlier incarnation of this peer contradicts its own link: supersede it.
  if (newer && end.first == endpoint_.peer() &&
      is_lost(table_.version(end)) == is_active_(end.second))
    publish(end.second, 0, true);
  report_reachability();
}

void LinkStateFlooding::send(int to, const Update& update) {
  const auto message =
      is_lost(update.version) ? ControlMessage::link_lost : ControlMessage::link_restored;
  ChunkHeader header = control_header(endpoint_.peer(), to, message, update.round);
  header.link_state = {update.end.first, update.end.second, update.version,
                       update.reachability_only};
  endpoint_.messenger().send_control(header);
}

void LinkStateFlooding::send_all(int peer) {
  for (const auto& [end, version] : table_.versions()) send(peer, {end, version, 0, true});
  // A reinitialisation outlives the link state that caused it, so it travels with the state of this
  // peer's own end.
  const LinkEnd own{endpoint_.peer(), peer};
  for (const Round due : reinitialisations_) send(peer, {own, table_.version(own), due - delay_});
}

void LinkStateFlooding::begin_lost() {
  const int peer = endpoint_.peer();
  for (const int partner : options_.partners_of(peer))
    table_.merge({peer, partner}, table_.next_version({peer, partner}, /*lost=*/true));
  reachable_ = 1;
}

void LinkStateFlooding::leave_out(Round from, Round to) {
  const auto first = reinitialisations_.lower_bound(from), end = reinitialisations_.lower_bound(to);
  const bool any = first != end;
  reinitialisations_.erase(first, end);
  // Its cause was lost before the news of it came here, and the news of that is under way.
  if (const Round due = to + delay_;
      any && reinitialisations_.empty() && due < exchange_.options().rounds)
    reinitialisations_.insert(due);
}

/// Whether what is left of W conserves sums follows from the links that are up, and from who takes
/// part.
void LinkStateFlooding::update_conservation() {
  if (node_.conserves_sums())
    endpoint_.view().set_conserves_sums(table_.is_strongly_connected(exchange_.schedule(), now()));
}

bool LinkStateFlooding::begin_round(Round t) {
  const topology::Participants& participants = exchange_.schedule().participants();
  const bool changes = participants.index_at(t) != participants.index_at(last_begun_);
  last_begun_ = t;
  if (changes) update_conservation();
  const auto end = reinitialisations_.upper_bound(t);
  const bool any = end != reinitialisations_.begin();
  if (any) reinitialised_from_ = std::max(reinitialised_from_, *std::prev(end) + 1);
  reinitialisations_.erase(reinitialisations_.begin(), end);
  return any;
}

bool LinkStateFlooding::sums_are_whole(Round t) const {
  const auto next = reinitialisations_.lower_bound(t);
  const bool outstanding = next != reinitialisations_.end() && *next < t + delay_;
  return reinitialised_from_ <= t && !outstanding && t <= last_changed_from_.value_or(t);
}

void LinkStateFlooding::report_reachability() {
  std::vector<int> reached = table_.reachable();
  const topology::Participants& participants = exchange_.schedule().participants();
  // The links of a peer that has left an open run are not published as lost.
  if (participants.is_open())
    std::erase_if(reached, [&](int peer) {
      return !participants.takes_part(peer, now()) && participants.end_of(peer);
    });
  if (reached.size() == std::exchange(reachable_, reached.size())) return;
  std::vector<int> missing;
  const std::vector<int> all =
      participants.is_open() ? participants.at(now()).peers : first_ids(table_.peers());
  for (const int peer : all)
    if (!std::ranges::binary_search(reached, peer)) missing.push_back(peer);
  std::string text = fmt::format("all {} peers are reachable", all.size());
  // Among those that are reached there may be newcomers, of a round to come.
  if (participants.is_open())
    text = reached.size() == 1 ? "no other peer is reachable"
                               : fmt::format("{} peers are reachable", reached.size());
  if (!missing.empty())
    text = fmt::format("{} unreachable; {} of {} peers continue",
                       missing.size() == 1 ? fmt::format("peer {} is", missing.front())
                                           : fmt::format("peers {} are", fmt::join(missing, ", ")),
                       all.size() - missing.size(), all.size());
  report({MembershipEvent::Kind::reachability,
          endpoint_.round(),
          static_cast<int>(reached.size()),
          {}},
         text);
}

void LinkStateFlooding::report(const MembershipEvent& event, const std::string& text) {
  options_.message(text);
  options_.on_event(event);
}

}  // namespace gossamer::gossip
