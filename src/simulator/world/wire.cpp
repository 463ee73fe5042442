#include "simulator/world/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "simulator/world/connection.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::simulator {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;
/// A NaN as a float, as each of two bf16, and as the scale of an int8 block.
constexpr float kNotFinite = std::bit_cast<float>(0x7FC07FC0U);

}  // namespace

/// The memory of a chunk at its receiver until the exchange has consumed it.
class Wire::Buffer final : public BufferOwner {
 public:
  explicit Buffer(Wire& wire) : wire_(wire) {}
  Chunk fill(const ChunkHeader& head, std::vector<float> values) {
    values_ = std::move(values);
    leased_ = true;
    return Chunk(head, values_, Lease(*this));
  }
  void on_lease_end() override {
    leased_ = false;
    wire_.on_buffer_free();
  }
  bool leased() const { return leased_; }

 private:
  Wire& wire_;
  std::vector<float> values_;
  bool leased_ = false;
};

Wire::Wire(World& world, const Path& path, int from, int to)
    : world_(world),
      path_(path),
      from_(from),
      to_(to),
      capacity_(world.scenario().bandwidth_mbit_s * kBytesPerMegabit) {
  for (int k = 0; k < world.scenario().window; ++k)
    buffers_.push_back(std::make_unique<Buffer>(*this));
}

Wire::~Wire() = default;

// As with a socket, the chunk is still untouched when send() returns.
void Wire::send(Chunk chunk) {
  if (sending_ended_) return;
  queued_values_ += chunk.values.size();
  queue_.push_back(std::move(chunk));
  std::uint64_t& most = world_.trace().most_lent[{from_, to_}];
  most = std::max(most, queued_values_);
  transmit_soon();
}

void Wire::transmit_soon() {
  if (std::exchange(transmit_due_, true)) return;
  world_.at(world_.now(), [this] {
    transmit_due_ = false;
    transmit();
  });
}

/// How much later a packet arrives because it was lost, perhaps several times, and sent again after
/// a timeout that doubles each time.
Time Wire::resend_delay() {
  const Scenario& scenario = world_.scenario();
  double later = 0, pause = 2 * (scenario.latency_ms + scenario.jitter_ms);
  for (int losses = 0; scenario.loss > 0 && losses < kMostLosses && world_.random() < scenario.loss;
       ++losses, pause *= 2)
    later += pause;
  return from_milliseconds(later);
}

// A packet behind a late one waits for it, as TCP delivers in order. A packet that travels twice
// costs bandwidth, and nothing else.
Time Wire::arrival_of(std::uint64_t bytes) {
  const Time now = world_.now();
  const Scenario& scenario = world_.scenario();
  const Time jitter =
      from_milliseconds(scenario.jitter_ms * (scenario.jitter_ms > 0 ? world_.random() : 0));
  const Time passed = capacity_.pass({now, now}, bytes).last;
  if (scenario.duplication > 0 && world_.random() < scenario.duplication)
    capacity_.pass({now, now}, bytes);
  const Time arrives =
      passed + from_milliseconds(scenario.latency_ms) + jitter + resend_delay() + path_.delay;
  return last_arrival_ = std::max(last_arrival_, arrives);
}

void Wire::transmit() {
  Process& sender = world_.process_of(from_);
  if (sender.paused() || sending_ended_) return;
  bool moved = false;
  while (!queue_.empty() &&
         in_flight_.size() < static_cast<std::size_t>(world_.scenario().buffer_chunks)) {
    const Chunk& chunk = queue_.front();
    Frame& sent = in_flight_.emplace_back();
    sent.head = chunk.header;
    sent.values.assign(chunk.values.begin(), chunk.values.end());
    if (poisons_ && sent.head.offset == 0 && !sent.values.empty()) {
      sent.poisoned = std::exchange(poisons_, false);
      sent.values.front() = kNotFinite;
    }
    sent.arrives = arrival_of(sent.bytes());
    world_.at(sent.arrives, [this] { deliver_arrived(); });
    queued_values_ -= chunk.values.size();
    queue_.pop_front();
    moved = true;
  }
  if (queue_.empty() && std::exchange(close_due_, false)) {
    close_sent_ = true;
    send_control(&Frame::close);
  }
  if (moved) sender.wake();
}

bool Wire::has_free_buffer() const {
  return std::ranges::any_of(buffers_, [](const auto& buffer) { return !buffer->leased(); });
}

void Wire::send_hello() { send_control(&Frame::hello); }

void Wire::send_close() {
  close_due_ = true;
  transmit_soon();
}

void Wire::send_control(bool Frame::* kind) {
  Frame& sent = in_flight_.emplace_back();
  sent.*kind = true;
  sent.arrives = arrival_of(sent.bytes());
  world_.at(sent.arrives, [this] { deliver_arrived(); });
}

Wire::Buffer* Wire::free_buffer() {
  const auto found =
      std::ranges::find_if(buffers_, [](const auto& buffer) { return !buffer->leased(); });
  return found == buffers_.end() ? nullptr : found->get();
}

