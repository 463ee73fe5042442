#include "gossip/sim/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gossip/sim/process.hpp"

namespace gossamer::gossip::sim {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;

Time milliseconds(double count) { return Time(std::llround(count * 1e6)); }
Time seconds(double count) { return Time(std::llround(count * 1e9)); }

}  // namespace

/// Where a chunk lies at its receiver until the exchange is done with it.
class Wire::Buffer final : public Lender {
 public:
  explicit Buffer(Wire& wire) : wire_(wire) {}
  Chunk fill(const ChunkHead& head, std::vector<float> values) {
    values_ = std::move(values);
    lent_ = true;
    return Chunk(head, values_, Lease(*this));
  }
  void give_back() override {
    lent_ = false;
    wire_.returned();
  }
  bool lent() const { return lent_; }

 private:
  Wire& wire_;
  std::vector<float> values_;
  bool lent_ = false;
};

Wire::Wire(World& world, int from, int to)
    : world_(world), from_(from), to_(to), capacity_(world.scenario().bandwidth_mbit_s * kBytesPerMegabit) {
  for (int k = 0; k < world.scenario().window; ++k) buffers_.push_back(std::make_unique<Buffer>(*this));
}

Wire::~Wire() = default;

// Nothing happens to a chunk within send(), as with a socket.
void Wire::send(Chunk chunk) {
  if (closed_) return;
  waiting_.push_back(std::move(chunk));
  if (std::exchange(fill_due_, true)) return;
  world_.at(world_.now(), [this] {
    fill_due_ = false;
    fill();
  });
}

Time Wire::leaves(std::uint64_t bytes) {
  const Time now = world_.now();
  const Time jitter = milliseconds(world_.scenario().jitter_ms * (world_.scenario().jitter_ms > 0 ? world_.chance() : 0));
  const Time arrives = capacity_.pass({now, now}, bytes).last + milliseconds(world_.scenario().latency_ms) + jitter + delay;
  return last_arrival_ = std::max(last_arrival_, arrives);
}

void Wire::fill() {
  Process& sender = world_.process_of(from_);
  if (sender.paused() || closed_) return;
  bool moved = false;
  while (!waiting_.empty() && on_the_way_.size() < static_cast<std::size_t>(world_.scenario().buffer_chunks)) {
    const Chunk& chunk = waiting_.front();
    Travelling& sent = on_the_way_.emplace_back();
    sent.head = chunk.head;
    sent.values.assign(chunk.values.begin(), chunk.values.end());
    sent.arrives = leaves(sent.bytes());
    world_.at(sent.arrives, [this] { pump(); });
    waiting_.pop_front();
    moved = true;
  }
  if (moved) sender.touch();
}

bool Wire::reads() const {
  return std::ranges::any_of(buffers_, [](const auto& buffer) { return !buffer->lent(); });
}

Wire::Buffer* Wire::free_buffer() {
  const auto found = std::ranges::find_if(buffers_, [](const auto& buffer) { return !buffer->lent(); });
  return found == buffers_.end() ? nullptr : found->get();
}

void Wire::pump() {
  Process& receiver = world_.process_of(to_);
  while (!on_the_way_.empty() && on_the_way_.front().arrives <= world_.now() && stops_ == 0 && !shut_ && !receiver.paused()) {
    if (!reads()) return;
    if (receiver.reads_again > world_.now()) {
      if (!std::exchange(pump_due_, true))
        world_.at(receiver.reads_again, [this] {
          pump_due_ = false;
          pump();
        });
      return;
    }
    Travelling came = std::move(on_the_way_.front());
    on_the_way_.pop_front();
    fill();
    if (came.closing || damaged_)
      return world_.connection(from_, to_).lost(to_, came.closing ? fmt::format("the connection to peer {} was closed", from_)
                                                                  : fmt::format("a frame of peer {} is damaged", from_));
    if (receiver.read_bytes_per_second > 0)
      receiver.reads_again = world_.now() + seconds(static_cast<double>(came.bytes()) / receiver.read_bytes_per_second);
    const ChunkHead& head = came.head;
    world_.note({static_cast<std::uint64_t>(head.from) << 32 | static_cast<std::uint64_t>(head.to), head.round,
                 static_cast<std::uint64_t>(head.channel) << 32 | static_cast<std::uint64_t>(head.note), head.offset, head.total,
                 static_cast<std::uint64_t>(world_.now().count())});
    Chunk chunk = came.values.empty() ? Chunk(head, {}, {}) : free_buffer()->fill(head, std::move(came.values));
    if (Status status = receiver.deliver(std::move(chunk)); !status.ok()) {
      world_.trace().complaints.push_back(status.error().message);
      return world_.connection(from_, to_).lost(to_, status.error().message);
    }
  }
}

void Wire::returned() {
  listen();
  if (!std::exchange(pump_due_, true))
    world_.at(world_.now(), [this] {
      pump_due_ = false;
      pump();
    });
}

void Wire::close(bool told, bool cuts_off) {
  closed_ = true;
  waiting_.clear();
  if (cuts_off && !on_the_way_.empty()) {
    const auto kept = static_cast<std::size_t>(world_.chance() * static_cast<double>(on_the_way_.size() + 1));
    on_the_way_.resize(std::min(kept, on_the_way_.size()));
  }
  if (told && !shut_) {
    Travelling& news = on_the_way_.emplace_back();
    news.closing = true;
    const Time passing = Time(std::llround(static_cast<double>(kResetTime.count()) * world_.chance()));
    news.arrives = last_arrival_ = std::max(last_arrival_, world_.now() + passing);
    world_.at(news.arrives, [this] { pump(); });
  }
  hear();
}

void Wire::shut() {
  shut_ = true;
  on_the_way_.clear();
}

bool Wire::mute() const {
  const Process& sender = world_.process_of(from_);
  return stops_ > 0 || closed_ || sender.paused() || !sender.alive();
}

void Wire::hear() {
  if (mute_ == mute()) return;
  mute_ = !mute_;
  if (!mute_) return;
  heard_ = world_.now() + milliseconds(world_.scenario().latency_ms);
  watch();
}

void Wire::listen() {
  if (!mute_ || shut_) return;
  heard_ = world_.now();
  watch();
}

void Wire::watch() {
  const Time since = heard_;
  world_.at(since + seconds(world_.scenario().silence), [this, since] {
    const Process& receiver = world_.process_of(to_);
    if (!mute_ || heard_ != since || shut_ || receiver.paused() || !receiver.alive() || !reads()) return;
    world_.connection(from_, to_).lost(to_, fmt::format("nothing came from peer {} for {} s", from_, world_.scenario().silence));
  });
}

Connection::Connection(World& world, int a, int b)
    : world_(world), ends_{a, b}, wires_{std::make_unique<Wire>(world, a, b), std::make_unique<Wire>(world, b, a)} {}

void Connection::lost(int end, const std::string& why) {
  if (wire(other(end)).shut_down()) return;
  wire(other(end)).shut();
  wire(end).close(true, false);
  if (world_.process_of(end).alive()) world_.process_of(end).lost(end, other(end), why);
}

void Connection::ended(int end, bool told) {
  wire(other(end)).shut();
  wire(end).close(told, told);
}

void Connection::broken_off(int end) {
  if (wire(other(end)).shut_down()) return;
  wire(other(end)).shut();
  wire(end).close(true, true);
  world_.process_of(end).lost(end, other(end), fmt::format("the connection to peer {} broke", other(end)));
}

}  // namespace gossamer::gossip::sim
