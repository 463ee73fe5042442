#include "net/run/join_phase.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "net/io/back_off.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kReportEvery = 5s;
// Partners that run and know that the latecomer was lost try to connect at least this often.
constexpr gossip::Time kGracePeriod = BackOff::kLongest + 200ms;

}  // namespace

JoinPhase::~JoinPhase() {
  for (const auto& timer : {report_timer_, release_timer_, grace_timer_})
    state_.scheduler.cancel(timer);
}

bool JoinPhase::has_begun() const {
  const RunProgress& run = state_.run;
  if (!run.joined) return false;
  if (run.late) return ready_;
  return all_gather_.begun() ? all_gather_.complete() : !run.blocking;
}

Status JoinPhase::wait() {
  RealScheduler& scheduler = state_.scheduler;
  state_.run.blocking = true;
  bool timed_out = false;
  const auto deadline = scheduler.after(gossip::from_seconds(state_.setup.options.join_timeout),
                                        [&timed_out] { timed_out = true; });
  report_timer_ = scheduler.after(kReportEvery, [this] { report_missing(); });
  scheduler.run_until([&] { return state_.run.joined || state_.run.error || timed_out; });
  scheduler.cancel(deadline);
  scheduler.cancel(report_timer_);
  const Status status = outcome(timed_out);
  state_.run.blocking = false;
  if (state_.run.joined) schedule_release();
  return status;
}

Status JoinPhase::outcome(bool timed_out) {
  const RunProgress& run = state_.run;
  if (run.error) return *run.error;
  if (run.joined) return {};
  if (!timed_out) return Error{ErrorKind::interrupted, "interrupted while waiting for other peers"};
  // Other processes that wait for the same peers need not wait longer: they stop with this error
  // too.
  shutdown_.end_run({ErrorKind::join_timeout,
                     fmt::format("after {:.3g} s ({}) {} misses {}",
                                 state_.setup.options.join_timeout, state_.setup.words.join_limit,
                                 state_.setup.words.name_of(state_.setup.hosted.front()),
                                 fmt::join(missing(), "; "))});
  return *run.error;
}

void JoinPhase::check() {
  RunProgress& run = state_.run;
  if (run.joined || run.ending()) return;
  const auto attached = [](const auto& entry) { return entry.second.attached(); };
  const bool enough = run.late && grace_over_ && std::ranges::any_of(state_.edges, attached);
  const bool all = std::ranges::all_of(state_.edges, [](const auto& entry) {
    return entry.second.attached() || !entry.second.awaited;
  });
  if (!enough && (!all || (state_.setup.later.here && !run.late))) return;
  for (const std::string& line : missing())
    state_.setup.message("the network runs already; joined it without " + line);
  run.joined = true;
  for (auto& [pair, edge] : state_.edges) edge.lost = !edge.connected();
  if (!run.blocking) schedule_release();
}

/// Partners that assume that this process does not run must know too: they would wait for all of
/// their partners, and then for contributions of this process.
void JoinPhase::on_running() {
  if (running()) return;
  state_.run.late = true;
  for (auto& [pair, edge] : state_.edges)
    if (edge.session) edge.session->send(RunningFrame{});
  grace_timer_ = state_.scheduler.after(kGracePeriod, [this] {
    grace_over_ = true;
    check();
  });
}

void JoinPhase::hold_chunks() {
  ready_ = released_ = false;
  state_.scheduler.cancel(release_timer_);
  for (auto& [pair, edge] : state_.edges)
    if (edge.session) edge.session->hold_data(true);
}

void JoinPhase::release_chunks() {
  ready_ = true;
  schedule_release();
}

/// Not at once: join() returns first.
void JoinPhase::schedule_release() {
  state_.scheduler.cancel(release_timer_);
  if (!ready_ || !state_.run.joined) return;
  release_timer_ = state_.scheduler.after(0ns, [this] {
    released_ = true;
    for (auto& [pair, edge] : state_.edges)
      if (edge.session) edge.session->hold_data(false);
  });
}

/// A line for each pair that is not connected, such as "peer 3 (10.0.0.7:7000): connection refused,
/// 12 tries in 30 s".
std::vector<std::string> JoinPhase::missing() const {
  std::vector<std::string> lines;
  std::map<int, std::string> others;  // of each peer that is missing, one file is read
  for (const auto& [pair, edge] : state_.edges) {
    if (edge.connected() || !edge.awaited) continue;
    std::string address = edge.connector ? edge.connector->address() : std::string();
    if (address.empty()) address = state_.configured_address(edge.remote);
    std::string why = edge.connector ? edge.connector->failure() : edge.remote_attempt;
    if (why.empty() && state_.other_run) {
      const auto [other, is_new] = others.try_emplace(edge.remote);
      if (is_new) other->second = state_.other_run(edge.remote);
      why = other->second;
    }
    if (why.empty()) why = "has not connected yet";
    const std::string name = state_.setup.words.name_of(edge.remote);
    std::string line = address.empty() ? fmt::format("{}: {}", name, why)
                                       : fmt::format("{} ({}): {}", name, address, why);
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

void JoinPhase::report_missing() {
  for (const std::string& line : missing()) state_.setup.message("waiting for " + line);
  report_timer_ = state_.scheduler.after(kReportEvery, [this] { report_missing(); });
}

}  // namespace gossamer::net
