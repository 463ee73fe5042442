// The rules that cut samples into shards. Each rule puts every training sample into exactly one
// shard. No rule checks that a shard is large enough (make_shards does).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "train/shards.hpp"

namespace gossamer::train {

/// Sizes of n shards of `samples` samples in all. With exponent a = 0 they differ by at most 1, the
/// larger first. Otherwise they follow Zipf's law: proportional to 1, 2^−a, …, n^−a, rounded, and
/// in random order.
std::vector<std::size_t> shard_sizes(std::size_t samples, double exponent, int peers,
                                     std::uint64_t seed);

/// A random permutation, cut into shards of `sizes`.
Shards cut_iid(const Dataset& data, std::span<const std::size_t> sizes, std::uint64_t seed);

/// Hsu, Qi and Brown 2019 ("Measuring the effects of non-identical data distribution for federated
/// visual classification"): each peer draws its own class mix q from a Dirichlet distribution, then
/// as many samples as every other peer by q, without replacement; a class that is used up is
/// removed from q, which is renormalised. Here
///   q ~ Dir(α·K·p)     K classes with training samples, p their frequencies
/// so for equally frequent classes Dir(α, …, α): the class mix of a peer is as skewed as under
/// cut_dirichlet_over_peers(), and α has the same meaning. (Hsu's own α is the total, K times ours;
/// Acar et al. 2021 use it per class and with equal shards, as here.)
///
/// Two details that the paper leaves open. Peers draw one after another, and late peers find
/// classes used up, so peers draw in a random order; otherwise neighbours on a ring would be
/// affected alike. A peer whose q has no class left draws a new q over the remaining samples, with
/// p their frequencies.
///
/// `sizes`: of the shards, in the order in which peers draw.
Shards cut_dirichlet(const Dataset& data, double alpha, std::span<const std::size_t> sizes,
                     std::uint64_t seed);

/// The rule of Yurochkin et al. 2019 ("Bayesian nonparametric federated learning of neural
/// networks") and most code since: each class is divided over the peers in proportions of its own,
/// drawn from Dir(α, …, α). Shards differ much in size: for 16 peers, 1,442 digits and α = 0.1, one
/// draw in eight leaves every peer a batch of 16. Published code redraws until the smallest shard
/// is large enough, and so trains on another distribution than the one it names; here too small a
/// shard is an error of make_shards().
Shards cut_dirichlet_over_peers(const Dataset& data, double alpha, int peers, std::uint64_t seed);

/// Each peer holds `classes_per_peer` different classes (after McMahan et al. 2017, where each peer
/// gets two pieces of the sorted data). Every class is held by as many peers as every other (± 1)
/// and is cut evenly among its holders, at random. Errors (invalid), with the numbers: more classes
/// per peer than there are classes, or peers × classes per peer below the number of classes.
Result<Shards> cut_by_label(const Dataset& data, int classes_per_peer, int peers,
                            std::uint64_t seed);

/// Each of G groups of peers has its own part of the samples sorted by class, and its peers share
/// this part at random. Group g of peers with consecutive ids (as many as every other, ± 1, the
/// larger first) has the part [g K/G, (g + 1) K/G) of K classes in their order: with G = 2 the two
/// halves of the peers have no class in common, as in the experiments of He, Karimireddy and Jaggi
/// 2022 with two cliques; with G = n every peer has a piece of the sorted samples, as in those of
/// Koloskova et al. 2019. Which samples of a class are in a piece is random. Errors (invalid):
/// more groups than peers.
Result<Shards> cut_sorted(const Dataset& data, int groups, int peers, std::uint64_t seed);

}  // namespace gossamer::train
