#include "train/learner_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gossamer::train {
namespace {

Status check_data(const Dataset& data) {
  const std::size_t labelled = data.classes > 0 ? data.labels.size() : data.targets.size();
  const bool trains = data.train_count > 0 || data.own;  // elsewhere, if not here
  if (data.count == 0 || !trains || data.train_count > data.count)
    return invalid_error(fmt::format("data {}: {} samples, {} of them to train on", data.name,
                                     data.count, data.train_count));
  if (data.features.size() != data.count * data.feature_count() || labelled != data.count)
    return invalid_error(fmt::format(
        "data {}: {} samples of {} features, but {} feature values and {} labels or targets",
        data.name, data.count, data.feature_count(), data.features.size(), labelled));
  for (std::int32_t label : data.labels)
    if (label < 0 || label >= data.classes)
      return invalid_error(fmt::format("data {}: label {} is not one of its {} classes", data.name,
                                       label, data.classes));
  return {};
}

Status check_shards(const LearnerRequest& request) {
  if (request.shards.empty()) return invalid_error("no shards: a learner serves at least one peer");
  for (std::size_t p = 0; p < request.shards.size(); ++p) {
    const auto& shard = request.shards[p];
    if (shard.empty() && request.data->own) continue;  // of another process
    if (shard.empty()) return invalid_error(fmt::format("peer {}: its shard is empty", p));
    if (request.sampling.batch < 0 ||
        static_cast<std::size_t>(request.sampling.batch) > shard.size())
      return invalid_error(fmt::format("data.batch: {}, but peer {}'s shard has {} samples",
                                       request.sampling.batch, p, shard.size()));
    for (std::uint32_t sample : shard)
      if (sample >= request.data->train_count)
        return invalid_error(
            fmt::format("peer {}: its shard names sample {}, but there are {} to train on", p,
                        sample, request.data->train_count));
  }
  return {};
}

/// Samples that an operation embeds are whole numbers from 0 on, below its vocabulary. (An
/// embedding takes the samples.)
Status check_tokens(const Operation& operation, const Embedding& embedding, const Dataset& data) {
  for (const float value : data.features)
    if (!(value >= 0 && value < static_cast<float>(embedding.vocabulary)) ||
        std::floor(value) != value)
      return invalid_error(fmt::format(
          "model: operation '{}' embeds tokens 0 to {}, but a sample of the data {} has the value "
          "{}; is the vocabulary too small, or are the data standardised?",
          operation.name, embedding.vocabulary - 1, data.name, value));
  return {};
}

}  // namespace

Status check_split(const LearnerRequest& request) {
  if (request.split.layers == 1 && !request.split.cuts.empty())
    return invalid_error(
        fmt::format("split.cuts: it cuts a model into {} stages, and split.layers is "
                    "1: set split.layers = {}",
                    request.split.cuts.size() + 1, request.split.cuts.size() + 1));
  if (!request.split.is_on()) return {};
  if (request.optimizer.privacy.on())
    return invalid_error(
        "split: private gradients clip those of single samples, whose norm no worker of a cut "
        "model has; set privacy.clip = 0, or split.layers and split.parameters = 1");
  if (request.data->gradient_noise > 0)
    return invalid_error(
        fmt::format("split: the data {} add noise to whole gradients; set split.layers and "
                    "split.parameters = 1",
                    request.data->name));
  return {};
}

/// Images that are seen in views.
Status check_views(const LearnerRequest& request) {
  const ShardOptions& options = request.sampling;
  const Dataset& data = *request.data;
  if (!options.augments()) return {};
  const std::string what = options.crop > 0 ? fmt::format("data.crop = {}", options.crop)
                                            : std::string("data.flip = true");
  if (data.width < 2 || data.height < 2)
    return invalid_error(fmt::format(
        "{}: samples of the data {} are no images; set data.crop = 0 and data.flip = false", what,
        data.name));
  if (options.crop >= std::min(data.width, data.height))
    return invalid_error(fmt::format("{}: images have {} × {} pixels; give a smaller number", what,
                                     data.height, data.width));
  if (data.count > std::size_t{1} << gpu::ImageViews::kNumberBits)
    return invalid_error(
        fmt::format("{}: possible with at most {} samples, and the data {} have {}", what,
                    std::size_t{1} << gpu::ImageViews::kNumberBits, data.name, data.count));
  if (request.optimizer.privacy.on())
    return invalid_error(fmt::format(
        "{}: batches of private gradients are of samples as they are; set data.crop = 0 "
        "and data.flip = false, or privacy.clip = 0",
        what));
  return {};
}

Status check_request(const LearnerRequest& request) {
  GOSSAMER_TRY_STATUS(check_data(*request.data));
  GOSSAMER_TRY_STATUS(check_shards(request));
  GOSSAMER_TRY_STATUS(check_views(request));
  for (const Operation& operation : request.model.operations)
    if (const auto* embedding = std::get_if<Embedding>(&operation.op))
      GOSSAMER_TRY_STATUS(check_tokens(operation, *embedding, *request.data));
  return {};
}

}  // namespace gossamer::train
