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
/// `on_message` receives messages for the user: damaged checkpoints are skipped. Errors: (invalid)
/// the models are not cut over processes; (data) there is no such round, or a file is missing or
/// damaged, which is named.
Result<std::filesystem::path> collect_checkpoint(
    const std::filesystem::path& folder, const std::vector<Override>& overrides,
    const std::function<void(const std::string&)>& on_message);

}  // namespace gossamer::peer
