#include "net/run/all_gather_phase.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gossamer::net {

void AllGatherPhase::begin(AllGather gather) {
  gather_ = std::move(gather);
  if (!complete()) {
    deadline_ = state_.scheduler.after(gossip::from_seconds(state_.setup.options.join_timeout),
                                       [this] { on_deadline(); });
    send();
  }
  advance();
}

void AllGatherPhase::on_deadline() {
  if (complete() || state_.run.ending()) return;
  std::vector<std::string> missing;
  for (const auto& [pair, edge] : state_.edges)
    if (edge.awaited && unmerged_of(edge).empty())
      missing.push_back(edge.session ? edge.session->options().name
                                     : state_.setup.words.name_of(edge.remote));
  shutdown_.end_run({ErrorKind::join_timeout,
                     fmt::format("after {:.3g} s ({}) {} misses the start-up data of {}",
                                 state_.setup.options.join_timeout, state_.setup.words.join_limit,
                                 state_.setup.words.name_of(state_.setup.hosted.front()),
                                 fmt::join(missing, "; "))});
}

std::deque<std::string>& AllGatherPhase::unmerged_of(const Edge& edge) {
  Unmerged& unmerged = unmerged_[&edge];
  if (unmerged.session != edge.sessions) unmerged = {edge.sessions, {}};
  return unmerged.contributions;
}

bool AllGatherPhase::step_is_here() {
  return std::ranges::none_of(state_.edges, [this](const auto& entry) {
    return entry.second.awaited && unmerged_of(entry.second).empty();
  });
}

void AllGatherPhase::send() {
  const std::string contribution = gather_->contribution();
  for (auto& [pair, edge] : state_.edges)
    if (edge.awaited && edge.session) edge.session->send(ContributionFrame{}, contribution);
}

Status AllGatherPhase::on_contribution(Session& session, std::string contribution) {
  if (state_.run.late) return {};  // the partner does not know that yet
  std::deque<std::string>& unmerged = unmerged_of(state_.edges.of(session));
  if (complete() || unmerged.size() == 2)
    return Error{ErrorKind::lost_peer,
                 fmt::format("{} broke the protocol: it sent a contribution that no step waits for",
                             session.options().name)};
  unmerged.push_back(std::move(contribution));
  if (begun() && state_.run.joined) advance();
  return {};
}

void AllGatherPhase::advance() {
  while (!state_.run.error && !complete() && step_is_here()) {
    if (!merge_step()) return;
    ++steps_done_;
    if (!complete()) send();
  }
  if (state_.run.error || complete()) return;
  for (const auto& [pair, edge] : state_.edges)
    if (edge.awaited && unmerged_of(edge).empty() && edge.session &&
        edge.session->remote().said_goodbye)
      return shutdown_.end_run({ErrorKind::lost_peer, fmt::format("{} left before the run began",
                                                                  edge.session->options().name)});
}

/// Merges one contribution of each partner. False if one makes no sense, which ends the run.
bool AllGatherPhase::merge_step() {
  for (auto& [pair, edge] : state_.edges) {
    if (!edge.awaited) continue;
    std::deque<std::string>& contributions = unmerged_of(edge);
    const Status merged = gather_->merge(pair.first, pair.second, contributions.front());
    contributions.pop_front();
    if (merged.ok()) continue;
    shutdown_.end_run(
        {ErrorKind::lost_peer, fmt::format("{} broke the protocol: {}",
                                           edge.session->options().name, merged.error().message)});
    return false;
  }
  return true;
}

}  // namespace gossamer::net
