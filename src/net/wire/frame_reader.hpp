// Turns a stream of bytes into frames, without a socket. The reader names the memory where the next
// bytes belong (the values of a chunk directly in their buffer, the next header behind them) and
// returns the frames that are whole and intact.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "net/io/area.hpp"
#include "net/wire/buffer_pool.hpp"
#include "net/wire/frame.hpp"

namespace gossamer::net {

/// A whole frame with the right checksum.
struct Frame {
  FrameHeader header;
  std::span<const float> values;  ///< of a data frame; in the memory that the lease keeps
  gossip::Lease lease;
  std::string text;      ///< payload of an abort, a contribution or figures; the place of a lent
                         ///< chunk
  bool dropped = false;  ///< a data frame whose values were discarded and whose checksum was not
                         ///< compared, or a lent chunk that is not read
};

/// Use: read into areas(), call filled(), then call next() until it returns no frame. Thread: the
/// scheduler's.
class FrameReader {
 public:
  FrameReader(const FrameParties& parties, BufferPool& pool) : parties_(parties), pool_(pool) {}
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  /// Where the next bytes belong, in order; empty while a data frame waits for a buffer or is held
  /// back. The areas stay valid until the next call of filled().
  std::span<const Area> areas();
  /// `bytes` have been read into areas(), 1 at least.
  void filled(std::size_t bytes);
  /// The next frame, or nothing while more bytes or a buffer are needed. An error says how the
  /// bytes break the protocol; the stream cannot be read any further.
  Result<std::optional<Frame>> next();

  /// While true, next() returns no data, lent or control frame, nor any frame behind one.
  void hold_data(bool hold) { hold_data_ = hold; }
  bool holds_data() const { return hold_data_; }
  /// From now on the values of data frames are read and discarded, also of a frame that was held,
  /// and lent chunks are not read.
  void drop_data() { drop_data_ = true, hold_data_ = false; }
  /// The next bytes are those of another connection: a frame that was read in part is forgotten.
  void restart();
  /// Some bytes of a frame have been read, and some are missing.
  bool inside_frame() const { return header_.has_value() || begin_ != end_; }

 private:
  /// The inbox holds headers and the bytes behind them. It is large enough that a small message
  /// needs one system call, and small enough that copying out of it costs little.
  static constexpr std::size_t kInboxBytes = 16384;

  bool start_payload();
  void take_from_inbox();
  Result<std::optional<Frame>> finish_frame();
  std::byte* payload_target();

  FrameParties parties_;
  BufferPool& pool_;
  std::array<std::byte, kInboxBytes> inbox_;
  std::size_t begin_ = 0, end_ = 0;  ///< the unread part of the inbox

  std::optional<DecodedHeader> header_;  ///< while its payload is being read
  PooledBuffer* buffer_ = nullptr;       ///< receives the payload of a data frame
  std::string text_;                     ///< receives the payload of any other frame
  bool dropping_ = false;                ///< the payload of this frame is discarded
  std::size_t payload_received_ = 0;     ///< bytes of the payload so far

  bool hold_data_ = false;
  bool drop_data_ = false;
  std::array<Area, 2> areas_;
};

}  // namespace gossamer::net
