#include "gossip/exchange/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gossip/exchange/coding.hpp"
#include "gossip/exchange/mix_operation.hpp"

namespace gossamer::gossip {
namespace {

/// Waits until an inbox has a chunk.
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

 private:
  Inbox& inbox_;
  Scheduler& scheduler_;
  std::coroutine_handle<> waiter_;
};

}  // namespace

class AnyAwaiter {
 public:
  AnyAwaiter(Endpoint& endpoint, Channel channel) : endpoint_(endpoint), channel_(channel) {}
  bool await_ready() const { return endpoint_.first_chunk(channel_) != nullptr; }
  void await_suspend(std::coroutine_handle<> waiter) {
    GOSSAMER_CHECK(!endpoint_.waiting_for_any_.contains(channel_),
                   "two wait for anybody on one channel");
    waiter_ = waiter;
    endpoint_.waiting_for_any_[channel_] = this;
  }
  ChunkHeader await_resume() {
    endpoint_.waiting_for_any_.erase(channel_);
    return endpoint_.first_chunk(channel_)->head;
  }
  void arrived() {
    if (waiter_) endpoint_.exchange_.scheduler().post(std::exchange(waiter_, {}));
  }

 private:
  Endpoint& endpoint_;
  Channel channel_;
  std::coroutine_handle<> waiter_;
};

class OutgoingCopies {
 public:
  explicit OutgoingCopies(Exchange& exchange) : exchange_(exchange) {}
  /// A copy that nobody reads, to be lent.
  LeasedRow& make(std::span<const float> values) {
    Copy& copy = free_one(values);
    const gpu::CopyRequest<float> request{values.data(), copy.row.values().data(), values.size()};
    exchange_.compute().device().copy(std::span(&request, 1));
    return copy.row;
  }

 private:
  struct Copy {
    gpu::DeviceRows<float> memory;
    LeasedRow row;
  };

  int gpu_of(std::span<const float> values) const {
    return exchange_.compute().device().gpu_of(values.data());
  }

  Copy& free_one(std::span<const float> values) {
    for (auto& copy : copies_)
      if (!copy->row.lent() && copy->row.values().size() == values.size() &&
          gpu_of(copy->row.values()) == gpu_of(values))
        return *copy;
    Copy& made = *copies_.emplace_back(std::make_unique<Copy>());
    made.memory = gpu::DeviceRows<float>::on_gpu(exchange_.compute().device(), gpu_of(values), 1,
                                                 values.size());
    made.row.attach(exchange_.scheduler(), made.memory.row(0));
    return made;
  }

  Exchange& exchange_;
  std::vector<std::unique_ptr<Copy>> copies_;
};

Error protocol_error(const ChunkHeader& head, const std::string& what) {
  return {ErrorKind::lost_peer,
          fmt::format("peer {} broke the protocol towards peer {} (round {}, channel {}): {}",
                      head.from, head.to, head.round, head.channel, what)};
}

Status Inbox::push(Chunk chunk) {
  if (refused_) return {};
  const ChunkHeader& head = chunk.head;
  const std::uint64_t values = chunk.values.size();
  if (values == 0 || head.total < values || head.offset > head.total - values)
    return protocol_error(head, fmt::format("values {} to {} of a message of {}", head.offset,
                                            head.offset + values, head.total));
  if (head.offset != next_offset_)
    return protocol_error(
        head, fmt::format("a chunk at value {} where {} was due", head.offset, next_offset_));
  if (head.offset > 0 && (head.total != total_ || head.round != round_))
    return protocol_error(head, "a chunk of another message in the middle of one");
  if (begun_ && head.round < round_)
    return protocol_error(head, fmt::format("round {} has been sent already", round_));
  begun_ = true;
  round_ = head.round;
  total_ = head.total;
  next_offset_ = head.offset + values == head.total ? 0 : head.offset + values;
  chunks.push_back(std::move(chunk));
  if (consumer != nullptr) consumer->arrived();
  return {};
}

void Inbox::close() {
  closed_ = true;
  std::deque<Chunk> dropped;
  dropped.swap(chunks);
  if (consumer != nullptr) consumer->arrived();
}

void Inbox::refuse() {
  refused_ = true;
  chunks.clear();
}

