// The start of a process's run, alone or in a network: finds the rounds at which the process can
// start, creates or reopens its log, and restores its state once the round is decided.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpointer.hpp"
#include "peer/checkpoint/resume.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/host.hpp"

namespace gossamer::peer {

struct StartupRequest {
  std::vector<int> hosted;       ///< nodes of this process, ascending
  std::filesystem::path folder;  ///< run folder
  ResumeChoice resume;
  Host::Clock clock = Host::Clock::virtual_time;
  std::function<void(const std::string&)> message;  ///< receives messages for the user
  /// Of the rounds at which this process can start, those that it may offer others: some of them,
  /// not none. It is called once, before the process joins them. Null: all.
  using Offered =
      std::function<Result<std::vector<gossip::Round>>(const std::vector<gossip::Round>&)>;
  Offered offered = {};
};

class Startup {
 public:
  /// Reads the existing state. Writes nothing but a new log. Errors as of find_resumable_states(),
  /// Recorder, and the request's `offered`.
  static Result<Startup> prepare(const Setup& setup, StartupRequest request);
  /// Discards the new log of a run that an exception ends before it restored anything: memory was
  /// short.
  ~Startup();
  Startup(Startup&&) = default;

  /// How much of the run was finished before this process was started again, by the logs of its
  /// folder. Where each process has a folder of its own, they say nothing of the others.
  enum class Finished {
    nothing,      ///< all that is known
    own,          ///< this process has done all rounds: it resumes only for others that have not
    own_in_part,  ///< likewise, but it has left rounds out
    by_others     ///< all others have: they come back only if they are started again too
  };
  Finished finished() const { return finished_; }
  /// The process had finished, and has no state with which it could help another one.
  bool is_needless() const {
    return finished_ == Finished::own && states_.empty() && setup_->config.checkpoint.every == 0;
  }
  /// Leaves the files as they were.
  Status discard() {
    recorder_->discard();
    return {};
  }
  /// Ends a run that did not begin. `missing`: why. If no process came (join_timeout), that is no
  /// error of a process that had finished.
  Status nobody_came(const Error& missing) const;
  Recorder& recorder() { return *recorder_; }
  /// Null if the run makes no checkpoints.
  Checkpointer* checkpointer() { return checkpointer_.get(); }
  /// The rounds at which this process can start, ascending: those of which it has saved states, and
  /// 0, unless it had older checkpoints, whose work would be lost; and of these the offered ones.
  std::vector<gossip::Round> rounds() const;
  /// Restores the host's nodes, the log and the folder of checkpoints to `round`, which is one of
  /// rounds(). Before Host::start(); thread: any, one at a time.
  Status restore(gossip::Round round, Host& host);
  /// For a process that joins a network in round `round`: resumes the log there.
  Status join_at(gossip::Round round);
  /// If the run is resumed, sends a message that says at which round it starts.
  void announce(gossip::Round round) const;

 private:
  void look_for_finished();
  Status set_records_aside(gossip::Round round);

  Startup(const Setup& setup, StartupRequest request)
      : setup_(&setup), request_(std::move(request)) {}

  const Setup* setup_;
  StartupRequest request_;
  std::map<gossip::Round, SavedStates> states_;  ///< by round
  std::optional<std::vector<gossip::Round>> offered_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Checkpointer> checkpointer_;
  bool restored_ = false;
  Finished finished_ = Finished::nothing;
};

}  // namespace gossamer::peer
