// `gossamer peer`: the peers of this process as part of a network of processes, in real time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "peer/checkpoint/resume.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/setup.hpp"

namespace gossamer::peer {

struct NetworkRunRequest {
  std::vector<int> hosted;  ///< ids of this process's peers, ascending
  std::filesystem::path folder;
  ResumeChoice resume = {};
  std::function<void(const std::string&)> message = [](const std::string&) {
  };  ///< lines for people
  std::function<void(const Json&)> on_progress = [](const Json&) {};
};

/// Joins, runs to the end, says goodbye. An error is why it did not start or ended early. Where the
/// network was whole, the log and the parameters as they stand are written all the same; where it
/// never was, nothing is left and it may be tried again.
Status run_networked(const Setup& setup, const NetworkRunRequest& request);

}  // namespace gossamer::peer
