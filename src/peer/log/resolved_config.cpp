#include "peer/log/resolved_config.hpp"

#include <fmt/format.h>

#include <string>

#include "base/toml_file.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

std::string model_copy(int lowest) { return fmt::format("model-{}.toml", lowest); }

/// Usually the content is there already when a process resumes. While it joins a network, its
/// neighbours wait for it, so a write to a slow disk is avoided.
Status write_if_changed(const fs::path& path, const std::string& content) {
  const auto there = read_file(path, content.size());
  return there.ok() && *there == content ? Status() : write_file(path, content);
}

}  // namespace

fs::path resolved_path(const fs::path& folder, int lowest) {
  return folder / fmt::format("resolved-{}.toml", lowest);
}

Status write_resolved(const Config& config, const fs::path& folder, int lowest) {
  Config written = config;
  if (config.model.kind == kGraphModel) {
    ParameterValue& file = written.resolved.at("model").at("file");
    GOSSAMER_TRY(const std::string model, read_file(std::get<std::string>(file), kMaxTomlBytes));
    GOSSAMER_TRY_STATUS(write_if_changed(folder / model_copy(lowest), model));
    file = model_copy(lowest);  // relative to the configuration
  }
  return write_if_changed(resolved_path(folder, lowest), written.to_toml());
}

void remove_resolved(const fs::path& folder, int lowest) {
  std::error_code ignored;
  fs::remove(resolved_path(folder, lowest), ignored);
  fs::remove(folder / model_copy(lowest), ignored);
}

}  // namespace gossamer::peer
