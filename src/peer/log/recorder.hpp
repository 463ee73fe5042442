// What a run writes while it goes on: the log of its process, record by record (docs/LOG.md). Where
// the process hosts all nodes it also keeps, per logged round, the rows until the last one is
// there, for the figures of the network as a whole.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/node.hpp"
#include "peer/log/metrics.hpp"
#include "peer/log/resumed_log.hpp"
#include "peer/runtime/setup.hpp"
#include "peer/storage/files.hpp"
#include "peer/storage/safetensors.hpp"

namespace gossamer::peer {

/// One node after one logged round.
struct RoundMetrics {
  gossip::Round round = 0;
  int peer = 0;
  double seconds = 0;
  bool trained = false;  ///< it has taken gradients since its last record
  double train_loss = 0;
  gossip::Node::Evaluation test;  ///< NaN where nothing is trained
  gossip::Traffic traffic;
  gossip::NodeTimes times;
  double mix_seconds = 0;
  gossip::Staleness staleness;  ///< of pushes to a server since its last record
  std::span<const float> row;   ///< the parameters, in device memory; read before the call returns
};

/// A change in who is there, as a hosted peer knows it.
struct MembershipMetrics {
  gossip::Round round = 0;  ///< lost, reach: the one under way; back, joined: the first with it
  int peer = 0;
  double seconds = 0;
  std::string event;      ///< lost | back | reach | joined
  std::optional<int> of;  ///< the other end of the link: of lost and back
  std::optional<int>
      within_reach;  ///< peers that links lead to, this one among them: of reach and joined
};

/// Where W was not realised as planned, in a round of a hosted peer.
struct DeviationMetrics {
  gossip::Round round = 0;  ///< in which that became known: those of the list, or later
  int peer = 0;
  std::vector<gossip::Deviation> deviations;  ///< some
};

/// The end of a process's run.
struct EndMetrics {
  std::string reason = "finished";  ///< finished | interrupted | lost_peer | diverged | failed
  std::string message;
  gossip::Round rounds = 0;  ///< completed by all hosted nodes
  double seconds = 0;        ///< of the log's clock
  double wall_seconds = 0;
  std::uint64_t node_steps = 0;
  std::uint64_t bytes_sent = 0;
};

/// Whether `round` is one of those that log.every asks for.
bool is_logged(const Config& config, gossip::Round round);

/// Thread: the scheduler's.
class Recorder {
 public:
  /// Makes the run folder with the resolved configuration and the log's header. A folder that holds
  /// a run already is an error. `clock`: "virtual" or "real".
  static Result<std::unique_ptr<Recorder>> create(const Setup& setup, std::vector<int> hosted,
                                                  const std::filesystem::path& folder,
                                                  const std::string& clock);

  /// The same in a folder that may hold a log of this very run, which goes on once continue_from()
  /// has said from where; until then it stays as it is. Errors (data): the log is damaged, or of
  /// another run or other nodes.
  static Result<std::unique_ptr<Recorder>> reopen(const Setup& setup, std::vector<int> hosted,
                                                  const std::filesystem::path& folder,
                                                  const std::string& clock);
  /// The log as it was when every node had done `round` rounds and none had a record of that round:
  /// what came later goes. Before any record.
  Status continue_from(gossip::Round round);

  /// One node's record, and the network's once all have theirs. Errors (data) name the file.
  Status round(const RoundMetrics& figures);
  /// That a link of a hosted peer was lost or is back, or that it joined the network that ran, and
  /// who is within its reach. Errors (data) name the file.
  Status membership(const MembershipMetrics& figures);
  /// That a mix was not as W had it: as soon as the round is over, so that nothing of it grows in
  /// memory. Of a peer that left out many rounds, in several records. Errors (data) name the file.
  Status deviations(const DeviationMetrics& figures);
  /// The final parameters (`rows` in host memory), then the log's last record. Errors (data) name
  /// the file.
  Status end(const EndMetrics& figures, const RowViews& rows);
  /// Takes the files away again: the run has not begun, and may be tried again in the same folder.
  /// A log that was there before stays.
  void discard();

  const std::filesystem::path& log_path() const { return log_path_; }
  /// Last train loss in the records of each hosted node that trains; NaN where there was none.
  const std::vector<double>& train_losses() const { return train_losses_; }
  /// Called after each record of the network or, where not all nodes are here, of a node: for
  /// progress.
  std::function<void(const Json&)> on_progress = [](const Json&) {};

 private:
  struct Snapshot {
    std::vector<std::vector<float>> rows;
    std::size_t arrived = 0;
  };

  Recorder(const Setup& setup, std::vector<int> hosted, std::filesystem::path folder);
  /// The header of a new log.
  Json header(const std::string& clock) const;
  /// Makes the log and writes its header.
  Status begin(const std::string& clock);

  /// Hosted nodes that train; servers come after them.
  std::size_t workers() const;
  bool hosts_all() const { return static_cast<int>(workers()) == setup_.workers(); }
  /// A record of a run under way; an error says what becomes of the folder.
  Status write(const Json& record);
  Status network_record(gossip::Round round, const RowViews& rows);

  const Setup& setup_;
  std::vector<int> hosted_;
  std::filesystem::path folder_;
  std::filesystem::path log_path_;
  std::optional<RecordFile> log_;
  std::optional<ResumedLog> before_;  ///< the log that is to go on, until it does
  bool goes_on_ = false;              ///< the log was there before
  std::map<gossip::Round, Snapshot> snapshots_;
  std::vector<double> train_losses_;
};

/// EndMetrics::reason for a run that ended early.
std::string reason_of(const Error& error);

/// The topology report as JSON.
Json report_json(const topology::TopologyReport& report);
/// The edges of the union over the period, i < j where symmetric; null where they are more than
/// kMostEdges.
Json edge_list(const topology::MixingSchedule& schedule, const topology::TopologyReport& report);
inline constexpr std::int64_t kMostEdges = 100000;
/// A parameter value as JSON.
Json to_json(const ParameterValue& value);
Json config_json(const Config& config);
/// NaN and infinities as null.
Json number(double value);

/// The name of a node's tensors: "peer<i>" or "server<i>".
std::string tensor_prefix(const Setup& setup, int node);
/// Parameters as tensors "peer<i>.<block>" of a safetensors file.
std::vector<Tensor> parameter_tensors(const Setup& setup, const std::vector<int>& peers,
                                      const RowViews& rows);

}  // namespace gossamer::peer
