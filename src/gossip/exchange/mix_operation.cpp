#include "gossip/exchange/mix_operation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::gossip {

void MixOperation::begin(Round t, Channel channel, std::span<const float> x, std::span<float> out,
                         std::span<const topology::Neighbour> neighbours) {
  base_ = x;
  own_ = std::nullopt;
  receive(t, channel, x, out, neighbours);
}

void MixOperation::begin_sum(Round t, Channel channel, std::span<const float> x,
                             std::span<float> out, std::span<const topology::Neighbour> neighbours,
                             double own) {
  base_ = endpoint_.exchange_.zeros(x);
  own_ = static_cast<float>(own);
  receive(t, channel, x, out, neighbours);
}

void MixOperation::receive(Round t, Channel channel, std::span<const float> x, std::span<float> out,
                           std::span<const topology::Neighbour> neighbours) {
  GOSSAMER_CHECK(!active_, "a row is mixed twice at once");
  active_ = true;
  round_ = t;
  channel_ = channel;
  x_ = x;
  out_ = out;
  submitted_ = 0;
  sources_.clear();
  for (const topology::Neighbour& neighbour : neighbours) {
    Inbox& inbox = endpoint_.inbox(neighbour.peer, channel);
    sources_.push_back({neighbour.peer, static_cast<float>(neighbour.weight), &inbox});
    inbox.consumer = this;
  }
  arrived();
}

void MixOperation::begin(std::span<const float> x, std::span<float> out, BufferedMix::Rows rows) {
  GOSSAMER_CHECK(!active_, "a row is mixed twice at once");
  active_ = true;
  x_ = x;
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

std::optional<Deviation> MixOperation::lose(int peer) {
  const auto source = std::ranges::find(sources_, peer, &Source::peer);
  if (!active_ || submitted_ == x_.size() || source == sources_.end()) return std::nullopt;
  source->inbox->consumer = nullptr;
  // Pieces that are not computed yet may read the beginning of the chunk that comes next.
  if (auto& chunks = source->inbox->chunks; in_flight_ > 0 && !chunks.empty()) {
    pieces_.back().consumed.push_back(std::move(chunks.front()));
    chunks.pop_front();
  }
  sources_.erase(source);
  return Deviation{round_, peer, channel_, true, 0, submitted_};
}

void MixOperation::arrived() {
  while (active_ && submitted_ < x_.size()) {
    const std::size_t length = available();
    if (length == 0) return;
    submit(next_piece(length));
  }
}

std::size_t MixOperation::available() {
  std::size_t end = x_.size();
  for (const Source& source : sources_) {
    if (source.inbox->chunks.empty()) return 0;
    const Chunk& chunk = source.inbox->chunks.front();
    if (chunk.head.round != round_ || chunk.head.total != x_.size()) {
      const ChunkHeader head = chunk.head;
      endpoint_.refuse(
          head, fmt::format("a row of {} values of round {} where {} values of round {} were due",
                            head.total, head.round, x_.size(), round_));
      return 0;
    }
    end = std::min(end, static_cast<std::size_t>(chunk.head.offset) + chunk.values.size());
  }
  return end - submitted_;
}

MixOperation::Piece MixOperation::next_piece(std::size_t length) {
  Piece piece{{base_.data() + submitted_, out_.data() + submitted_, {}, length}, {}, {}};
  if (own_) piece.sources.push_back({x_.data() + submitted_, *own_});
  for (const Source& source : sources_) {
    const Chunk& chunk = source.inbox->chunks.front();
    piece.sources.push_back(
        {chunk.values.data() + (submitted_ - chunk.head.offset), source.weight});
  }
  submitted_ += length;
  // A chunk that ends here goes with this piece, the last that reads it; pieces are computed in
  // order.
  for (const Source& source : sources_) {
    Chunk& chunk = source.inbox->chunks.front();
    if (chunk.head.offset + chunk.values.size() > submitted_) continue;
    piece.consumed.push_back(std::move(chunk));
    source.inbox->chunks.pop_front();
  }
  return piece;
}

void MixOperation::submit(Piece piece) {
  Piece& kept = pieces_.emplace_back(std::move(piece));
  kept.request.sources = kept.sources;
  ++in_flight_;
  endpoint_.exchange_.compute().mix(kept.request, *this);
}

void MixOperation::mixed(gpu::MixRequest&, double seconds) {
  endpoint_.mix_seconds_ += seconds;
  pieces_.pop_front();  // pieces are computed in the order they were asked for
  --in_flight_;
  if (done() && waiter_) endpoint_.exchange_.scheduler().post(std::exchange(waiter_, {}));
}

}  // namespace gossamer::gossip
