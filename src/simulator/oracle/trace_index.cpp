#include "simulator/oracle/trace_index.hpp"

#include <algorithm>

#include "gpu/cpu_device.hpp"
#include "simulator/oracle/checks.hpp"

namespace gossamer::simulator {
TraceIndex::TraceIndex(const Scenario& scenario_in, const Protocol& protocol_in,
                       const Trace& trace_in, Checks& checks)
    : scenario(scenario_in),
      protocol(protocol_in),
      trace(trace_in),
      links_(scenario, protocol, trace) {
  symmetric_ = is_symmetric(*protocol.schedule);
  index_rounds(checks);
  index_entries();
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
  for (const topology::Neighbour& j : w(a, record.round).in_neighbours(peer_of(a))) {
    const LinkPeriod* link = links_.at(a, j.peer, record.round);
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
    if (used.values > 0) links_.note_use(a, j, t);
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

Round TraceIndex::round_at(int a, Time when) const {
  Round round = 0;
  for (const RoundRecord& record : incarnation(a).rounds)
    if (record.began <= when) round = record.round;
  return round;
}

/// Matrices are kept: a random sequence builds one anew at every call.
const topology::MixingMatrix& TraceIndex::w(int a, Round t) const {
  const int period = protocol.schedule->period();
  const RoundRecord* known = scenario.open ? record(a, t) : nullptr;
  const std::vector<int> participants = known == nullptr ? std::vector<int>() : known->participants;
  auto& kept = matrices_[{period == 0 ? t : t % static_cast<Round>(period), participants}];
  if (!kept && !participants.empty()) {
    const auto schedule = protocol.schedule->copy_if_open();
    if (t > 0) schedule->set_changes({{t, participants}});
    kept = schedule->at(t);
  }
  if (!kept) kept = protocol.schedule->at(t);
  return *kept;
}

std::optional<Channel> TraceIndex::shared() const {
  return scenario.algorithm == "async_push_sum" ? std::optional<Channel>(kAsyncPushSumGiven)
                                                : std::nullopt;
}

}  // namespace gossamer::simulator
