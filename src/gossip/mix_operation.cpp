#include "gossip/mix_operation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::gossip {

Stage::Stage(Inbox& inbox, std::size_t length) : inbox_(inbox), length_(length) {
  inbox_.consumer = this;
  arrived();
}

void Stage::arrived() {
  for (; !inbox_.chunks.empty(); inbox_.chunks.pop_front()) {
    const Chunk& chunk = inbox_.chunks.front();
    if (!assembling_) {
      // Two rows take turns unless a mix still reads the older one.
      assembling_ = spare_ && spare_.use_count() == 1 ? std::move(spare_) : std::make_shared<StagedRow>();
      assembling_->values.resize(length_);
    }
    assembling_->round = chunk.head.round;
    std::copy(chunk.values.begin(), chunk.values.end(),
              assembling_->values.begin() + static_cast<std::ptrdiff_t>(chunk.head.offset));
    if (chunk.head.offset + chunk.values.size() == chunk.head.total) {
      spare_ = std::move(newest_);
      newest_ = std::move(assembling_);
    }
  }
}

void MixOperation::begin(Round t, Channel channel, std::span<const float> x, std::span<float> out,
                         std::span<const topology::Neighbour> neighbours) {
  GOSSAMER_CHECK(!active_, "a row is mixed twice at once");
  active_ = true;
  round_ = t;
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

void MixOperation::begin(std::span<const float> x, std::span<float> out, std::vector<gpu::MixSource> sources,
                         std::vector<std::shared_ptr<const StagedRow>> rows) {
  GOSSAMER_CHECK(!active_, "a row is mixed twice at once");
  active_ = true;
  x_ = x;
  out_ = out;
  sources_.clear();
  held_rows_ = std::move(rows);
  Piece& piece = pieces_.emplace_back();
  piece.sources = std::move(sources);
  piece.request = {x.data(), out.data(), piece.sources, x.size()};
  submitted_ = x.size();
  ++in_flight_;
  endpoint_.exchange_.compute().mix(piece.request, *this);
}

void MixOperation::end() {
  GOSSAMER_CHECK(done(), "a mix ended before it was done");
  for (const Source& source : sources_) source.inbox->consumer = nullptr;
  held_rows_.clear();
  active_ = false;
}

void MixOperation::arrived() {
  while (submitted_ < x_.size()) {
    const std::size_t length = available();
    if (length == 0) return;
    submit(length);
  }
}

std::size_t MixOperation::available() {
  std::size_t end = x_.size();
  for (const Source& source : sources_) {
    if (source.inbox->chunks.empty()) return 0;
    const Chunk& chunk = source.inbox->chunks.front();
    if (chunk.head.round != round_ || chunk.head.total != x_.size()) {
      endpoint_.exchange_.fault({ErrorKind::lost_peer,
                                 fmt::format("peer {} sent peer {} a row of {} values of round {} where {} values of round {} "
                                             "were due: it does not run the same algorithm",
                                             source.peer, endpoint_.peer(), chunk.head.total, chunk.head.round, x_.size(),
                                             round_)});
      return 0;
    }
    end = std::min(end, static_cast<std::size_t>(chunk.head.offset) + chunk.values.size());
  }
  return end - submitted_;
}

void MixOperation::submit(std::size_t length) {
  Piece& piece = pieces_.emplace_back();
  for (const Source& source : sources_) {
    const Chunk& chunk = source.inbox->chunks.front();
    piece.sources.push_back({chunk.values.data() + (submitted_ - chunk.head.offset), source.weight});
  }
  piece.request = {x_.data() + submitted_, out_.data() + submitted_, piece.sources, length};
  submitted_ += length;
  // A chunk that ends here is given back when this piece is computed, and so are none before it: pieces end in order.
  for (const Source& source : sources_) {
    Chunk& chunk = source.inbox->chunks.front();
    if (chunk.head.offset + chunk.values.size() > submitted_) continue;
    piece.consumed.push_back(std::move(chunk));
    source.inbox->chunks.pop_front();
  }
  ++in_flight_;
  endpoint_.exchange_.compute().mix(piece.request, *this);
}

void MixOperation::mixed(gpu::MixRequest&, double seconds) {
  endpoint_.mix_seconds_ += seconds;
  pieces_.pop_front();  // pieces are computed in the order they were asked for
  --in_flight_;
  if (done() && waiter_) endpoint_.exchange_.scheduler().post(std::exchange(waiter_, {}));
}

}  // namespace gossamer::gossip
