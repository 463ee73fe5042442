#include "simulator/world/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::simulator {

/// Drops what is sent while the link is down.
class Connection::Gate final : public Link {
 public:
  Gate(Connection& connection, int from) : connection_(connection), from_(from) {}
  void send(Chunk chunk) override {
    End& end = connection_.end_of(from_);
    if (end.state == State::up && !end.closes && !end.peer_closed) end.wire->send(std::move(chunk));
  }

 private:
  Connection& connection_;
  int from_;
};

Connection::Connection(World& world, int a, int b) : world_(world) {
  ends_[0].peer = a;
  ends_[1].peer = b;
  for (End& end : ends_) {
    end.incarnation = world.recorder().incarnation_of(end.peer);
    end.wire = std::make_unique<Wire>(world, end.path, end.peer, other(end.peer).peer);
    end.gate = std::make_unique<Gate>(*this, end.peer);
  }
}

Connection::~Connection() = default;

Link& Connection::link(int from) { return *end_of(from).gate; }

void Connection::set_blocked(int from, bool blocked) {
  end_of(from).path.blocks += blocked ? 1 : -1;
  wire(from).update_silence();
  if (!blocked) wire(from).deliver_arrived();
}

void Connection::record(int end, bool restored, bool parted) {
  const End& here = end_of(end);
  const End& there = other(end);
  end_of(end).recorded_lost = !restored;
  const Round round = world_.process_of(end).round_of(end);
  // A peer that joins anew has the links of its earlier incarnation reset.
  if (here.incarnation == world_.recorder().incarnation_of(end))
    world_.recorder().trace().links.push_back(
        {restored, here.incarnation, there.incarnation, number_, round, world_.now(), parted});
  world_.recorder().log_event(fmt::format("peer {}, in round {}: the link to peer {} is {}", end,
                                          round, there.peer, restored ? "restored" : "lost"));
  world_.recorder().add_to_hash(
      {static_cast<std::uint64_t>(end) << 32 | static_cast<std::uint64_t>(there.peer),
       restored ? 1U : 0U, round});
}

/// Whether the link was up at this end.
bool Connection::take_down(int end, bool resets, bool truncates) {
  End& here = end_of(end);
  if (here.state == State::down) return false;
  other(end).wire->stop_reading();
  here.wire->end_sending(resets, truncates);
  return std::exchange(here.state, State::down) == State::up;
}

void Connection::lose(int end, const std::string& why, bool truncates) {
  const bool was_up = take_down(end, true, truncates);
  Process& process = world_.process_of(end);
  if (!process.alive()) return;
  process.wake();  // its leases on queued chunks have ended
  const End& here = end_of(end);
  if (here.peer_closed || here.closes) return;
  if (was_up) {
    record(end, false);
    process.on_link_lost(end, other(end).peer, why);
  }
  if (end == ends_[0].peer) redial_later();
}

void Connection::process_ended(int end, bool resets) {
  take_down(end, resets, resets);
  end_of(end).closes = false;
}

void Connection::close(int end) {
  end_of(end).closes = true;
  if (end_of(end).state == State::up) wire(end).send_close();
}

bool Connection::may_exit(int end) const {
  const End& here = end_of(end);
  return here.state != State::up || here.peer_closed || here.wire->close_arrived();
}

void Connection::close_received(int end) {
  end_of(end).peer_closed = true;
  if (!closes(end)) world_.process_of(end).engine(end).membership().on_peer_left(other(end).peer);
}

void Connection::part(int end) {
  if (!end_of(end).peer_closed) return;
  take_down(end, true, false);
  if (!end_of(end).recorded_lost) record(end, false, true);
  end_of(end).peer_closed = false;
  redial_later();
}

void Connection::begin_down() {
  for (const int end : ends()) take_down(end, false, false);
  redial_later();
}

void Connection::redial_later() {
  if (std::exchange(dialling_, true)) return;
  const Time pause =
      from_seconds(world_.scenario().network.reconnect_delay * (0.5 + 0.5 * world_.random()));
  world_.at(world_.now() + pause, [this] { dial(); });
}

void Connection::dial() {
  dialling_ = false;
  const End& end = ends_[0];
  const Process& dialler = world_.process_of(end.peer);
  if (end.peer_closed || end.state != State::down || !dialler.alive() || dialler.done() ||
      world_.recorder().is_over())
    return;
  if (dialler.paused()) return redial_later();
  dialling_ = true;
  world_.at(world_.now() + from_milliseconds(world_.scenario().network.latency_ms) + end.path.delay,
            [this] { accept(); });
}

/// An end that does not accept, or cannot be reached, is dialled again.
void Connection::accept() {
  dialling_ = false;
  const auto accepts = [this](const End& end) {
    const Process& process = world_.process_of(end.peer);
    return end.state == State::down && !end.peer_closed && end.path.blocks == 0 &&
           process.alive() && !process.paused() && !process.done();
  };
  if (!std::ranges::all_of(ends_, accepts)) return redial_later();
  ++number_;
  for (End& end : ends_) {
    end.state = State::opening;
    end.incarnation = world_.recorder().incarnation_of(end.peer);
    old_wires_.push_back(std::move(end.wire));
    end.wire = std::make_unique<Wire>(world_, end.path, end.peer, other(end.peer).peer);
  }
  ends_[1].wire->send_hello();
}

void Connection::hello_received(int end) {
  GOSSAMER_CHECK(end_of(end).state == State::opening, "a hello on a connection that is up");
  end_of(end).state = State::up;
  if (end == ends_[0].peer) wire(end).send_hello();  // before any other frame
  record(end, true);
  if (world_.tolerates_loss())
    world_.process_of(end).engine(end).membership().on_link_restored(other(end).peer);
}

}  // namespace gossamer::simulator
