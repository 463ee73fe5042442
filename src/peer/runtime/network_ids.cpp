#include "peer/runtime/network_ids.hpp"

#include <fmt/format.h>

#include <utility>

#include "net/run/id_claim.hpp"
#include "peer/log/run_files.hpp"
#include "peer/setup/credentials.hpp"
#include "peer/setup/hosted_ids.hpp"
#include "topology/participants/participants.hpp"

namespace gossamer::peer {

Result<NetworkIds> find_network_ids(const Config& config, const NetworkIdsRequest& request,
                                    const Environment& environment) {
  GOSSAMER_TRY(const int nodes, node_count(config));
  GOSSAMER_TRY(std::vector<int> given,
               given_ids(request.option, request.origin, nodes, environment));
  if (!given.empty()) return NetworkIds{std::move(given)};
  const net::NetOptions& options = config.net;
  if (!options.key.empty()) {
    GOSSAMER_TRY(std::vector<int> own, ids_of_key(options));
    return NetworkIds{std::move(own)};
  }
  if (options.seeds.empty() || !options.peers.empty()) return no_id(request.origin);
  GOSSAMER_TRY_STATUS(net::validate_seeds(options));
  if (options.reach.advertise == net::kNoAddress)
    return invalid_error(
        "net.advertise: a process that cannot be called claims no id, as the others could not find "
        "out whether it still runs: give it one with --id, or a key");
  net::IdClaimRequest claim;
  claim.options = options;
  claim.run_id = config.run_id();
  claim.nodes = nodes;
  claim.settings = config.shared_settings();
  if (config.run.open) {
    GOSSAMER_TRY(const auto participants, topology::Participants::parse_open(
                                              config.run.participants, nodes, "run.participants"));
    claim.first = participants.at(0).peers;
  }
  // Of several processes that share a folder, any may have what one of them wrote.
  claim.former = logged_nodes(request.folder, claim.run_id);
  claim.message = request.message;
  claim.stopped = request.stopped;
  GOSSAMER_TRY(net::ClaimedId claimed, net::claim_id(claim));
  request.message(fmt::format("this process is peer {} of {}", claimed.peer, nodes));
  return NetworkIds{{claimed.peer}, std::move(claimed.listening)};
}

}  // namespace gossamer::peer
