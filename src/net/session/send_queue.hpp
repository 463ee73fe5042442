// The frames that one session sends, in order: frames that wait to be written, and frames that
// are written and not acknowledged. A frame stays in the queue until the other end has it, so that
// it can be sent again over another connection.
//
// The values of a chunk stay where they are, under the chunk's lease, and are not copied. There are
// two exceptions: small messages, and rows whose owner waits to write while only the
// acknowledgement is missing. The copies of one session are bounded. A chunk that is lent is never
// copied, because the other end reads it where it is; its lease lasts until it is released.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gossip/link.hpp"
#include "net/io/socket.hpp"
#include "net/session/lending.hpp"
#include "net/wire/frame.hpp"
#include "net/wire/hash_memo.hpp"

namespace gossamer::net {

/// A counted frame (FrameHeader::counted) is sent until it is acknowledged; any other is forgotten
/// when it is written or when its connection breaks. Thread: the scheduler's.
class SendQueue {
 public:
  /// Messages up to this size are copied when they are written: a copy costs less than waiting for
  /// an acknowledgement.
  static constexpr std::size_t kSmallBytes = std::size_t{64} << 10;
  /// The most that the copies of one session take: about as much as the system's own buffers of a
  /// connection hold.
  static constexpr std::size_t kMaxCopiedBytes = std::size_t{8} << 20;

  /// Both outlive the queue.
  SendQueue(HashMemo& hashes, LentChunks& lent) : hashes_(hashes), lent_(lent) {}
  ~SendQueue() { drop(); }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  /// Appends a frame; `chunk` or `text` is its payload, as its kind asks.
  void push(const FrameHeader& header, gossip::Chunk chunk, std::string text = {});
  /// Puts a frame that is not counted before all frames that are not begun, in place of a waiting
  /// frame of its kind. Not while writing().
  void push_first(const FrameHeader& header);

  /// The areas to write next, empty if there are none. They stay valid, and writing() holds, until
  /// written() or interrupt(). While the queue is interrupted, counted frames are left out.
  std::span<const Area> gather();
  void written(std::size_t bytes);
  bool writing() const { return in_flight_ > 0; }
  /// No frame is written in part.
  bool between_frames() const { return in_flight_ == 0 && front_written_ == 0; }

  /// The other end has received the first `count` counted frames. False if that many were not sent,
  /// or if it has acknowledged more before.
  bool on_ack(std::uint64_t count);
  /// The connection is gone, and with it the frame that was written in part. Frames that are not
  /// counted are forgotten.
  void interrupt();
  bool is_interrupted() const { return interrupted_; }
  /// There is another connection, and the other end has received the first `count` counted frames:
  /// all later ones are written again. False as for on_ack(). Only when between_frames().
  bool resume(std::uint64_t count);

  /// Forgets everything except the frames that a write under way may read and, if `keep_begun`, the
  /// frame that is written in part.
  void drop(bool keep_begun = false);
  /// Copies the values that are kept only for an acknowledgement (of an interrupted queue, all
  /// values) and whose owner waits to write, within kMaxCopiedBytes. Returns whether leases remain
  /// to look at again.
  bool copy_for_writers();
  /// Something is leased that waits only for an acknowledgement.
  bool has_leases() const {
    return interrupted_ ? !unacked_.empty() || !queue_.empty() : leased_unacked_ > 0;
  }

  /// Something is leased whose owner waits to write.
  bool delays_writer() const;

  /// All frames are written.
  bool empty() const { return queue_.empty(); }
  /// All frames are written and acknowledged.
  bool fully_acked() const { return queue_.empty() && unacked_.empty(); }
  /// Counted frames that were ever pushed, and of these the acknowledged ones.
  std::uint64_t pushed() const { return pushed_; }
  std::uint64_t acked() const { return acked_; }
  std::size_t copied_bytes() const { return copied_bytes_; }
  /// Control frames that are not written or not acknowledged. Rows wait at their owners, so only
  /// control frames can accumulate here.
  std::size_t control_frames() const { return control_frames_; }

 private:
  struct Outgoing {
    FrameHeader header;
    gossip::Chunk chunk;
    std::string text;
    std::unique_ptr<std::byte[]> copy;  ///< of the chunk's values, which then lie here
    std::array<std::byte, kFrameHeaderBytes> bytes{};
    bool encoded = false;
    HashMemo::Moment leased_at = 0;

    std::span<const std::byte> payload() const;
    std::size_t size() const { return kFrameHeaderBytes + header.payload_bytes; }
    /// Its values lie in leased memory, and a copy of them would serve as well.
    bool may_copy() const {
      return header.data() != nullptr && copy == nullptr && !chunk.values.empty();
    }
    bool is_small() const;
    /// Fills `bytes`, once. The memo is for leased values only: the memory of a text may be that of
    /// an earlier one.
    void encode(HashMemo& hashes);
  };
  static_assert(sizeof(Outgoing) <= 336, "docs/WIRE.md counts the memory of a session");
  using Frames = std::deque<Outgoing>;

  bool copy(Outgoing& frame, std::vector<gossip::Lease>& leases);
  void release(Frames& frames);
  void take_acked(Frames& done);

  HashMemo& hashes_;
  LentChunks& lent_;          ///< of frames that are acknowledged
  Frames queue_;              ///< not written whole
  Frames unacked_;            ///< written and not acknowledged; all of them are counted
  std::uint64_t pushed_ = 0;  ///< counted frames, of all time
  std::uint64_t first_ = 0;   ///< the number of the first counted frame in unacked_ and queue_
  std::uint64_t acked_ = 0;   ///< may exceed first_ for a moment: an acknowledgement may arrive
                              ///< before the system reports that its frame is written
  std::size_t front_written_ = 0;  ///< bytes of the first frame of queue_ that are written
  std::size_t in_flight_ = 0;      ///< frames of queue_ that the write under way may read
  std::size_t copied_bytes_ = 0, leased_unacked_ = 0, control_frames_ = 0;
  bool interrupted_ = false;
  std::array<Area, Socket::kMaxAreas> areas_;
};

}  // namespace gossamer::net
