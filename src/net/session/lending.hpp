// What the two ends of a session, processes of one machine, read in each other's memory. A chunk is
// lent in place of being sent: its frame says where it lies, and its owner writes there again when
// the other end has released it (AckFrame::released). docs/WIRE.md, "Lent chunks", states the
// rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/shared_memory.hpp"
#include "gossip/link.hpp"
#include "net/io/deferred_call.hpp"
#include "net/wire/frame.hpp"

namespace gossamer::net {

/// The chunks that this end has lent. Frames are numbered as they are counted, from 0 on. Thread:
/// the scheduler's.
class LentChunks {
 public:
  /// A frame that lends a chunk was queued.
  void lend() { ++count_; }
  /// The other end has received that frame: takes the chunk, whose lease lasts until it is
  /// released, unless it is.
  void keep(std::uint64_t frame, gossip::Chunk& chunk);
  /// The other end reads no chunk of the first `frames` frames any more. False if it has released
  /// more before.
  bool release(std::uint64_t frames);
  /// The other end reads nothing more, nor any chunk that it receives later.
  void release_all();

  /// No chunk is kept.
  bool empty() const { return chunks_.empty(); }
  /// Chunks that are queued or kept.
  std::size_t count() const { return count_; }
  std::uint64_t released() const { return released_; }
  /// The owner of a chunk that is kept waits to write.
  bool delays_writer() const;

 private:
  std::deque<std::pair<std::uint64_t, gossip::Chunk>> chunks_;
  std::uint64_t released_ = 0;
  std::size_t count_ = 0;
  bool all_released_ = false;
};

/// Of one session. Thread: the scheduler's.
class Lending {
 public:
  /// The most chunks that an end lends at a time; it sends the others.
  static constexpr std::size_t kMaxChunks = 16384;

  /// `own`: memory that the other end may read, or null: then nothing is lent, and nothing read in
  /// the memory of the other end. Both outlive the object, but not the chunks that were borrowed.
  Lending(gossip::Scheduler& scheduler, const SharedMemory* own);
  ~Lending();
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;

  /// `on_released` is called within the end of a lease, when released() has grown; `acknowledge`
  /// some time after the last chunk of a message was released.
  void set_hooks(std::function<void()> on_released, std::function<void()> acknowledge);
  /// The session is closed: no hook is called any more, and the memory of the other end is not
  /// mapped for longer than its last chunk is read.
  void close();

  /// The frame that offers this end's memory, once; nothing if there is none to offer.
  std::optional<OfferFrame> offer();
  /// The other end offers its memory. Returns whether it can be read here. Error (lost_peer): it
  /// has offered memory before.
  Result<bool> on_offer(const OfferFrame& offer);
  /// The other end can read the memory that was offered. Error (lost_peer): none was, or it said so
  /// before.
  Status on_mapped();
  /// The other end can read this end's memory.
  bool lends() const { return lends_; }

  /// Where a chunk lies in memory that the other end can read; nothing if it has to be sent.
  std::optional<LentPlace> place_of(const gossip::Chunk& chunk) const;
  LentChunks& lent() { return lent_; }

  /// The chunk that the other end lends. `frame`: the number of its frame, larger in each call.
  /// Error (lost_peer): none of its memory is mapped, decode_place(), or more than kMaxChunks.
  Result<gossip::Chunk> borrow(std::uint64_t frame, const gossip::ChunkHeader& header,
                               const std::string& payload);
  /// Of the first `received` counted frames, the number of first ones that are read no more.
  std::uint64_t released(std::uint64_t received) const;

 private:
  class Loan;
  void release();

  const SharedMemory* own_;
  bool offered_ = false, lends_ = false, was_offered_ = false;
  LentChunks lent_;
  std::shared_ptr<const SharedMemoryView> view_;  ///< of the other end's memory, once mapped
  std::deque<std::unique_ptr<Loan>> loans_;       ///< by frame; the first one's lease is out
  std::function<void()> on_released_ = [] {}, acknowledge_ = [] {};
  DeferredCall acknowledge_later_;
};

}  // namespace gossamer::net
