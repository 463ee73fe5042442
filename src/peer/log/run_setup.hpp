// The configuration and the setup of a run, rebuilt from the files of its processes.
#pragma once

#include <optional>
#include <vector>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "peer/log/run_files.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// Error (data): the logs are of different runs.
Status check_same_run(const ProcessLog& first, const ProcessLog& other);

/// The configuration that the processes ran with, but for what `overrides` set. `parts`: their logs
/// by part (logs_by_part), none of them without a log. Errors: (data) the processes had different
/// ones; (invalid) with an override it would be another run.
Result<Config> read_config(const std::vector<std::vector<ProcessLog>>& parts,
                           const std::vector<Override>& overrides);

/// Whether read_setup() can build the model of the run here: it is not a program's, and depends on
/// no samples that the peers kept.
bool can_build_model(const Config& config);

/// The setup of whole replicas that a configuration of read_config() makes, on the CPU. `open`: the
/// participants of an open run. Where the data are the peers' own, it is that of a process without
/// peers, which knows the test samples and the agreed scales; where the model is a program's, or no
/// test samples are here, one that trains nothing, and has the tensors of the final parameters.
/// Errors (data) name the log whose numbers do not fit.
Result<Setup> read_setup(const std::vector<std::vector<ProcessLog>>& parts, Config config,
                         const std::optional<topology::Participants>& open);

}  // namespace gossamer::peer
