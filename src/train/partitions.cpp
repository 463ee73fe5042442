#include "train/partitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/philox.hpp"

namespace gossamer::train {
namespace {

/// The stream that cuts all shards: a partition belongs to the network, not to a peer.
RandomStream partition_stream(std::uint64_t seed) { return {seed, kNoPeer, Purpose::partition}; }

std::vector<std::uint32_t> shuffled_range(std::size_t count, RandomStream& random) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  random.shuffle(order);
  return order;
}

/// Size of piece i when `total` is cut into `pieces` that differ by at most 1, the larger first.
std::size_t piece_size(std::size_t total, std::size_t pieces, std::size_t i) {
  return total / pieces + (i < total % pieces ? 1 : 0);
}

/// `samples` in `count` pieces that differ by at most 1 in size, the larger first.
std::vector<std::span<const std::uint32_t>> pieces_of(std::span<const std::uint32_t> samples,
                                                      std::size_t count) {
  std::vector<std::span<const std::uint32_t>> pieces;
  std::size_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = piece_size(samples.size(), count, i);
    pieces.push_back(samples.subspan(first, size));
    first += size;
  }
  return pieces;
}

/// The training samples of each class that has any, in random order.
std::vector<std::vector<std::uint32_t>> by_class(const Dataset& data, RandomStream& random) {
  std::vector<std::vector<std::uint32_t>> classes(static_cast<std::size_t>(data.classes));
  for (std::uint32_t i = 0; i < data.train_count; ++i)
    classes[static_cast<std::size_t>(data.labels[i])].push_back(i);
  std::erase_if(classes, [](const auto& samples) { return samples.empty(); });
  for (auto& samples : classes) random.shuffle(samples);
  return classes;
}

/// Multiples of q ~ Dir(shapes), the largest of them 1; 0 where the shape is 0. Computed through
/// logarithms, because nearly all gamma variates of small shapes underflow:
/// log Gamma(a) = log Gamma(a + 1) + log(U) / a.
std::vector<double> dirichlet(std::span<const double> shapes, RandomStream& random) {
  double largest = -std::numeric_limits<double>::infinity();
  std::vector<double> shares(shapes.size(), 0), logs(shapes.size(), 0);
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    if (shapes[k] == 0) continue;
    logs[k] = std::log(random.next_gamma(shapes[k] + 1)) +
              std::log(1.0 - random.next_double()) / shapes[k];
    largest = std::max(largest, logs[k]);
  }
  for (std::size_t k = 0; k < shapes.size(); ++k)
    if (shapes[k] > 0) shares[k] = std::exp(logs[k] - largest);
  return shares;
}

/// q ~ Dir(α·K·p) over K classes, p the frequencies of `left`; 0 for classes with no sample left.
std::vector<double> class_mix(const std::vector<std::vector<std::uint32_t>>& left, double alpha,
                              RandomStream& random) {
  double total = 0;
  for (const auto& samples : left) total += static_cast<double>(samples.size());
  std::vector<double> shapes;
  for (const auto& samples : left)
    shapes.push_back(
        samples.empty() ? 0 : alpha * static_cast<double>(left.size() * samples.size()) / total);
  return dirichlet(shapes, random);
}

/// Draws a class by its weight in `mix`, which sums to `sum` > 0; never a class of weight 0.
std::size_t draw_class(const std::vector<double>& mix, double sum, RandomStream& random) {
  double threshold = random.next_double() * sum;
  std::size_t chosen = 0;
  for (std::size_t k = 0; k < mix.size(); ++k) {
    if (mix[k] == 0) continue;
    chosen = k;
    if (threshold < mix[k]) break;
    threshold -= mix[k];
  }
  return chosen;
}

/// holders[k]: the peers that hold class k. Peers, in random order, take the classes that still
/// lack most holders (ties at random), which always ends even (Gale 1957).
std::vector<std::vector<std::uint32_t>> deal_classes(std::size_t classes, std::size_t per_peer,
                                                     std::size_t peers, RandomStream& random) {
  std::vector<std::vector<std::uint32_t>> holders(classes);
  const std::vector<std::uint32_t> larger = shuffled_range(classes, random);
  std::vector<std::size_t> wanted(classes);
  for (std::size_t i = 0; i < classes; ++i)
    wanted[larger[i]] = piece_size(peers * per_peer, classes, i);
  for (const std::uint32_t peer : shuffled_range(peers, random)) {
    std::vector<std::uint32_t> order = shuffled_range(classes, random);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return wanted[a] > wanted[b]; });
    for (std::size_t i = 0; i < per_peer; ++i) {
      holders[order[i]].push_back(peer);
      --wanted[order[i]];
    }
  }
  return holders;
}

}  // namespace

std::vector<std::size_t> shard_sizes(std::size_t samples, double exponent, int peers,
                                     std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(peers);
  std::vector<std::size_t> sizes(n);
  if (exponent == 0) {
    for (std::size_t p = 0; p < n; ++p) sizes[p] = piece_size(samples, n, p);
    return sizes;
  }
  RandomStream random(seed, kNoPeer, Purpose::shard_sizes);
  const std::vector<std::uint32_t> place_of_rank = shuffled_range(n, random);
  std::vector<double> until(n);  // the share of the ranks up to this one
  for (std::size_t rank = 0; rank < n; ++rank)
    until[rank] =
        (rank > 0 ? until[rank - 1] : 0) + std::pow(static_cast<double>(rank + 1), -exponent);
  std::size_t cut = 0;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const auto end = static_cast<std::size_t>(
        std::llround(static_cast<double>(samples) * (until[rank] / until.back())));
    sizes[place_of_rank[rank]] = end - std::exchange(cut, end);
  }
  return sizes;
}

