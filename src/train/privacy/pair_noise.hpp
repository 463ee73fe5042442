// Noise of private gradients that two peers add with opposite signs, so that it cancels in their
// sum (DECOR: Allouah et al. 2024; theory/pair_noise.hpp has what it hides).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gossamer::train {

/// Random bits, one after the other.
class BitSource {
 public:
  virtual ~BitSource() = default;
  virtual void fill(std::span<std::uint64_t> numbers) = 0;
};

/// What two peers share, and no other peer knows. Thread: one at a time.
class PairSecrets {
 public:
  virtual ~PairSecrets() = default;
  /// The bits of an undirected edge for a local step: the same at both ends, and asked for once at
  /// each. Where the two have no secret in common they are this end's alone: then the noise does
  /// not cancel, and hides no less.
  virtual std::unique_ptr<BitSource> bits(int peer, int partner, std::uint64_t step) = 0;
};

struct PairNoiseRequest {
  double deviation = 0;                    ///< of the noise of an edge; 0: there is none
  std::vector<std::vector<int>> partners;  ///< by peer, ascending
  std::shared_ptr<PairSecrets> secrets;
};

}  // namespace gossamer::train
