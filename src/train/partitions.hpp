// The ways to cut labelled samples into shards. Each puts every training sample into exactly one
// shard; none checks that a shard is large enough (make_shards does).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "train/shards.hpp"

namespace gossamer::train {

/// A random permutation cut into n pieces; sizes differ by at most 1.
Shards cut_iid(const Dataset& data, int peers, std::uint64_t seed);

/// Hsu, Qi and Brown 2019 ("Measuring the effects of non-identical data distribution for federated
/// visual classification"): each peer draws its own class mix q from a Dirichlet distribution, then
/// as many samples as every other peer (± 1) by q, without replacement; a class that is used up
/// leaves q, which is renormalised. Here
///   q ~ Dir(α·K·p)     K classes with training samples, p their frequencies
/// so for equally frequent classes Dir(α, …, α): the class mix of a peer is as skewed as under the
/// other common rule, which divides each class over the peers by Dir(α) (Yurochkin et al. 2019, and
/// most code since), and α means what it means there. (Hsu's own α is the total, K times ours; per
/// class and with equal shards as here: Acar et al. 2021.)
///
/// Why equal shards and not that other rule: its shards differ so much in size that of the draws
/// for 16 peers, 1,442 digits, α = 0.1 one in eight leaves everybody a batch of 16 (one in four
/// with the usual balancing), so published code redraws until the smallest shard will do, and what
/// it trains on is no longer the distribution it names. And with equal shards the mean of the
/// peers' losses is the loss over all samples, so every topology and the centralized yardstick
/// minimise the same function.
///
/// Two details that the paper leaves open. Peers draw one after another and late ones find classes
/// gone, so they go in a random order, lest neighbours on a ring share that fate. A peer whose q
/// has nothing left draws a new one over what is left, p then being the frequencies of that.
Shards cut_dirichlet(const Dataset& data, double alpha, int peers, std::uint64_t seed);

/// Each peer holds `classes_per_peer` different classes (after McMahan et al. 2017, who deal out
/// two pieces of the sorted data). Every class is held by as many peers as every other (± 1) and
/// cut evenly among its holders, at random. Refused, with the numbers: more classes a peer than
/// there are, or peers × classes a peer below the number of classes.
Result<Shards> cut_by_label(const Dataset& data, int classes_per_peer, int peers,
                            std::uint64_t seed);

}  // namespace gossamer::train
