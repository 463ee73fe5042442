#include "gossip/messaging/messenger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gossip/process/protocol_error.hpp"

namespace gossamer::gossip {
namespace {

/// Waits until an inbox has a chunk or is closed.
class ChunkAwaiter final : public Inbox::Consumer {
 public:
  ChunkAwaiter(Inbox& inbox, Scheduler& scheduler) : inbox_(inbox), scheduler_(scheduler) {}
  bool await_ready() const { return !inbox_.chunks.empty() || inbox_.closed(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    inbox_.consumer = this;
  }
  void await_resume() { inbox_.consumer = nullptr; }
  void arrived() override {
    if (waiter_) scheduler_.post(std::exchange(waiter_, {}));
  }
  bool is_waiting() const override { return static_cast<bool>(waiter_); }

 private:
  Inbox& inbox_;
  Scheduler& scheduler_;
  std::coroutine_handle<> waiter_;
};

}  // namespace

std::size_t first_receiver(std::span<const int> to, int sender) {
  return static_cast<std::size_t>(std::ranges::upper_bound(to, sender) - to.begin());
}

/// Waits until some inbox of a channel has a chunk.
class Messenger::AnyAwaiter {
 public:
  AnyAwaiter(Messenger& messenger, Channel channel) : messenger_(messenger), channel_(channel) {}
  bool await_ready() const { return messenger_.first_chunk(channel_) != nullptr; }
  void await_suspend(std::coroutine_handle<> waiter) {
    GOSSAMER_CHECK(!messenger_.any_waiters_.contains(channel_),
                   "two wait for a message of any peer on one channel");
    messenger_.any_waiters_[channel_] = waiter;
  }
  ChunkHeader await_resume() { return messenger_.first_chunk(channel_)->header; }

