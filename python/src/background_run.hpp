// One run on a thread of its own: a simulation of all peers, or this process's peers of a network.
// The program's thread serves its requests. The memory of the rows lives until the program has
// closed the run and no view of a row is left.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "handoff.hpp"
#include "peer/checkpoint/resume.hpp"
#include "peer/runtime/network_ids.hpp"
#include "peer/runtime/progress.hpp"
#include "peer/runtime/run.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::python {

struct BackgroundRunRequest {
  std::string config;  ///< path of the file
  std::vector<std::string> overrides;
  peer::NetworkIds ids;  ///< of the peers of this process; none: a simulation of all nodes
  std::string resume = "none";
  peer::WorkloadSpec spec;
  peer::Shards shards;          ///< of each peer; 0 samples: of another process; none: not known
  std::size_t features = 0;     ///< of which the shards have moments
  bool shows_progress = false;  ///< on stderr, as the program does
  std::string initial_hash;  ///< of the initial parameters, which are compared if run.init is same
};

/// Makes the setup of a run, whose task gets its requests by `handoff`: all of start() but the run.
/// Errors as of load_config() and make_setup().
Result<peer::Setup> make_task_setup(BackgroundRunRequest request, Handoff& handoff);

/// Thread: the program's, except for what run() does.
class BackgroundRun {
 public:
  /// Checks the configuration and starts the run. Errors as of make_task_setup().
  static Result<std::shared_ptr<BackgroundRun>> start(BackgroundRunRequest request);

  Handoff& handoff() { return handoff_; }
  const peer::Config& config() const { return setup_->config; }
  const std::vector<int>& hosted() const { return ids_.ids; }
  std::string folder() const { return peer::run_folder(config()).string(); }

  /// Why the run ended early; known once the handoff has ended.
  std::optional<Error> error();
  /// Final parameters by hosted peer, once the handoff has ended; empty if the run did not begin.
  peer::RowViews final_rows();
  /// The newest record of the log for progress; null before the first.
  peer::Json last_record();
  /// Lines for people since the last call.
  std::vector<std::string> take_messages();

  /// Asks the run to end: a simulation after its round, a peer as NetworkRunRequest::stop does. The
  /// run has requests until then.
  void stop() { stop_.request_stop(); }
  /// The peer leaves an open run for good: it goes on until the round from which on the others know
  /// that it takes no part.
  void leave() { leave_.request_stop(); }
  /// Ends the run as NetworkRunRequest::stop does, and waits until the process has left the network
  /// and its files are written.
  void close();

  // ---- views of rows; any thread
  void add_view();
  void remove_view();

 private:
  explicit BackgroundRun(const BackgroundRunRequest& request);
  void run();
  std::optional<Error> run_simulation();
  std::optional<Error> run_networked();
  void on_end(const std::optional<Error>& error, const peer::RowViews& rows);
  void add_message(const std::string& line);
  void show(const peer::Json& record);

  Handoff handoff_;
  std::optional<peer::Setup> setup_;
  peer::NetworkIds ids_;
  peer::ResumeChoice resume_;
  std::optional<peer::Progress> progress_;  ///< of the run's thread
  std::stop_source stop_, leave_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  peer::RowViews final_;
  peer::Json record_;
  std::vector<std::string> messages_;
  std::size_t views_ = 0;
  bool left_ = false;      ///< the run is over; its memory is still there
  bool closed_ = false;    ///< the program needs the memory no more, but for its views
  bool finished_ = false;  ///< nothing of the run is left
};

}  // namespace gossamer::python
