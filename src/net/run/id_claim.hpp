// Ids for processes that have none: each claims one in the address book of the network, without a
// process that gives them out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/listening.hpp"

namespace gossamer::net {

struct IdClaimRequest {
  NetOptions options;  ///< with seeds, without keys and without addresses of peers
  std::string run_id;
  int nodes = 0;
  std::string settings = {};     ///< Identity::settings
  std::vector<int> first = {};   ///< AddressBookOptions::first
  std::vector<int> former = {};  ///< AddressBookOptions::former
  /// Lines for people: how many ids have a process.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// Polled while it waits; true ends the claim.
  std::function<bool()> stopped = [] { return false; };
};

struct ClaimedId {
  int peer = 0;
  /// Where the others have found this process; its port stays open for the network.
  std::shared_ptr<const Listening> listening;
};

/// Claims an id once this process has exchanged books with another one, or listens at a seed, and
/// waits until the living processes agree on the ids: in a network that starts, every id that it
/// needs has a process then; in one that runs, a settled process suffices, so a restarted process
/// need not wait for another one that is lost. Then helps the others to settle, for 2 s at most.
/// Errors: join_timeout with the number of ids that have a process; rejected, if a seed refuses
/// this process; interrupted; network, if the port cannot be opened.
Result<ClaimedId> claim_id(const IdClaimRequest& request);

}  // namespace gossamer::net
