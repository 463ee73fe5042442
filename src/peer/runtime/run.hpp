// `gossamer run`: all peers of a network in one process, in virtual time.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "peer/checkpoint/resume.hpp"
#include "peer/log/recorder.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

struct RunRequest {
  std::filesystem::path folder;
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const Json&)> on_progress = [](const Json&) {};
  std::function<void(const std::string&)> message = [](const std::string&) {
  };  ///< lines for people
  ResumeChoice resume = {};
  std::size_t row_offset = 0;  ///< misaligns the rows, for tests
  /// Called at the end of a run that began, with why it ended early and the final parameters of its
  /// models in host memory, valid until the call returns.
  std::function<void(const std::optional<Error>&, const RowViews&)> on_end =
      [](const std::optional<Error>&, const RowViews&) {};
};

/// A run that began: its summary, and why it ended early if it did (summary and files are written
/// all the same).
struct RunOutcome {
  Json summary;
  std::optional<Error> stopped;
};

/// Runs to the end and writes the run folder. Errors: whatever kept it from starting or from
/// writing.
Result<RunOutcome> run(const Setup& setup, RunRequest request);

/// The run folder that the configuration asks for.
std::filesystem::path run_folder(const Config& config);

}  // namespace gossamer::peer