 private:
  Messenger& messenger_;
  Channel channel_;
};

Messenger::Messenger(const ProcessContext& process, int peer)
    : process_(process), peer_(peer), copies_(process.scheduler, process.device()) {}

// ---- sending

void Messenger::send(std::span<const int> to, Round t, Channel channel,
                     std::span<const float> values, LeaseSource& owner) {
  if (to.empty() || !process_.validator.validate_outgoing(peer_, t, channel, values, to)) return;
  send_validated(to, t, channel, values, owner);
}

void Messenger::send_validated(std::span<const int> to, Round t, Channel channel,
                               std::span<const float> values, LeaseSource& owner) {
  const std::size_t step = process_.options.chunk_values;
  const std::size_t first = first_receiver(to, peer_);
  for (std::size_t offset = 0; offset < values.size(); offset += step)
    for (std::size_t k = 0; k < to.size(); ++k) {
      const int receiver = to[(first + k) % to.size()];
      const ChunkHeader header{peer_, receiver, t, channel, offset, values.size()};
      process_.links.link(peer_, receiver)
          .send(Chunk(header, values.subspan(offset, std::min(step, values.size() - offset)),
                      owner.lease()));
    }
}

void Messenger::send_copy(int to, Round t, Channel channel, std::span<const float> values) {
  if (values.empty()) return;
  LeasedRow& copy = copies_.copy(values);
  send(std::span(&to, 1), t, channel, copy.values(), copy);
}

void Messenger::send_control(const ChunkHeader& header) {
  process_.links.link(header.from, header.to).send(Chunk(header, {}, {}));
}

// ---- receiving

/// Messages are received whole, so the first chunk in an inbox begins one.
const Chunk* Messenger::first_chunk(Channel channel) const {
  const Chunk* first = nullptr;
  for (const auto& [key, inbox] : inboxes_) {
    if (key.second != channel || inbox.chunks.empty()) continue;
    const Chunk& chunk = inbox.chunks.front();
    if (first == nullptr || chunk.arrival < first->arrival) first = &chunk;
  }
  return first;
}

std::optional<MessageOrigin> Messenger::peek_any(Channel channel) const {
  const Chunk* first = first_chunk(channel);
  if (first == nullptr) return std::nullopt;
  return MessageOrigin{first->header.from, first->header.round};
}

task<MessageOrigin> Messenger::receive_any(Channel channel, std::span<float> into,
                                           Combine combine) {
  AnyAwaiter any(*this, channel);
  const ChunkHeader header = co_await any;
  co_await receive(header.from, header.round, channel, into, combine);
  const MessageOrigin received{header.from, header.round};
  co_return received;
}

task<void> Messenger::receive(int from, Round t, Channel channel, std::span<float> into,
                              Combine combine) {
  const bool whole = co_await receive_whole(from, t, channel, into, combine);
  if (whole) co_return;
  process_.faults.fault(
      {ErrorKind::lost_peer,
       fmt::format("peer {} was lost, and peer {} cannot continue without its values", from,
                   peer_)});
  co_await std::suspend_always{};  // the run ends; this coroutine is destroyed
}

task<bool> Messenger::receive_whole(int from, Round t, Channel channel, std::span<float> into,
                                    Combine combine) {
  Inbox& inbox = this->inbox(from, channel);
  for (std::size_t received = 0; received < into.size();) {
    ChunkAwaiter some(inbox, process_.scheduler);
    co_await some;
    if (inbox.chunks.empty()) co_return false;  // closed
    const ChunkHeader header = inbox.chunks.front().header;
    if (header.round != t || header.total != into.size() || header.offset != received) {
      refuse(header, fmt::format("a message of {} values of round {} where {} of round {} were due",
                                 header.total, header.round, into.size(), t));
      continue;  // until the link is lost
    }
    Chunk chunk = std::move(inbox.chunks.front());
    inbox.chunks.pop_front();
    float* target = into.data() + received;
    if (combine == Combine::replace)
      co_await process_.compute.copy({chunk.values.data(), target, chunk.values.size()});
    else co_await process_.compute.axpy({1.0F, chunk.values.data(), target, chunk.values.size()});
    received += chunk.values.size();
  }
  co_return true;
}

std::optional<Round> Messenger::first_round(int from, Channel channel) const {
  const auto found = inboxes_.find({from, channel});
  if (found == inboxes_.end() || found->second.chunks.empty()) return std::nullopt;
  return found->second.chunks.front().header.round;
}

void Messenger::drop_before(int from, Channel channel, Round first) {
  while (first_round(from, channel).value_or(first) < first)
    inbox(from, channel).chunks.pop_front();
}

void Messenger::drop_before(Channel channel, Round first) {
  for (const auto& [key, inbox] : inboxes_)
    if (key.second == channel) drop_before(key.first, channel, first);
}

void Messenger::notify() {
  event_pending_ = true;
  if (event_waiter_) process_.scheduler.post(std::exchange(event_waiter_, {}));
}

// ---- delivery

Status Messenger::deliver(Chunk chunk) {
  const ChunkHeader header = chunk.header;
  chunk.arrival = arrivals_++;
  const Status status = inbox(header.from, header.channel).push(std::move(chunk));
  if (const auto waiter = any_waiters_.extract(header.channel); !waiter.empty())
    process_.scheduler.post(waiter.mapped());
  notify();
  return status;
}

void Messenger::refuse(const ChunkHeader& header, const std::string& what) {
  inbox(header.from, header.channel).refuse();
  process_.faults.protocol_violation(header, protocol_error(header, what));
}

void Messenger::close(int peer) {
  for (auto& [key, inbox] : inboxes_)
    if (key.first == peer) inbox.close();
}

void Messenger::reopen(int peer) {
  for (auto& [key, inbox] : inboxes_)
    if (key.first == peer) inbox.reopen();
}

std::vector<int> Messenger::awaited_peers() const {
  std::vector<int> peers;
  if (event_waiter_ && event_sender_) peers.push_back(*event_sender_);
  for (const auto& [key, inbox] : inboxes_)
    if (inbox.awaited() && (peers.empty() || peers.back() != key.first)) peers.push_back(key.first);
  return peers;
}

std::uint64_t Messenger::unread_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [key, inbox] : inboxes_)
    for (const Chunk& chunk : inbox.chunks) bytes += frame_bytes(chunk);
  return bytes;
}

}  // namespace gossamer::gossip
