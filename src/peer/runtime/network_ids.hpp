// Which peers of a network a process hosts: those that it was given, those of its key, or the one
// that it claims.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/listening.hpp"
#include "peer/config/config.hpp"
#include "peer/setup/local_rank.hpp"

namespace gossamer::peer {

struct NetworkIds {
  std::vector<int> ids;  ///< ascending
  /// Where the process listens already, under an id that it has claimed; else null.
  std::shared_ptr<const net::Listening> listening = {};
};

struct NetworkIdsRequest {
  std::string option;  ///< as of given_ids()
  std::string origin;
  std::filesystem::path folder = {};  ///< of the run; its logs say which id the process had before
  std::function<void(const std::string&)> message = [](const std::string&) {};
  std::function<bool()> stopped = [] { return false; };  ///< the wait is to end
};

/// The ids of given_ids(). Without any: in a network with keys those of the key of this process;
/// else, if the network has seeds and no list of addresses, the id that net::claim_id() finds, for
/// which it waits until the processes agree on the ids: that of a log of this run in `folder`, if
/// no living process has it. Errors: of these functions; (invalid) there is no way to an id, or the
/// key is that of no peer.
Result<NetworkIds> find_network_ids(const Config& config, const NetworkIdsRequest& request,
                                    const Environment& environment);

}  // namespace gossamer::peer
