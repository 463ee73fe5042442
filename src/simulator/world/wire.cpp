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

/// The memory of a chunk at its receiver.
class ReceiveWindow::Buffer final : public BufferOwner {
 public:
  explicit Buffer(ReceiveWindow& window) : window_(window) {}
  Chunk fill(const ChunkHeader& header, std::vector<float> values) {
    values_ = std::move(values);
    leased_ = true;
    return Chunk(header, values_, Lease(*this));
  }
  void on_lease_end() override {
    leased_ = false;
    window_.on_free_();
  }
  bool is_free() const { return !leased_; }

 private:
  ReceiveWindow& window_;
  std::vector<float> values_;
  bool leased_ = false;
};

ReceiveWindow::ReceiveWindow(int buffers, std::function<void()> on_free)
    : on_free_(std::move(on_free)) {
  for (int k = 0; k < buffers; ++k) buffers_.push_back(std::make_unique<Buffer>(*this));
}

ReceiveWindow::~ReceiveWindow() = default;

bool ReceiveWindow::has_room() const {
  return std::ranges::any_of(buffers_, [](const auto& buffer) { return buffer->is_free(); });
}

Chunk ReceiveWindow::hold(const ChunkHeader& header, std::vector<float> values) {
  const auto free =
      std::ranges::find_if(buffers_, [](const auto& buffer) { return buffer->is_free(); });
  return (*free)->fill(header, std::move(values));
}

Transit::Transit(World& world, const Path& path)
    : world_(world),
      path_(path),
      capacity_(world.scenario().network.bandwidth_mbit_s * kBytesPerMegabit) {}

/// How much later a packet arrives because it was lost, perhaps several times, and sent again after
/// a timeout that doubles each time.
Time Transit::resend_delay() {
  const NetworkConditions& network = world_.scenario().network;
  double later = 0, pause = 2 * (network.latency_ms + network.jitter_ms);
  for (int losses = 0; network.loss > 0 && losses < kMostLosses && world_.random() < network.loss;
       ++losses, pause *= 2)
    later += pause;
  return from_milliseconds(later);
}

Time Transit::arrival_of(std::uint64_t bytes) {
  const Time now = world_.now();
  const NetworkConditions& network = world_.scenario().network;
  const Time jitter =
      from_milliseconds(network.jitter_ms * (network.jitter_ms > 0 ? world_.random() : 0));
  const Time passed = capacity_.pass({now, now}, bytes).last;
  if (network.duplication > 0 && world_.random() < network.duplication)
    capacity_.pass({now, now}, bytes);
  return not_before_the_last(passed + from_milliseconds(network.latency_ms) + jitter +
                             resend_delay() + path_.delay);
}

Wire::Wire(World& world, const Path& path, int from, int to)
    : world_(world),
      path_(path),
      from_(from),
      to_(to),
      transit_(world, path),
      window_(world.scenario().network.window, [this] { on_buffer_free(); }) {}

// As with a socket, the chunk is still untouched when send() returns.
void Wire::send(Chunk chunk) {
  if (sending_ended_) return;
  queued_values_ += chunk.values.size();
  queue_.push_back(std::move(chunk));
  std::uint64_t& most = world_.recorder().trace().most_lent[{from_, to_}];
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

void Wire::transmit() {
  Process& sender = world_.process_of(from_);
  if (sender.paused() || sending_ended_) return;
  bool moved = false;
  while (!queue_.empty() &&
         in_flight_.size() < static_cast<std::size_t>(world_.scenario().network.buffer_chunks)) {
    const Chunk& chunk = queue_.front();
    Frame& sent = in_flight_.emplace_back();
    sent.header = chunk.header;
    sent.values.assign(chunk.values.begin(), chunk.values.end());
    if (poisons_ && sent.header.offset == 0 && !sent.values.empty()) {
      sent.poisoned = std::exchange(poisons_, false);
      sent.values.front() = kNotFinite;
    }
    sent.arrives = transit_.arrival_of(sent.bytes());
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

void Wire::send_hello() { send_control(&Frame::hello); }

void Wire::send_close() {
  close_due_ = true;
  transmit_soon();
}

void Wire::send_control(bool Frame::* kind) {
  Frame& sent = in_flight_.emplace_back();
  sent.*kind = true;
  sent.arrives = transit_.arrival_of(sent.bytes());
  world_.at(sent.arrives, [this] { deliver_arrived(); });
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
  Connection& connection = world_.connections().between(from_, to_);
  while (!in_flight_.empty() && in_flight_.front().arrives <= world_.now() && path_.blocks == 0 &&
         !reading_stopped_ && !receiver.paused()) {
    if (!window_.has_room() && !connection.closes(to_)) return;
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
  const ChunkHeader& header = frame.header;
  const LinkState& link = header.link_state;
  const std::uint64_t subject = std::uint64_t{link.version} << 32 |
                                static_cast<std::uint64_t>(link.end) << 16 |
                                static_cast<std::uint64_t>(link.neighbour);
  const std::uint64_t channel = header.channel | (link.reachability_only ? 1U : 0U);
  world_.recorder().add_to_hash(
      {static_cast<std::uint64_t>(header.from) << 32 | static_cast<std::uint64_t>(header.to),
       header.round, channel << 32 | static_cast<std::uint64_t>(header.control), header.offset,
       header.total | subject | header.donor_steps | header.resumes_at,
       static_cast<std::uint64_t>(world_.now().count())});
  Chunk chunk =
      frame.values.empty() ? Chunk(header, {}, {}) : window_.hold(header, std::move(frame.values));
  const Status status = receiver.deliver(std::move(chunk));
  if (status.ok() && frame.poisoned)
    world_.recorder().trace().errors.push_back(
        fmt::format("peer {} took a NaN from peer {}", to_, from_));
  if (status.ok()) return;
  if (!frame.poisoned) world_.recorder().trace().errors.push_back(status.error().message);
  world_.connections().between(from_, to_).lose(to_, status.error().message);
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
    reset.arrives = transit_.not_before_the_last(world_.now() + passing);
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
  if (silent_since_.has_value() == is_silent()) return;
  if (silent_since_) return silent_since_.reset();
  silent_since_ = world_.now() + from_milliseconds(world_.scenario().network.latency_ms);
  set_failure_timer();
}

void Wire::restart_failure_timer() {
  if (!silent_since_ || reading_stopped_) return;
  silent_since_ = world_.now();
  set_failure_timer();
}

void Wire::set_failure_timer() {
  const Time since = *silent_since_;
  const double timeout = world_.scenario().network.failure_timeout;
  world_.at(since + from_seconds(timeout), [this, since, timeout] {
    const Process& receiver = world_.process_of(to_);
    if (silent_since_ != since || reading_stopped_ || receiver.paused() || !receiver.alive() ||
        !window_.has_room())
      return;
    world_.connections()
        .between(from_, to_)
        .lose(to_, fmt::format("nothing came from peer {} for {} s", from_, timeout));
  });
}

}  // namespace gossamer::simulator
