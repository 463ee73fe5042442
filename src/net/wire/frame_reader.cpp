#include "net/wire/frame_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace gossamer::net {

FrameReader::~FrameReader() {
  if (buffer_ != nullptr) gossip::Lease(*buffer_).end();
}

std::span<const Area> FrameReader::areas() {
  if (header_ && !start_payload()) return {};
  std::memmove(inbox_.data(), inbox_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  std::size_t count = 0;
  if (header_ && !dropping_)
    areas_[count++] = {payload_target() + payload_received_,
                       header_->header.payload_bytes - payload_received_};
  areas_[count++] = {inbox_.data() + end_, kInboxBytes - end_};
  return {areas_.data(), count};
}

void FrameReader::filled(std::size_t bytes) {
  if (header_ && !dropping_) {
    const std::size_t direct = std::min(bytes, header_->header.payload_bytes - payload_received_);
    payload_received_ += direct;
    bytes -= direct;
  }
  GOSSAMER_CHECK(bytes <= kInboxBytes - end_, "more bytes than there was room for");
  end_ += bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  if (!header_) {
    if (end_ - begin_ < kFrameHeaderBytes) return std::optional<Frame>();
    const std::span<const std::byte, kFrameHeaderBytes> bytes(inbox_.data() + begin_,
                                                              kFrameHeaderBytes);
    GOSSAMER_TRY(header_, decode_header(bytes, parties_));
    begin_ += kFrameHeaderBytes;
    payload_received_ = 0;
    dropping_ = false;
  }
  if (!start_payload()) return std::optional<Frame>();
  take_from_inbox();
  if (payload_received_ < header_->header.payload_bytes) return std::optional<Frame>();
  if (!dropping_) return finish_frame();
  Frame dropped;
  dropped.header = header_->header;
  dropped.dropped = true;
  header_.reset();
  return std::optional<Frame>(std::move(dropped));
}

void FrameReader::restart() {
  if (PooledBuffer* buffer = std::exchange(buffer_, nullptr)) gossip::Lease(*buffer).end();
  header_.reset();
  text_.clear();
  begin_ = end_ = payload_received_ = 0;
  dropping_ = false;
}

/// Finds a place for the current frame's payload; false when it must wait.
bool FrameReader::start_payload() {
  if (buffer_ != nullptr || dropping_) return true;
  const FrameHeader& header = header_->header;
  if ((header.control() != nullptr || header.lent() != nullptr) && hold_data_) return false;
  if (header.data() == nullptr) {
    text_.resize(header.payload_bytes);  // decode_header has bounded it
    return true;
  }
  if (drop_data_) return dropping_ = true;
  if (hold_data_) return false;
  buffer_ = pool_.take(std::max<std::size_t>(header.payload_bytes, 1));
  return buffer_ != nullptr;
}

std::byte* FrameReader::payload_target() {
  return buffer_ != nullptr ? buffer_->data() : reinterpret_cast<std::byte*>(text_.data());
}

void FrameReader::take_from_inbox() {
  const std::size_t bytes =
      std::min(end_ - begin_, header_->header.payload_bytes - payload_received_);
  if (bytes == 0) return;
  if (!dropping_) std::memcpy(payload_target() + payload_received_, inbox_.data() + begin_, bytes);
  payload_received_ += bytes;
  begin_ += bytes;
}

Result<std::optional<Frame>> FrameReader::finish_frame() {
  const DecodedHeader decoded = *header_;
  header_.reset();
  const std::span<const std::byte> payload(payload_target(), decoded.header.payload_bytes);
  const bool intact = hash64(payload) == decoded.payload_hash;

  Frame frame;
  frame.header = decoded.header;
  if (buffer_ != nullptr) {
    frame.values = {reinterpret_cast<const float*>(buffer_->data()),
                    payload.size() / sizeof(float)};
    frame.lease = gossip::Lease(*buffer_);
    buffer_ = nullptr;
  }
  if (!intact)
    return Error{ErrorKind::lost_peer,
                 "a frame whose checksum does not match: it was damaged on the way"};
  frame.dropped = drop_data_ && frame.header.lent() != nullptr;
  frame.text = std::move(text_);
  text_.clear();
  return std::optional<Frame>(std::move(frame));
}

}  // namespace gossamer::net
