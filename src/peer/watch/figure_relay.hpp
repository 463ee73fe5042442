// Connects the figures of a process to its network and to its page: records go from the log to
// neighbours, and those of other processes and what is known of links to the page.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/io/real_scheduler.hpp"
#include "net/network.hpp"
#include "peer/log/recorder.hpp"
#include "peer/setup/setup.hpp"
#include "peer/watch/figure_exchange.hpp"
#include "peer/watch/link_traffic.hpp"
#include "peer/watch/run_view.hpp"

namespace gossamer::peer {

/// Whether the processes of a run exchange figures: as net.share_figures says, and under "auto"
/// unless gradients are private or each peer has its own data.
bool shares_figures(const Setup& setup);

/// Thread: the scheduler's.
class FigureRelay {
 public:
  /// An event is reported to other processes for so long.
  static constexpr gossip::Time kEventLife = std::chrono::minutes(5);

  struct Parts {
    net::RealScheduler& scheduler;
    net::Network& network;
    Recorder& recorder;
    const LinkTraffic& traffic;
    RunView* view = nullptr;  ///< of the page of this process; null: it has none
    bool shares = false;      ///< shares_figures()
    /// (node, neighbour): the links that nodes of other processes have lost.
    std::function<std::set<std::pair<int, int>>()> lost_elsewhere;
    std::vector<int> hosted;                 ///< nodes of this process, ascending
    std::vector<std::pair<int, int>> links;  ///< (node here, node of another process)
  };
  /// Receives what the recorder writes from now on, in place of the page, which then shows rounds
  /// of all processes alike, if figures are shared. What `parts` refer to outlives the relay.
  FigureRelay(const Setup& setup, Parts parts);
  ~FigureRelay();
  FigureRelay(const FigureRelay&) = delete;
  FigureRelay& operator=(const FigureRelay&) = delete;

  /// NetworkSetup::on_figures.
  Status receive(int here, int there, const net::Figures& figures);

 private:
  /// The events of a hosted node that are reported.
  struct Events {
    std::uint64_t last = 0;                               ///< NodeReport::last_event
    std::deque<std::pair<gossip::Time, Json>> kept = {};  ///< when they came, and records
  };

  void take(const Json& record);
  void add_event(int node, const Json& record);
  void turn();
  void report();
  void take_report(int node, NodeReport report);
  void show_links();

  Parts parts_;
  std::optional<FigureExchange> exchange_;  ///< none: figures are not shared
  std::set<int> joined_;                    ///< hosted nodes that have joined a running network
  std::map<int, Events> events_;            ///< by hosted node
  std::map<int, NodeReport> reports_;       ///< by node, of any process: the newest one
  // As shown: links that other nodes have lost, and those of which one end suspects the other.
  std::set<std::pair<int, int>> lost_, suspected_;
  gossip::Scheduler::TimerId timer_;
};

}  // namespace gossamer::peer
