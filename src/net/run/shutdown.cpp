#include "net/run/shutdown.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::net {

void Shutdown::end_run(Error error, const Session* source) {
  auto& reason = state_.run.error;
  if (reason) return;
  reason = std::move(error);
  for (auto& [pair, edge] : state_.edges) {
    edge.connector.reset();
    edge.detour.reset();
    if (!edge.session) continue;
    // A process that was rejected is no part of the run: its partners go on waiting for the right
    // one.
    if (reason->kind == ErrorKind::rejected && source == nullptr) edge.session->close();
    else edge.session->abort(edge.session.get() == source ? nullptr : &*reason);
  }
  if (!state_.run.blocking) state_.setup.fault(*reason);
}

void Shutdown::abort(Error error) {
  if (!state_.run.leaving) return end_run(std::move(error));
  relays_ = false;
  for (auto& [pair, edge] : state_.edges)
    if (edge.session) edge.session->close();
}

void Shutdown::begin_leave() {
  if (std::exchange(state_.run.leaving, true)) return;
  for (auto& [pair, edge] : state_.edges) {
    if (!edge.connected()) {
      edge.connector.reset();
      edge.detour.reset();
    }
    if (!edge.session || state_.run.error) continue;
    if (edge.lost) edge.session->close();
    else edge.session->say_goodbye();
  }
}

bool Shutdown::left() const {
  return state_.edges.all_sessions([](const Session& session) { return session.finished(); });
}

/// Whether a partner has all that was sent to it, or needs it no more. A slow reader that is alive
/// receives all, however long that takes: its last round may need it. The failure detector finds
/// one that is not; one that acknowledges nothing more for net.row_timeout is given up.
bool Shutdown::takes_all(Session& session, Acknowledged& acks) {
  const SendQueue& queue = session.queue();
  if (session.closed() || session.remote().said_goodbye ||
      (queue.fully_acked() && session.options().lending->lent().empty()))
    return true;
  const gossip::Time now = state_.scheduler.now();
  const double limit = state_.setup.options.row_timeout;
  if (!acks.since || queue.acked() != acks.frames) acks = {queue.acked(), now};
  if (now - *acks.since < gossip::from_seconds(limit)) return false;
  state_.setup.message(
      fmt::format("{} has acknowledged nothing for {:.3g} s (net.row_timeout): what it was sent "
                  "last may be lost",
                  session.options().name, limit));
  session.close();
  return true;
}

void Shutdown::leave(gossip::Time patience) {
  begin_leave();
  RealScheduler& scheduler = state_.scheduler;
  if (!state_.run.error)
    scheduler.run_io_until([this, acks = std::map<Session*, Acknowledged>()]() mutable {
      bool delivered = true;
      for (auto& [pair, edge] : state_.edges)
        if (edge.session && !takes_all(*edge.session, acks[edge.session.get()])) delivered = false;
      return delivered;
    });
  bool timed_out = false;
  const auto deadline = scheduler.after(patience, [&timed_out] { timed_out = true; });
  scheduler.run_io_until([&] { return timed_out || left(); });
  std::vector<std::string> waiting;
  for (auto& [pair, edge] : state_.edges) {
    if (!edge.session) continue;
    // A partner that said goodbye may be gone before it acknowledged the goodbye of this process.
    if (!edge.session->finished() && !edge.session->remote().said_goodbye)
      waiting.push_back(edge.session->options().name);
    edge.session->close();
  }
  // Peers that are connected through this process say goodbye too.
  if (!state_.run.error)
    scheduler.run_io_until([&] { return timed_out || state_.relay.connected() == 0; });
  scheduler.cancel(deadline);
  if (!waiting.empty() && !state_.run.error)
    state_.setup.message(
        fmt::format("left before these said goodbye: {}", fmt::join(waiting, ", ")));
}

void Shutdown::relay_on(gossip::Time patience,
                        const std::function<void(std::size_t pairs)>& on_start) {
  if (state_.relay.connected() == 0) return;
  on_start(state_.relay.connected());
  RealScheduler& scheduler = state_.scheduler;
  const auto deadline = scheduler.after(patience, [this] { relays_ = false; });
  scheduler.run_io_until([this] { return !relays_ || state_.relay.connected() == 0; });
  scheduler.cancel(deadline);
}

}  // namespace gossamer::net
