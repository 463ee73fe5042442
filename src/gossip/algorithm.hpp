// The interface of an algorithm: the order of local steps and exchanges in one round. Each file of
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
#include "gossip/link.hpp"
#include "gossip/row_slice.hpp"
#include "gossip/task.hpp"
#include "gpu/low_rank_requests.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

class Node;

/// A row that an algorithm works on. Row 0 is x, the parameters. Everything that survives a round
/// is declared here and nowhere else: a round is one coroutine, so its locals cannot survive it,
/// and resuming, rejoining and reinitialising need no help from the algorithm.
struct RowSpec {
  enum class Initial { zero, parameters };
  /// The row's value at a joining peer. All peers also set `reinitialise` rows to their starting
  /// values after a part of a conserved sum was lost with a link; `reinitialise_alone` rows they
  /// keep.
  enum class Rejoin {
    from_donor,         ///< the donor's value
    reinitialise,       ///< the starting value
    reinitialise_alone  ///< the starting value
  };

  std::string name;
  bool mixed = false;  ///< node.mix is called on it: it gets a back half
  /// node.mix leaves what mixing adds to the row, Σ_j W[i][j] (x_j − x), in place of the sum. The
  /// terms of two neighbours with one weight cancel exactly, so an algorithm that adds them up
  /// over the rounds gathers no error of the rounded sum x + Σ_j W[i][j] (x_j − x).
  bool mixed_as_difference = false;
  /// node.mix takes W[i][j] / Σ_k W[i][k] for W[i][j]: the row-stochastic matrix of a W whose
  /// columns alone sum to 1, and W itself where its rows do. Only for an algorithm that is
  /// `synchronous`, whose rows are sent as they are (Fidelity::exact).
  bool row_stochastic = false;
  bool shared = false;   ///< node.share is called on it
  bool survives = true;  ///< false: scratch within a round
  Initial initial = Initial::zero;
  bool conserved_sum = false;  ///< its sum over the peers is conserved (a tracker, a correction)
  Rejoin rejoin = Rejoin::from_donor;
  bool is_transferred() const { return survives && rejoin == Rejoin::from_donor; }
  std::size_t extra = 0;    ///< values after the d ones (push-sum's weight), sent with the row
  float extra_initial = 1;  ///< starting value of these
  int parts = 1;  ///< multiples of d values: a row that is the sum of several float32 rows
  std::size_t length(std::size_t d) const { return static_cast<std::size_t>(parts) * d + extra; }
};

/// Where an algorithm takes the weights of the peers' data (Trainer::data_weight) into account.
enum class DataWeights {
  own_gradients,   ///< its steps are with a peer's own gradients, which are weighted
  mean_gradients,  ///< its steps are with means of weighted gradients, so any optimizer sees them
  models           ///< it weights the peers' models itself, and gradients are not weighted
};

/// Requirements and properties of an algorithm.
struct AlgorithmRequirements {
  bool mixing_matrix = true;  ///< it mixes; else the topology only says which peers are connected
  /// The sums of W that are enough. Columns: out_degree weights on any graph; rows: in_degree
  /// weights, with which mixing moves the mean.
  topology::Stochastic stochastic = topology::Stochastic::doubly;
  bool fixed_matrix = false;  ///< W must be symmetric and the same in every round,
  double above = -1;          ///< and its eigenvalues must lie above this
  bool synchronous = false;   ///< it is defined only with every round's own rows: policy sync
  bool linear_steps = false;  ///< it relies on optimizer steps that are linear in the gradient and
                              ///< the same at any time, unlike Adam's
  DataWeights data_weights = DataWeights::own_gradients;
  bool sends_gradients = false;  ///< peers send gradients and take the rows of servers, so values
                                 ///< that have no gradient stay as they were at the start
  bool averages = false;  ///< a round whose one step replaces the rows leaves averages of the
                          ///< peers' new rows, so a program can hand over values to average
  bool trainer = true;    ///< it takes gradients: needs model and data
  bool tolerates_peer_loss = false;  ///< it only mixes: the run continues when a peer is lost
  bool common_start = false;         ///< all nodes must start from the same parameters
  int servers = 0;  ///< nodes n … n+servers−1 are servers: no shard, no place in W or in the
                    ///< network's metrics
  bool bounded_lead = true;  ///< false: a node may be any number of rounds ahead of a partner that
                             ///< is seldom chosen
  bool one_node = false;     ///< all shards feed a single node, in one process (`centralized`)
  bool lockstep = true;  ///< the nodes' rounds end together; false: a node waits for no other, and
                         ///< its rounds have a duration of their own
  Fidelity codec = Fidelity::exact;  ///< the least faithful codec that it converges with; exact:
                                     ///< its rows are sent as they are
  std::size_t row_length = 0;  ///< d, if no model defines it; rows then start as standard normal
                               ///< numbers
};

/// Values that a node sends and receives in one exchange of a round.
struct NodeVolume {
  std::uint64_t sent = 0, received = 0;
};

/// The communication volume of one exchange of a round, in values.
struct ExchangeVolume {
  std::uint64_t message = 0;  ///< the longest message over one link
  int at_once = 1;            ///< messages over one link, none of which waits for another's arrival
  std::function<NodeVolume(int node)>
      of;  ///< of peers, and of the servers after them, in a round in which the peer takes part
  bool beside_training = false;  ///< concurrent with the computation of gradients
  /// Where nodes are answered one by one, and those answered first continue while others wait: the
  /// values that the last node sends after everything else. They are part of `of` too. Else 0.
  std::uint64_t last = 0;
};

