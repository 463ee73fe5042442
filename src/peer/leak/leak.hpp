// `gossamer leak`: what peers can learn of each other's updates, and of the samples behind them,
// from the rows that they receive. It runs the first rounds of a configuration and attacks the
// messages that were sent.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peer/setup/setup.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::peer {

struct LeakRequest {
  /// Groups of peers: the peers of a group put together what they know. Each ascending, not empty.
  std::vector<std::vector<int>> observers;
  gossip::Round rounds = 0;  ///< that they observe
  /// theory::Reconstruction's. None: each group measures it on its own peers' updates.
  std::optional<double> similarity;
  bool trains = true;            ///< false: only the shares are computed, and nothing is run
  std::filesystem::path folder;  ///< that the run may write to, and that is deleted at its end
};

/// What a group learned of a peer that is not in it.
struct LeakedUpdate {
  int peer = 0;
  int distance = 0;  ///< hops from the peer to the group in the graph of these rounds; −1: none
  gossip::Round round = 0;  ///< of the update of which the group can explain most
  double share = 0;         ///< of the update's variance (theory::Reconstruction)
  // ---- of a run
  std::optional<double> cosine = {};  ///< of estimate and update
  std::optional<double> psnr =
      {};  ///< mean over the batch's samples, dB; none: no sample is read off
  std::optional<double> control =
      {};                          ///< the same with as many test samples in place of candidates
  std::optional<bool> label = {};  ///< batches of one sample: whether the label is right
  /// MembershipAttack::advantage() of the last row of the peer, if the group received that.
  std::optional<double> membership = {};
};

struct ObserverLeak {
  std::vector<int> peers;
  double similarity = 0;
  std::vector<LeakedUpdate> updates;  ///< by peer
};

/// A sample beside what was read off for it.
struct ShownSample {
  std::vector<int> observers;
  int peer = 0;
  std::uint32_t sample = 0;
  double psnr = 0;
  std::vector<float> original, recovered;
};

struct Leak {
  std::vector<ObserverLeak> observers;
  std::vector<ShownSample> shown;          ///< at most kMostShown, the best of each pair
  std::vector<std::int64_t> sample_shape;  ///< [channels, height, width]
};
inline constexpr std::size_t kMostShown = 64;

/// Errors (invalid): the configuration, or the request, is none that can be attacked; the message
/// says which would. Errors too as of make_setup() and run().
Result<Leak> leak(Config config, const LeakRequest& request);

/// The outcome with means over the pairs of equal distance, for leak.json.
Json leak_json(const LeakRequest& request, const Leak& leak);
/// Those means as a table.
std::string leak_text(const LeakRequest& request, const Leak& leak);
/// Writes the shown samples as safetensors: `original` and `recovered`, of [sample, channel,
/// height, width].
Status write_shown_samples(const std::filesystem::path& path, const Leak& leak);

}  // namespace gossamer::peer
