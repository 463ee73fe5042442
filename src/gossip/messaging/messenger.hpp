// One peer's messages: its inboxes, the sender that cuts a message into chunks, and the receivers
// that put one together.
//
// A message is a row, or a part of one. Each pair of peers has a stream of messages per channel; a
// stream's messages arrive in the order sent.
#pragma once

#include <coroutine>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "gossip/codec.hpp"
#include "gossip/messaging/copy_pool.hpp"
#include "gossip/messaging/inbox.hpp"
#include "gossip/process/process_context.hpp"
#include "gossip/row.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

/// Sender and round of a message.
struct MessageOrigin {
  int from = 0;
  Round round = 0;
};

/// The index in `to` (ascending) of the first receiver of `sender`: the peer after itself. If every
/// peer began with peer 0, the links into that peer would be crowded and the others idle.
std::size_t first_receiver(std::span<const int> to, int sender);

/// Thread: the scheduler's.
class Messenger {
 public:
  Messenger(const ProcessContext& process, int peer);

  int peer() const { return peer_; }

  // ---- sending
  /// Sends `values`, which lie in the memory of `owner`, as one message to each of `to`
  /// (ascending), a chunk to each in turn. Returns at once, and copies nothing: each chunk holds a
  /// lease. Validates first; an invalid value is a fault, and nothing is sent.
  void send(std::span<const int> to, Round t, Channel channel, std::span<const float> values,
            LeaseSource& owner);
  /// The same of values that were validated before.
  void send_validated(std::span<const int> to, Round t, Channel channel,
                      std::span<const float> values, LeaseSource& owner);
  /// Sends a copy of `values` to one peer: they may change at once.
  void send_copy(int to, Round t, Channel channel, std::span<const float> values);
  /// The copies that are on their way out.
  CopyPool& copies() { return copies_; }
  /// Sends a chunk without values.
  void send_control(const ChunkHeader& header);

  // ---- receiving
  /// Waits for the next message of `from` on `channel`, which must be of round t and of the length
  /// of `into`, and puts it into, or adds it to, `into`. If `from` is lost, that is a fault, and
  /// the task never completes.
  task<void> receive(int from, Round t, Channel channel, std::span<float> into, Combine combine);
  /// The same, but returns false if `from` is lost before the whole message has arrived.
  task<bool> receive_whole(int from, Round t, Channel channel, std::span<float> into,
                           Combine combine);
  /// Waits for a message on `channel` of any peer and round, and receives the one whose first chunk
  /// arrived first. In virtual time the order is deterministic; over TCP it is the order of
  /// arrival. `into` has at least one value. One waiter per channel.
  task<MessageOrigin> receive_any(Channel channel, std::span<float> into, Combine combine);
  /// The origin of the message that receive_any() would take now, if one has arrived.
  std::optional<MessageOrigin> peek_any(Channel channel) const;
  /// For consumers that take chunks themselves. The reference stays valid.
  Inbox& inbox(int from, Channel channel) { return inboxes_[{from, channel}]; }

  /// The round of the first chunk of `from` that waits on `channel`, if one does.
  std::optional<Round> first_round(int from, Channel channel) const;
  /// Drops the chunks of rounds before `first` that wait on `channel`, of `from` or of all peers.
  void drop_before(int from, Channel channel, Round first);
  void drop_before(Channel channel, Round first);

  /// co_await messenger.wait_event(): until a chunk has arrived or notify() was called since the
  /// last wait_event(), so an event between a look at the inboxes and the wait is not missed. May
  /// wake spuriously. One waiter. `from`: the peer without whose message it cannot go on.
  auto wait_event(std::optional<int> from = {}) {
    struct Awaiter {
      Messenger& messenger;
      std::optional<int> from;
      bool await_ready() const { return messenger.event_pending_; }
      void await_suspend(std::coroutine_handle<> waiter) {
        GOSSAMER_CHECK(!messenger.event_waiter_, "two wait for an event at one messenger");
        messenger.event_waiter_ = waiter;
        messenger.event_sender_ = from;
      }
      void await_resume() const { messenger.event_pending_ = false; }
    };
    return Awaiter{*this, from};
  }
  /// Wakes wait_event().
  void notify();

  // ---- delivery
  /// Puts a chunk into its inbox. An error names the protocol violation.
  Status deliver(Chunk chunk);
  /// A chunk that was delivered breaks the protocol: drops what its sender sent on the channel, and
  /// reports the violation.
  void refuse(const ChunkHeader& header, const std::string& what);
  /// The link from `peer` was lost: closes its inboxes.
  void close(int peer);
  /// The link from `peer` was restored.
  void reopen(int peer);

  /// The peers without whose next chunk this peer cannot go on, each once at least.
  std::vector<int> awaited_peers() const;
  /// Bytes of the frames that have arrived and wait in inboxes.
  std::uint64_t unread_bytes() const;
  /// Drops all chunks in the inboxes, and their leases.
  void discard_unread() { inboxes_.clear(); }

 private:
  class AnyAwaiter;

  const Chunk* first_chunk(Channel channel) const;

  const ProcessContext& process_;
  int peer_;
  std::map<std::pair<int, Channel>, Inbox> inboxes_;
  std::map<Channel, std::coroutine_handle<>> any_waiters_;  ///< in receive_any()
  CopyPool copies_;
  std::coroutine_handle<> event_waiter_;  ///< in wait_event()
  std::optional<int> event_sender_;       ///< the peer without which event_waiter_ cannot go on
  bool event_pending_ = false;            ///< since the last wait_event()
  std::uint64_t arrivals_ = 0;
};

}  // namespace gossamer::gossip
