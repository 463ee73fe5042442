// Gradients of differentially private SGD (Abadi et al. 2016, "Deep Learning with Differential
// Privacy", Alg. 1). Each sample of the shard enters the batch by itself with probability q = B /
// |shard|; each sample's gradient g_s is scaled to a norm of at most C; and
//   g = (Σ_s g_s · min(1, C / ‖g_s‖) + N(0, σ²C² I) + Σ_j v_j) / B,
// where a gradient that is not finite counts as 0. The noise v_j ~ N(0, τ²C² I) that the peer
// shares with a neighbour j has the opposite sign there; without privacy.pair_noise there is none.
// A peer's gradients are all that its rows have of its samples, so that what neighbours receive, or
// anybody who listens, tells no more of a sample than theory/privacy_accountant.hpp states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/device_rows.hpp"
#include "train/privacy/options.hpp"
#include "train/privacy/pair_noise.hpp"

namespace gossamer::train {

template <class Real>
struct PrivateGradientRequest {
  int peer = 0;
  std::uint64_t step = 0;  ///< local step number; a peer asks once for each
  std::span<const std::uint32_t> shard;
  double batch = 1;                  ///< B: expected samples of a batch, at most the shard's
  double weight = 1;                 ///< the noisy gradient is multiplied by it
  const Real* parameters = nullptr;  ///< device memory, as are the next two
  Real* gradient = nullptr;          ///< out
  double* loss = nullptr;            ///< the sum of the samples' losses, divided by B, is added
};

/// Thread: any, one at a time.
template <class Real>
class PrivateGradient {
 public:
  /// `options`: with clip and noise_multiplier. `pairs`: of all peers that are asked for. `seed`:
  /// of reproducible noise.
  PrivateGradient(const PrivacyOptions& options, PairNoiseRequest pairs, std::uint64_t seed,
                  gpu::BasicDevice<Real>& device, std::size_t parameters);

  /// With the noise "reproducible", a pure function of the request, the seed and the samples. The
  /// same bits on every device whose gradients have the same bits.
  void compute(const gpu::Task& task, const PrivateGradientRequest<Real>& request);

  /// Bytes of device memory on each GPU that computes.
  static std::size_t workspace_bytes(std::size_t parameters);

 private:
  /// Memory on one GPU.
  struct Workspace {
    gpu::DeviceRows<Real> rows;      ///< 0: zeros; 1: a partial sum; then gradients of samples
    gpu::DeviceRows<double> losses;  ///< of the samples
  };
  Workspace& workspace_of(const Real* row);
  void add_pair_noise(int peer, std::uint64_t step);
  /// Adds the clipped gradients of a few samples to `request.gradient`. Returns the sum of their
  /// losses.
  double add_clipped(const gpu::Task& task, const PrivateGradientRequest<Real>& request,
                     std::span<const std::uint32_t> samples, Workspace& workspace);
  Real clip_factor(double norm) const;

  PrivacyOptions options_;
  PairNoiseRequest pairs_;
  std::uint64_t seed_;
  gpu::BasicDevice<Real>& device_;
  std::size_t parameters_;
  std::vector<Workspace> workspaces_;  ///< by GPU index; empty until the GPU computes
  std::vector<std::uint32_t> samples_;
  std::vector<Real> noise_;
};

}  // namespace gossamer::train
