// The configuration beside a log, with which the run can be repeated.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "peer/config/config.hpp"

namespace gossamer::peer {

/// The configuration of a process, with the defaults filled in, beside its log in `folder`.
/// `lowest`: the lowest node of the process.
std::filesystem::path resolved_path(const std::filesystem::path& folder, int lowest);

/// Writes it. A model that a file describes is copied beside it, as model-k.toml, which the
/// configuration names: so it is still that model when its file has changed, or on another machine.
/// A file that has the right content already is not written. Errors (data) name the file.
Status write_resolved(const Config& config, const std::filesystem::path& folder, int lowest);

/// Removes what write_resolved() writes.
void remove_resolved(const std::filesystem::path& folder, int lowest);

}  // namespace gossamer::peer
