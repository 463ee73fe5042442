// The secrets that the peers of a process share with their neighbours
// (train/privacy/pair_noise.hpp), and how processes come to have them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "net/tls/key_agreement.hpp"
#include "train/privacy/pair_noise.hpp"

namespace gossamer::peer {

/// Two peers of this process have a secret from the operating system. With a peer of another
/// process one has none until agree(), and none at all if one of the two joins the network later,
/// or comes back: their noise must not be that of the steps before. Secrets are kept in memory
/// alone, so that no step is ever taken twice with the same noise. Thread: one at a time.
class SecretPairs final : public train::PairSecrets {
 public:
  /// `hosted`: the peers of this process. `run_id`: secrets of other runs are others.
  SecretPairs(std::string run_id, std::vector<int> hosted)
      : run_id_(std::move(run_id)), hosted_(std::move(hosted)) {}

  /// The public key of this process, for its partners, in its 32 bytes.
  std::string contribution() const;
  /// Takes in that of the process of peer `there`. Error (lost_peer), worded as a clause: it is no
  /// key, or one of the few with which the secret would be public.
  Status agree(int here, int there, const std::string& contribution);

  std::unique_ptr<train::BitSource> bits(int peer, int partner, std::uint64_t step) override;

 private:
  bool is_here(int peer) const;

  std::string run_id_;
  std::vector<int> hosted_;
  net::KeyAgreement own_;
  std::map<std::pair<int, int>, net::Secret> secrets_;  ///< of the lower and the higher peer
};

/// privacy.noise = reproducible: secrets that follow from the seed, which hide nothing.
class ReproduciblePairs final : public train::PairSecrets {
 public:
  explicit ReproduciblePairs(std::uint64_t seed) : seed_(seed) {}
  std::unique_ptr<train::BitSource> bits(int peer, int partner, std::uint64_t step) override;

 private:
  std::uint64_t seed_;
};

}  // namespace gossamer::peer
