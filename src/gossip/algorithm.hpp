// What an algorithm is: the order of local steps and exchanges in one round. One file of
// gossip/algorithms/ is one kind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "gossip/codec.hpp"
#include "gossip/links/link.hpp"
#include "gossip/task.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

class Node;

/// A row that an algorithm works on. Row 0 is x, the parameters. What survives a round is declared
/// here and nowhere else: a round is one coroutine, so nothing else can survive it, and resuming,
/// rejoining and restarting need no help from it.
struct RowSpec {
  enum class Initial { zero, parameters };
  /// What a peer that comes back does with the row: take a neighbour's value, or begin again. The
  /// others begin `restart` again too where a sum over the peers was lost with a link; a
  /// `restart_alone` they keep.
  enum class Rejoin { from_neighbour, restart, restart_alone };

  std::string name;
  bool mixed = false;    ///< node.mix is called on it: it gets a back half
  bool survives = true;  ///< false: scratch within a round
  Initial initial = Initial::zero;
  bool conserved_sum = false;  ///< its sum over the peers is kept (a tracker, a correction)
  Rejoin rejoin = Rejoin::from_neighbour;
  bool is_transferred() const { return survives && rejoin == Rejoin::from_neighbour; }
  std::size_t extra = 0;  ///< values after the d ones (push-sum's weight): they travel with the row
  float extra_start = 1;  ///< what those are at first
  int parts = 1;          ///< d values, so many times: a row that is kept in several float32
  std::size_t length(std::size_t d) const { return static_cast<std::size_t>(parts) * d + extra; }
};

/// What an algorithm asks of the run that carries it.
struct AlgorithmNeeds {
  bool mixing_matrix = true;  ///< it mixes; else the topology only says who is there
  bool only_columns =
      false;  ///< a W whose columns sum to 1 is enough: out_degree weights on any graph
  bool fixed_matrix = false;  ///< W must be symmetric and the same in every round,
  double above = -1;          ///< and its eigenvalues must lie above this
  bool synchronous = false;   ///< it is what it is only with every round's own rows: policy sync
  bool linear_steps = false;  ///< it rests on optimizer steps that are linear in the gradient and
                              ///< the same at any time, as Adam's are not
  bool trainer = true;        ///< it takes gradients: needs model and data
  bool tolerates_peer_loss =
      false;  ///< when a peer is lost the others go on: it mixes, and does nothing else with others
  bool equal_start = false;  ///< it takes it that all nodes start from the same parameters
  int servers = 0;  ///< nodes n … n+servers−1 are servers: no shard, no place in W or in the
                    ///< network's figures
  bool bounded_lead = true;  ///< false: a node may be any number of rounds ahead of a partner, as
                             ///< one whose turn is seldom
  bool one_node = false;     ///< all shards feed a single node, in one process (`centralized`)
  bool rounds_end_together = true;  ///< false: nobody waits for anybody, and how long a round takes
                                    ///< is each node's own affair
  Fidelity codec = Fidelity::exact;  ///< the least faithful codec it is sound with; exact: its rows
                                     ///< travel as they are
  std::size_t row_length =
      0;  ///< d, where no model gives it; rows then start as standard normal numbers
};

/// What a node sends and receives in one exchange of a round, in values.
struct NodeLoad {
  std::uint64_t sent = 0, received = 0;
};

/// One exchange of a round, in values.
struct ExchangeLoad {
  std::uint64_t message = 0;  ///< the longest over one link
  std::function<NodeLoad(int node)>
      of;  ///< peers, and the servers after them; a peer that may sit the round out does not
  bool beside_training = false;  ///< under way while gradients are computed
  /// Where nodes are answered one by one, and those answered first go on while others still wait:
  /// what the last of them sends after everything else, which is part of `of` too. Else 0.
  std::uint64_t last = 0;
};

