// One peer of a run: its node, its membership, and the loop that takes it from round to round. The
// program, the simulator and the tests all drive peers through this class.
//
// The life of a peer:
//
//   start() ─┬─ first round known ──────────────┬─▶ rounds ──▶ drain ──▶ finished()
//            └─ joins: await_admission, donor ──┘    │ ▲ │
//                                                    │ │ └─ interrupted: rounds end early, then
//                                                    drain ▼ │
//                             takes no part: waits for the donor of its next round
//
// A server of a baseline is driven in the same way; "peer" stands for both here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gossip/algorithm.hpp"
#include "gossip/engine/participation.hpp"
#include "gossip/membership/membership.hpp"
#include "gossip/node/node.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

class PeerEngine;

/// What the owner of a peer does at the boundaries of its rounds. Outlives the engine. Thread: the
/// scheduler's. A task that is returned empty means that there is nothing to wait for.
class EngineHooks {
 public:
  virtual ~EngineHooks() = default;
  /// The peer has joined a running network: a donor gave it rows, and round() is its first round.
  /// False: the run has failed, and the peer does no round.
  virtual bool joined(PeerEngine&) { return true; }
  /// What happens to a peer that takes no part.
  enum class Part {
    waits,       ///< until round round(), for the rows of its donor
    begins,      ///< takes part from round round() on, with the rows of its donor
    lost_donor,  ///< it joins as a restarted peer does
    gives_up     ///< the run is interrupted, and it ends without rows
  };
  virtual void on_part(PeerEngine&, Part) {}
  /// Round round() begins. `reinitialised`: rows with a conserved sum were reinitialised for it.
  virtual void before_round(PeerEngine&, bool reinitialised) { (void)reinitialised; }
  /// Round round() is done. False: the run has failed, and the peer does no further round.
  virtual bool after_round(PeerEngine&) { return true; }
  /// The state after round() rounds is to be saved. Rows stay as they are until the task is done.
  virtual task<void> save(PeerEngine&) { return {}; }
  /// round() rounds are completed, counting those that were left out. Called for each number of
  /// rounds after which the peer counts (Participants::counts_after), after save(), and once before
  /// the first round.
  virtual task<void> completed(PeerEngine&) { return {}; }
  /// The peer has done its last round, and has sent all that others wait for.
  virtual void finished(PeerEngine&) {}
};

/// What survives a round beside the rows.
struct PeerState {
  Round round = 0;                      ///< completed rounds
  std::uint64_t steps = 0;              ///< local steps done
  std::vector<std::uint64_t> counters;  ///< Node::counters()
  /// Whether the peers that begin are those among which sums of rows were conserved.
  bool sums_are_whole = true;
  Round rounds_left_out = 0;  ///< Participation::rounds_left_out()
};

struct EngineOptions {
  int peers = 0;         ///< n; ids from n on are servers
  Round rounds = 0;      ///< of the run
  Round save_every = 0;  ///< rounds between two saved states; 0: no state is saved
};

/// Thread: the scheduler's, but for restore().
class PeerEngine {
 public:
  /// All references outlive the engine; the node's leased rows are in `memory`. Destroy the links
  /// and the exchange before the engine, and end() it before them.
  PeerEngine(Exchange& exchange, const Algorithm& algorithm, int id, NodeMemory memory,
             const EngineOptions& options, const Donors& donors, EngineHooks& hooks);
  PeerEngine(const PeerEngine&) = delete;
  PeerEngine& operator=(const PeerEngine&) = delete;

  int id() const { return node_.id(); }
  Node& node() { return node_; }

  // ---- before start()
  /// The peer survives the loss of others from now on.
  void tolerate_loss(Membership::Options plan);
  /// The first round is `round`: links may be lost and restored from then on.
  void begin_at(Round round);
  /// Counters, local steps and the round are those of `state`; the rows are written to
  /// state_rows() by the caller, before or after. From any one thread. Where mixes take rows of
  /// earlier rounds (Mixer::uses_earlier_rows()), the rows that account for messages under way are
  /// reinitialised at the start, because those messages are in no saved state; and so are rows with
  /// a conserved sum where others begin than had a share of it.
  void restore(const PeerState& state);
  /// The peer begins where the network is, with the rows of a neighbour: its links count as lost
  /// until on_link_restored().
  void join();

  /// Starts the loop of rounds at round(); of a peer that joins, as soon as it is admitted.
  void start();
  /// Destroys the coroutine of the loop, wherever it stands.
  void end() { driver_ = {}; }

  // ---- of an engine that tolerates loss
  bool tolerates_loss() const { return membership_.has_value(); }
  /// Receives what becomes of links to other peers.
  Membership& membership();

  /// What it gives and takes when participants change.
  Participation& participation() { return participation_; }

  // ---- interrupts
  /// The loop ends when `round` rounds are completed; the state is then saved and recorded.
  void stop_after(Round round);
  /// Whether the loop ends, or has ended, at round() because of stop_after().
  bool stops_here() const { return stop_after_ == round_; }

  /// Completed rounds; within a round, its number.
  Round round() const { return round_; }
  /// Rounds that have begun, up to the last one in which the peer takes part.
  Round begun() const { return begun_; }
  bool finished() const { return finished_; }

  /// What is saved beside rows.
  PeerState state();
  /// What is saved of rows: the algorithm's, and then the optimizer's. In device memory, and valid
  /// until the next round.
  std::vector<std::span<float>> state_rows();

 private:
  task<void> run();
  task<bool> join_network();
  task<bool> wait_to_take_part();
  void give_up();
  task<void> record();
  bool saves_here() const;

  const Algorithm& algorithm_;
  Exchange& exchange_;
  NodeMemory memory_;
  EngineOptions options_;
  EngineHooks& hooks_;
  Node node_;
  Participation participation_;
  std::optional<Membership> membership_;
  Round round_ = 0;
  Round begun_ = 0;       ///< the rounds before are done, or under way, or left out
  Round rows_after_ = 0;  ///< the rounds after which the node has its rows
  bool joins_ = false, finished_ = false;
  bool rejoins_ = false;  ///< it has lost its donor, and waits for the rows of any neighbour
  bool reinitialises_ =
      false;  ///< rows that account for messages under way, before the first round
  std::optional<Round> stop_after_;
  Round last_;  ///< the number of rounds after which the loop ends
  task<void> driver_;
};

}  // namespace gossamer::gossip
