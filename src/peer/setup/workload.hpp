// What the peers of a run train: the tensors of a row, their initial values, and the trainer. The
// runtime knows nothing else of models, data and optimizers. The configuration chooses one of the
// library's own workloads (native_workload.hpp, untrained_workload.hpp), or the caller of
// make_setup() brings one (model.kind = "external").
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gossip/trainer.hpp"
#include "peer/privacy/pair_secrets.hpp"
#include "peer/privacy/privacy_account.hpp"
#include "peer/setup/row_views.hpp"
#include "peer/storage/shards_file.hpp"
#include "train/dataset.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// The batch losses of a peer since the last take_loss request.
struct LossSum {
  double sum = 0;
  std::uint64_t count = 0;
};

/// Device memory that training takes for a peer, beside its rows.
struct WorkspaceBytes {
  std::size_t own = 0;
  std::size_t whole = 0;  ///< if the model were not cut
};

/// The properties of a workload, which do not change during a run.
struct WorkloadSpec {
  std::size_t parameters = 0;                 ///< values in a row, d
  std::vector<train::ParameterBlock> blocks;  ///< the tensors of a row, in order and without gaps
  std::vector<std::string> optimizer_rows;    ///< the rows of d values that the optimizer keeps
  bool linear_steps = true;  ///< optimizer steps are linear in the gradient, and alike at any time
  bool external_optimizer = false;  ///< the optimizer's state and rate are the caller's
  bool averages = false;        ///< a step replaces the row by values to average, which takes an
                                ///< algorithm that averages
  bool has_buffers = false;     ///< rows hold values that no gradient moves: a module's buffers
  bool evaluates = false;       ///< evaluate() measures a loss
  double samples_per_step = 0;  ///< mean over the peers; 0: not known
  WorkspaceBytes workspace;     ///< of each peer
  bool recorded = false;    ///< stands for a workload that is elsewhere, and only has its tensors
  bool saves_state = true;  ///< save_state() gives what rows and loss sums lack
  std::optional<PrivacyPlan> privacy;  ///< of private gradients
  std::string divergence_advice;       ///< what usually helps where a run diverged; may be empty
  std::string identity;                ///< for people, and the same at all peers; may be empty
  /// How the model is cut over the workers of a replica; null: it is whole.
  std::shared_ptr<const train::SplitModel> split;
  std::string model_text;  ///< of a model that a file describes: train::canonical_text()
  std::shared_ptr<const train::Dataset> data;  ///< the library's own data set; null: it has none
};

/// Thread: one call at a time, except for spec().
class Workload {
 public:
  virtual ~Workload() = default;
  virtual const WorkloadSpec& spec() const = 0;
  /// Writes the initial parameters of a peer or server to `row`, of d values in host memory.
  virtual void initialise(int node, std::span<float> row) const = 0;
  /// Null where nothing is trained. Lives as long as the workload.
  virtual gossip::Trainer* trainer() = 0;
  /// Test loss and accuracy of rows in host memory; NaN where they are not measured. `nodes`: the
  /// node of each row, of this process; for a mean of several rows, which comes alone, the nodes of
  /// all of them. A program may keep more of a node's model than its row.
  virtual std::vector<train::Evaluation> evaluate(const RowViews& rows,
                                                  std::span<const int> nodes) = 0;
  /// For each row, in host memory: the part of the test samples of other classes that it assigns to
  /// the backdoor's target class if they have the trigger. Empty in a run without a backdoor.
  virtual std::vector<double> backdoor_success(const RowViews& /*rows*/) { return {}; }
  /// Reads the loss sum of a peer without resetting it, for a checkpoint; and sets it, when the
  /// checkpoint is restored. `x`: the peer's parameters, in device memory.
  virtual LossSum loss_sum(int peer) const = 0;
  virtual void set_loss_sum(int peer, const LossSum& losses, const float* x) = 0;
  /// For a checkpoint: the state of a peer beside its rows and its loss sum, as bytes that only
  /// restore_state() understands. A workload of rows alone has none.
  virtual std::string save_state(int /*peer*/) { return {}; }
  /// The peer goes on from a state that save_state() returned.
  virtual void restore_state(int /*peer*/, std::string /*state*/) {}
  /// data.partition = own: the shards that this process knows, by peer. Empty: nothing is to be
  /// agreed on before the run.
  virtual Shards own_shards() const { return {}; }
  /// Features of which a shard's summary has the moments; 0 if features are not standardised.
  virtual std::size_t standardised_features() const { return 0; }
  /// The shards of all peers are known: features are standardised by all of them together. Before
  /// anything is trained.
  virtual void agree(const Shards& /*shards*/) {}
  /// Hashes of the data that all peers share; empty where they share none. Reads all of the data.
  virtual std::string data_hash() const = 0;
  /// What the private gradients of the peers have spent; null: gradients are not private.
  virtual PrivacyAccount* privacy_account() { return nullptr; }
  /// What the processes of a network have to agree on before the run; null: nothing.
  virtual SecretPairs* secret_pairs() { return nullptr; }
  /// A call of the trainer that waits for other processes ends with train::WorkerLost, and so does
  /// each later one. Thread: any.
  virtual void interrupt() {}
  /// Trains peers one by one, so that the result of a peer does not depend on which other peers are
  /// ready at the same time.
  virtual void set_one_at_a_time(bool one_at_a_time) = 0;
};

}  // namespace gossamer::peer
