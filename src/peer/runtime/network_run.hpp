// `gossamer peer`: runs the peers of this process as part of a network of processes, in real time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "peer/checkpoint/resume.hpp"
#include "peer/log/recorder.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

struct NetworkRunRequest {
  std::vector<int> hosted;  ///< ids of the peers of this process, ascending
  std::filesystem::path folder;
  ResumeChoice resume = {};
  /// Lines for people.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  std::function<void(const Json&)> on_progress = [](const Json&) {};
};

/// Joins the network, runs to the end, and leaves. The error says why the run did not start or
/// ended early. If the network was whole, the log and the parameters as they stand are written even
/// so; if it never was, nothing is left and the run may be tried again.
Status run_networked(const Setup& setup, const NetworkRunRequest& request);

}  // namespace gossamer::peer
