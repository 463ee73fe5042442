#include "net/run/edge_supervisor.hpp"

#include <fmt/format.h>

#include <utility>

#include "net/io/back_off.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

/// How often sessions whose other end has left are looked at.
constexpr gossip::Time kGoodbyeInterval = 50ms;

}  // namespace

EdgeSupervisor::~EdgeSupervisor() {
  state_.scheduler.cancel(ending_timer_);
  state_.scheduler.cancel(goodbye_timer_);
}

/// The session ends later: the caller may be in the middle of a mix, and is notified of the lost
/// link.
void EdgeSupervisor::end_link(Edge& edge, Network::Blame blame, std::string why) {
  if (blame == Network::Blame::left) return part(edge);
  if (!edge.connected()) return;
  if (blame == Network::Blame::overdue)
    edge.admission.on_overdue(gossip::from_seconds(state_.setup.options.row_timeout));
  endings_.push_back({edge.local, edge.remote, edge.sessions, std::move(why),
                      /*violates=*/blame != Network::Blame::none});
  if (endings_.size() > 1) return;
  ending_timer_ = state_.scheduler.after(0ns, [this] {
    for (Ending& ending : std::exchange(endings_, {})) {
      Edge& edge = state_.edges.at(ending.local, ending.remote);
      if (!edge.connected() || edge.sessions != ending.session) continue;
      if (ending.violates) edge.session->on_protocol_violation(std::move(ending.why));
      else edge.session->end(std::move(ending.why));
    }
  });
}

/// The session ends when the other end has received all that this one has sent, or is gone.
void EdgeSupervisor::part(Edge& edge) {
  if (state_.run.ending() || edge.session == nullptr || edge.parted) return;
  edge.lost = edge.parted = true;
  edge.session->say_goodbye();
  await_goodbyes();
}

void EdgeSupervisor::await_goodbyes() {
  state_.scheduler.cancel(goodbye_timer_);
  bool awaits = false;
  for (auto& [pair, edge] : state_.edges) {
    if (!edge.parted) continue;
    if (edge.connected() && edge.session->finished()) {
      edge.session->close();
      edge.connector.reset();
      edge.detour.reset();
    }
    if (edge.connected()) awaits = true;
    else if (!edge.connector && !edge.detour) connections_.connect_again(edge, BackOff::kLongest);
  }
  if (awaits)
    goodbye_timer_ = state_.scheduler.after(kGoodbyeInterval, [this] { await_goodbyes(); });
}

Status EdgeSupervisor::on_chunk(gossip::Chunk chunk) {
  return state_.receiver.deliver(std::move(chunk));
}

Status EdgeSupervisor::on_contribution(Session& session, std::string contribution) {
  return all_gather_.on_contribution(session, std::move(contribution));
}

/// A link is restored no earlier than its first frame: the connection may have waited in a queue
/// until its connector gave up.
void EdgeSupervisor::on_alive(Session& session) {
  Edge& edge = state_.edges.of(session);
  if (!std::exchange(edge.lost, false)) return;
  if (join_.has_begun()) state_.setup.on_link_restored(edge.local, edge.remote);
}

void EdgeSupervisor::on_goodbye(Session& session) {
  if (state_.run.ending()) return;
  const Edge& edge = state_.edges.of(session);
  if (join_.has_begun() && !edge.lost) state_.setup.on_peer_left(edge.local, edge.remote);
  else if (all_gather_.begun()) all_gather_.advance();
}

void EdgeSupervisor::on_running() { join_.on_running(); }

Status EdgeSupervisor::on_figures(Session& session, const FiguresFrame& figures,
                                  std::string entries) {
  if (!join_.has_begun()) return {};
  const Edge& edge = state_.edges.of(session);
  return state_.setup.on_figures(edge.local, edge.remote, {figures, std::move(entries)});
}

void EdgeSupervisor::on_failure(Session& session, Error error) {
  Edge& edge = state_.edges.of(session);
  edge.connector.reset();
  const RunProgress& run = state_.run;
  if (run.ending()) {
    if (!run.error) state_.setup.message(error.message + ", when this process was done");
    return;
  }
  const RemoteState& remote = session.remote();
  const gossip::Time pause = edge.admission.on_failure(
      state_.scheduler.now(), {.violated = remote.violated, .silent = edge.lost && !remote.alive});
  if (!run.joined && !remote.any_chunk) {
    // No chunk was sent yet, so the peer may come again as if it had not been there.
    edge.remote_attempt = "it connected, but was lost again";
  } else if (!on_session_end(edge, error)) {
    return shutdown_.end_run(std::move(error));
  }
  connections_.connect_again(edge, pause);
}

void EdgeSupervisor::on_abort(Session& session, Error error) {
  RunProgress& run = state_.run;
  if (run.leaving) {
    state_.setup.message("another process ended the run when this one was done: " + error.message);
    return session.close();
  }
  Edge& edge = state_.edges.of(session);
  // A network that was never whole does not go on, although the neighbours of this process were all
  // there. A latecomer that did not come to its end is only a lost link.
  const bool never_whole =
      error.kind == ErrorKind::join_timeout || error.kind == ErrorKind::rejected;
  const bool was_whole = edge.started_channels || (all_gather_.begun() && all_gather_.complete());
  const Error ended{ErrorKind::lost_peer,
                    fmt::format("{} has ended: {}", session.options().name, error.message)};
  if (run.error || (never_whole && !was_whole) || !on_session_end(edge, ended)) {
    if (!run.error)
      state_.setup.message(
          fmt::format("{} ends the run: {}", session.options().name, error.message));
    return shutdown_.end_run(std::move(error), &session);
  }
  session.close();
  edge.connector.reset();
  connections_.connect_again(edge, BackOff::kLongest);
}

/// The session of an edge has ended. Returns whether the run goes on without the link.
bool EdgeSupervisor::on_session_end(Edge& edge, const Error& why) {
  if (edge.lost) return true;
  if (!join_.has_begun()) return edge.lost = state_.run.joined && state_.run.late;
  edge.lost = true;
  return state_.setup.on_link_lost(edge.local, edge.remote, why);
}

}  // namespace gossamer::net
