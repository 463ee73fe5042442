// What a session has to say, in order: frames that wait to be written, and those that are written
// and not acknowledged yet, so that a connection that breaks can be gone on with on another one. A
// frame is held until the other side has it: its values stay where they are, lent, and nothing is
// copied, but for small messages, and for rows whose owner wants to write them before word has come
// that they are there; so that nobody waits for the way back. What is copied is bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gossip/links/link.hpp"
#include "net/socket.hpp"
#include "net/wire/frame.hpp"
#include "net/wire/hash_memo.hpp"

namespace gossamer::net {

/// Thread: the scheduler's.
class SendQueue {
 public:
  /// Messages up to this size are copied when they are written: that costs less than to wait for an
  /// acknowledgement.
  static constexpr std::size_t kSmallBytes = std::size_t{64} << 10;
  /// What one session's copies take at most: about as much as the system's own buffers of a
  /// connection hold.
  static constexpr std::size_t kMaxCopiedBytes = std::size_t{8} << 20;

  explicit SendQueue(HashMemo& hashes) : hashes_(hashes) {}
  ~SendQueue() { drop(); }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  /// Puts a frame at the end; `chunk` or `text` is its payload, as its kind asks.
  void push(const FrameHeader& head, gossip::Chunk chunk, std::string text = {});
  /// Puts a frame that does not count (is_counted) before all that is not begun, in place of one of
  /// its kind. Not while writing().
  void push_first(const FrameHeader& head);

  /// What to write next; empty: nothing. It stays valid, and this object is writing(), until
  /// written() or interrupted(). Frames that count are left out while it is interrupted.
  std::span<const Area> gather();
  void written(std::size_t bytes);
  bool writing() const { return in_flight_ > 0; }
  /// Nothing is half written.
  bool between_frames() const { return in_flight_ == 0 && front_written_ == 0; }

  /// The other side has so many of the frames that count. False if there were not so many, or it
  /// had said more before.
  bool acknowledged(std::uint64_t count);
  /// The connection is gone, with what was half written. Frames that do not count are forgotten.
  void interrupted();
  bool is_interrupted() const { return interrupted_; }
  /// There is another one, and the other side has so many: what it has not is to be written again.
  /// False as above. When between_frames().
  bool resume(std::uint64_t count);

  /// Forgets everything, but for what a write under way may touch and the frame that is half
  /// written if `keep_begun`.
  void drop(bool keep_begun = false);
  /// Copies what is kept only to be acknowledged (of an interrupted one, all there is) and whose
  /// owner waits for it, as far as kMaxCopiedBytes goes. Whether anything lent is left to look at
  /// again.
  bool copy_awaited();
  /// Something is kept to be acknowledged that is lent.
  bool lends() const { return interrupted_ ? !kept_.empty() || !queue_.empty() : lent_kept_ > 0; }

  /// All is written.
  bool empty() const { return queue_.empty(); }
  /// All is written, and the other side has it.
  bool settled() const { return queue_.empty() && kept_.empty(); }
  /// Frames that count: how many were ever put in, and of how many the other side has said that it
  /// has them.
  std::uint64_t pushed_count() const { return pushed_; }
  std::uint64_t acknowledged_count() const { return acknowledged_; }
  std::size_t copied_bytes() const { return copied_bytes_; }
  /// Notes that are not written, or not acknowledged. Rows wait where they are; these are all that
  /// grows here.
  std::size_t notes() const { return notes_; }

 private:
  struct Outgoing {
    FrameHeader head;
    gossip::Chunk chunk;
    std::string text;
    std::unique_ptr<std::byte[]> copy;  ///< of the chunk's values, which then are these
    std::array<std::byte, kFrameHeaderBytes> bytes{};
    bool encoded = false;
    HashMemo::Moment lent = 0;

    std::span<const std::byte> payload() const;
    std::size_t size() const { return kFrameHeaderBytes + head.payload_bytes; }
    bool lends() const { return copy == nullptr && !chunk.values.empty(); }
  };
  using Frames = std::deque<Outgoing>;

  void encode(Outgoing& frame);
  bool copy(Outgoing& frame, std::vector<gossip::Lease>& leases);
  void let_go(Frames& frames);
  void forget_acknowledged(Frames& done);

  HashMemo& hashes_;
  Frames queue_;                    ///< not written whole
  Frames kept_;                     ///< written and not acknowledged; all of them count
  std::uint64_t pushed_ = 0;        ///< frames that count, of all time
  std::uint64_t first_ = 0;         ///< the number of the first of kept_ and queue_
  std::uint64_t acknowledged_ = 0;  ///< may be ahead of first_ for a moment: they may answer before
                                    ///< we hear that all is written
  std::size_t front_written_ = 0;   ///< bytes of queue_'s first that are out
  std::size_t in_flight_ = 0;       ///< of queue_, those that the write under way may touch
  std::size_t copied_bytes_ = 0, lent_kept_ = 0, notes_ = 0;
  bool interrupted_ = false;
  std::array<Area, Socket::kMaxAreas> areas_;
};

}  // namespace gossamer::net
