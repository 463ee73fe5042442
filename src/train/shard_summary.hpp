// The summaries of the peers' own data (data.partition = "own") that the processes of a network
// exchange: sizes and moments, never samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

/// The training samples of one peer. Mean and variance (of the population) of each feature, in
/// double; both lists are empty if features are not standardised.
struct ShardSummary {
  std::uint64_t samples = 0;  ///< 0: another process has the shard
  std::vector<double> means, variances;

  bool operator==(const ShardSummary&) const = default;
};

/// Whether these can be the moments of values that a float holds, and a number of samples that a
/// shard can have.
bool is_moment(double mean, double variance);
bool is_shard_size(std::uint64_t samples);

/// The summary of `samples` rows of `width` values, row-major; samples ≥ 1. The variance of a
/// feature that has one value only is exactly 0.
ShardSummary summarise(std::span<const double> rows, std::size_t width);

/// The numbers by which a feature is shifted and divided.
struct FeatureScale {
  double mean = 0, deviation = 1;
};

/// Mean and standard deviation of each feature over the samples of all `shards`, added up in their
/// order; shards of 0 samples are left out. A feature that has one value only has an infinite
/// deviation, so that it becomes 0. The shards have lists of the same length.
std::vector<FeatureScale> pooled_scales(std::span<const ShardSummary> shards);

/// `text` with the peer's id in place of each "{peer}".
std::string file_of_peer(const std::string& text, int peer);

/// Error (invalid): a process that hosts several peers has a name `file` without "{peer}", which
/// would give them all the same samples. `key`: of the file, for the message.
Status check_file_of_peer(const std::string& key, const std::string& file, std::size_t hosted);

}  // namespace gossamer::train
