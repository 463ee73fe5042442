// From a stream of bytes to frames, without a socket: says where the next bytes should go (a
// chunk's values straight into their buffer, the next header behind them), and gives out frames
// that are whole and sound.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "net/wire/buffer_pool.hpp"
#include "net/wire/frame.hpp"

namespace gossamer::net {

/// A piece of memory to read into or write from.
struct Area {
  void* data = nullptr;
  std::size_t size = 0;
};

/// A whole frame, its checksum right.
struct Frame {
  FrameHeader head;
  std::span<const float> values;  ///< of a data frame; in the memory that the lease holds
  gossip::Lease lease;
  std::string text;      ///< of an abort or a statement
  bool dropped = false;  ///< its values were not kept, nor its checksum looked at
};

/// Use: read into areas(), say filled(), then take frames with next() until it has none. Thread:
/// the scheduler's.
class FrameReader {
 public:
  FrameReader(const FrameParties& parties, BufferPool& pool) : parties_(parties), pool_(pool) {}
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  /// Where the next bytes belong, in order; empty while a data frame waits for a buffer or is held.
  /// The areas stay valid until the next call of filled().
  std::span<const Area> areas();
  /// `bytes` have been read into areas(), 1 at least.
  void filled(std::size_t bytes);
  /// The next frame; nothing when more bytes, or a buffer, are needed; or how the bytes break the
  /// protocol: the stream is then useless.
  Result<std::optional<Frame>> next();

  /// While true, data frames wait in front (nothing behind them is seen).
  void hold_data(bool hold) { hold_data_ = hold; }
  bool holds_data() const { return hold_data_; }
  /// From now on data frames are read and dropped, also if they were held.
  void drop_data() { drop_data_ = true, hold_data_ = false; }
  /// The next bytes are those of another connection: what was half read is forgotten.
  void restart();
  /// Bytes of a frame have been read, and some are missing.
  bool inside_frame() const { return head_.has_value() || begin_ != end_; }

 private:
  /// Headers, and what came behind them; big enough that a small message comes in with one system
  /// call, small enough that what is copied out of it does not count.
  static constexpr std::size_t kInboxBytes = 16384;

  bool start_payload();
  void take_from_inbox();
  Result<std::optional<Frame>> finish_frame();
  std::byte* payload_target();

  FrameParties parties_;
  BufferPool& pool_;
  std::array<std::byte, kInboxBytes> inbox_;
  std::size_t begin_ = 0, end_ = 0;  // what of the inbox is not yet used

  std::optional<CheckedHeader> head_;  // of the frame whose payload is being read
  PooledBuffer* buffer_ = nullptr;     // for a data frame's payload
  std::string text_;                   // for an abort's or a statement's
  bool dropping_ = false;              // this frame's payload goes nowhere
  std::size_t got_ = 0;                // bytes of the payload so far

  bool hold_data_ = false;
  bool drop_data_ = false;
  std::array<Area, 2> areas_;
};

}  // namespace gossamer::net