void Inbox::reopen() {
  closed_ = begun_ = refused_ = false;
  next_offset_ = total_ = round_ = 0;
}

Endpoint::Endpoint(Exchange& exchange, int peer) : exchange_(exchange), peer_(peer) {}
Endpoint::~Endpoint() = default;

MixOperation& Endpoint::operation(Channel channel) {
  auto& operation = operations_[channel];
  if (!operation) operation = std::make_unique<MixOperation>(*this);
  return *operation;
}

BufferedMix& Endpoint::staged_mix(Channel channel, std::size_t length) {
  auto& staged = staged_[channel];
  if (!staged) staged = std::make_unique<BufferedMix>(*this, exchange_, channel, length);
  return *staged;
}

task<void> Endpoint::begin_mix(Round t, Channel channel, MixedRow& row) {
  co_await row.back().writable();
  if (mixes_coded()) co_await begin_coded_mix(t, channel, row);
  else if (exchange_.options().policy == Policy::sync) begin_sync(t, channel, row);
  else {
    GOSSAMER_CHECK(exchange_.schedule().at(t)->row_surplus(peer_) == 0,
                   "rows that are late are mixed by differences");
    staged_mix(channel, row.values().size()).begin(t, row.values(), t);
  }
}

task<void> Endpoint::finish_mix(Channel channel, MixedRow& row) {
  if (mixes_coded()) {
    co_await finish_coded_mix(channel, row);
    co_return;
  }
  if (exchange_.options().policy != Policy::sync) {
    co_await finish_staged(channel, row);
    co_return;
  }
  MixOperation& mix = operation(channel);
  co_await mix.finished();
  mix.end();
  row.swap();
}

void Endpoint::begin_sync(Round t, Channel channel, MixedRow& row) {
  const auto matrix = exchange_.schedule().at(t);
  send(out_neighbours(*matrix, t), t, channel, row.values(), row.front());
  record_absent(t, channel);
  const std::vector<bool>& rows = exchange_.options().keeps_sum;
  const bool keeps_sum = keeps_sums_ && channel < rows.size() && rows[channel],
             all_here = lost_.empty() && entered_.empty();
  const bool by_sums =
      matrix->row_surplus(peer_) != 0 || (keeps_sum && !all_here && !is_mirrored(*matrix));
  // A peer that hears nobody copies its row: its halves then change places when the others' do, and
  // what was prepared for the rows where they lie (a GPU's graphs) is found again.
  if (!by_sums)
    operation(channel).begin(t, channel, row.values(), row.back().values(),
                             in_neighbours(*matrix, t));
  else
    operation(channel).begin_sum(t, channel, row.values(), row.back().values(),
                                 in_neighbours(*matrix, t), own_weight(*matrix, t));
}

task<void> Endpoint::finish_staged(Channel channel, MixedRow& row) {
  BufferedMix& staged = staged_mix(channel, row.values().size());
  co_await staged.decided();
  BufferedMix::Rows rows = staged.take(deviations_);
  if (rows.sources.empty()) co_return;  // x stays
  MixOperation& mix = operation(channel);
  mix.begin(row.values(), row.back().values(), std::move(rows));
  co_await mix.finished();
  mix.end();
  row.swap();
}

void Endpoint::send(std::span<const int> to, Round t, Channel channel,
                    std::span<const float> values, LeasedRow& lender) {
  if (to.empty() || !exchange_.validate_outgoing(peer_, t, channel, values, to)) return;
  const std::size_t step = exchange_.options().chunk_values;
  // Each begins with the peer after itself: if all began with peer 0, its down-link would be
  // crowded and the others' idle.
  const auto first =
      static_cast<std::size_t>(std::upper_bound(to.begin(), to.end(), peer_) - to.begin());
  for (std::size_t offset = 0; offset < values.size(); offset += step)
    for (std::size_t k = 0; k < to.size(); ++k) {
      const int receiver = to[(first + k) % to.size()];
      const ChunkHeader head{peer_, receiver, t, channel, offset, values.size()};
      exchange_.link(peer_, receiver)
          .send(Chunk(head, values.subspan(offset, std::min(step, values.size() - offset)),
                      lender.lend()));
    }
}

