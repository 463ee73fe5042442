#include "net/session/send_queue.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace gossamer::net {

namespace {

// A write takes about this many bytes: enough that system calls cost little, and few enough that
// the hashed bytes are still in the cache when the kernel copies them.
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

}  // namespace

std::span<const std::byte> SendQueue::Outgoing::payload() const {
  return header.data() != nullptr ? std::as_bytes(chunk.values) : std::as_bytes(std::span(text));
}

bool SendQueue::Outgoing::is_small() const {
  const DataFrame* data = header.data();
  return data == nullptr || data->total * sizeof(float) <= kSmallBytes;
}

void SendQueue::push(const FrameHeader& header, gossip::Chunk chunk, std::string text) {
  Outgoing& frame = queue_.emplace_back();
  frame.header = header;
  frame.chunk = std::move(chunk);
  frame.text = std::move(text);
  if (frame.may_copy()) frame.leased_at = hashes_.leased();
  if (header.lent() != nullptr) lent_.lend();
  if (header.counted()) ++pushed_;
  if (header.control() != nullptr) ++control_frames_;
}

void SendQueue::push_first(const FrameHeader& header) {
  GOSSAMER_CHECK(in_flight_ == 0 && !header.counted(), "a frame that cannot be put first");
  // A waiting frame of the same kind is out of date, and would be read after this one.
  const auto first_whole = [this] { return queue_.begin() + (front_written_ > 0 ? 1 : 0); };
  const auto first_counted = std::find_if(
      first_whole(), queue_.end(), [](const Outgoing& frame) { return frame.header.counted(); });
  queue_.erase(
      std::remove_if(first_whole(), first_counted,
                     [&](const Outgoing& frame) { return frame.header.kind() == header.kind(); }),
      first_counted);
  queue_.emplace(first_whole())->header = header;
}

/// A frame is hashed when it is first gathered, just before the kernel reads the same bytes.
void SendQueue::Outgoing::encode(HashMemo& hashes) {
  if (std::exchange(encoded, true)) return;
  encode_header(header, may_copy() ? hashes.hash(payload(), leased_at) : hash64(payload()), bytes);
}

std::span<const Area> SendQueue::gather() {
  std::size_t areas = 0, bytes = 0, skip = front_written_;
  in_flight_ = 0;
  for (Outgoing& frame : queue_) {
    if (areas + 2 > areas_.size() || bytes >= kWriteBytes) break;
    if (interrupted_ && frame.header.counted()) break;
    frame.encode(hashes_);
    const auto payload = frame.payload();
    if (skip < kFrameHeaderBytes)
      areas_[areas++] = {frame.bytes.data() + skip, kFrameHeaderBytes - skip};
    const std::size_t skip_payload = skip > kFrameHeaderBytes ? skip - kFrameHeaderBytes : 0;
    if (payload.size() > skip_payload)
      areas_[areas++] = {const_cast<std::byte*>(payload.data()) + skip_payload,
                         payload.size() - skip_payload};
    bytes += frame.size() - skip;
    skip = 0;
    ++in_flight_;
  }
  return {areas_.data(), areas};
}

void SendQueue::written(std::size_t bytes) {
  in_flight_ = 0;
  front_written_ += bytes;
  std::vector<gossip::Lease> leases;  // end last: the end of a lease may send more
  Frames done;
  while (!queue_.empty() && front_written_ >= queue_.front().size()) {
    front_written_ -= queue_.front().size();
    Outgoing frame = std::move(queue_.front());
    queue_.pop_front();
    if (!frame.header.counted()) continue;
    if (frame.may_copy() && !(frame.is_small() && copy(frame, leases))) ++leased_unacked_;
    unacked_.push_back(std::move(frame));
  }
  take_acked(done);
  release(done);
}

void SendQueue::take_acked(Frames& done) {
  for (; first_ < acked_ && !unacked_.empty(); ++first_) {
    Outgoing frame = std::move(unacked_.front());
    unacked_.pop_front();
    if (frame.may_copy()) --leased_unacked_;
    if (frame.header.lent() != nullptr) lent_.keep(first_, frame.chunk);
    done.push_back(std::move(frame));
  }
}

