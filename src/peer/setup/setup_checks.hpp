// Combinations of settings that cannot run. Each error (invalid) names the key, the reason, and
// settings that would work. Internal to make_setup().
#pragma once

#include "base/result.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// The algorithm against the policy, the weights and the initial parameters.
Status check_algorithm(const Config& config, const gossip::Algorithm& algorithm,
                       const topology::MixingSchedule& schedule);

/// A workload that the caller of make_setup() brings, or null, against model.kind, the algorithm,
/// the device and the checkpoints.
Status check_external(const Setup& setup, const Workload* external);

/// The algorithm against the optimizer of setup.workload.
Status check_optimizer(const Setup& setup);

/// data.weights against the algorithm, the optimizer and the mixing rule.
Status check_data_weights(const Setup& setup);
/// Own data of an open run: nothing depends on what peers have that may join.
Status check_open_data(const Setup& setup);

/// The algorithm and the policy against the codec.
Status check_codec(const Config& config, const gossip::Algorithm& algorithm,
                   const gossip::Codec& codec);

/// The algorithm and the policy against the properties of W in setup.reports, of the first
/// participants.
Status check_matrix(const Setup& setup);

/// The duration of the run against the range of the virtual clock: it counts nanoseconds in 63
/// bits, 292 years.
Status check_virtual_time(const Setup& setup);

}  // namespace gossamer::peer
