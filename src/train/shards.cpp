#include "train/shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "train/partitions.hpp"

namespace gossamer::train {
namespace {

Result<Shards> cut(const Dataset& data, const ShardOptions& options, int peers,
                   std::uint64_t seed) {
  if (options.partition == "own" && !data.own)
    return invalid_error(fmt::format(
        "data.partition: own is for files that each peer has to itself (data.kind csv or idx), and "
        "'{}' is one data set; choose iid, dirichlet, dirichlet_over_peers, label or sorted",
        data.name));
  const bool sized = options.partition == "iid" || options.partition == "dirichlet";
  if (options.size_exponent > 0 && !(sized && data.natural_shards.empty()))
    return invalid_error(
        "data.size_exponent: only the partitions iid and dirichlet cut one data set into shards of "
        "given sizes; choose one of them, or set data.size_exponent = 0");
  if (!data.natural_shards.empty()) {
    if (data.natural_shards.size() != static_cast<std::size_t>(peers))
      return invalid_error(fmt::format("data: '{}' was made for {} peers, and the run has {}",
                                       data.name, data.natural_shards.size(), peers));
    return data.natural_shards;
  }
  const std::vector<std::size_t> sizes =
      shard_sizes(data.train_count, options.size_exponent, peers, seed);
  if (options.partition == "iid") return cut_iid(data, sizes, seed);
  if (data.classes == 0)
    return invalid_error(
        fmt::format("data.partition: '{}' needs classes, and '{}' has none; use iid",
                    options.partition, data.name));
  if (options.partition == "dirichlet") return cut_dirichlet(data, options.alpha, sizes, seed);
  if (options.partition == "dirichlet_over_peers")
    return cut_dirichlet_over_peers(data, options.alpha, peers, seed);
  if (options.partition == "label")
    return cut_by_label(data, options.classes_per_peer, peers, seed);
  if (options.partition == "sorted")
    return cut_sorted(data, options.groups == 0 ? peers : options.groups, peers, seed);
  return invalid_error(fmt::format(
      "data.partition: '{}' is not one of iid, dirichlet, dirichlet_over_peers, label, sorted, own",
      options.partition));
}

/// Text: how the shards can be made larger. If each has as many samples as possible, only fewer
/// peers help.
std::string remedy(const Dataset& data, const ShardOptions& options, std::size_t needed,
                   int peers) {
  std::vector<std::string> ways;
  if (options.batch > 1) ways.push_back("a smaller data.batch (0: the whole shard)");
  const std::size_t most = data.train_count / needed;
  if (!data.natural_shards.empty()) {
    ways.push_back("more samples a peer");
  } else {
    if (options.size_exponent > 0) ways.push_back("a smaller data.size_exponent");
    if (options.partition == "dirichlet_over_peers")
      ways.insert(ways.end(), {"another run.seed", "a larger data.alpha"});
    if (options.partition == "label")
      ways.insert(ways.end(), {"another run.seed", "another data.classes_per_peer"});
    if (options.partition == "sorted" && options.groups != 1)
      ways.push_back("a smaller data.groups");
    if (most == 0) ways.emplace_back("more training samples");
    else if (most < static_cast<std::size_t>(peers))
      ways.push_back(fmt::format("at most {} peer{}", most, most == 1 ? "" : "s"));
    else ways.emplace_back("fewer peers");
  }
  if (ways.size() > 1) ways.back().insert(0, "or ");
  return fmt::format("{}", fmt::join(ways, ", "));
}

Status check_sizes(const Shards& shards, const Dataset& data, const ShardOptions& options) {
  const bool own = data.own;
  const auto size_of = [own](const auto& shard) {  // those of other processes count as large
    return own && shard.empty() ? std::numeric_limits<std::size_t>::max() : shard.size();
  };
  const auto smallest = std::ranges::min_element(shards, {}, size_of);
  const std::size_t needed = std::max<std::size_t>(1, static_cast<std::size_t>(options.batch));
  if (size_of(*smallest) >= needed) return {};
  const int peers = static_cast<int>(shards.size());
  const auto few = std::count_if(shards.begin(), shards.end(),
                                 [&](const auto& shard) { return size_of(shard) < needed; });
  const std::string what = smallest->empty()
                               ? "has no training sample"
                               : fmt::format("has {} training samples", smallest->size());
  const std::string batch =
      options.batch > 0 ? fmt::format(", fewer than a batch of {}", options.batch) : "";
  return invalid_error(fmt::format(
      "data: peer {} {}{} ({} of {} peers have too few; {} samples in all); what helps: {}",
      smallest - shards.begin(), what, batch, few, peers, data.train_count,
      remedy(data, options, needed, peers)));
}

/// Of gpu::ImageViews.
ParameterSet<ShardOptions> view_parameters() {
  return ParameterSet<ShardOptions>()
      .add(
          "crop", &ShardOptions::crop,
          {.help = "images: peers train on random crops of the size of an image, out of the image "
                   "with this number of zeros around it; usual are 4 for CIFAR-10 and 2 for MNIST. "
                   "Models are evaluated on whole images",
           .minimum = 0,
           .maximum = gpu::ImageViews::kMostCrop,
           .unit = "pixels"})
      .add("flip", &ShardOptions::flip,
           {.help = "images: peers train on random horizontal flips: each image of a batch is "
                    "flipped with probability 1/2"});
}

}  // namespace

const ParameterSet<ShardOptions>& shard_parameters() {
  static const ParameterSet<ShardOptions> parameters =
      view_parameters()
          .add("partition", &ShardOptions::partition,
               {.help = "how training samples are distributed over the peers. One data set, which "
                        "every process reads, is cut by iid, by dirichlet (each peer draws its own "
                        "class mix), by dirichlet_over_peers (each class is divided over the peers "
                        "in random proportions, so shards are unequal), by label, or sorted by "
                        "class. own: each peer has files of its own, which no other process sees. "
                        "Generated data belong to peers, and ignore all but own",
                .choices = {"iid", "dirichlet", "dirichlet_over_peers", "label", "sorted", "own"}})
          .add("alpha", &ShardOptions::alpha,
               {.help = "dirichlet and dirichlet_over_peers: concentration of a peer's class mix; "
                        "0.1: one or two classes dominate, 100: nearly iid",
                .minimum = 1e-4,
                .maximum = 1e6})
          .add("size_exponent", &ShardOptions::size_exponent,
               {.help = "iid and dirichlet: the i-th largest shard has a size proportional to "
                        "i^(-size_exponent), and which peer has it is random; 0: equal shards",
                .minimum = 0,
                .maximum = 8})
          .add("classes_per_peer", &ShardOptions::classes_per_peer,
               {.help = "label: number of classes of each peer", .minimum = 1, .maximum = 1e6})
          .add(
              "groups", &ShardOptions::groups,
              {.help = "sorted: groups of peers with consecutive ids. The classes, in their order, "
                       "are divided over the groups, and the samples of a group are distributed "
                       "over its peers at random; 0: every peer is a group",
               .minimum = 0,
               .maximum = 1e6})
          .add(
              "validation", &ShardOptions::validation,
              {.help = "fraction of the training samples that no peer trains on, chosen at random, "
                       "the same for every run.seed",
               .minimum = 0,
               .maximum = 0.9})
          .add("evaluate", &ShardOptions::evaluate,
               {.help = "the samples on which models are evaluated: those of the test set, or, to "
                        "choose settings without it, the validation samples, which the log then "
                        "has in place of the test figures",
                .choices = {"test", "validation"}})
          .add(
              "weights", &ShardOptions::weights,
              {.help = "the objective, a weighted mean of the peers' mean losses: peers: each peer "
                       "has the same weight; samples: a peer's weight is proportional to the "
                       "samples of its shard, so each sample has the same",
               .choices = {"peers", "samples"}})
          .add("batch", &ShardOptions::batch,
               {.help = "samples a step; 0: the whole shard",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "samples"});
  return parameters;
}

Result<Shards> make_shards(const Dataset& data, const ShardOptions& options, int peers,
                           std::uint64_t seed) {
  if (peers < 1) return invalid_error(fmt::format("data: {} peers cannot share data", peers));
  GOSSAMER_TRY(Shards shards, cut(data, options, peers, seed));
  for (auto& shard : shards) std::sort(shard.begin(), shard.end());
  GOSSAMER_TRY_STATUS(check_sizes(shards, data, options));
  return shards;
}

}  // namespace gossamer::train
