// The shards: which peer owns which training sample, and in which order a peer draws its batches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "gpu/training.hpp"
#include "train/dataset.hpp"

namespace gossamer::train {

/// The keys of `[data]` beside `kind` and the kind's own.
struct ShardOptions {
  std::string partition = "iid";  ///< iid | dirichlet | dirichlet_over_peers | label | sorted,
                                  ///< ignored by data sets with natural shards; or own
  double alpha = 0.1;             ///< both dirichlet: concentration (partitions.hpp)
  double size_exponent = 0;       ///< iid, dirichlet: shard sizes follow Zipf's law; 0: equal
  int classes_per_peer = 2;       ///< label: classes a peer holds (McMahan et al. 2017)
  int groups = 0;                 ///< sorted: groups of peers with classes of their own; 0: n
  double validation = 0;          ///< fraction of the training samples that no peer trains on
  std::string evaluate = "test";  ///< test | validation: samples on which models are evaluated
  std::string weights = "peers";  ///< peers | samples: the weight of a peer's loss in the objective
  int batch = 16;                 ///< samples a step; 0: the whole shard (full gradients)
  int crop = 0;                   ///< of gpu::ImageViews, in which peers train on images
  bool flip = false;              ///< likewise

  /// Whether peers train on views of images.
  bool augments() const { return crop > 0 || flip; }
};
const ParameterSet<ShardOptions>& shard_parameters();

using Shards = std::vector<std::vector<std::uint32_t>>;  ///< shards[p]: p's training samples,
                                                         ///< ascending, each once

/// Cuts the training samples into n shards, every sample in exactly one (partitions.hpp has the
/// rules). With partition own, the shards of other processes are empty. A function of its arguments
/// alone. Errors (invalid): an empty shard or a batch larger than a shard, with the peer, the
/// numbers and remedies; classes that cannot be dealt out; a rule by classes on data without
/// classes; own on data that are no peer's.
Result<Shards> make_shards(const Dataset& data, const ShardOptions& options, int peers,
                           std::uint64_t seed);

/// How peers see the images of batches. Off: as they are.
gpu::ImageViews image_views(const ShardOptions& options, const Dataset& data);

/// Batches without replacement within an epoch: epoch e is the shard in an order keyed by (seed,
/// peer, e), cut into floor(size / batch) batches; the remainder is left out of the epoch. With
/// batch = 0 every batch is the whole shard, always in ascending order, so that without views a
/// full gradient has the same bits at every step. Of images that are seen in views each sample of a
/// batch has one that is drawn with the key (seed, peer, step).
class BatchOrder {
 public:
  /// Copies the shard, which must hold at least one batch (checked; make_shards refuses others).
  BatchOrder(const std::vector<std::uint32_t>& shard, int batch, int peer, std::uint64_t seed,
             const gpu::ImageViews& views = {});

  int batch_size() const { return batch_; }
  std::uint64_t batches_per_epoch() const { return per_epoch_; }
  /// The samples of local step `step` (0, 1, …), as indices of gpu::Job. Steps may be asked for in
  /// any order; ascending order is fast. Valid until the next call. Thread: one at a time.
  std::span<const std::uint32_t> batch(std::uint64_t step);

 private:
  std::vector<std::uint32_t> shard_, order_, seen_;
  gpu::ImageViews views_;
  int batch_;
  std::uint32_t peer_;
  std::uint64_t seed_, per_epoch_, epoch_;  // epoch_: the epoch of order_
  bool whole_;
};

}  // namespace gossamer::train
