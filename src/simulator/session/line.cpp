#include "simulator/session/line.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace gossamer::net::sim {

namespace {

constexpr gossip::Time kLongestCall = std::chrono::microseconds(100);  // of the system, for a write

std::size_t size_of(const std::vector<Area>& areas) {
  return std::accumulate(areas.begin(), areas.end(), std::size_t{0},
                         [](std::size_t sum, const Area& area) { return sum + area.size; });
}

}  // namespace

class Line::End final : public Socket {
 public:
  End(std::shared_ptr<Line> line, int end) : line_(std::move(line)), end_(end) {}
  ~End() override { End::close(); }

  void set_user(SocketUser* user) override { side().user = user; }
  void read(std::span<const Area> areas) override {
    side().into.assign(areas.begin(), areas.end());
    side().reads = true;
    line_->later(gossip::Time(0), &Line::read_some, end_);
  }
  void write(std::span<const Area> areas) override {
    side().from.assign(areas.begin(), areas.end());
    side().writes = true;
    line_->later(line_->a_while(kLongestCall), &Line::write_some, end_);
  }
  void finish_sending() override { line_->finish(end_); }
  void close() override { line_->close(end_); }
  const std::string& remote() const override { return remote_; }

 private:
  Side& side() { return line_->ends_[at(end_)]; }

  std::shared_ptr<Line> line_;
  int end_;
  std::string remote_ = "a simulated address";
};

std::unique_ptr<Socket> Line::socket(int end) {
  return std::make_unique<End>(shared_from_this(), end);
}

gossip::Time Line::a_while(gossip::Time most) {
  return gossip::Time(std::llround(static_cast<double>(most.count()) * chance_.next_double()));
}

void Line::later(gossip::Time after, void (Line::*what)(int), int end) {
  scheduler_.after(after, [self = shared_from_this(), what, end] { ((*self).*what)(end); });
}

void Line::complete_read(int end, const Transfer& transfer) {
  Side& side = ends_[at(end)];
  side.reads = false;
  if (side.user != nullptr) side.user->read_done(transfer);
}

void Line::complete_write(int end, const Transfer& transfer) {
  Side& side = ends_[at(end)];
  side.writes = false;
  if (side.user != nullptr) side.user->write_done(transfer);
}

/// What has come, or a part of it.
void Line::read_some(int end) {
  Side& side = ends_[at(end)];
  if (!side.reads || side.closed) return;
  if (side.broken) return complete_read(end, {0, false, side.broken});
  if (side.held) return;
  const gossip::Time now = scheduler_.now();
  std::size_t there = 0;
  for (const Packet& packet : side.coming) {
    if (packet.arrives > now) break;
    there += packet.bytes.size() - packet.read;
  }
  if (there == 0) {
    if (side.coming.empty() && side.ends && *side.ends <= now) complete_read(end, {0, true, {}});
    return;
  }
  std::size_t left = std::min(there, size_of(side.into));
  if (chance_.below(4) == 0) left = 1 + chance_.below(static_cast<std::uint32_t>(left));
  const std::size_t bytes = left;
  for (const Area& area : side.into)
    for (std::size_t filled = 0; filled < area.size && left > 0;) {
      Packet& packet = side.coming.front();
      const std::size_t part =
          std::min({left, area.size - filled, packet.bytes.size() - packet.read});
      std::memcpy(static_cast<std::byte*>(area.data) + filled, packet.bytes.data() + packet.read,
                  part);
      packet.read += part;
      filled += part;
      left -= part;
      if (packet.read == packet.bytes.size()) side.coming.pop_front();
    }
  side.coming_bytes -= bytes;
  if (ends_[at(1 - end)].writes) later(gossip::Time(0), &Line::write_some, 1 - end);
  complete_read(end, {bytes, false, {}});
}

/// The memory that is written may be changed until this is done, as with the system's own calls: it
/// is read here.
void Line::write_some(int end) {
  Side& side = ends_[at(end)];
  Side& other = ends_[at(1 - end)];
  if (!side.writes || side.closed) return;
  if (side.broken) return complete_write(end, {0, false, side.broken});
  const std::size_t room = options_.room - std::min(options_.room, other.coming_bytes);
  if (room == 0) return;
  std::size_t left = std::min(room, size_of(side.from));
  if (chance_.below(4) == 0) left = 1 + chance_.below(static_cast<std::uint32_t>(left));
  Packet packet;
  for (const Area& area : side.from) {
    const std::size_t part = std::min(left, area.size);
    const auto* begin = static_cast<const std::byte*>(area.data);
    packet.bytes.insert(packet.bytes.end(), begin, begin + part);
    left -= part;
  }
  const std::size_t bytes = packet.bytes.size();
  if (!other.closed && !other.cut) {
    if (std::exchange(other.damaged, false))
      packet.bytes[chance_.below(static_cast<std::uint32_t>(bytes))] ^= std::byte{0x10};
    packet.arrives = other.last_arrival = std::max(
        other.last_arrival, scheduler_.now() + options_.latency + a_while(options_.latency));
    const gossip::Time wait = packet.arrives - scheduler_.now();
    other.coming.push_back(std::move(packet));
    other.coming_bytes += bytes;
    later(wait, &Line::read_some, 1 - end);
  }
  complete_write(end, {bytes, false, {}});
}

void Line::finish(int end) {
  Side& other = ends_[at(1 - end)];
  if (other.ends || other.closed) return;
  other.ends = other.last_arrival =
      std::max(other.last_arrival, scheduler_.now() + options_.latency);
  later(*other.ends - scheduler_.now(), &Line::read_some, 1 - end);
}

/// The other end hears what was under way, then the end; what it writes once it could know of that
/// fails.
void Line::close(int end) {
  Side& side = ends_[at(end)];
  if (std::exchange(side.closed, true)) return;
  side.user = nullptr;
  side.coming.clear();
  side.coming_bytes = 0;
  finish(end);
  scheduler_.after(2 * options_.latency, [self = shared_from_this(), end] {
    Side& other = self->ends_[at(1 - end)];
    if (!other.writes || other.closed || other.broken) return;
    self->complete_write(1 - end, {0, false, std::make_error_code(std::errc::broken_pipe)});
  });
}

void Line::reset(int end, gossip::Time after) {
  Side& side = ends_[at(end)];
  if (!side.coming.empty()) {
    const std::size_t kept = chance_.below(static_cast<std::uint32_t>(side.coming.size() + 1));
    for (std::size_t k = kept; k < side.coming.size(); ++k)
      side.coming_bytes -= side.coming[k].bytes.size() - side.coming[k].read;
    side.coming.resize(kept);
  }
  side.cut = true;  // bytes that follow a gap must not come
  scheduler_.after(after, [self = shared_from_this(), end] {
    Side& broken = self->ends_[at(end)];
    if (broken.closed) return;
    broken.broken = std::make_error_code(std::errc::connection_reset);
    self->read_some(end);
    self->write_some(end);
  });
}

void Line::hold(int end, bool held) {
  ends_[at(end)].held = held;
  if (!held) later(gossip::Time(0), &Line::read_some, end);
}

}  // namespace gossamer::net::sim
