// The mixing matrix W as a checked artifact: W[i][j] is the weight of peer j's row in peer i's mix.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "topology/kind.hpp"
#include "topology/participants/participants.hpp"

namespace gossamer::topology {

/// The sum that the diagonal entry makes 1: the row's, as mixing by differences needs, or the
/// column's, as push-sum and push-pull need.
enum class Diagonal { completes_row, completes_column };

/// One round's W, sparse. Immutable after the checks that made it; safe to read from any thread.
class MixingMatrix {
 public:
  /// rows[i]: peer i's in-neighbours with non-zero weight, ascending, i itself left out (anything
  /// else is a bug); the diagonal is what is missing to a sum of 1: of the row, or of the column.
  explicit MixingMatrix(std::vector<std::vector<Neighbour>> rows,
                        Diagonal diagonal = Diagonal::completes_row);

  int peers() const { return static_cast<int>(in_neighbours_.size()); }
  /// The peers whose rows peer i mixes, ascending by peer.
  std::span<const Neighbour> in_neighbours(int i) const {
    return in_neighbours_[static_cast<std::size_t>(i)];
  }
  /// The peers that mix peer i's row, ascending.
  std::span<const int> out_neighbours(int i) const {
    return out_neighbours_[static_cast<std::size_t>(i)];
  }
  /// W[i][i].
  double self_weight(int i) const { return self_weights_[static_cast<std::size_t>(i)]; }
  /// Σ_j W[i][j] − 1, the diagonal included: 0 but for a W that keeps only its columns.
  double row_surplus(int i) const { return row_surplus_[static_cast<std::size_t>(i)]; }
  /// W equals its transpose, bit by bit.
  bool symmetric() const { return symmetric_; }
  /// Rows and columns sum to 1, within what the checks allow.
  bool doubly_stochastic() const { return doubly_stochastic_; }

 private:
  bool entries_are_mirrored() const;

  std::vector<std::vector<Neighbour>> in_neighbours_;
  std::vector<std::vector<int>> out_neighbours_;
  std::vector<double> self_weights_, row_surplus_;
  bool symmetric_ = true, doubly_stochastic_ = true;
};

/// Values that the peer that sends most sends in a round of matrix w.
using MostSent = std::function<std::uint64_t(const MixingMatrix& w)>;

/// The graph of W's entries that are not 0.
Graph graph_of(const MixingMatrix& w);

/// Which sums of W are 1: of its rows, so that equal rows stay equal, and of its columns, so that
/// the mean over the peers stays.
enum class Stochastic { doubly, columns, rows };

/// `[topology]`'s keys beside `kind` and the kind's own.
struct WeightOptions {
  std::string weights = "auto";  ///< auto | metropolis | uniform | best_constant | out_degree |
                                 ///< in_degree | given
  bool lazy = false;  ///< (I + W)/2: all eigenvalues of a symmetric W become non-negative
  /// W may have negative entries on its diagonal, as published best constant weights have.
  bool allow_negative = false;
  /// What auto means where neither the kind prescribes weights nor `Topology::automatic` says
  /// otherwise; out_degree for an algorithm for which a column-stochastic W is enough, whatever the
  /// kind says. No key of its own.
  std::string automatic = "metropolis";

  Stochastic stochastic() const {
    return weights == "out_degree"  ? Stochastic::columns
           : weights == "in_degree" ? Stochastic::rows
                                    : Stochastic::doubly;
  }
  /// W keeps only its columns: rows need not sum to 1.
  bool only_columns() const { return stochastic() == Stochastic::columns; }
  /// W keeps only its rows: columns need not sum to 1.
  bool only_rows() const { return stochastic() == Stochastic::rows; }
};
const ParameterSet<WeightOptions>& weight_parameters();

/// The name, with "lazy " before it where lazy.
std::string to_string(const WeightOptions& options);

class ChangingSchedule;

/// W_t for every round of a run: what a run mixes with. Immutable; safe to read from any thread.
class MixingSchedule {
 public:
  virtual ~MixingSchedule() = default;
  virtual int peers() const = 0;
  /// As Topology::period(); 0 where the participants change.
  virtual int period() const = 0;
  /// The longest period that W has with any participants; 0 where rounds are drawn.
  virtual int longest_period() const { return period(); }
  /// Of an open run: a copy for one process, which sets the changes of participants that it knows.
  /// Null of other runs.
  virtual std::unique_ptr<ChangingSchedule> copy_if_open() const;
  /// Which peers take part in which rounds. In W_t a peer that does not is alone: W_t[i][i] = 1.
  virtual const Participants& participants() const = 0;
  /// For each of participants().changes(), in this order, the schedule of its peers, which are
  /// numbered from 0 there, and whose rounds count from the change's first; where all peers take
  /// part in all rounds, this schedule itself.
  virtual std::vector<const MixingSchedule*> parts() const { return {this}; }
  /// W of round t. The matrix outlives the schedule. With a period all are made beforehand and this
  /// is a look-up; without one, every call builds the round's matrix anew: a process that hosts
  /// many peers asks once a round for all of them.
  virtual std::shared_ptr<const MixingMatrix> at(Round t) const = 0;
  /// Hash of what was built (every matrix of the period, bit by bit; of a random one the kind,
  /// parameters and seed): two peers with equal hashes mix with the same weights.
  virtual std::string hash() const = 0;
  /// As the matrices were weighed: never "auto".
  virtual const WeightOptions& weighing() const = 0;
  /// As Topology::lattice().
  virtual const std::vector<int>& lattice() const = 0;
  /// As Topology::law(). Its mean_square_factor is empty where the weights are not those that the
  /// law is about.
  virtual RandomLaw law() const { return {}; }
};

struct ScheduleRequest {
  std::string kind;        ///< a name of the catalog
  ParameterValues values;  ///< the kind's own parameters
  WeightOptions weights;
  TopologyContext context;
  /// As Participants::parse(). With each change of participants, the topology is made anew.
  std::vector<std::string> participants = {};
  /// Of an open run, whose topology has to exist for each number of peers up to n. At most
  /// kMostOpenPeers.
  bool open = false;
};

/// In an open run each peer has a link to each other one.
inline constexpr int kMostOpenPeers = 256;

/// Builds the topology, gives it weights, and checks every W of the period: support within the
/// graph and self, columns and (but for out_degree weights) rows sum to 1 within 1e-12, entries ≥
/// 0, strongly connected jointly over the period (topology/checks.hpp). Of a topology without
/// period, the first sampled_rounds(n) rounds are checked. n = 1 gives the 1×1 identity. Errors are
/// `invalid`, and say what was wrong, where, and what would help: an unknown kind, n not
/// in 1..kMaximumPeers, a parameter that is unknown or out of range, an n that the kind cannot be
/// built for (the message names one near it that works: "n = 16 works"), a check that failed; and,
/// naming run.participants, as of Participants::parse().
Result<std::unique_ptr<MixingSchedule>> make_schedule(const ScheduleRequest& request);

/// The same, of a topology at hand. `identity` stands for the matrices in hash() where there is no
/// period.
Result<std::unique_ptr<MixingSchedule>> make_schedule(std::unique_ptr<Topology> topology,
                                                      const WeightOptions& options,
                                                      const std::string& identity);

/// In every round, whoever sends to a peer also receives from it. Of a random sequence its law says
/// so.
bool is_undirected(const MixingSchedule& schedule);

/// How many rounds, the first ones, are looked at where a topology has no period: 1000, fewer for
/// networks so large that each round by itself averages over many peers.
Round sampled_rounds(int peers);

}  // namespace gossamer::topology
