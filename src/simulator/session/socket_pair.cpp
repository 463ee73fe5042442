#include "simulator/session/socket_pair.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace gossamer::simulator {

namespace {

constexpr Time kLongestCall = std::chrono::microseconds(100);  // a write by the operating system

std::size_t size_of(const std::vector<net::Area>& areas) {
  return std::accumulate(areas.begin(), areas.end(), std::size_t{0},
                         [](std::size_t sum, const net::Area& area) { return sum + area.size; });
}

}  // namespace

class SocketPair::End final : public net::Socket {
 public:
  End(std::shared_ptr<SocketPair> pair, int end) : pair_(std::move(pair)), end_(end) {}
  ~End() override { End::close(); }

  void set_user(net::SocketUser* user) override { side().user = user; }
  void read(std::span<const net::Area> areas) override {
    side().into.assign(areas.begin(), areas.end());
    side().reads = true;
    pair_->schedule(Time(0), &SocketPair::read_some, end_);
  }
  void write(std::span<const net::Area> areas) override {
    side().from.assign(areas.begin(), areas.end());
    side().writes = true;
    pair_->schedule(pair_->draw_delay(kLongestCall), &SocketPair::write_some, end_);
  }
  void finish_sending() override { pair_->finish(end_); }
  void close() override { pair_->close(end_); }
  const std::string& remote() const override { return remote_; }
  bool is_local() const override { return true; }

 private:
  Side& side() { return pair_->ends_[at(end_)]; }

  std::shared_ptr<SocketPair> pair_;
  int end_;
  std::string remote_ = "a simulated address";
};

std::unique_ptr<net::Socket> SocketPair::socket(int end) {
  return std::make_unique<End>(shared_from_this(), end);
}

Time SocketPair::draw_delay(Time most) {
  return Time(std::llround(static_cast<double>(most.count()) * random_.next_double()));
}

void SocketPair::schedule(Time after, void (SocketPair::*what)(int), int end) {
  scheduler_.after(after, [self = shared_from_this(), what, end] { ((*self).*what)(end); });
}

void SocketPair::complete_read(int end, const net::Transfer& transfer) {
  Side& side = ends_[at(end)];
  side.reads = false;
  if (side.user != nullptr) side.user->read_done(transfer);
}

void SocketPair::complete_write(int end, const net::Transfer& transfer) {
  Side& side = ends_[at(end)];
  side.writes = false;
  if (side.user != nullptr) side.user->write_done(transfer);
}

/// Reads what has arrived, or a random part of it.
void SocketPair::read_some(int end) {
  Side& side = ends_[at(end)];
  if (!side.reads || side.closed) return;
  if (side.broken) return complete_read(end, {0, false, side.broken});
  if (side.held_back) return;
  const Time now = scheduler_.now();
  std::size_t there = 0;
  for (const Packet& packet : side.incoming) {
    if (packet.arrives > now) break;
    there += packet.bytes.size() - packet.read;
  }
  if (there == 0) {
    if (side.incoming.empty() && side.ends && *side.ends <= now) complete_read(end, {0, true, {}});
    return;
  }
  std::size_t left = std::min(there, size_of(side.into));
  if (random_.below(4) == 0) left = 1 + random_.below(static_cast<std::uint32_t>(left));
  const std::size_t bytes = left;
  for (const net::Area& area : side.into)
    for (std::size_t filled = 0; filled < area.size && left > 0;) {
      Packet& packet = side.incoming.front();
      const std::size_t part =
          std::min({left, area.size - filled, packet.bytes.size() - packet.read});
      std::memcpy(static_cast<std::byte*>(area.data) + filled, packet.bytes.data() + packet.read,
                  part);
      packet.read += part;
      filled += part;
      left -= part;
      if (packet.read == packet.bytes.size()) side.incoming.pop_front();
    }
  side.incoming_bytes -= bytes;
  if (ends_[at(1 - end)].writes) schedule(Time(0), &SocketPair::write_some, 1 - end);
  complete_read(end, {bytes, false, {}});
}

/// Until this is done the memory that is written may change, as with the system's own calls: it is
/// read here.
void SocketPair::write_some(int end) {
  Side& side = ends_[at(end)];
  Side& other = ends_[at(1 - end)];
  if (!side.writes || side.closed) return;
  if (side.broken) return complete_write(end, {0, false, side.broken});
  const std::size_t room = options_.room - std::min(options_.room, other.incoming_bytes);
  if (room == 0) return;
  std::size_t left = std::min(room, size_of(side.from));
  if (random_.below(4) == 0) left = 1 + random_.below(static_cast<std::uint32_t>(left));
  Packet packet;
  for (const net::Area& area : side.from) {
    const std::size_t part = std::min(left, area.size);
    const auto* begin = static_cast<const std::byte*>(area.data);
    packet.bytes.insert(packet.bytes.end(), begin, begin + part);
    left -= part;
  }
  const std::size_t bytes = packet.bytes.size();
  if (!other.closed && !other.cut) {
    if (std::exchange(other.corrupted, false))
      packet.bytes[random_.below(static_cast<std::uint32_t>(bytes))] ^= std::byte{0x10};
    packet.arrives = other.last_arrival = std::max(
        other.last_arrival, scheduler_.now() + options_.latency + draw_delay(options_.latency));
    const Time wait = packet.arrives - scheduler_.now();
    other.incoming.push_back(std::move(packet));
    other.incoming_bytes += bytes;
    schedule(wait, &SocketPair::read_some, 1 - end);
  }
  complete_write(end, {bytes, false, {}});
}

void SocketPair::finish(int end) {
  Side& other = ends_[at(1 - end)];
  if (other.ends || other.closed) return;
  other.ends = other.last_arrival =
      std::max(other.last_arrival, scheduler_.now() + options_.latency);
  schedule(*other.ends - scheduler_.now(), &SocketPair::read_some, 1 - end);
}

/// The other end reads what was in flight, and then the end of the stream; a write that it makes
/// once it could know of the end fails.
void SocketPair::close(int end) {
  Side& side = ends_[at(end)];
  if (std::exchange(side.closed, true)) return;
  side.user = nullptr;
  side.incoming.clear();
  side.incoming_bytes = 0;
  finish(end);
  scheduler_.after(2 * options_.latency, [self = shared_from_this(), end] {
    Side& other = self->ends_[at(1 - end)];
    if (!other.writes || other.closed || other.broken) return;
    self->complete_write(1 - end, {0, false, std::make_error_code(std::errc::broken_pipe)});
  });
}

void SocketPair::reset(int end, Time after) {
  Side& side = ends_[at(end)];
  if (!side.incoming.empty()) {
    const std::size_t kept = random_.below(static_cast<std::uint32_t>(side.incoming.size() + 1));
    for (std::size_t k = kept; k < side.incoming.size(); ++k)
      side.incoming_bytes -= side.incoming[k].bytes.size() - side.incoming[k].read;
    side.incoming.resize(kept);
  }
  side.cut = true;  // bytes behind a gap must not arrive
  scheduler_.after(after, [self = shared_from_this(), end] {
    Side& broken = self->ends_[at(end)];
    if (broken.closed) return;
    broken.broken = std::make_error_code(std::errc::connection_reset);
    self->read_some(end);
    self->write_some(end);
  });
}

void SocketPair::hold_back(int end, bool held_back) {
  ends_[at(end)].held_back = held_back;
  if (!held_back) schedule(Time(0), &SocketPair::read_some, end);
}

}  // namespace gossamer::simulator
