// `gossamer leak`: what peers can learn of each other's updates, and of the samples behind them,
// from the rows that they receive. It runs the first rounds of a configuration and attacks the
// messages that were sent.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peer/config/config.hpp"
#include "peer/leak/sample_attack.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::peer {

struct LeakRequest {
  /// Groups of peers: the peers of a group put together what they know. Each ascending, not empty.
  std::vector<std::vector<int>> observers;
  gossip::Round rounds = 0;  ///< that they observe
  double similarity = 0;     ///< theory::Reconstruction's
  bool trains = true;        ///< false: only the shares are computed, and nothing is run
  int inversion = 0;         ///< iterations for each pair of GradientInversion; 0: none
  std::function<bool()> interrupted = [] { return false; };  ///< asked after each round
};

/// What a group learned of a peer that is not in it.
struct LeakedPeer {
  int peer = 0;
  int distance = 0;  ///< hops from the peer to the group in the graph of these rounds; −1: none
  gossip::Round round = 0;  ///< of the update of which the group can explain most
  double share = 0;         ///< of the update's variance, by the model of theory::Reconstruction
  // ---- of a run
  /// 1 − ‖estimate − update‖² / ‖update‖² of that update: 1 if it is known, and below 0 where the
  /// estimate is farther from it than 0 is.
  std::optional<double> explained = {};
  /// Of all numbers of rounds that the group may look at, the outcome with the most samples.
  std::optional<SampleOutcome> samples = {};  ///< none: no sample can be read off this model
  /// The same with test samples in place of what was read off; none without test samples.
  std::optional<SampleOutcome> control = {};
  /// SampleAttack::invert() of what all rounds explain of the update of round 0.
  std::optional<SampleOutcome> inverted = {};
  /// MembershipAttack::auc() of the last row of the peer that the group received, if any.
  std::optional<double> membership = {};
};

struct ObserverLeak {
  std::vector<int> observers;
  std::vector<LeakedPeer> peers;  ///< ascending
};

/// A sample beside what was read off for it.
struct ShownSample {
  std::vector<int> observers;
  int peer = 0;
  RecoveredSample recovered;
  std::vector<float> original;
};

struct Leak {
  std::vector<ObserverLeak> groups;
  std::vector<ShownSample> shown;          ///< the best of each pair, at most kMostShown
  std::vector<std::int64_t> sample_shape;  ///< [channels, height, width]
  bool reads_samples = false;              ///< the model is one whose samples can be read off
  std::string settings;                    ///< the resolved configuration, as TOML
};
inline constexpr std::size_t kMostShown = 64;

/// Errors (invalid): the configuration, or the request, is none that can be attacked; the message
/// says which would. (interrupted) as the request says. Errors too as of make_setup() and run().
Result<Leak> leak(Config config, const LeakRequest& request);

/// leak(), before it begins.
Status check_leak(const Config& config, const LeakRequest& request);

/// The outcome with means over the pairs of equal distance, for leak.json.
Json leak_json(const LeakRequest& request, const Leak& leak);
/// Those means as a table.
std::string leak_text(const LeakRequest& request, const Leak& leak);
/// Writes leak.json, resolved.toml and, if there are any, the shown samples to `folder`: as
/// samples.safetensors with `original` and `recovered`, of [sample, channel, height, width].
Status write_leak(const std::filesystem::path& folder, const LeakRequest& request,
                  const Leak& leak);

}  // namespace gossamer::peer
