// How a process's run begins, in one process or in a network: what it can begin with, the log that
// it writes or goes on with, and, once its round is decided, everything put back to where it was
// then.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpointer.hpp"
#include "peer/checkpoint/resume.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/host.hpp"

namespace gossamer::peer {

struct StartupRequest {
  std::vector<int> hosted;       ///< nodes of this process, ascending
  std::filesystem::path folder;  ///< of the run
  ResumeChoice resume;
  Host::Clock clock = Host::Clock::virtual_time;
  std::function<void(const std::string&)> message;  ///< lines for people
};

class Startup {
 public:
  /// Reads, and writes no more than a new log. Errors as of states_to_begin_with and Recorder.
  static Result<Startup> prepare(const Setup& setup, StartupRequest request);

  Recorder& recorder() { return *recorder_; }
  /// Null where the run makes no checkpoints.
  Checkpointer* checkpointer() { return checkpointer_.get(); }
  /// The rounds that this process can begin at, ascending: those of which it has the states; and 0,
  /// unless there were older checkpoints, whose work would be lost.
  std::vector<gossip::Round> rounds() const;
  /// Begins at `round`, one of rounds(): the host's nodes are where they were, the log and the
  /// checkpoints end there. Before Host::start(), on any one thread.
  Status settle(gossip::Round round, Host& host);
  /// Of a process that joins a network which is in round `round`: the log goes on there.
  Status join(gossip::Round round);
  /// Says where it begins, where that was asked for.
  void announce(gossip::Round round) const;

 private:
  Startup(const Setup& setup, StartupRequest request)
      : setup_(&setup), request_(std::move(request)) {}

  const Setup* setup_;
  StartupRequest request_;
  std::map<gossip::Round, SavedStates> states_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace gossamer::peer
