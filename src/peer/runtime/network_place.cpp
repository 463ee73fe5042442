#include "peer/runtime/network_place.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::peer {

net::Identity identity_of(const Setup& setup) {
  net::Identity identity;
  identity.run_id = setup.config.run_id();
  identity.peers = setup.nodes();
  identity.topology = fmt::format("{} {}", setup.config.topology.kind, setup.schedule->hash());
  identity.model = fmt::format("{} {}", setup.config.model.kind, setup.model_hash());
  if (const std::string& more = setup.workload->spec().identity; !more.empty())
    identity.model += ", " + more;
  identity.configuration = setup.configuration_hash();
  identity.settings = setup.config.shared_settings();
  return identity;
}

std::vector<std::pair<int, int>> pairs_of(const Setup& setup, const std::vector<int>& hosted) {
  std::vector<std::pair<int, int>> pairs;
  for (int here : hosted)
    for (int there : setup.algorithm->partners(here, *setup.schedule))
      if (!std::binary_search(hosted.begin(), hosted.end(), there)) pairs.emplace_back(here, there);
  return pairs;
}

}  // namespace gossamer::peer
