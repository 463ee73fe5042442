#include "peer/runtime/startup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/id_list.hpp"
#include "peer/log/run_files.hpp"

namespace gossamer::peer {

namespace fs = std::filesystem;

Result<Startup> Startup::prepare(const Setup& setup, StartupRequest request) {
  Startup startup(setup, std::move(request));
  const StartupRequest& options = startup.request_;
  GOSSAMER_TRY(startup.states_, find_resumable_states(setup, options.hosted, options.resume,
                                                      options.folder, options.message));
  startup.look_for_finished();
  const bool is_new = options.resume.kind == ResumeChoice::Kind::none;
  const char* clock = options.clock == Host::Clock::virtual_time ? "virtual" : "real";
  const auto open_log = is_new ? Recorder::create : Recorder::reopen;
  GOSSAMER_TRY(startup.recorder_, open_log(setup, options.hosted, options.folder, clock));
  if (setup.config.checkpoint.every > 0)
    startup.checkpointer_ = std::make_unique<Checkpointer>(
        setup, CheckpointerRequest{.hosted = options.hosted,
                                   .folder = checkpoint_folder(setup.config, options.folder),
                                   .sync_log = [&log = *startup.recorder_] { return log.sync(); }});
  if (!options.offered) return startup;
  auto offered = options.offered(startup.rounds());
  if (!offered.ok()) {
    startup.recorder_->discard();
    return offered.error();
  }
  startup.offered_ = std::move(offered).value();
  return startup;
}

Startup::~Startup() {
  if (!recorder_ || restored_ || std::uncaught_exceptions() == 0) return;
  try {
    recorder_->discard();
  } catch (const std::bad_alloc&) {  // not even memory for the names of files: they stay
  }
}

void Startup::look_for_finished() {
  if (request_.clock == Host::Clock::virtual_time ||
      request_.resume.kind == ResumeChoice::Kind::none)
    return;
  const DoneNodes done =
      done_nodes(request_.folder, setup_->config.run_id(), setup_->config.run.rounds);
  if (std::ranges::includes(done.all, request_.hosted))
    finished_ = std::ranges::includes(done.in_part, request_.hosted) ? Finished::own_in_part
                                                                     : Finished::own;
  else if (done.all.size() + request_.hosted.size() == static_cast<std::size_t>(setup_->nodes()))
    finished_ = Finished::by_others;
}

Status Startup::nobody_came(const Error& missing) const {
  if (missing.kind != ErrorKind::join_timeout) return missing;
  switch (finished_) {
    case Finished::nothing: return missing;
    case Finished::own: return {};
    case Finished::own_in_part:
      return Error{ErrorKind::lost_peer,
                   fmt::format("{} did the last round and had left earlier ones out; no other "
                               "process was started again",
                               peers_text(request_.hosted))};
    case Finished::by_others: break;
  }
  return Error{missing.kind,
               fmt::format("{} came too late: by their logs in {}, all other peers have "
                           "finished the run, and none was started again",
                           peers_text(request_.hosted), request_.folder.string())};
}

std::vector<gossip::Round> Startup::rounds() const {
  if (offered_) return *offered_;
  std::vector<gossip::Round> rounds;
  const auto first_due = static_cast<gossip::Round>(setup_->config.checkpoint.every);
  if (states_.empty() || states_.begin()->first == first_due) rounds.push_back(0);
  for (const auto& [round, states] : states_) rounds.push_back(round);
  return rounds;
}

Status Startup::restore(gossip::Round round, Host& host) {
  restored_ = true;
  if (request_.resume.kind == ResumeChoice::Kind::none) return {};
  if (round > 0) {
    // Of nodes that take no part in that round there is no state.
    const auto saved = states_.find(round);
    SavedStates none;
    none.round = round;
    GOSSAMER_TRY_STATUS(host.restore(saved == states_.end() ? none : saved->second));
  }
  const fs::path folder = checkpoint_folder(setup_->config, request_.folder);
  const int process = request_.hosted.front();
  // The newest state is this process's own choice; an earlier one is that of the network.
  const bool newest = round == (states_.empty() ? 0 : states_.rbegin()->first);
  if (!newest) GOSSAMER_TRY_STATUS(set_records_aside(round));
  GOSSAMER_TRY_STATUS(recorder_->resume_at(round, round > 0));
  if (newest && round > 0) {
    remove_later_checkpoints(folder, process, round, real_disk());
  } else if (round > 0) {
    // At round 0 the existing checkpoints are the only ones: they stay until the first new one is
    // written.
    if (const int count = set_later_checkpoints_aside(folder, process, round, real_disk());
        count > 0)
      request_.message(
          fmt::format("{} after round {} {} set aside in {}, with names that end in {}",
                      count == 1 ? "1 checkpoint" : fmt::format("{} checkpoints", count), round,
                      count == 1 ? "is" : "are", folder.string(), kAsideSuffix));
  }
  return {};
}

/// Keeps the records that a round which other processes chose has this process drop.
Status Startup::set_records_aside(gossip::Round round) {
  GOSSAMER_TRY(const std::size_t count, recorder_->set_records_aside(round));
  if (count > 0)
    request_.message(fmt::format("{} records of round {} and later rounds are set aside in {}",
                                 count, round, recorder_->aside_path().string()));
  return {};
}

/// Other peers of this process may start in an earlier round: by at most the number of rounds that
/// a link state update takes through the network, unless they join another part of it. Existing
/// checkpoints, which may be of later rounds if the process was ahead while it was cut off, are set
/// aside when it has written a new one.
Status Startup::join_at(gossip::Round round) {
  restored_ = true;
  const auto nodes = static_cast<gossip::Round>(request_.hosted.size() == 1 ? 0 : setup_->nodes());
  const gossip::Round first = round - std::min(round, nodes);
  if (!states_.empty() && states_.rbegin()->first > round)
    request_.message(fmt::format(
        "the checkpoint of round {} of this process is later than round {}, in which it joins the "
        "network: it is set aside when the next one is written",
        states_.rbegin()->first, round));
  GOSSAMER_TRY_STATUS(set_records_aside(first));
  return recorder_->resume_at(first, round > 0);
}

void Startup::announce(gossip::Round round) const {
  if (request_.resume.kind == ResumeChoice::Kind::none) return;
  request_.message(round > 0
                       ? fmt::format("resuming from the checkpoint of round {}", round)
                       : std::string("there is no checkpoint to resume from: starting at round 0"));
}

}  // namespace gossamer::peer
