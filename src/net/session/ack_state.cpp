#include "net/session/ack_state.hpp"

#include <utility>

#include "net/session/send_queue.hpp"

namespace gossamer::net {

static_assert(AckState::kWorthBytes == SendQueue::kSmallBytes);

void AckState::on_received(const FrameHeader& header) {
  ++received_;
  unacked_bytes_ += kFrameHeaderBytes + header.payload_bytes;
  if (unacked_bytes_ >= kDueBytes || header.kind() == FrameKind::goodbye) due_ = true;
  if (const DataFrame* data = header.data()) {
    const bool last = data->offset + header.payload_bytes / sizeof(float) == data->total;
    if (last && data->total * sizeof(float) > SendQueue::kSmallBytes) due_ = true;
  }
}

bool AckState::make_due() {
  if (up_to_date()) return false;
  return due_ = true;
}

AckFrame AckState::take(std::uint64_t sent, std::uint64_t released) {
  acked_ = received_;
  unacked_bytes_ = 0;
  released_unacked_ = due_ = false;
  return {received_, sent, released};
}

void AckState::on_detach() {
  resuming_ = false;
  deferred_.reset();
  acked_ = 0;
}

bool AckState::finish_resuming() { return std::exchange(resuming_, false); }

std::optional<AckFrame> AckState::take_deferred() { return std::exchange(deferred_, std::nullopt); }

}  // namespace gossamer::net
