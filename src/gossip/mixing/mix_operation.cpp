#include "gossip/mixing/mix_operation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::gossip {

void MixOperation::begin(const Stream& stream, std::span<float> out) {
  GOSSAMER_CHECK(!active_, "a row is mixed twice at once");
  active_ = true;
  stream_ = stream;
  out_ = out;
  submitted_ = 0;
  sources_.clear();
  for (const topology::Neighbour& neighbour : stream.neighbours) {
    Inbox& inbox = messenger_.inbox(neighbour.peer, stream.channel);
    const auto weight = static_cast<float>(neighbour.weight / stream.row_sum);
    sources_.push_back({neighbour.peer, weight, &inbox});
    inbox.consumer = this;
  }
  advance();
}

void MixOperation::begin(std::span<const float> x, std::span<float> out, WholeRows rows,
                         bool as_difference) {
  GOSSAMER_CHECK(!active_, "a row is mixed twice at once");
  active_ = true;
  stream_.x = x;
  stream_.as_difference = as_difference;
  out_ = out;
  sources_.clear();
  held_rows_ = std::move(rows.held);
  submitted_ = x.size();
  submit({{x.data(), out.data(), {}, x.size()}, std::move(rows.sources), {}});
}

void MixOperation::end() {
  GOSSAMER_CHECK(done(), "a mix ended before it was done");
  for (const Source& source : sources_) source.inbox->consumer = nullptr;
  held_rows_.clear();
  active_ = false;
}

std::optional<Deviation> MixOperation::drop_source(int peer) {
  const auto source = std::ranges::find(sources_, peer, &Source::peer);
  if (!active_ || submitted_ == stream_.x.size() || source == sources_.end()) return std::nullopt;
  source->inbox->consumer = nullptr;
  // A piece in flight may read the beginning of the chunk that is not consumed yet.
  if (auto& chunks = source->inbox->chunks; in_flight_ > 0 && !chunks.empty()) {
    pieces_.back().consumed.push_back(std::move(chunks.front()));
    chunks.pop_front();
  }
  sources_.erase(source);
  return Deviation{stream_.round, peer, stream_.channel, true, 0, submitted_};
}

void MixOperation::advance() {
  while (active_ && submitted_ < stream_.x.size()) {
    const std::size_t length = available();
    if (length == 0) return;
    submit(next_piece(length));
  }
}

/// Values from `submitted_` on that the first chunk of every neighbour has; 0 if one has no chunk.
std::size_t MixOperation::available() {
  std::size_t end = stream_.x.size();
  for (const Source& source : sources_) {
    if (source.inbox->chunks.empty()) return 0;
    const Chunk& chunk = source.inbox->chunks.front();
    if (chunk.header.round != stream_.round || chunk.header.total != stream_.x.size()) {
      const ChunkHeader header = chunk.header;
      messenger_.refuse(
          header, fmt::format("a row of {} values of round {} where {} values of round {} were due",
                              header.total, header.round, stream_.x.size(), stream_.round));
      return 0;
    }
    end = std::min(end, static_cast<std::size_t>(chunk.header.offset) + chunk.values.size());
  }
  return end - submitted_;
}

/// Takes the next `length` values of every neighbour's chunk.
MixOperation::Piece MixOperation::next_piece(std::size_t length) {
  Piece piece{{stream_.base.data() + submitted_, out_.data() + submitted_, {}, length}, {}, {}};
  piece.sources.reserve(sources_.size() + 1);
  piece.consumed.reserve(sources_.size());
  if (stream_.own_weight)
    piece.sources.push_back({stream_.x.data() + submitted_, *stream_.own_weight});
  for (const Source& source : sources_) {
    const Chunk& chunk = source.inbox->chunks.front();
    piece.sources.push_back(
        {chunk.values.data() + (submitted_ - chunk.header.offset), source.weight});
  }
  submitted_ += length;
  // A chunk that ends here goes with this piece, the last one that reads it: pieces are computed in
  // order.
  for (const Source& source : sources_) {
    Chunk& chunk = source.inbox->chunks.front();
    if (chunk.header.offset + chunk.values.size() > submitted_) continue;
    piece.consumed.push_back(std::move(chunk));
    source.inbox->chunks.pop_front();
  }
  return piece;
}

void MixOperation::submit(Piece piece) {
  Piece& kept = pieces_.emplace_back(std::move(piece));
  kept.request.sources = kept.sources;
  kept.request.own = stream_.as_difference ? 0.0F : 1.0F;
  ++in_flight_;
  compute_.mix(kept.request, *this);
}

void MixOperation::mixed(gpu::MixRequest&, double seconds) {
  seconds_ += seconds;
  pieces_.pop_front();
  --in_flight_;
  if (done() && waiter_) scheduler_.post(std::exchange(waiter_, {}));
}

// ---- by channel

MixOperation& MixOperations::of(Channel channel) {
  auto& operation = by_channel_[channel];
  if (!operation)
    operation = std::make_unique<MixOperation>(messenger_, process_.compute, process_.scheduler);
  return *operation;
}

double MixOperations::seconds() const {
  double seconds = 0;
  for (const auto& [channel, operation] : by_channel_) seconds += operation->seconds();
  return seconds;
}

}  // namespace gossamer::gossip