void Endpoint::send_copy(int to, Round t, Channel channel, std::span<const float> values) {
  if (values.empty()) return;
  if (!copies_) copies_ = std::make_unique<OutgoingCopies>(exchange_);
  LeasedRow& copy = copies_->make(values);
  send(std::span(&to, 1), t, channel, copy.values(), copy);
}

task<void> Endpoint::send_rest() {
  while (std::ranges::any_of(staged_, [](const auto& entry) { return entry.second->has_rest(); }))
    co_await wait_event();
}

/// Whole messages are taken, so the first chunk in an inbox begins one.
const Chunk* Endpoint::first_chunk(Channel channel) const {
  const Chunk* first = nullptr;
  for (const auto& [key, inbox] : inboxes_) {
    if (key.second != channel || inbox.chunks.empty()) continue;
    const Chunk& chunk = inbox.chunks.front();
    if (first == nullptr || chunk.arrival < first->arrival) first = &chunk;
  }
  return first;
}

std::optional<MessageOrigin> Endpoint::waiting(Channel channel) const {
  const Chunk* first = first_chunk(channel);
  if (first == nullptr) return std::nullopt;
  return MessageOrigin{first->head.from, first->head.round};
}

void Endpoint::notify() {
  event_pending_ = true;
  if (watcher_) exchange_.scheduler().post(std::exchange(watcher_, {}));
}

task<MessageOrigin> Endpoint::receive_any(Channel channel, std::span<float> into, Combine combine) {
  AnyAwaiter anybody(*this, channel);
  const ChunkHeader head = co_await anybody;
  co_await receive(head.from, head.round, channel, into, combine);
  const MessageOrigin received{head.from, head.round};
  co_return received;
}

task<void> Endpoint::receive(int from, Round t, Channel channel, std::span<float> into,
                             Combine combine) {
  const bool whole = co_await receive_whole(from, t, channel, into, combine);
  if (whole) co_return;
  exchange_.fault(
      {ErrorKind::lost_peer,
       fmt::format("peer {} was lost, and what peer {} does needs its part", from, peer_)});
  co_await std::suspend_always{};  // the run ends; this coroutine is destroyed
}

task<bool> Endpoint::receive_whole(int from, Round t, Channel channel, std::span<float> into,
                                   Combine combine) {
  Inbox& inbox = this->inbox(from, channel);
  for (std::size_t received = 0; received < into.size();) {
    ChunkAwaiter some(inbox, exchange_.scheduler());
    co_await some;
    if (inbox.chunks.empty()) co_return false;  // closed
    const ChunkHeader head = inbox.chunks.front().head;
    if (head.round != t || head.total != into.size() || head.offset != received) {
      refuse(head, fmt::format("a message of {} values of round {} where {} of round {} were due",
                               head.total, head.round, into.size(), t));
      continue;  // until it is lost
    }
    Chunk chunk = std::move(inbox.chunks.front());
    inbox.chunks.pop_front();
    float* target = into.data() + received;
    if (combine == Combine::replace)
      co_await exchange_.compute().copy({chunk.values.data(), target, chunk.values.size()});
    else
      co_await exchange_.compute().axpy({1.0F, chunk.values.data(), target, chunk.values.size()});
    received += chunk.values.size();
  }
  co_return true;
}

Status Endpoint::deliver(Chunk chunk) {
  const ChunkHeader head = chunk.head;
  if (is_of_membership(head.control))
    return on_news ? on_news(head)
                   : protocol_error(head, "it tells of a loss that this run does not bear");
  if (head.channel == state_channel()) {
    if (head.from == donor_) return keep(std::move(chunk));
    return {};
  }
  if (!present(head.from)) return {};  // what was still on its way
  // Rows that are taken whole are staged as they come, whether or not a mix has asked: nobody ever
  // waits for a slow reader.
  if (exchange_.options().policy != Policy::sync) {
    const std::vector<std::size_t>& lengths = exchange_.options().row_lengths;
    const std::size_t length = head.channel < lengths.size() ? lengths[head.channel] : 0;
    if (head.control == ControlMessage::none && head.total != length)
      return protocol_error(
          head, fmt::format("a row of {} values where {} were due", head.total, length));
    BufferedMix& staged = staged_mix(head.channel, length);
    if (head.control != ControlMessage::none) return staged.heard(head);
    staged.expect(head.from);
  } else if (head.control != ControlMessage::none) {
    return protocol_error(head, "it speaks of deadlines under another policy");
  }
  return keep(std::move(chunk));
}

