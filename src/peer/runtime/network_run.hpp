// `gossamer peer`: runs the peers of this process as part of a network of processes, in real time.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "net/network.hpp"
#include "peer/checkpoint/resume.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/compute_thread.hpp"
#include "peer/runtime/host.hpp"
#include "peer/runtime/members_watch.hpp"
#include "peer/runtime/staging.hpp"
#include "peer/runtime/start_agreement.hpp"
#include "peer/runtime/startup.hpp"
#include "peer/setup/setup.hpp"
#include "peer/watch/figure_relay.hpp"
#include "peer/watch/run_page.hpp"

namespace gossamer::peer {

struct NetworkRunRequest {
  std::vector<int> hosted;  ///< ids of the peers of this process, ascending
  /// Where it listens already; null: where its configuration says (net/listening.hpp).
  std::shared_ptr<const net::Listening> listening = {};
  std::filesystem::path folder;
  ResumeChoice resume = {};
  StartupRequest::Offered offered = {};
  /// Called before the first round. `joins`: rounds have begun, and the peers join with the rows of
  /// others.
  std::function<void(bool joins)> on_start = [](bool) {};
  /// Lines for people.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  std::function<void(const Json&)> on_progress = [](const Json&) {};
  /// What messages of the network call the peer of an id.
  std::function<std::string(int)> name_of = net::peer_name;
  /// In place of signals, if a stop is possible: a request to stop makes this process leave the
  /// network as if it had been lost, so that the others continue if they can.
  std::stop_token stop = {};
  /// A request makes the peer of this process leave an open run for good, as SIGUSR1 does.
  std::stop_token leave = {};
  /// Called when the process has left the network, with the error that ended the run early and the
  /// final parameters of its models in host memory, valid until the call returns. Not called for a
  /// run that did not begin.
  std::function<void(const std::optional<Error>&, const RowViews&)> on_end =
      [](const std::optional<Error>&, const RowViews&) {};
};

/// Joins the network, runs to the end, and leaves. The error says why the run did not start or
/// ended early. If the network was whole, the log and the parameters as they stand are written even
/// so; if it never was, nothing is left and the run may be tried again.
Status run_networked(const Setup& setup, const NetworkRunRequest& request);

/// What shows the run; outlives it.
struct RunWatch {
  LinkTraffic& traffic;
  RunPage* page = nullptr;  ///< null: the process has none
};

/// One run of this process as part of a network: its scheduler, its host, its network, and the
/// thread that computes, and the phases that take them from joining to the final record. Thread:
/// the one that calls it; it runs the scheduler.
class NetworkRun {
 public:
  /// Setup and request outlive the run. Throws std::bad_alloc.
  NetworkRun(const Setup& setup, const NetworkRunRequest& request, Startup startup,
             std::optional<net::Credentials> credentials, RunWatch watch);
  NetworkRun(const NetworkRun&) = delete;
  NetworkRun& operator=(const NetworkRun&) = delete;

  /// run_networked(), once.
  Status run();

 private:
  using Pairs = std::vector<std::pair<int, int>>;
  enum class Start { at_agreed_round, by_joining };
  /// Whether its peers train, or join a network that does; and if leave_for_good() came before.
  /// `over`: its run has ended, and it relays for others.
  enum class Phase { before, before_and_leaves, begun, over };

  HostRequest host_request();
  Staging::Hooks staging_hooks();
  Status make_network();
  net::NetworkSetup network_setup();
  void connect_links();

  Result<Start> choose_start();
  Status adopt_shards();
  Result<Start> start_at(const StartRoundAgreement::Outcome& agreed);
  Status restore(gossip::Round round);
  Status compute(std::function<Status()> work);
  void train(Start start);
  Status finish(bool began);

  void fail(Error error);
  Error computing_failed(std::string_view why) const;
  void on_signal(int signal);
  void leave_for_good();
  void withdraw(Error error);
  void relay_for_others(double seconds);
  Pairs connected(Pairs pairs) const;
  bool was_never_whole() const;

  const Setup& setup_;
  const NetworkRunRequest& request_;
  Startup startup_;
  std::optional<net::Credentials> credentials_;  ///< until the network is made
  RunWatch watch_;
  Pairs pairs_;  ///< (hosted node, node of another process) that exchange rows
  SharedMemory* shared_memory_ = nullptr;  ///< of the rows, where neighbours may read it
  bool withdrawn_ = false;                 ///< the others continue without this process
  Phase phase_ = Phase::before;

  // Destroyed in reverse order: the thread first, then the network, then the rows that both read,
  // then the buffers between the two.
  net::RealScheduler scheduler_;
  std::unique_ptr<Staging> staging_;  ///< null if the network can read the rows
  std::unique_ptr<Host> host_;
  std::unique_ptr<net::Network> network_;
  std::optional<FigureRelay> figures_;           ///< none: figures are not shared
  std::unique_ptr<MembersWatch> members_watch_;  ///< null without net.members
  std::unique_ptr<ComputeThread> thread_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_, on_leave_;
};

}  // namespace gossamer::peer
