#include "net/session/send_queue.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace gossamer::net {

namespace {

// A write takes about this much: large enough that system calls do not count, small enough that
// what was hashed is still in the cache when the kernel copies it.
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

}  // namespace

std::span<const std::byte> SendQueue::Outgoing::payload() const {
  return head.kind == FrameKind::data ? std::as_bytes(chunk.values)
                                      : std::as_bytes(std::span(text));
}

void SendQueue::push(const FrameHeader& head, gossip::Chunk chunk, std::string text) {
  Outgoing& frame = queue_.emplace_back();
  frame.head = head;
  frame.chunk = std::move(chunk);
  frame.text = std::move(text);
  if (frame.lends()) frame.lent = hashes_.lent();
  if (is_counted(head.kind)) ++pushed_;
  if (head.kind == FrameKind::control) ++notes_;
}

void SendQueue::push_first(const FrameHeader& head) {
  GOSSAMER_CHECK(in_flight_ == 0 && !is_counted(head.kind), "a frame that cannot be put first");
  // One of its kind that waits still is old news by now, and would be read after this one.
  const auto first_whole = [this] { return queue_.begin() + (front_written_ > 0 ? 1 : 0); };
  const auto first_counted = std::find_if(first_whole(), queue_.end(), [](const Outgoing& frame) {
    return is_counted(frame.head.kind);
  });
  queue_.erase(std::remove_if(first_whole(), first_counted,
                              [&](const Outgoing& frame) { return frame.head.kind == head.kind; }),
               first_counted);
  queue_.emplace(first_whole())->head = head;
}

/// A frame is hashed when it is first gathered, just before the kernel reads the same bytes.
void SendQueue::encode(Outgoing& frame) {
  if (frame.encoded) return;
  encode_header(frame.head, header_checksum(frame.head) ^ hashes_.hash(frame.payload(), frame.lent),
                frame.bytes);
  frame.encoded = true;
}

std::span<const Area> SendQueue::gather() {
  std::size_t areas = 0, bytes = 0, skip = front_written_;
  in_flight_ = 0;
  for (Outgoing& frame : queue_) {
    if (areas + 2 > areas_.size() || bytes >= kWriteBytes) break;
    if (interrupted_ && is_counted(frame.head.kind)) break;
    encode(frame);
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
  std::vector<gossip::Lease> leases;  // end after all is in order: a lease's end may send more
  Frames done;
  while (!queue_.empty() && front_written_ >= queue_.front().size()) {
    front_written_ -= queue_.front().size();
    Outgoing frame = std::move(queue_.front());
    queue_.pop_front();
    if (!is_counted(frame.head.kind)) continue;
    const bool small = frame.head.total * sizeof(float) <= kSmallBytes;
    if (frame.lends() && !(small && copy(frame, leases))) ++lent_kept_;
    kept_.push_back(std::move(frame));
  }
  forget_acknowledged(done);
  let_go(done);
}

void SendQueue::forget_acknowledged(Frames& done) {
  for (; first_ < acknowledged_ && !kept_.empty(); ++first_) {
    if (kept_.front().lends()) --lent_kept_;
    done.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
}

bool SendQueue::acknowledged(std::uint64_t count) {
  if (count < acknowledged_ || count > pushed_) return false;
  acknowledged_ = count;
  Frames done;
  forget_acknowledged(done);
  let_go(done);
  return true;
}

void SendQueue::interrupted() {
  interrupted_ = true;
  in_flight_ = 0;
  front_written_ = 0;
  std::erase_if(queue_, [](const Outgoing& frame) { return !is_counted(frame.head.kind); });
}

bool SendQueue::resume(std::uint64_t count) {
  if (count < acknowledged_ || count > pushed_) return false;
  GOSSAMER_CHECK(between_frames(), "a frame that is half written cannot be written again");
  // Frames that do not count are at the front, if there are any: nothing else was written since.
  const auto first_counted = std::ranges::find_if(
      queue_, [](const Outgoing& frame) { return is_counted(frame.head.kind); });
  queue_.insert(first_counted, std::make_move_iterator(kept_.begin()),
                std::make_move_iterator(kept_.end()));
  kept_.clear();
  lent_kept_ = 0;
  Frames done;
  for (auto each = queue_.begin(); each != queue_.end() && first_ < count;) {
    if (!is_counted(each->head.kind)) {
      ++each;
      continue;
    }
    done.push_back(std::move(*each));
    each = queue_.erase(each);
    ++first_;
  }
  acknowledged_ = count;
  interrupted_ = false;
  let_go(done);
  return true;
}

void SendQueue::drop(bool keep_begun) {
  Frames done = std::exchange(kept_, {});
  lent_kept_ = 0;
  const std::size_t keep =
      keep_begun ? std::max<std::size_t>(in_flight_, front_written_ > 0 ? 1 : 0) : 0;
  if (keep == 0) in_flight_ = front_written_ = 0;
  while (queue_.size() > keep) {
    done.push_front(std::move(queue_.back()));
    queue_.pop_back();
  }
  let_go(done);
}

/// Ends frames and their leases.
void SendQueue::let_go(Frames& frames) {
  for (const Outgoing& frame : frames) {
    if (frame.copy != nullptr) copied_bytes_ -= frame.head.payload_bytes;
    else hashes_.release(frame.payload());
    if (frame.head.kind == FrameKind::control) --notes_;
  }
  frames.clear();
}

/// From now on the frame needs no lease; what it had goes to `leases`. False where that would be
/// too much.
bool SendQueue::copy(Outgoing& frame, std::vector<gossip::Lease>& leases) {
  const std::size_t size = frame.chunk.values.size_bytes();
  if (copied_bytes_ + size > kMaxCopiedBytes) return false;
  encode(frame);
  frame.copy = std::make_unique_for_overwrite<std::byte[]>(size);
  std::memcpy(frame.copy.get(), frame.chunk.values.data(), size);
  copied_bytes_ += size;
  hashes_.release(frame.payload());
  frame.chunk.values = {reinterpret_cast<const float*>(frame.copy.get()),
                        frame.chunk.values.size()};
  leases.push_back(std::move(frame.chunk.lease));
  return true;
}

bool SendQueue::copy_awaited() {
  std::vector<gossip::Lease> leases;
  bool left = false;
  for (Outgoing& frame : kept_) {
    if (!frame.lends()) continue;
    if (frame.chunk.lease.writer_waiting() && copy(frame, leases)) --lent_kept_;
    else left = true;
  }
  if (!interrupted_) return left;
  for (Outgoing& frame : queue_)
    if (frame.lends() && !(frame.chunk.lease.writer_waiting() && copy(frame, leases))) left = true;
  return left;
}

}  // namespace gossamer::net