void Wire::deliver_later(Time when) {
  if (std::exchange(delivery_due_, true)) return;
  world_.at(when, [this] {
    delivery_due_ = false;
    deliver_arrived();
  });
}

void Wire::deliver_arrived() {
  Process& receiver = world_.process_of(to_);
  Connection& connection = world_.connection(from_, to_);
  while (!in_flight_.empty() && in_flight_.front().arrives <= world_.now() && path_.blocks == 0 &&
         !reading_stopped_ && !receiver.paused()) {
    if (!has_free_buffer() && !connection.closes(to_)) return;
    if (receiver.reads_again > world_.now()) return deliver_later(receiver.reads_again);
    Frame frame = std::move(in_flight_.front());
    in_flight_.pop_front();
    transmit();
    if (frame.reset || corrupts_)
      return connection.lose(to_, frame.reset
                                      ? fmt::format("the connection to peer {} was closed", from_)
                                      : fmt::format("a frame of peer {} is damaged", from_));
    if (frame.hello) connection.hello_received(to_);
    else if (frame.close) connection.close_received(to_);
    else if (!connection.closes(to_)) deliver(std::move(frame));
  }
}

void Wire::deliver(Frame frame) {
  Process& receiver = world_.process_of(to_);
  if (receiver.read_bytes_per_second > 0)
    receiver.reads_again = world_.now() + from_seconds(static_cast<double>(frame.bytes()) /
                                                       receiver.read_bytes_per_second);
  const ChunkHeader& head = frame.head;
  const LinkState& link = head.link_state;
  const std::uint64_t subject = std::uint64_t{link.version} << 32 |
                                static_cast<std::uint64_t>(link.end) << 16 |
                                static_cast<std::uint64_t>(link.neighbour);
  const std::uint64_t channel = head.channel | (link.reachability_only ? 1U : 0U);
  world_.add_to_hash(
      {static_cast<std::uint64_t>(head.from) << 32 | static_cast<std::uint64_t>(head.to),
       head.round, channel << 32 | static_cast<std::uint64_t>(head.control), head.offset,
       head.total | subject | head.donor_steps, static_cast<std::uint64_t>(world_.now().count())});
  Chunk chunk = frame.values.empty() ? Chunk(head, {}, {})
                                     : free_buffer()->fill(head, std::move(frame.values));
  const Status status = receiver.deliver(std::move(chunk));
  if (status.ok() && frame.poisoned)
    world_.trace().errors.push_back(fmt::format("peer {} took a NaN from peer {}", to_, from_));
  if (status.ok()) return;
  if (!frame.poisoned) world_.trace().errors.push_back(status.error().message);
  world_.connection(from_, to_).lose(to_, status.error().message);
}

void Wire::on_buffer_free() {
  restart_failure_timer();
  deliver_later(world_.now());
}

void Wire::end_sending(bool resets, bool truncates) {
  sending_ended_ = true;
  queue_.clear();
  queued_values_ = 0;
  if (truncates && !in_flight_.empty()) {
    const auto kept =
        static_cast<std::size_t>(world_.random() * static_cast<double>(in_flight_.size() + 1));
    in_flight_.resize(std::min(kept, in_flight_.size()));
  }
  if (resets && !reading_stopped_) {
    Frame& reset = in_flight_.emplace_back();
    reset.reset = true;
    const Time passing =
        Time(std::llround(static_cast<double>(kResetTime.count()) * world_.random()));
    reset.arrives = last_arrival_ = std::max(last_arrival_, world_.now() + passing);
    world_.at(reset.arrives, [this] { deliver_arrived(); });
  }
  update_silence();
}

void Wire::stop_reading() {
  reading_stopped_ = true;
  in_flight_.clear();
}

bool Wire::is_silent() const {
  const Process& sender = world_.process_of(from_);
  return path_.blocks > 0 || sending_ended_ || sender.paused() || !sender.alive();
}

void Wire::update_silence() {
  if (silent_ == is_silent()) return;
  silent_ = !silent_;
  if (!silent_) return;
  silent_since_ = world_.now() + from_milliseconds(world_.scenario().latency_ms);
  set_failure_timer();
}

void Wire::restart_failure_timer() {
  if (!silent_ || reading_stopped_) return;
  silent_since_ = world_.now();
  set_failure_timer();
}

void Wire::set_failure_timer() {
  const Time since = silent_since_;
  const double timeout = world_.scenario().failure_timeout;
  world_.at(since + from_seconds(timeout), [this, since, timeout] {
    const Process& receiver = world_.process_of(to_);
    if (!silent_ || silent_since_ != since || reading_stopped_ || receiver.paused() ||
        !receiver.alive() || !has_free_buffer())
      return;
    world_.connection(from_, to_)
        .lose(to_, fmt::format("nothing came from peer {} for {} s", from_, timeout));
  });
}

}  // namespace gossamer::simulator
