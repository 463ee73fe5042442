#include "simulator/oracle/trace_index.hpp"

#include <algorithm>

#include "gpu/cpu_device.hpp"
#include "simulator/oracle/checks.hpp"

namespace gossamer::simulator {
namespace {

/// The last period that began before round t.
template <class Links>
auto* period_at(Links& links, int a, int j, Round t) {
  decltype(&links.begin()->second.front()) last = nullptr;
  const auto found = links.find({a, j});
  if (found == links.end()) return last;
  for (auto& link : found->second)
    if (link.from_start || link.restored < t) last = &link;
  return last;
}

/// `peer`: of incarnation a.
template <class Links>
auto* same_connection(Links& links, int a, int peer, const LinkPeriod& link) {
  decltype(&links.begin()->second.front()) same = nullptr;
  const auto found = links.find({link.other, peer});
  if (found == links.end()) return same;
  for (auto& theirs : found->second)
    if (same == nullptr && theirs.other == a && theirs.connection == link.connection)
      same = &theirs;
  return same;
}

}  // namespace

TraceIndex::TraceIndex(const Scenario& scenario_in, const Protocol& protocol_in,
                       const Trace& trace_in, Checks& checks)
    : scenario(scenario_in), protocol(protocol_in), trace(trace_in) {
  for (int t = 0; t < std::max(protocol.schedule->period(), 1); ++t)
    symmetric_ = symmetric_ && w(static_cast<Round>(t)).symmetric();
  index_links();
  index_rounds(checks);
  index_entries();
}

void TraceIndex::index_links() {
  for (int a = 0; a < peers(); ++a)
    for (const int j : protocol.algorithm->partners(a, *protocol.schedule))
      links_[{a, j}] = {{.other = j, .from_start = true, .entered = 0}};
  for (const LinkRecord& link : trace.links) {
    first_change_.try_emplace(link.incarnation, link.round);
    std::vector<LinkPeriod>& periods = links_[{link.incarnation, peer_of(link.other)}];
    if (link.restored) {
      periods.push_back({.other = link.other,
                         .connection = link.connection,
                         .restored = link.round,
                         .restored_at = link.at});
      any_restored_ = true;
    } else {
      periods.back().lost = link.round;
      periods.back().lost_at = link.at;
    }
  }
}

void TraceIndex::index_rounds(Checks& checks) {
  for (int a = 0; a < incarnations(); ++a)
    for (const RoundRecord& record : incarnation(a).rounds) {
      records_[{a, record.round}] = &record;
      ReferenceRound reference = reference_of(scenario, record);
      for (const std::string& error : reference.errors)
        checks.expect(false, "replay", "in round {}, peer {} {}", record.round, peer_of(a), error);
      for (ReferenceMix& mix : reference.mixes) {
        if (!record.end.empty()) index_used(a, record, mix.channel, checks);
        else mix.out.clear();  // the rows that it used were not logged
        if (scenario.codec != "none") mix.sent = decoded(mix.in, peer_of(a), record.round);
        mixes_[{a, record.round, mix.channel}] = std::move(mix);
      }
      if (shared() && !record.end.empty()) index_used(a, record, *shared(), checks);
    }
}

/// The row after encoding and decoding. Its values are floats: no algorithm that is simulated with
/// a codec does arithmetic on them before they are sent.
Row TraceIndex::decoded(const Row& in, int peer, Round t) const {
  if (in.empty()) return {};
  gpu::CpuDevice device(1);
  const FloatRow row(in.begin(), in.end());
  FloatRow message(protocol.codec->words(row.size())), read(row.size());
  const EncodeRequest encode{row.data(), row.size(), message.data(), peer, t};
  protocol.codec->encode(device, std::span(&encode, 1));
  const DecodeRequest decode{message.data(), read.data(), read.size(), peer, t};
  protocol.codec->decode(device, std::span(&decode, 1));
  return {read.begin(), read.end()};
}

/// What was used of the rows of all in-neighbours of a round: all of them, but for the deviations.
void TraceIndex::index_used(int a, const RoundRecord& record, Channel channel, Checks& checks) {
  for (const topology::Neighbour& j : w(record.round).in_neighbours(peer_of(a))) {
    const LinkPeriod* link = link_at(a, j.peer, record.round);
    used_[{a, record.round, channel, j.peer}] = {record.round, width(channel),
                                                 link == nullptr ? -1 : link->other};
  }
  for (const Deviation& deviation : record.deviations) {
    if (deviation.channel != channel) continue;
    const auto found = used_.find({a, record.round, channel, deviation.from});
    checks.expect(found != used_.end() && deviation.round == record.round, "log",
                  "peer {} logged in round {} that peer {}, which is not its in-neighbour, "
                  "deviated in round {}",
                  peer_of(a), record.round, deviation.from, deviation.round);
    if (found == used_.end()) continue;
    checks.expect(found->second.round == record.round && found->second.values == width(channel),
                  "log", "peer {} logged peer {} twice in round {}", peer_of(a), deviation.from,
                  record.round);
    found->second.round = deviation.missing ? record.round : deviation.used_round;
    found->second.values = deviation.missing ? deviation.values : width(channel);
  }
}

/// The rounds from which on restored links counted.
void TraceIndex::index_entries() {
  for (const auto& [key, used] : used_) {
    const auto& [a, t, channel, j] = key;
    LinkPeriod* link = period_at(links_, a, j, t);
    if (used.values == 0 || link == nullptr || !link->covers(t)) continue;
    link->used = true;
    link->entered = std::min(link->entered, t);
    if (LinkPeriod* other = same_connection(links_, a, peer_of(a), *link))
      other->entered = std::min(other->entered, t);
  }
}

const RoundRecord* TraceIndex::record(int a, Round t) const {
  const auto found = records_.find({a, t});
  return found == records_.end() ? nullptr : found->second;
}

const ReferenceMix* TraceIndex::mix(int a, Round t, Channel channel) const {
  const auto found = mixes_.find({a, t, channel});
  return found == mixes_.end() ? nullptr : &found->second;
}

const UsedRow* TraceIndex::find_used(int a, Round t, Channel channel, int j) const {
  const auto found = used_.find({a, t, channel, j});
  return found == used_.end() ? nullptr : &found->second;
}

Round TraceIndex::first_change(int a) const {
  const auto found = first_change_.find(a);
  return found == first_change_.end() ? kNever : found->second;
}

Round TraceIndex::round_at(int a, Time when) const {
  Round round = 0;
  for (const RoundRecord& record : incarnation(a).rounds)
    if (record.began <= when) round = record.round;
  return round;
}

/// Matrices are kept: a random sequence builds one anew at every call.
const topology::MixingMatrix& TraceIndex::w(Round t) const {
  const int period = protocol.schedule->period();
  auto& kept = matrices_[period == 0 ? t : t % static_cast<Round>(period)];
  if (!kept) kept = protocol.schedule->at(t);
  return *kept;
}

std::optional<Channel> TraceIndex::shared() const {
  return scenario.algorithm == "async_push_sum" ? std::optional<Channel>(kAsyncPushSumGiven)
                                                : std::nullopt;
}

const LinkPeriod* TraceIndex::link_at(int a, int j, Round t) const {
  return period_at(links_, a, j, t);
}

const LinkPeriod* TraceIndex::other_end(int a, const LinkPeriod& link) const {
  return same_connection(links_, a, peer_of(a), link);
}

const LinkPeriod* TraceIndex::final_link(int a, int b) const {
  const auto found = links_.find({a, peer_of(b)});
  if (found == links_.end() || found->second.empty()) return nullptr;
  const LinkPeriod& link = found->second.back();
  if (link.other != b || link.lost != kNever) return nullptr;
  const LinkPeriod* other = other_end(a, link);
  return other != nullptr && other->lost == kNever ? &link : nullptr;
}

}  // namespace gossamer::simulator
