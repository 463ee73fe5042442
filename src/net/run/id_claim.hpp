// Ids for processes that have none: each claims one in the address book of the network, without a
// process that gives them out.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/listening.hpp"

namespace gossamer::net {

struct IdClaimRequest {
  NetOptions options;  ///< with seeds, without keys and without addresses of peers
  std::string run_id;
  int nodes = 0;
  /// Lines for people: what is waited for.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// Asked again and again; true: the claim is given up.
  std::function<bool()> stopped = [] { return false; };
};

struct ClaimedId {
  int peer = 0;
  /// Where the others have found this process; its port stays open for the network.
  std::shared_ptr<const Listening> listening;
};

/// Waits until every id of the network has a process. Then no process gives its id up any more: of
/// two that claim one id the one with the higher number yields, so ids change only while one is
/// missing. A process that is restarted claims an id whose process is lost. Errors: join_timeout
/// with the number of processes that were found; rejected, if a seed refuses this process;
/// interrupted; network, if the port cannot be opened.
Result<ClaimedId> claim_id(const IdClaimRequest& request);

}  // namespace gossamer::net
