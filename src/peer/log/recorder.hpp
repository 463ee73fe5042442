// Writes the log of a process while the run is under way, record by record (docs/LOG.md). If the
// process hosts all nodes, it also buffers the rows of each logged round until the last node has
// recorded the round, and then writes the metrics of the whole network.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/node/node.hpp"
#include "net/startup/refused_connections.hpp"
#include "net/startup/route.hpp"
#include "peer/log/metrics.hpp"
#include "peer/log/resumed_log.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// The metrics of a node after a logged round.
struct RoundMetrics {
  gossip::Round round = 0;
  int peer = 0;
  double seconds = 0;
  bool trained = false;  ///< whether it computed gradients since its last record
  double train_loss = 0;
  gossip::Node::Evaluation test;  ///< NaN if nothing is trained
  gossip::ByteCounters traffic;
  gossip::NodeTimes times;
  double mix_seconds = 0;
  gossip::Staleness staleness;  ///< of pushes to a server since its last record
  std::span<const float> row;   ///< parameters in device memory; read before the call returns
};

/// A change in the links or the reachable peers of a hosted peer.
struct MembershipMetrics {
  gossip::Round round =
      0;  ///< link_lost, reachable: the current one; else the first with the change
  int peer = 0;
  double seconds = 0;
  /// link_lost | link_restored | link_routed | reachable | joined | participants
  std::string event;
  std::optional<int> neighbour;        ///< link_…: the other end of the link
  std::optional<int> reachable_peers;  ///< reachable, joined: their number, this peer included
  std::string cause = {};              ///< link_lost: why
  std::string participants = {};  ///< participants: the ids of those that take part from then on
  Json topology = {};             ///< participants: participants_topology()
  std::optional<net::Route> route = {};  ///< link_routed
};

/// The deviations from W in the mix of a hosted peer.
struct DeviationMetrics {
  gossip::Round round = 0;  ///< the round in which they became known
  int peer = 0;
  std::vector<gossip::Deviation> deviations;  ///< not empty
};

/// EndMetrics::reason of a peer that left an open run for good.
inline constexpr const char* kLeft = "left";

/// The end of a process's run.
struct EndMetrics {
  /// finished | left | interrupted | lost_peer | diverged | failed
  std::string reason = "finished";
  std::string message;
  gossip::Round rounds = 0;  ///< completed by all hosted nodes
  double seconds = 0;        ///< by the clock of the log
  double wall_seconds = 0;
  std::uint64_t node_steps = 0;
  std::uint64_t bytes_sent = 0;
  std::optional<net::RefusedConnections> refused = {};  ///< none: the run had no connections
  /// (node here, node of another process): net::LinkReport::lends. None: as above.
  std::optional<std::vector<std::pair<int, int>>> lending_links = {};
};

/// The number of which the logged rounds are multiples, but for the last one.
std::uint64_t logged_multiple(const LogOptions& log);
/// Whether log.every or log.last asks for records of `round`.
bool is_logged(const Config& config, gossip::Round round);

/// Thread: the scheduler's.
class Recorder {
 public:
  /// Creates the run folder, with the resolved configuration and the header of the log. Error
  /// (data): the folder already contains a run. `clock`: "virtual" or "real".
  static Result<std::unique_ptr<Recorder>> create(const Setup& setup, std::vector<int> hosted,
                                                  const std::filesystem::path& folder,
                                                  const std::string& clock);

  /// As create(), but the folder may contain a log of the same run. That log is unchanged until
  /// resume_at(). Errors (data): the log is damaged, or belongs to another run or other nodes.
  static Result<std::unique_ptr<Recorder>> reopen(const Setup& setup, std::vector<int> hosted,
                                                  const std::filesystem::path& folder,
                                                  const std::string& clock);
  /// Drops the records of `round` and later rounds from the reopened log, and appends to it from
  /// now on. Called before any record is written; does nothing if the log is new. A node that then
  /// begins in an earlier round, because it joined another part of the network, is not recorded
  /// before `round`: no record is repeated.
  /// `ran_before`: other processes have run to a later round than 0, and perhaps this one too.
  Status resume_at(gossip::Round round, bool ran_before);
  /// Before resume_at(), where other processes chose the round: the records that it will drop are
  /// appended to aside_path(). Returns how many there are.
  Result<std::size_t> set_records_aside(gossip::Round round) const;
  std::filesystem::path account_path() const {
    return folder_ / ("privacy-" + std::to_string(hosted_.front()) + ".json");
  }
  std::filesystem::path aside_path() const { return log_path_.string() + ".aside"; }

  /// Writes the record of a node, and that of the network after the last node's. Errors (data) name
  /// the file, here and below.
  Status round(const RoundMetrics& metrics);
  /// Writes that a link was lost or restored, that the number of reachable peers changed, that a
  /// peer joined the running network, or that other peers take part.
  Status membership(const MembershipMetrics& metrics);
  /// Writes the deviations of a mix, in several records if there are many. Called after each round
  /// with deviations, so that they do not accumulate in memory.
  Status deviations(const DeviationMetrics& metrics);
  /// Writes the final parameters (`rows`, in host memory), then the last record of the log.
  Status end(const EndMetrics& metrics, const RowViews& rows);
  /// Removes the files of a run that did not start, so that it can be tried again in the same
  /// folder. A log that existed before is kept.
  void discard();

  /// Returns after the records so far are on the disk. Thread: any, while the log is written.
  Status sync() const { return log_ ? log_->sync() : Status(); }
  /// The header of the log as this process writes it.
  const Json& header() const { return header_; }
  /// Last recorded train loss of each hosted worker; NaN if there is none.
  const std::vector<double>& train_losses() const { return train_losses_; }
  /// ε that each hosted worker has spent; empty: gradients are not private.
  std::vector<double> epsilons() const;
  /// Called after each record of the network, or of a node if the process does not host all nodes.
  std::function<void(const Json&)> on_progress = [](const Json&) {};
  /// Called after each record that was written, but for the header.
  std::function<void(const Json&)> on_record = [](const Json&) {};

 private:
  struct Snapshot {
    std::vector<std::vector<float>> rows;
    std::size_t arrived = 0, due = 0;
  };

  Recorder(const Setup& setup, std::vector<int> hosted, std::filesystem::path folder);
  /// The header of a new log.
  Json header_of(const std::string& clock) const;
  /// Creates the log and writes its header.
  Status start_log(const std::string& clock);

  /// Number of hosted nodes that train. In hosted_, the servers follow them.
  std::size_t workers() const;
  bool hosts_all() const { return static_cast<int>(workers()) == setup_.workers(); }
  bool records_sketch() const;
  /// Writes a record; an error says what the user should do with the folder.
  Status write(const Json& record);
  Status network_record(gossip::Round round, const Snapshot& snapshot);
  void add_privacy(const RoundMetrics& metrics, Json& record) const;
  /// The account of privacy that was spent, which is kept beside the log.
  Status open_account();

  const Setup& setup_;
  std::vector<int> hosted_;
  std::filesystem::path folder_;
  std::filesystem::path log_path_;
  Json header_;
  std::optional<RecordFile> log_;
  std::optional<ResumedLog> resumed_log_;  ///< the existing log, until resume_at()
  bool appends_ = false;                   ///< whether the log existed before
  gossip::Round first_round_ = 0;          ///< the existing log has the records of earlier rounds
  std::map<gossip::Round, Snapshot> snapshots_;
  std::vector<double> train_losses_;
};

/// EndMetrics::reason of a run that ended with `error`.
std::string end_reason(const Error& error);

}  // namespace gossamer::peer
