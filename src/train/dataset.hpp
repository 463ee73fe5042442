// Data sets as tables in memory: features, labels or targets, and a fixed train/test split. One
// file of train/datasets/ is one kind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "train/shard_summary.hpp"

namespace gossamer::train {

/// Samples, row-major. The first `train_count` samples are for training, the others for testing.
/// Immutable once made, but for the features of own data, until the peers have agreed on scales.
struct Dataset {
  std::string name;
  int channels = 1, height = 1,
      width = 1;    ///< of one sample; features = their product; vectors are 1 × 1 × width
  int classes = 0;  ///< 0: regression
  std::size_t count = 0;
  std::size_t train_count = 0;
  std::vector<float> features;       ///< count × features()
  std::vector<std::int32_t> labels;  ///< count, when classes > 0
  std::vector<float> targets;        ///< count, when classes = 0: one target value a sample
  /// Shards of data that belong to peers by construction: natural_shards[p] are p's training
  /// samples. Empty: shards are cut by data.partition.
  std::vector<std::vector<std::uint32_t>> natural_shards;
  /// The samples belong to the peers of this process, and other processes have others
  /// (data.partition = own): natural_shards has those of the peers here.
  bool own = false;
  /// own: a summary of each peer's shard, by peer, known for the peers of this process.
  std::vector<ShardSummary> own_shards;
  /// data.partition = own: description of a sample, for messages; the same at all peers.
  std::string sample_description;
  /// The features before they are standardised, count × feature_count(), as long as the scales are
  /// not final; else empty.
  std::vector<double> unscaled;
  /// Minimiser of (1/n) Σ_p f_p over linear models without bias, if it is known in closed form (in
  /// double).
  std::optional<std::vector<double>> optimum;
  /// Standard deviation of the normal noise added to each coordinate of each gradient.
  double gradient_noise = 0;

  std::size_t feature_count() const { return static_cast<std::size_t>(channels) * height * width; }
  std::size_t test_count() const { return count - train_count; }
  /// [feature_count()]: those of a sample.
  std::span<const float> features_of(std::size_t sample) const {
    return std::span(features).subspan(sample * feature_count(), feature_count());
  }
};

/// The samples on which models are evaluated.
enum class EvaluationSplit { test, validation };

/// Arguments of a factory beside its own parameters.
struct DatasetContext {
  int peers = 1;                 ///< for data generated per peer
  std::uint64_t seed = 0;        ///< run.seed
  bool own = false;              ///< data.partition = own: each peer has its own files
  std::vector<int> hosted = {};  ///< own: the peers whose files are here, ascending; a process of
                                 ///< servers has none
  double validation = 0;         ///< fraction of the training samples that no peer trains on
  EvaluationSplit evaluate = EvaluationSplit::test;
};

/// The training samples of `data` become own data: the first sizes[0] those of the first peer of
/// context.hosted, the next sizes[1] those of the second, … A size for each of them.
void give_to_peers(Dataset& data, const DatasetContext& context,
                   std::span<const std::size_t> sizes);

/// Standardises the features of a data set that has unscaled ones, with the scales of all `shards`
/// together (pooled_scales()); leaves them as they are if no shard is known. May be repeated.
void standardise(Dataset& data, std::span<const ShardSummary> shards);

struct DatasetKind {
  std::string name;
  std::string summary;
  std::string source;  ///< where the data come from and their licence; for synthetic ones the
                       ///< definition's source
  std::vector<ParameterSpec> parameters;
  std::function<Result<Dataset>(const DatasetContext&, const ParameterValues&)> make;
};

namespace datasets {
std::vector<DatasetKind> catalog();
}  // namespace datasets

/// Builds data set `kind`: its samples, of which a fraction is held out (the same for every seed of
/// a run), and scales. The samples that are evaluated are the last ones: those of the data set's
/// test split, or those that were held out. Errors: an unknown kind (invalid), with a list of the
/// kinds; (invalid) a fraction that leaves nothing to train or to validate on; the factory's
/// (invalid, data).
Result<Dataset> make_dataset(const std::string& kind, const DatasetContext& context,
                             const ParameterValues& values);

}  // namespace gossamer::train