Status Endpoint::keep(Chunk chunk) {
  const ChunkHeader head = chunk.head;
  chunk.arrival = arrivals_++;
  const Status status = inbox(head.from, head.channel).push(std::move(chunk));
  if (const auto found = waiting_for_any_.find(head.channel); found != waiting_for_any_.end())
    found->second->arrived();
  notify();
  return status;
}

void Endpoint::refuse(const ChunkHeader& head, const std::string& what) {
  inbox(head.from, head.channel).refuse();
  exchange_.breach(head, protocol_error(head, what));
}

std::uint64_t Endpoint::waiting_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [key, inbox] : inboxes_)
    for (const Chunk& chunk : inbox.chunks) bytes += frame_bytes(chunk);
  return bytes;
}

std::vector<Deviation> Endpoint::take_deviations() { return std::exchange(deviations_, {}); }

Exchange::Exchange(Scheduler& scheduler, Compute& compute, const topology::MixingSchedule& schedule,
                   ExchangeOptions options, std::vector<int> hosted, OnFault on_fault)
    : scheduler_(scheduler),
      compute_(compute),
      schedule_(schedule),
      options_(options),
      on_fault_(std::move(on_fault)) {
  for (int peer : hosted) endpoints_.emplace(peer, std::make_unique<Endpoint>(*this, peer));
}

Exchange::~Exchange() {
  if (wrong_row_) compute_.device().finish();  // it may still be told
  // Chunks that nobody took may lie in the memory of another endpoint.
  for (auto& [peer, endpoint] : endpoints_) endpoint->drop_arrivals();
}

Endpoint& Exchange::endpoint(int peer) {
  const auto found = endpoints_.find(peer);
  GOSSAMER_CHECK(found != endpoints_.end(), "an endpoint of a peer that is not hosted here");
  return *found->second;
}

Link& Exchange::link(int from, int to) {
  const auto found = links_.find({from, to});
  if (found != links_.end()) return *found->second;
  GOSSAMER_CHECK(make_link_ && endpoints_.contains(to),
                 "an algorithm sends to a peer that partners() does not name");
  Link& made = make_link_(from, to);
  connect(from, to, made);
  return made;
}

Status Exchange::deliver(Chunk chunk) {
  const ChunkHeader head = chunk.head;
  const auto found = endpoints_.find(head.to);
  if (found == endpoints_.end()) return protocol_error(head, "that peer does not live here");
  if (head.channel > options_.channels)
    return protocol_error(head, fmt::format("there are {} channels", options_.channels));
  // Links that come back may be proposed for rounds that there are not.
  if (head.round > options_.rounds + (head.control == ControlMessage::none ? 0 : Round(1) << 40))
    return protocol_error(head, fmt::format("the run has {} rounds", options_.rounds));
  if (!endpoints_.contains(head.from) && compute_.device().host_accessible())
    GOSSAMER_TRY_STATUS(validate_incoming(head, chunk.values));
  return found->second->deliver(std::move(chunk));
}

std::span<const float> Exchange::zeros(std::span<const float> x) {
  gpu::Device& device = compute_.device();
  if (zeros_.count() == 0)
    zeros_ = gpu::DeviceRows<float>(device, static_cast<std::size_t>(device.gpu_count()), x.size());
  GOSSAMER_CHECK(zeros_.length() == x.size(),
                 "rows that are mixed with other than differences are of one length");
  return zeros_.row(static_cast<std::size_t>(device.gpu_of(x.data())));
}

void Exchange::breach(const ChunkHeader& head, Error why) {
  if (on_protocol_violation && !endpoints_.contains(head.from))
    on_protocol_violation(head.to, head.from, why);
  else fault(std::move(why));
}

void Exchange::fault(Error error) {
  if (!std::exchange(faulted_, true)) on_fault_(std::move(error));
}

}  // namespace gossamer::gossip