bool SendQueue::on_ack(std::uint64_t count) {
  if (count < acked_ || count > pushed_) return false;
  acked_ = count;
  Frames done;
  take_acked(done);
  release(done);
  return true;
}

void SendQueue::interrupt() {
  interrupted_ = true;
  in_flight_ = 0;
  front_written_ = 0;
  std::erase_if(queue_, [](const Outgoing& frame) { return !frame.header.counted(); });
}

bool SendQueue::resume(std::uint64_t count) {
  if (count < acked_ || count > pushed_) return false;
  GOSSAMER_CHECK(between_frames(), "a frame that is written in part cannot be written again");
  // Frames that are not counted are at the front: nothing else was written since the interruption.
  const auto first_counted =
      std::ranges::find_if(queue_, [](const Outgoing& frame) { return frame.header.counted(); });
  queue_.insert(first_counted, std::make_move_iterator(unacked_.begin()),
                std::make_move_iterator(unacked_.end()));
  unacked_.clear();
  leased_unacked_ = 0;
  Frames done;
  for (auto each = queue_.begin(); each != queue_.end() && first_ < count;) {
    if (!each->header.counted()) {
      ++each;
      continue;
    }
    if (each->header.lent() != nullptr) lent_.keep(first_, each->chunk);
    done.push_back(std::move(*each));
    each = queue_.erase(each);
    ++first_;
  }
  acked_ = count;
  interrupted_ = false;
  release(done);
  return true;
}

void SendQueue::drop(bool keep_begun) {
  Frames done = std::exchange(unacked_, {});
  leased_unacked_ = 0;
  lent_.release_all();
  const std::size_t keep =
      keep_begun ? std::max<std::size_t>(in_flight_, front_written_ > 0 ? 1 : 0) : 0;
  if (keep == 0) in_flight_ = front_written_ = 0;
  while (queue_.size() > keep) {
    done.push_front(std::move(queue_.back()));
    queue_.pop_back();
  }
  release(done);
}

/// Ends frames and their leases.
void SendQueue::release(Frames& frames) {
  for (const Outgoing& frame : frames) {
    if (frame.copy != nullptr) copied_bytes_ -= frame.header.payload_bytes;
    if (frame.may_copy()) hashes_.release(frame.payload());
    if (frame.header.control() != nullptr) --control_frames_;
  }
  frames.clear();
}

/// Copies the values of a frame and moves its lease to `leases`. False if the copies would take too
/// much memory.
bool SendQueue::copy(Outgoing& frame, std::vector<gossip::Lease>& leases) {
  const std::size_t size = frame.chunk.values.size_bytes();
  if (copied_bytes_ + size > kMaxCopiedBytes) return false;
  frame.encode(hashes_);
  frame.copy = std::make_unique_for_overwrite<std::byte[]>(size);
  std::memcpy(frame.copy.get(), frame.chunk.values.data(), size);
  copied_bytes_ += size;
  hashes_.release(frame.payload());
  frame.chunk.values = {reinterpret_cast<const float*>(frame.copy.get()),
                        frame.chunk.values.size()};
  leases.push_back(std::move(frame.chunk.lease));
  return true;
}

bool SendQueue::delays_writer() const {
  const auto delays = [](const Outgoing& frame) { return frame.chunk.lease.writer_waiting(); };
  return lent_.delays_writer() || std::ranges::any_of(unacked_, delays) ||
         std::ranges::any_of(queue_, delays);
}

bool SendQueue::copy_for_writers() {
  std::vector<gossip::Lease> leases;
  bool remain = false;
  for (Outgoing& frame : unacked_) {
    if (!frame.may_copy()) continue;
    if (frame.chunk.lease.writer_waiting() && copy(frame, leases)) --leased_unacked_;
    else remain = true;
  }
  if (!interrupted_) return remain;
  for (Outgoing& frame : queue_)
    if (frame.may_copy() && !(frame.chunk.lease.writer_waiting() && copy(frame, leases)))
      remain = true;
  return remain;
}

}  // namespace gossamer::net
