// What people watch of a run: the newest figures of each node, curves by round, links and events.
// A view is folded from records of logs (docs/LOG.md), of a run that is under way or of a finished
// one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "peer/storage/json.hpp"
#include "peer/watch/event_history.hpp"
#include "peer/watch/figures.hpp"
#include "peer/watch/link_history.hpp"
#include "peer/watch/node_report.hpp"
#include "peer/watch/round_history.hpp"
#include "topology/participants/participants.hpp"

namespace gossamer::peer {

/// What a view knows, or what changed in it after a version.
struct ViewSnapshot {
  std::uint64_t version = 0;
  /// The header of the first log, of which the fields that the page reads were checked; null unless
  /// everything was asked for and a log has begun.
  std::shared_ptr<const Json> run;
  std::shared_ptr<const Json> predicted;      ///< with `run`; its value may be null
  std::optional<std::vector<int>> served_by;  ///< as RunViewOptions, as the next one
  bool hears_others = false;
  std::vector<std::pair<int, NodeFigures>> nodes;
  std::vector<RoundFigures> rounds;
  std::vector<std::pair<std::pair<int, int>, LinkFigures>> links;  ///< (lower, higher) end
  std::vector<EventLine> events;
  Json end;  ///< the end record of the process that ended last, once all have ended; else null
  std::optional<ProcessFigures> process;  ///< none: not of a process in a network
  std::optional<std::vector<std::uint64_t>> kept_rounds;
};

struct RunViewOptions {
  /// The nodes of the process whose records are added; none: those of all processes are.
  std::optional<std::vector<int>> served_by = {};
  /// Of a process that does not host all nodes: newest records of others come from neighbours.
  bool hears_others = false;
  Json predicted = {};  ///< the field of that name of /state, or null
  /// Clocks of several machines do not agree.
  EventHistory::Order order() const {
    return hears_others ? EventHistory::Order::of_arrival : EventHistory::Order::of_time;
  }
};

/// Thread: any.
class RunView {
 public:
  explicit RunView(RunViewOptions options = {});

  /// Forgets all records: they are added anew.
  void reset();
  /// Adds the header of a process's log, which was checked, before the log's other records. Error
  /// (data): it does not fit the headers before it, and nothing changes; the sentence goes on after
  /// the name of the log.
  Status begin(const Json& header);
  /// Adds any other record, which was checked, of the process that hosts `hosted`.
  void add(const Json& record, const std::vector<int>& hosted);
  /// Node `end` of another process has lost its link to `neighbour`, or it is restored.
  void set_other_link(int end, int neighbour, bool lost);
  /// What a peer has sent over its links so far (LinkTraffic::sent_by).
  void set_traffic(int peer, const Json& sent);
  /// What another process says of a node, and what it said before: its events that are new are
  /// shown. The process may be hostile.
  void add_report(int node, const NodeReport& before, const NodeReport& report);
  /// One of two neighbours suspects that the other is lost, or does no longer. Without effect for
  /// peers that have no link; where the edges are not known, for links of other processes.
  void set_suspected(int node, int neighbour, bool suspected);
  void set_process(const ProcessFigures& figures);

  /// What changed after `version`; everything if it is 0, or of another view.
  ViewSnapshot after(std::uint64_t version) const;
  /// A round as it was; nothing if it is not kept. Links that nodes of other processes lost, as
  /// set_other_link() says, are not known by round.
  std::optional<ReplayedRound> round(std::uint64_t round) const;

 private:
  /// Returns what take_record() does.
  std::uint64_t add_node(const Json& record, int node);
  void add_to_round(const Json& record, int node);
  void add_network(const Json& record);
  void add_membership(const Json& record);
  void set_participants(const Json& record);
  void update_absences(std::uint64_t round);
  void add_end(const Json& record, const std::vector<int>& hosted);
  int due_in(std::uint64_t round) const;
  void add_sketch(RoundHistory::Round& kept, const std::string& text, int peer);
  void set_distances(RoundHistory::Round& kept, const std::vector<double>& distances);
  bool is_link(int a, int b) const;
  void set_link(int from, int to, bool lost, const std::string& cause);
  void update_state(int node);
  RoundHistory::Round* kept_round(std::uint64_t round);

  const RunViewOptions options_;
  const std::shared_ptr<const Json> predicted_;
  mutable std::mutex mutex_;
  /// The first is the time at which the view is made, in microseconds: versions of an earlier view,
  /// of a process that was started again, are lower.
  std::uint64_t version_;
  std::uint64_t began_;  ///< version of the last reset
  std::shared_ptr<const Json> run_;
  int peers_ = 0;
  std::vector<int> honest_;
  struct {
    topology::Participants participants{1};
    std::uint64_t round = 0;  ///< the newest of all nodes
  } present_;
  std::vector<NodeFigures> nodes_;  ///< peers, then servers
  RoundHistory rounds_;
  std::uint64_t rounds_changed_ = 0;  ///< version of the last change of which rounds are kept
  LinkHistory links_;
  EventHistory events_;
  std::optional<ProcessFigures> process_;
  std::set<int> running_;  ///< nodes of processes whose log has no end record
};

}  // namespace gossamer::peer
