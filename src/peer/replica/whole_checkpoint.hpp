// Checkpoints of whole models, put together from those of the workers of cut ones.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/config/config.hpp"

namespace gossamer::peer {

/// Puts the checkpoints of the newest round of which all workers of the run in `folder` have one
/// together, and writes it into folder/checkpoints: a run that cuts its models in any way, or not
/// at all, resumes from it. `overrides`: as of collect(). Returns the path of the manifest.
/// `on_message` receives messages for the user: damaged checkpoints, and those of other runs, are
/// skipped. Errors: (invalid) the models are not cut over processes, or their state cannot be put
/// together; (data) there is no such round, the workers of a replica disagree after it, or a log is
/// missing or of another run.
Result<std::filesystem::path> collect_checkpoint(
    const std::filesystem::path& folder, const std::vector<Override>& overrides,
    const std::function<void(const std::string&)>& on_message);

}  // namespace gossamer::peer
