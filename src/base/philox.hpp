// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). A number depends on its key and counter alone, never on
// earlier draws, so a peer's draws are the same wherever the peer runs.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gossamer {

/// Philox4x32-10: 128 bits of counter and 64 bits of key to 128 random bits. Pure.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// The use of a random stream. Part of the key: two purposes never share a number. Values are part
/// of the run's reproducibility: append, never renumber.
enum class Purpose : std::uint32_t {
  initial_parameters = 1,
  shuffle = 2,    ///< order of a shard in an epoch; step = epoch
  partition = 3,  ///< which sample goes to which shard
  data = 4,       ///< synthetic data sets
  gradient_noise = 5,
  topology = 6,  ///< random graphs and matchings; step = round
  sketch = 7,
  network = 8,       ///< properties of a simulated link: peer and step are its ends
  initial_rows = 9,  ///< rows of `consensus`
  codec = 10,        ///< which values a peer sends; step = round
  jitter = 11,       ///< of a simulated link's chunks: peer and step are its ends
  step_time = 12,    ///< virtual time of local steps
  scenario = 13,     ///< scenarios and random events of simulated networks with faults
  clients = 16,  ///< clients that train in a round of federated averaging, and clients that fail;
                 ///< step = round
  attack = 17,   ///< what hostile peers send; step = round
  validation = 18,     ///< samples that no peer trains on
  private_batch = 19,  ///< samples of a batch of private gradients; step = local step
  private_noise = 20,
  shard_sizes = 21,   ///< which peer has which of unequal shards
  directions = 22,    ///< in which low-rank messages begin: peer and step are an edge and a product
  active_peers = 23,  ///< peers that hold models in a round of teleportation; step = round
  image_view = 24,    ///< how a peer sees the images of a batch; step = local step
  test = 1000,
};

/// A peer number for draws that belong to no peer.
inline constexpr std::uint32_t kNoPeer = 0xFFFFFFFF;

/// Where the stream (seed, peer, purpose, step) lies: key and counter of its blocks of four
/// numbers. The key is the seed; counter word 0 counts blocks, words 1–3 hold step (54 bits), peer
/// and purpose (10 bits), kept apart by the layout.
class RandomKey {
 public:
  constexpr RandomKey(std::uint64_t seed, std::uint32_t peer, Purpose purpose, std::uint64_t step)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, static_cast<std::uint32_t>(step), peer,
                 (static_cast<std::uint32_t>(purpose) << 22) |
                     (static_cast<std::uint32_t>(step >> 32) & 0x3FFFFF)} {}

  /// Numbers 4 · index to 4 · index + 3 of the stream.
  constexpr std::array<std::uint32_t, 4> block(std::uint32_t index) const {
    return philox4x32({index, counter_[1], counter_[2], counter_[3]}, key_);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
};

/// 32 random bits to a uniform number in [0, 1): the upper 24.
constexpr float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }
/// 64 random bits, the earlier number above, to a uniform number in [0, 1): the upper 53.
constexpr double unit_double(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

/// The stream of random numbers keyed by (seed, peer, purpose, step). Cheap to make; not
/// thread-safe; copy to fork.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint32_t peer, Purpose purpose, std::uint64_t step = 0);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  /// Uniform in [0, 1): 24 bits.
  float next_float();
  /// Uniform in [0, 1): 53 bits.
  double next_double();
  /// Uniform in 0..bound−1 without bias (Lemire 2019). bound > 0.
  std::uint32_t below(std::uint32_t bound);
  /// Standard normal (Box–Muller, in double): numbers 2k and 2k + 1 of a stream of normals are made
  /// of block k.
  double next_normal();
  /// Gamma(shape, 1) (Marsaglia and Tsang 2000), shape > 0.
  double next_gamma(double shape);
  /// Fisher–Yates, in place.
  void shuffle(std::span<std::uint32_t> values);

 private:
  void refill();

  RandomKey key_;
  std::uint32_t next_block_ = 0;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  bool has_spare_normal_ = false;
  double spare_normal_ = 0;
};

}  // namespace gossamer
