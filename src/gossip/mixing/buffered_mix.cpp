#include "gossip/mixing/buffered_mix.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gossip/attack.hpp"

namespace gossamer::gossip {

BufferedMix::BufferedMix(const MixerContext& context, Channel channel, std::size_t length)
    : context_(context),
      decided_(context.process.scheduler, [this] { return is_decided(); }),
      channel_(channel),
      length_(length) {}

void BufferedMix::open(int peer) {
  Neighbour& neighbour = neighbours_[peer];
  if (neighbour.assembler) return;
  neighbour.assembler = std::make_unique<RowAssembler>(context_.process.device(),
                                                       context_.messenger.inbox(peer, channel_),
                                                       context_.gpu(), length_, peer, *this);
  neighbour.outgoing.on_free = [this, peer] { on_link_free(peer); };
}

void BufferedMix::begin(Round t, std::span<const float> row, Round as) {
  GOSSAMER_CHECK(!active_ && row.size() == length_,
                 "a row is mixed twice at once, or changed its length");
  active_ = true;
  round_ = t;
  const ProcessContext& process = context_.process;
  matrix_ = process.schedule.at(t);
  const auto in_neighbours = context_.view.in_neighbours(*matrix_, t);
  in_neighbours_.assign(in_neighbours.begin(), in_neighbours.end());
  const std::span<const int> receivers = context_.view.out_neighbours(*matrix_, t);
  if (!receivers.empty()) {
    if (!process.validator.validate_outgoing(context_.peer(), t, channel_, row, receivers))
      return;  // the run ends
    // The device checks the row before a neighbour's GPU reads the copy.
    process.compute.run_checks();
    copy_lease_.end();
    copy_ = &context_.messenger.copies().copy(row);
    copy_lease_ = copy_->lease();
    copy_round_ = as;
  }
  on_begin();
  const std::size_t first = first_receiver(receivers, context_.peer());
  for (std::size_t k = 0; k < receivers.size(); ++k)
    send(receivers[(first + k) % receivers.size()]);
  on_sent();
}

bool BufferedMix::withholds(int to) const {
  const AttackPlan* const attack = context_.process.options.attack;
  return attack != nullptr && attack->withholds(context_.peer(), to, round_);
}

bool BufferedMix::transmit(int to) {
  OutgoingRow& outgoing = neighbours_.at(to).outgoing;
  if (outgoing.busy() || withholds(to)) return false;
  outgoing.begin(*copy_);
  // The link may be done with the first chunk before the second one is sent.
  const Lease whole = outgoing.lease();
  context_.messenger.send_validated(std::span(&to, 1), copy_round_, channel_, copy_->values(),
                                    outgoing);
  return true;
}

void BufferedMix::send_control(int to, ControlMessage message, Round t) {
  context_.messenger.send_control(control_header(context_.peer(), to, message, t, channel_));
}

std::shared_ptr<const BufferedRow> BufferedMix::newest(int peer) const {
  const auto& assembler = neighbours_.at(peer).assembler;
  return assembler ? assembler->newest() : nullptr;
}

WholeRows BufferedMix::take() {
  GOSSAMER_CHECK(active_, "a mix ends that has not begun");
  active_ = false;
  on_end();
  WholeRows rows;
  rows.round = round_;
  for (const topology::Neighbour& neighbour : matrix_->in_neighbours(context_.peer())) {
    const int from = neighbour.peer;
    if (!context_.view.is_present(from, round_)) {
      context_.view.record({round_, from, channel_, true});
      continue;
    }
    auto row = take_row(from);
    if (!row || row->round != round_)
      context_.view.record({round_, from, channel_, row == nullptr, row ? row->round : 0});
    if (!row) continue;
    rows.sources.push_back({row->values().data(), static_cast<float>(neighbour.weight)});
    rows.from.push_back(from);
    rows.held.push_back(std::move(row));
  }
  return rows;
}

void BufferedMix::on_link_lost(int peer) {
  if (const auto found = neighbours_.find(peer); found != neighbours_.end()) {
    forget(peer);
    // The neighbour's entry stays: links may still read this peer's copies.
    context_.messenger.inbox(peer, channel_).consumer = nullptr;
    found->second.assembler.reset();
    context_.messenger.notify();
  }
  // The mix may wait for a neighbour of which nothing has arrived, too.
  std::erase_if(in_neighbours_,
                [peer](const topology::Neighbour& neighbour) { return neighbour.peer == peer; });
  if (active_) advance();
  decided_.update();
}

// ---- all rows

task<void> BufferedMixer::begin(Round t, Channel channel, MixedRow& row) {
  co_await row.back().writable();
  GOSSAMER_CHECK(context_.process.schedule.at(t)->row_surplus(context_.peer()) == 0,
                 "rows that are late are mixed by differences");
  mix(channel, row.values().size()).begin(t, row.values(), t);
}

task<void> BufferedMixer::finish(Channel channel, MixedRow& row) {
  BufferedMix& buffered = mix(channel, row.values().size());
  co_await buffered.decided();
  WholeRows rows = buffered.take();
  if (rows.sources.empty()) co_return;  // x does not change
  co_await whole_rows_.mix(channel, row, std::move(rows));
}

task<std::vector<NeighbourRow>> BufferedMixer::share(SharedRow row) {
  BufferedMix& buffered = mix(row.channel, row.values.size());
  buffered.begin(row.t, row.values, round_of(row));
  co_await buffered.decided();
  WholeRows rows = buffered.take();
  std::vector<NeighbourRow> shared;
  for (std::size_t k = 0; k < rows.held.size(); ++k)
    shared.push_back({rows.from[k], rows.held[k]->round, context_.view.present_since(rows.from[k]),
                      rows.held[k]->values(), rows.held[k]});
  co_return shared;
}

Status BufferedMixer::on_control_message(const ChunkHeader& header) {
  return mix(header.channel, length_of(header.channel)).on_control_message(header);
}

Status BufferedMixer::on_chunk(const ChunkHeader& header) {
  if (!takes_rows(header.channel))
    return protocol_error(header, "a row that no mix takes and no peer shares");
  const std::size_t length = length_of(header.channel);
  if (header.total != length)
    return protocol_error(
        header, fmt::format("a row of {} values where {} were due", header.total, length));
  mix(header.channel, length).expect(header.from);
  return {};
}

void BufferedMixer::on_link_lost(int peer) {
  for (auto& [channel, mix] : mixes_) mix->on_link_lost(peer);
}

void BufferedMixer::on_link_restored(int peer, Round first) {
  for (auto& [channel, mix] : mixes_) mix->on_link_restored(peer, first);
}

void BufferedMixer::on_rounds_skipped(Round first, Round next) {
  record_skipped(first, next, mixes_);
  // Neighbours that this peer has not met yet receive its control messages too.
  for (Round skipped = first; skipped < next; ++skipped) {
    const auto matrix = context_.process.schedule.at(skipped);
    for (const topology::Neighbour& neighbour : matrix->in_neighbours(context_.peer()))
      for (const auto& [channel, mix] : mixes_)
        if (context_.view.is_present(neighbour.peer)) mix->expect(neighbour.peer);
  }
  for (auto& [channel, mix] : mixes_) mix->skip_to(next);
}

BufferedMix& BufferedMixer::mix(Channel channel, std::size_t length) {
  auto& mix = mixes_[channel];
  if (!mix) mix = make_mix(channel, length);
  return *mix;
}

bool BufferedMixer::takes_rows(Channel channel) const {
  const std::vector<ChannelSpec>& channels = context_.process.options.channels;
  return channel < channels.size() && (channels[channel].mixed || channels[channel].shared);
}

std::size_t BufferedMixer::length_of(Channel channel) const {
  const std::vector<ChannelSpec>& channels = context_.process.options.channels;
  return channel < channels.size() ? channels[channel].length : 0;
}

}  // namespace gossamer::gossip
