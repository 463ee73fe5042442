#include "simulator/world/connection.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::simulator {

/// Drops what is sent while the link is down.
class Connection::Gate final : public Link {
 public:
  Gate(Connection& connection, int from) : connection_(connection), from_(from) {}
  void send(Chunk chunk) override {
    const std::size_t k = connection_.index(from_);
    if (connection_.states_[k] == State::up && !connection_.closes_[k] &&
        !connection_.peer_closed_[k])
      connection_.wire(from_).send(std::move(chunk));
  }

 private:
  Connection& connection_;
  int from_;
};

Connection::Connection(World& world, int a, int b)
    : world_(world),
      ends_{a, b},
      incarnations_{world.incarnation_of(a), world.incarnation_of(b)},
      wires_{std::make_unique<Wire>(world, paths_[0], a, b),
             std::make_unique<Wire>(world, paths_[1], b, a)},
      gates_{std::make_unique<Gate>(*this, a), std::make_unique<Gate>(*this, b)} {}

Connection::~Connection() = default;

Link& Connection::link(int from) { return *gates_[index(from)]; }

void Connection::block(int from) {
  ++paths_[index(from)].blocks;
  wire(from).update_silence();
}

void Connection::unblock(int from) {
  --paths_[index(from)].blocks;
  wire(from).update_silence();
  wire(from).deliver_arrived();
}

void Connection::record(int end, bool restored) {
  const Round round = world_.process_of(end).round_of(end);
  world_.trace().links.push_back({restored, incarnations_[index(end)],
                                  incarnations_[index(other(end))], number_, round, world_.now()});
  world_.log_event(fmt::format("peer {}, in round {}: the link to peer {} is {}", end, round,
                               other(end), restored ? "restored" : "lost"));
  world_.add_to_hash(
      {static_cast<std::uint64_t>(end) << 32 | static_cast<std::uint64_t>(other(end)),
       restored ? 1U : 0U, round});
}

/// Whether the link was up at this end.
bool Connection::take_down(int end, bool resets, bool truncates) {
  if (state(end) == State::down) return false;
  wire(other(end)).stop_reading();
  wire(end).end_sending(resets, truncates);
  return std::exchange(state(end), State::down) == State::up;
}

void Connection::detect_loss(int end, bool truncates, const std::string& why) {
  const bool was_up = take_down(end, true, truncates);
  Process& process = world_.process_of(end);
  if (!process.alive()) return;
  process.wake();  // its leases on queued chunks have ended
  if (peer_closed_[index(end)] || closes_[index(end)]) return;
  if (was_up) {
    record(end, false);
    process.lose_link(end, other(end), why);
  }
  if (end == ends_[0]) redial_later();
}

void Connection::lose(int end, const std::string& why) { detect_loss(end, false, why); }

void Connection::process_ended(int end, bool resets) { take_down(end, resets, resets); }

void Connection::reset_by(int end) {
  detect_loss(end, true, fmt::format("the connection to peer {} broke", other(end)));
}

void Connection::close(int end) {
  closes_[index(end)] = true;
  if (state(end) == State::up) wire(end).send_close();
}

bool Connection::may_exit(int end) const {
  const std::size_t k = index(end);
  return states_[k] != State::up || peer_closed_[k] || wires_[k]->close_arrived();
}

void Connection::close_received(int end) {
  peer_closed_[index(end)] = true;
  if (!closes(end)) world_.process_of(end).close_link(end, other(end));
}

void Connection::process_restarted(int end) {
  if (end == ends_[0]) redial_later();
}

/// One attempt at a time.
void Connection::redial_later() {
  if (std::exchange(dialling_, true)) return;
  const Time pause =
      from_seconds(world_.scenario().reconnect_delay * (0.5 + 0.5 * world_.random()));
  world_.at(world_.now() + pause, [this] { dial(); });
}

void Connection::dial() {
  dialling_ = false;
  const Process& dialler = world_.process_of(ends_[0]);
  if (peer_closed_[0] || states_[0] != State::down || !dialler.alive() || dialler.done() ||
      world_.is_over())
    return;
  if (dialler.paused()) return redial_later();
  dialling_ = true;
  world_.at(world_.now() + from_milliseconds(world_.scenario().latency_ms) + paths_[0].delay,
            [this] { accept(); });
}

bool Connection::accepts() const {
  for (std::size_t k = 0; k < 2; ++k) {
    const Process& process = world_.process_of(ends_[k]);
    if (states_[k] != State::down || paths_[k].blocks > 0 || !process.alive() || process.paused() ||
        process.done())
      return false;
  }
  return true;
}

/// An end that does not accept, or cannot be reached, is dialled again.
void Connection::accept() {
  dialling_ = false;
  if (!accepts()) return redial_later();
  ++number_;
  states_ = {State::opening, State::opening};
  for (std::size_t k = 0; k < 2; ++k) {
    incarnations_[k] = world_.incarnation_of(ends_[k]);
    old_wires_.push_back(std::move(wires_[k]));
    wires_[k] = std::make_unique<Wire>(world_, paths_[k], ends_[k], ends_[1 - k]);
  }
  wires_[1]->send_hello();
}

void Connection::hello_received(int end) {
  GOSSAMER_CHECK(state(end) == State::opening, "a hello on a connection that is up");
  state(end) = State::up;
  if (end == ends_[0]) wire(end).send_hello();  // before any other frame
  record(end, true);
  world_.process_of(end).restore_link(end, other(end));
}

}  // namespace gossamer::simulator
