#include "gossip/membership/catch_up_flooding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::gossip {
namespace {

/// A part catches up only where it would otherwise stay behind by this many times the notice: the
/// first is the notice itself, the last leaves room for links that take effect a little earlier
/// than the one that was the cause, and between them two announcements of one cause overlap, so
/// that one of them counts.
constexpr Round kLeastGap = 4;

/// How many rounds apart two neighbours can be that exchange rows both ways; none if the policy or
/// the graph gives no bound.
std::optional<Round> largest_distance(Exchange& exchange, Endpoint& endpoint) {
  const ExchangeOptions& options = exchange.options();
  const std::optional<Round> lead = endpoint.mixer().largest_lead();
  const bool waits = std::ranges::any_of(
      options.channels, [](const ChannelSpec& channel) { return channel.mixed || channel.shared; });
  if (!lead || !waits || options.rule != nullptr) return std::nullopt;
  return *lead - 1;
}

}  // namespace

CatchUpFlooding::CatchUpFlooding(Exchange& exchange, Endpoint& endpoint,
                                 const MembershipOptions& options, LinkStateFlooding& link_states,
                                 std::function<bool(int partner)> is_active)
    : exchange_(exchange),
      endpoint_(endpoint),
      options_(options),
      link_states_(link_states),
      is_active_(std::move(is_active)) {
  const auto peers = static_cast<Round>(options.partners->size());
  if (const auto distance = largest_distance(exchange, endpoint);
      distance && options.exchanges_both_ways)
    notice_ = (peers - 1) * *distance + 1;
}

std::span<const int> CatchUpFlooding::partners() const {
  return options_.partners_of(endpoint_.peer());
}

/// Whether the link to `peer` belongs to the part: its ends have exchanged rows, or will have,
/// before anything was announced.
bool CatchUpFlooding::includes(int peer, const CatchUp& catch_up) const {
  return endpoint_.view().present_since(peer) + *notice_ <= catch_up.from;
}

/// The round to come in which a neighbour may be, but for N rounds: its link may take effect in a
/// far one, and it may have left out the rounds that this peer is to leave out.
Round CatchUpFlooding::latest_of_neighbour(int peer) const {
  Round latest = std::max(endpoint_.earliest_next(), endpoint_.view().present_since(peer));
  for (const CatchUp& catch_up : endpoint_.catch_ups().to_come(endpoint_.round()))
    latest = std::max(latest, catch_up.resumes_at);
  return latest;
}

Status CatchUpFlooding::receive(const ChunkHeader& header) {
  const CatchUp news{header.round, header.resumes_at};
  if (!notice_) return protocol_error(header, "it announces a catch-up in a run that has none");
  if (news.from < *notice_ || news.resumes_at < news.from + 2 * *notice_ ||
      news.from > latest_of_neighbour(header.from) + 2 * *notice_ ||
      news.resumes_at >= exchange_.options().rounds || !includes(header.from, news))
    return protocol_error(header, fmt::format("it announces a catch-up from round {} to round {}, "
                                              "which no peer can have announced",
                                              news.from, news.resumes_at));
  using Outcome = CatchUpPlan::Outcome;
  const Outcome outcome = endpoint_.catch_ups().add(news, endpoint_.round());
  if (outcome == Outcome::late)
    return protocol_error(
        header, fmt::format("it announces a catch-up from round {}, which has begun", news.from));
  if (outcome == Outcome::known) return {};
  GOSSAMER_TRY_STATUS(link_states_.charge(header));
  spread(news, header.from);
  return {};
}

void CatchUpFlooding::on_link_active(int peer, Round first) {
  if (!notice_) return;
  for (const CatchUp& catch_up : endpoint_.catch_ups().to_come(endpoint_.round()))
    pass_on(peer, catch_up);
  consider(first);
}

void CatchUpFlooding::begin_round(Round t) {
  const std::optional<CatchUp> over = endpoint_.catch_ups().resuming_in(t);
  if (!over) return;
  link_states_.leave_out(over->from, t);
  for (const int partner : partners())
    if (is_active_(partner)) consider(endpoint_.view().present_since(partner));
}

/// Announces a catch-up if a link that takes effect in round `first` would wait for this part for
/// long.
void CatchUpFlooding::consider(Round first) {
  const Round now = endpoint_.earliest_next() - 1;
  if (first >= exchange_.options().rounds || first < now + kLeastGap * *notice_ || any_to_come())
    return;
  const CatchUp own{now + *notice_, first - *notice_};
  endpoint_.catch_ups().add(own, endpoint_.round());
  spread(own, endpoint_.peer());
}

/// Sends a catch-up that was adopted to the other peers of this part.
void CatchUpFlooding::spread(const CatchUp& catch_up, int from) {
  options_.message(fmt::format(
      "peer {} leaves out rounds {} to {} with the peers that it is connected to, to catch up with "
      "a part of the network that is ahead",
      endpoint_.peer(), catch_up.from, catch_up.resumes_at - 1));
  for (const int partner : partners())
    if (partner != from) pass_on(partner, catch_up);
}

/// A link that takes effect after the announcement and before its end cannot be told in time, and
/// is made anew for a later round.
void CatchUpFlooding::pass_on(int to, const CatchUp& catch_up) {
  PeerView& view = endpoint_.view();
  if (!view.is_present(to)) return;
  if (!includes(to, catch_up)) {
    if (view.present_since(to) < catch_up.resumes_at)
      exchange_.faults().reset_link(
          endpoint_.peer(), to,
          {ErrorKind::lost_peer,
           fmt::format("the link to peer {} would take effect in round {}, which is left out", to,
                       view.present_since(to))});
    return;
  }
  if (!is_active_(to)) return;  // it is told once it accepts
  ChunkHeader header =
      control_header(endpoint_.peer(), to, ControlMessage::catch_up, catch_up.from);
  header.resumes_at = catch_up.resumes_at;
  endpoint_.messenger().send_control(header);
}

Round CatchUpFlooding::first_agreeable(Round t, bool isolated) {
  CatchUpPlan& plan = endpoint_.catch_ups();
  if (isolated) plan.forget_to_come(endpoint_.round());
  Round first = std::max(t, endpoint_.earliest_next());
  for (const CatchUp& catch_up : plan.to_come(endpoint_.round()))
    if (first + *notice_ > catch_up.from) first = std::max(first, catch_up.resumes_at);
  return first;
}

}  // namespace gossamer::gossip
