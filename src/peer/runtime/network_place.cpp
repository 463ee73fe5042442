#include "peer/runtime/network_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/id_list.hpp"

namespace gossamer::peer {

Status check_addresses(const Setup& setup) {
  const std::size_t given = setup.config.net.peers.size();
  if (given == 0 || setup.servers() == 0 || given == static_cast<std::size_t>(setup.nodes()))
    return {};
  return invalid_error(
      fmt::format("net.peers: {} addresses for {} peers and, after "
                  "them, {} servers of '{}'; give one for each",
                  given, setup.config.run.peers, setup.servers(), setup.config.algorithm.kind));
}

net::Identity identity_of(const Setup& setup) {
  net::Identity identity;
  identity.run_id = setup.config.run_id();
  if (setup.part)
    identity.run_id += fmt::format("-part{}of{}", *setup.part, setup.config.model.split.workers());
  identity.peers = setup.nodes();
  identity.topology = fmt::format("{} {}", setup.config.topology.kind, setup.schedule->hash());
  identity.model = fmt::format("{} {}", setup.config.model.kind, setup.model_hash());
  if (const std::string& more = setup.workload->spec().identity; !more.empty())
    identity.model += ", " + more;
  identity.configuration = setup.configuration_hash();
  identity.settings = setup.config.shared_settings();
  return identity;
}

std::vector<std::pair<int, int>> pairs_of(const gossip::Algorithm& algorithm,
                                          const topology::MixingSchedule& schedule,
                                          const std::vector<int>& hosted) {
  std::vector<std::pair<int, int>> pairs;
  for (int here : hosted)
    for (int there : algorithm.partners(here, schedule))
      if (!std::binary_search(hosted.begin(), hosted.end(), there)) pairs.emplace_back(here, there);
  return pairs;
}

Result<std::unique_ptr<topology::MixingSchedule>> all_pairs(int nodes) {
  topology::ScheduleRequest request;
  request.kind = "complete";
  request.context.peers = nodes;
  return topology::make_schedule(request);
}

Error for_others(Error error, const std::vector<int>& hosted) {
  if (error.kind == ErrorKind::data || error.kind == ErrorKind::internal)
    error.message = fmt::format("{} failed: {}", peers_text(hosted), error.message);
  return error;
}

Error stopped(const std::vector<int>& hosted, const std::string& by) {
  const bool one = hosted.size() == 1;
  return {ErrorKind::interrupted, fmt::format("{} {} stopped by {} {}", peers_text(hosted),
                                              one ? "was" : "were", one ? "its" : "their", by)};
}

std::string left_out_text(const std::vector<int>& hosted, gossip::Round left_out,
                          gossip::Round rounds) {
  return fmt::format(
      "the run is not complete: {} {} cut off from others, and left out {} of {} rounds to go on "
      "in theirs",
      peers_text(hosted), hosted.size() == 1 ? "was" : "were", left_out, rounds);
}

void report_refused(const net::NetOptions& options, const net::RefusedConnections& refused,
                    const std::function<void(const std::string&)>& message) {
  if (options.key.empty() || refused.keys + refused.handshakes + refused.hellos == 0) return;
  message(fmt::format(
      "connections that were refused: {} for their key, {} without a handshake, {} for other "
      "reasons",
      refused.keys, refused.handshakes, refused.hellos));
}

std::string relays_text(const std::vector<int>& hosted, std::size_t pairs) {
  const bool one = hosted.size() == 1;
  return fmt::format(
      "{} {} finished; {} pair{} of other peers {} connected through this process, which goes on "
      "until they have too (Ctrl-C or SIGTERM ends it)",
      peers_text(hosted), one ? "has" : "have", pairs, pairs == 1 ? "" : "s",
      pairs == 1 ? "is" : "are");
}

std::string joins_resumed_text(const Setup& setup, std::size_t without, gossip::Round round) {
  const topology::Participants& participants = setup.schedule->participants();
  const std::size_t nodes = participants.is_open() ? participants.at(0).peers.size()
                                                   : static_cast<std::size_t>(setup.nodes());
  return fmt::format(
      "{} of {} nodes resume from their checkpoints of round {}; this process has none of that "
      "round, and joins them",
      nodes - without, nodes, round);
}

Error cannot_join(const Setup& setup) {
  return {ErrorKind::rejected,
          fmt::format("the network runs already, and no process can join it: {}",
                      setup.config.net.on_loss == "stop"
                          ? std::string("net.on_loss is stop")
                          : fmt::format("algorithm '{}' needs every peer from the start",
                                        setup.config.algorithm.kind))};
}

}  // namespace gossamer::peer
