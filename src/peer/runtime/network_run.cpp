#include "peer/runtime/network_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "net/options.hpp"
#include "peer/runtime/networked_run.hpp"
#include "peer/setup/memory_check.hpp"

namespace gossamer::peer {
namespace {

Status check_hosted(const Setup& setup, const std::vector<int>& hosted) {
  const int n = setup.config.run.peers, s = setup.servers();
  if (setup.algorithm->requirements().one_node)
    return Error{ErrorKind::invalid,
                 fmt::format("algorithm.kind: '{}' runs in one process: use gossamer run",
                             setup.config.algorithm.kind)};
  for (int id : hosted)
    if (id < 0 || id >= setup.nodes())
      return Error{
          ErrorKind::invalid,
          fmt::format("peer id {} is not one of run.peers = {}: ids are 0 to {}{}", id, n, n - 1,
                      s == 0   ? ""
                      : s == 1 ? fmt::format(", and {} for the server of '{}'", n,
                                             setup.config.algorithm.kind)
                               : fmt::format(", and {} to {} for the servers of '{}'", n, n + s - 1,
                                             setup.config.algorithm.kind))};
  return {};
}

Status check_addresses(const Setup& setup) {
  const std::size_t given = setup.config.net.peers.size();
  if (given == 0 || setup.servers() == 0 || given == static_cast<std::size_t>(setup.nodes()))
    return {};
  return Error{ErrorKind::invalid, fmt::format("net.peers: {} addresses for {} peers and, after "
                                               "them, {} servers of '{}'; give one for each",
                                               given, setup.config.run.peers, setup.servers(),
                                               setup.config.algorithm.kind)};
}

}  // namespace

Status run_networked(const Setup& setup, const NetworkRunRequest& request) {
  GOSSAMER_TRY_STATUS(check_hosted(setup, request.hosted));
  GOSSAMER_TRY_STATUS(check_addresses(setup));
  GOSSAMER_TRY_STATUS(net::validate(setup.config.net, setup.nodes(), request.hosted));
  GOSSAMER_TRY_STATUS(check_memory(setup, request.hosted.size()));
  GOSSAMER_TRY(Startup startup,
               Startup::prepare(setup, {request.hosted, request.folder, request.resume,
                                        Host::Clock::real_time, request.message}));
  return NetworkedRun(setup, request, std::move(startup)).run();
}

}  // namespace gossamer::peer
