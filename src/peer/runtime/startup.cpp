#include "peer/runtime/startup.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::peer {

Result<Startup> Startup::prepare(const Setup& setup, StartupRequest request) {
  Startup beginning(setup, std::move(request));
  const StartupRequest& decided = beginning.request_;
  GOSSAMER_TRY(beginning.states_, states_to_begin_with(setup, decided.hosted, decided.resume,
                                                       decided.folder, decided.message));
  const bool anew = decided.resume.kind == ResumeChoice::Kind::none;
  const char* clock = decided.clock == Host::Clock::virtual_time ? "virtual" : "real";
  GOSSAMER_TRY(beginning.recorder_, (anew ? Recorder::create : Recorder::reopen)(setup, decided.hosted, decided.folder, clock));
  if (setup.config.checkpoint.every > 0)
    beginning.checkpointer_ = std::make_unique<Checkpointer>(
        setup, CheckpointerRequest{.hosted = decided.hosted,
                                   .folder = checkpoint_folder(setup.config, decided.folder),
                                   .log = beginning.recorder_->log_path()});
  return beginning;
}

std::vector<gossip::Round> Startup::rounds() const {
  std::vector<gossip::Round> rounds;
  const auto first_due = static_cast<gossip::Round>(setup_->config.checkpoint.every);
  if (states_.empty() || states_.begin()->first == first_due) rounds.push_back(0);
  for (const auto& [round, states] : states_) rounds.push_back(round);
  return rounds;
}

Status Startup::settle(gossip::Round round, Host& host) {
  if (request_.resume.kind == ResumeChoice::Kind::none) return {};
  if (round > 0) GOSSAMER_TRY_STATUS(host.restore(states_.at(round)));
  GOSSAMER_TRY_STATUS(recorder_->continue_from(round));
  // From round 0 there is nothing to go on from but what there was: it stays until the first new
  // one is written.
  if (round > 0)
    drop_later_checkpoints(checkpoint_folder(setup_->config, request_.folder),
                           request_.hosted.front(), round, real_disk());
  return {};
}

/// Other peers of this process may begin a little earlier: as many rounds as news takes through the
/// network. The checkpoints that it has, which may be of later rounds where it was ahead on its
/// own, stay until it has written one: it may end before.
Status Startup::join(gossip::Round round) {
  const auto nodes = static_cast<gossip::Round>(request_.hosted.size() == 1 ? 0 : setup_->nodes());
  return recorder_->continue_from(round - std::min(round, nodes));
}

void Startup::announce(gossip::Round round) const {
  if (request_.resume.kind == ResumeChoice::Kind::none) return;
  request_.message(round > 0
                       ? fmt::format("going on from the checkpoint of round {}", round)
                       : std::string("there is no checkpoint to go on from: beginning at round 0"));
}

}  // namespace gossamer::peer