/// What an algorithm may know of the model whose parameters are in the rows.
struct ModelRows {
  std::vector<gpu::MatrixShape> matrices = {};  ///< its tensors
  std::optional<RowPart> part = {};  ///< of a model cut over workers in processes of their own:
                                     ///< what a row of this process has of it
};

/// One algorithm with its parameters read. Immutable once the model is known (set_model); shared
/// by all nodes of a process.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  /// The rows of every node; row 0 is x.
  virtual std::vector<RowSpec> rows(const topology::MixingSchedule& schedule) const = 0;
  virtual AlgorithmRequirements requirements() const = 0;
  /// The lengths of rows and messages may depend on the model. Before a row or a message is made.
  virtual void set_model(ModelRows /*model*/) {}
  /// Whether it multiplies the model's matrices. Then no model may be cut.
  virtual bool multiplies_matrices() const { return false; }
  /// Local steps of a node in a round; if epochs_per_round() is not 0, that many passes over its
  /// own shard instead.
  virtual int steps_per_round() const = 0;
  virtual int epochs_per_round() const { return 0; }
  /// Round t of `node`. Locals live for this round only.
  virtual task<void> round(Node& node, Round t) const = 0;
  /// The nodes that node i, a peer or a server, sends to or receives from in the whole run,
  /// ascending. Links are made for these.
  virtual std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const = 0;
  /// The exchanges of a round that mixes with w, one after the other, for rows of d values. The
  /// default: every mixed row in turn to all out-neighbours. A run's bytes and round times are
  /// predicted from it. w outlives the result.
  virtual std::vector<ExchangeVolume> communication(const topology::MixingSchedule& schedule,
                                                    const topology::MixingMatrix& w,
                                                    std::size_t d) const;
  /// Whether row k is mixed while gradients are computed.
  virtual bool mixes_beside_training(int k) const {
    (void)k;
    return false;
  }
  /// The largest γ L with which a round of plain SGD steps is stable on quadratic losses of
  /// largest curvature L, all with the same Hessian, where W is static and symmetric and
  /// `lowest` is its lowest eigenvalue. None: not known.
  virtual std::optional<double> largest_stable_step(double lowest) const {
    (void)lowest;
    return std::nullopt;
  }
  /// Whether the row of peer i is a model of the network after `rounds` rounds; otherwise it is of
  /// an earlier round, and no metric counts it. `seed`: Node::seed().
  virtual bool holds_model(int i, Round rounds, const topology::MixingSchedule& schedule,
                           std::uint64_t seed) const {
    (void)i, (void)rounds, (void)schedule, (void)seed;
    return true;
  }
  /// The number of integers that node i keeps from round to round beside its rows (Node::counters);
  /// zero at the start.
  virtual std::size_t counters(int i, const topology::MixingSchedule& schedule) const {
    (void)i, (void)schedule;
    return 0;
  }
  /// After the node's last round: sends and answers what other nodes still need of it.
  virtual task<void> drain(Node& node) const;
  /// Adapts node i's counters, as they were after its first t rounds, to nodes that all begin round
  /// t now. Counters of the node's own rounds need no change.
  virtual void resume(int i, Round t, std::span<std::uint64_t> counters,
                      const topology::MixingSchedule& schedule) const {
    (void)i, (void)t, (void)counters, (void)schedule;
  }
  /// Whether it may run on this topology: an error (invalid) gives the reason and a topology that
  /// fits.
  virtual Status check(const topology::MixingSchedule& schedule) const {
    (void)schedule;
    return {};
  }
};

/// Local steps of a node in a round. `batches_per_epoch()`: of the node's shard; it is called only
/// if a round is of epochs.
template <class Batches>
std::uint64_t local_steps_of_round(const Algorithm& algorithm, Batches batches_per_epoch) {
  const int epochs = algorithm.epochs_per_round();
  return epochs > 0 ? static_cast<std::uint64_t>(epochs) * batches_per_epoch()
                    : static_cast<std::uint64_t>(algorithm.steps_per_round());
}

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

/// The in- and out-neighbours of peer i over the schedule's period (every other participant for a
/// random schedule), in all of its parts, ascending; of an open run every other peer: partners() of
/// every algorithm whose only exchange is mix.
std::vector<int> mixing_partners(int i, const topology::MixingSchedule& schedule);

/// partners() of the algorithms with `servers` servers: each of `peers` peers is connected to every
/// server, and to no other node.
std::vector<int> server_partners(int i, int peers, int servers);

/// The values that a node sends in all exchanges of a round.
std::uint64_t values_sent(const std::vector<ExchangeVolume>& volumes, int node);
/// The exchange of `rows` rows of `length` values at once with the out-neighbours in w.
ExchangeVolume neighbour_volume(const topology::MixingMatrix& w, std::size_t length, int rows = 1);
/// communication() of `clients` of the `peers` that each send d values to servers, which own equal
/// slices of them, and receive as many.
std::vector<ExchangeVolume> server_volumes(std::size_t d, int peers, std::size_t clients,
                                           int servers);

}  // namespace gossamer::gossip