Shards cut_iid(const Dataset& data, std::span<const std::size_t> sizes, std::uint64_t seed) {
  RandomStream random = partition_stream(seed);
  const std::vector<std::uint32_t> order = shuffled_range(data.train_count, random);
  Shards shards(sizes.size());
  auto next = order.begin();
  for (std::size_t p = 0; p < shards.size(); ++p) {
    const auto end = next + static_cast<std::ptrdiff_t>(sizes[p]);
    shards[p].assign(next, end);
    next = end;
  }
  return shards;
}

Shards cut_dirichlet(const Dataset& data, double alpha, std::span<const std::size_t> sizes,
                     std::uint64_t seed) {
  RandomStream random = partition_stream(seed);
  std::vector<std::vector<std::uint32_t>> left = by_class(data, random);
  Shards shards(sizes.size());
  const std::vector<std::uint32_t> order = shuffled_range(shards.size(), random);
  for (std::size_t turn = 0; turn < shards.size(); ++turn) {
    std::vector<std::uint32_t>& shard = shards[order[turn]];
    std::vector<double> mix = class_mix(left, alpha, random);
    while (shard.size() < sizes[turn]) {
      double sum = std::accumulate(mix.begin(), mix.end(), 0.0);
      if (sum == 0) {
        mix = class_mix(left, alpha, random);
        sum = std::accumulate(mix.begin(), mix.end(), 0.0);
      }
      const std::size_t chosen = draw_class(mix, sum, random);
      shard.push_back(left[chosen].back());
      left[chosen].pop_back();
      if (left[chosen].empty()) mix[chosen] = 0;
    }
  }
  return shards;
}

Shards cut_dirichlet_over_peers(const Dataset& data, double alpha, int peers, std::uint64_t seed) {
  RandomStream random = partition_stream(seed);
  Shards shards(static_cast<std::size_t>(peers));
  const std::vector<double> shapes(shards.size(), alpha);
  for (const std::vector<std::uint32_t>& samples : by_class(data, random)) {
    const std::vector<double> shares = dirichlet(shapes, random);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    double until = 0;
    auto next = samples.begin();
    for (std::size_t p = 0; p < shards.size(); ++p) {
      until += shares[p];
      const double share = p + 1 == shards.size() ? 1 : until / sum;
      const auto end = samples.begin() +
                       static_cast<std::ptrdiff_t>(share * static_cast<double>(samples.size()));
      shards[p].insert(shards[p].end(), next, end);
      next = end;
    }
  }
  return shards;
}

Result<Shards> cut_by_label(const Dataset& data, int classes_per_peer, int peers,
                            std::uint64_t seed) {
  RandomStream random = partition_stream(seed);
  const std::vector<std::vector<std::uint32_t>> classes = by_class(data, random);
  const auto per_peer = static_cast<std::size_t>(classes_per_peer),
             n = static_cast<std::size_t>(peers);
  if (per_peer > classes.size())
    return invalid_error(
        fmt::format("data.classes_per_peer: {} classes a peer, and "
                    "'{}' has {} classes with training samples",
                    per_peer, data.name, classes.size()));
  if (n * per_peer < classes.size())
    return invalid_error(
        fmt::format("data.classes_per_peer: {} peers with {} classes "
                    "each hold at most {} of the {} classes of "
                    "'{}', and every sample must have an owner; give "
                    "at least {} classes a peer or {} peers",
                    n, per_peer, n * per_peer, classes.size(), data.name,
                    (classes.size() + n - 1) / n, (classes.size() + per_peer - 1) / per_peer));
  const auto holders = deal_classes(classes.size(), per_peer, n, random);
  Shards shards(n);
  for (std::size_t k = 0; k < classes.size(); ++k) {
    const auto pieces = pieces_of(classes[k], holders[k].size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      std::vector<std::uint32_t>& shard = shards[holders[k][i]];
      shard.insert(shard.end(), pieces[i].begin(), pieces[i].end());
    }
  }
  return shards;
}

Result<Shards> cut_sorted(const Dataset& data, int groups, int peers, std::uint64_t seed) {
  if (groups > peers)
    return invalid_error(
        fmt::format("data.groups: {} peers cannot form {} groups; set data.groups = {} or less",
                    peers, groups, peers));
  RandomStream random = partition_stream(seed);
  const std::vector<std::vector<std::uint32_t>> classes = by_class(data, random);
  const auto g = static_cast<std::size_t>(groups), n = static_cast<std::size_t>(peers);
  std::vector<std::vector<std::uint32_t>> parts(g);
  for (std::size_t k = 0; k < classes.size(); ++k) {
    const std::size_t size = classes[k].size();
    for (std::size_t i = 0; i < size; ++i)  // sample i has the place k + i / size of K
      parts[(k * size + i) * g / (classes.size() * size)].push_back(classes[k][i]);
  }
  Shards shards;
  for (std::size_t group = 0; group < g; ++group) {
    random.shuffle(parts[group]);
    for (const auto piece : pieces_of(parts[group], piece_size(n, g, group)))
      shards.emplace_back(piece.begin(), piece.end());
  }
  return shards;
}

}  // namespace gossamer::train
