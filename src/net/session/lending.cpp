#include "net/session/lending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "net/session/send_queue.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

// The release of a message is acknowledged with the next frame, which is often this peer's own row,
// or after this time.
constexpr gossip::Time kAcknowledge = 200us;

Error violation(std::string what) { return {ErrorKind::lost_peer, std::move(what)}; }

}  // namespace

// Lent.

void LentChunks::keep(std::uint64_t frame, gossip::Chunk& chunk) {
  if (all_released_ || frame < released_) --count_;
  else chunks_.emplace_back(frame, std::move(chunk));
}

bool LentChunks::release(std::uint64_t frames) {
  if (frames < released_) return false;
  released_ = frames;
  std::vector<gossip::Chunk> done;  // ends last: the end of a lease may send more
  for (; !chunks_.empty() && chunks_.front().first < frames; chunks_.pop_front(), --count_)
    done.push_back(std::move(chunks_.front().second));
  return true;
}

void LentChunks::release_all() {
  all_released_ = true;
  const auto done = std::exchange(chunks_, {});
  count_ -= done.size();
}

bool LentChunks::delays_writer() const {
  return std::ranges::any_of(chunks_,
                             [](const auto& entry) { return entry.second.lease.writer_waiting(); });
}

// Borrowed.

class Lending::Loan final : public gossip::BufferOwner {
 public:
  Loan(Lending& owner, std::shared_ptr<const SharedMemoryView> view, std::uint64_t frame, bool last)
      : owner_(&owner), view_(std::move(view)), frame_(frame), last_(last) {}

  std::uint64_t frame() const { return frame_; }
  /// The chunk is the last one of its message.
  bool last() const { return last_; }
  bool ended() const { return ended_; }
  /// The owner is gone: the end of the lease deletes the loan.
  void orphan() { owner_ = nullptr; }

  void on_lease_end() override {
    ended_ = true;
    if (owner_ != nullptr) owner_->release();
    else delete this;
  }

 private:
  Lending* owner_;  ///< null when the owner is gone
  std::shared_ptr<const SharedMemoryView> view_;
  std::uint64_t frame_;
  bool last_, ended_ = false;
};

Lending::Lending(gossip::Scheduler& scheduler, const SharedMemory* own)
    : own_(own), acknowledge_later_(scheduler, [this] { acknowledge_(); }) {}

Lending::~Lending() {
  close();
  for (auto& loan : loans_) {
    if (loan->ended()) continue;
    loan->orphan();
    static_cast<void>(loan.release());  // the end of its lease deletes it
  }
}

void Lending::set_hooks(std::function<void()> on_released, std::function<void()> acknowledge) {
  on_released_ = std::move(on_released);
  acknowledge_ = std::move(acknowledge);
}

void Lending::close() {
  acknowledge_later_.cancel();
  set_hooks([] {}, [] {});
  view_.reset();
}

std::optional<OfferFrame> Lending::offer() {
  if (own_ == nullptr || std::exchange(offered_, true)) return std::nullopt;
  return OfferFrame{own_->name()};
}

Result<bool> Lending::on_offer(const OfferFrame& offer) {
  if (std::exchange(was_offered_, true)) return violation("it offered its memory twice");
  if (own_ == nullptr) return false;
  auto mapped = SharedMemoryView::map(offer.memory);
  if (mapped.ok()) view_ = std::move(mapped).value();
  return view_ != nullptr;
}

Status Lending::on_mapped() {
  if (!offered_ || lends_) return violation("it mapped what was not offered");
  lends_ = true;
  return {};
}

std::optional<LentPlace> Lending::place_of(const gossip::Chunk& chunk) const {
  if (!lends_ || chunk.header.total * sizeof(float) <= SendQueue::kSmallBytes ||
      lent_.count() >= kMaxChunks)
    return std::nullopt;
  const auto begin = own_->offset_of(std::as_bytes(chunk.values));
  if (!begin) return std::nullopt;
  return LentPlace{*begin, chunk.values.size()};
}

Result<gossip::Chunk> Lending::borrow(std::uint64_t frame, const gossip::ChunkHeader& header,
                                      const std::string& payload) {
  if (!view_) return violation("a lent chunk, though none of its memory is mapped");
  const std::span<const std::byte> memory = view_->bytes();
  GOSSAMER_TRY(const LentPlace place,
               decode_place(header.offset, header.total, payload, memory.size()));
  if (loans_.size() >= kMaxChunks)
    return violation(fmt::format("more than {} lent chunks", kMaxChunks));
  const bool last = header.offset + place.values == header.total;
  loans_.push_back(std::make_unique<Loan>(*this, view_, frame, last));
  const auto* first = reinterpret_cast<const float*>(memory.data() + place.begin);
  return gossip::Chunk(header, {first, static_cast<std::size_t>(place.values)},
                       gossip::Lease(*loans_.back()));
}

std::uint64_t Lending::released(std::uint64_t received) const {
  return loans_.empty() ? received : loans_.front()->frame();
}

void Lending::release() {
  bool grown = false, message = false;
  for (; !loans_.empty() && loans_.front()->ended(); loans_.pop_front()) {
    grown = true;
    message |= loans_.front()->last();
  }
  if (grown) on_released_();
  if (message) acknowledge_later_.call_after(kAcknowledge);
}

}  // namespace gossamer::net
