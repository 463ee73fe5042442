// The inbox of one channel from one peer: the chunks that arrived and are not consumed yet.
#pragma once

#include <cstdint>
#include <deque>

#include "base/result.hpp"
#include "gossip/link.hpp"

namespace gossamer::gossip {

/// Chunks in the order sent. An inbox is unbounded: the links bound it, because a chunk holds a
/// buffer of its link, or a lease on its sender's memory, until it is destroyed. Thread: the
/// scheduler's.
class Inbox {
 public:
  /// Consumes chunks as they arrive.
  class Consumer {
   public:
    virtual ~Consumer() = default;
    /// A chunk has arrived, or the inbox was closed.
    virtual void arrived() = 0;
    /// Whether this peer cannot go on without the next chunk of the inbox.
    virtual bool is_waiting() const = 0;
  };

  std::deque<Chunk> chunks;
  /// One at a time; outlives its registration. Null: chunks wait, and their link with them.
  Consumer* consumer = nullptr;

  /// Appends a chunk that continues the stream of messages. An error (lost_peer) names the protocol
  /// violation otherwise.
  Status push(Chunk chunk);
  /// The link was lost: drops all chunks. Nothing arrives until reopen().
  void close();
  bool closed() const { return closed_; }
  /// Whether this peer cannot go on before a chunk arrives.
  bool awaited() const {
    return chunks.empty() && !closed_ && consumer != nullptr && consumer->is_waiting();
  }
  /// The sender violated the protocol: drops all chunks, also the ones that arrive until close().
  void refuse();
  /// Opens a closed inbox for messages from the beginning of one on, of any round.
  void reopen();

 private:
  std::uint64_t next_offset_ = 0;  ///< of the next chunk, in its message
  std::uint64_t total_ = 0;        ///< values of the message under way
  Round round_ = 0;                ///< of the newest message
  bool begun_ = false, closed_ = false, refused_ = false;
};

}  // namespace gossamer::gossip