/// One algorithm with its parameters read. Immutable; shared by all nodes of a process.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  /// The rows of every node; row 0 is x.
  virtual std::vector<RowSpec> rows(const topology::MixingSchedule& schedule) const = 0;
  virtual AlgorithmNeeds needs() const = 0;
  /// Local steps of one node in a round; where epochs_per_round() is not 0, so many passes over its
  /// own shard instead.
  virtual int steps_per_round() const = 0;
  virtual int epochs_per_round() const { return 0; }
  /// Round t of `node`. Locals live for this round only.
  virtual task<void> round(Node& node, Round t) const = 0;
  /// Whom node i, a peer or a server, sends to or hears from in the whole run, ascending. Links are
  /// made for these.
  virtual std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const = 0;
  /// The exchanges of a round that mixes with w, one after the other, rows being d values long:
  /// every mixed row in turn to all who hear it, unless said otherwise. Bytes and how long a round
  /// takes are predicted from it. w outlives what is returned.
  virtual std::vector<ExchangeLoad> loads(const topology::MixingSchedule& schedule,
                                          const topology::MixingMatrix& w, std::size_t d) const;
  /// Whether row k is mixed while gradients are computed.
  virtual bool mixes_beside_training(int k) const {
    (void)k;
    return false;
  }
  /// How many whole numbers node i keeps from round to round beside its rows (Node::counters); zero
  /// at the start.
  virtual std::size_t counters(int i, const topology::MixingSchedule& schedule) const {
    (void)i, (void)schedule;
    return 0;
  }
  /// After the node's last round: what it owes to others before it leaves them.
  virtual task<void> drain(Node& node) const;
  /// Makes node i's counters, as they were when it had done the first t rounds, fit nodes that all
  /// begin round t now. Those that count nothing but its own rounds do already.
  virtual void resume(int i, Round t, std::span<std::uint64_t> counters,
                      const topology::MixingSchedule& schedule) const {
    (void)i, (void)t, (void)counters, (void)schedule;
  }
  /// Whether it may run on this topology: an error (invalid) says why not and what would fit.
  virtual Status check(const topology::MixingSchedule& schedule) const {
    (void)schedule;
    return {};
  }
};

struct AlgorithmKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;
  std::function<Result<std::unique_ptr<Algorithm>>(const ParameterValues&)> make;
};

/// AlgorithmKind::make of an algorithm without parameters.
template <class Kind>
Result<std::unique_ptr<Algorithm>> make_plain(const ParameterValues& values) {
  GOSSAMER_TRY_STATUS(check_values("algorithm", {}, values));
  return std::unique_ptr<Algorithm>(std::make_unique<Kind>());
}

/// AlgorithmKind::make of an algorithm that is built from its options. `parameters` lives as long
/// as the program.
template <class Kind, class Options>
auto make_with(const ParameterSet<Options>& parameters) {
  return [&parameters](const ParameterValues& values) -> Result<std::unique_ptr<Algorithm>> {
    GOSSAMER_TRY(const Options options, parameters.read("algorithm", values));
    return std::unique_ptr<Algorithm>(std::make_unique<Kind>(options));
  };
}

namespace algorithms {
std::vector<AlgorithmKind> catalog();
}  // namespace algorithms

/// Builds algorithm `kind`; an unknown kind is an error that lists the kinds.
Result<std::unique_ptr<Algorithm>> make_algorithm(const std::string& kind,
                                                  const ParameterValues& values);

/// The in- and out-neighbours of peer i over the schedule's period (every other peer for a random
/// schedule), ascending: partners() of every algorithm whose only exchange is mix.
std::vector<int> mixing_partners(int i, const topology::MixingSchedule& schedule);

/// partners() of the algorithms with `servers` servers: each of `peers` peers talks to every
/// server, and to nobody else.
std::vector<int> server_partners(int i, int peers, int servers);

/// What a node sends in all exchanges of a round, in values.
std::uint64_t values_sent(const std::vector<ExchangeLoad>& loads, int node);
/// The exchange of one row of `length` values with everybody who hears it in w.
ExchangeLoad neighbours_load(const topology::MixingMatrix& w, std::size_t length);
/// loads() of `clients` of the `peers` that each send d values to servers, which own equal parts of
/// them, and get as many back.
std::vector<ExchangeLoad> server_loads(std::size_t d, int peers, std::size_t clients, int servers);

/// A worker's round with servers that each own a part of the parameters: g ← ∇f_i(x; batch_i),
/// which goes to the servers; x, row 0, ← what they hold then.
task<void> push_and_pull(Node& node, Round t, int servers);

/// Push-sum's local steps: `steps` times x ← x − γ ∇f_i(z; batch_i), where (x, w) is row `sum` and
/// z = x/w row 0. At first z is x/w already; after the last step it is not yet.
task<void> push_sum_steps(Node& node, int sum, int steps);
/// Row 0 ← x/w, (x, w) being row `sum`.
task<void> divide_by_weight(Node& node, int sum);

}  // namespace gossamer::gossip
