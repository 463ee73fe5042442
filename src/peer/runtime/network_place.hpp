// A process's place in its network: what it has in common with all others, its links to them, and
// how its errors read there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "net/network.hpp"
#include "net/wire/hello.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// Whether net.peers has an address for every node. Error (invalid): for the peers alone.
Status check_addresses(const Setup& setup);

/// What all processes of a network have in common. Reads all of the data.
net::Identity identity_of(const Setup& setup);

/// (hosted node, node of another process) that exchange rows, each pair once.
std::vector<std::pair<int, int>> pairs_of(const gossip::Algorithm& algorithm,
                                          const topology::MixingSchedule& schedule,
                                          const std::vector<int>& hosted);

/// The graph of a network in which every two of `nodes` nodes have a link: of one that measures,
/// and of the workers of a replica.
Result<std::unique_ptr<topology::MixingSchedule>> all_pairs(int nodes);

/// The error as other processes report it: trouble with the files of this machine is trouble of
/// this peer.
Error for_others(Error error, const std::vector<int>& hosted);

/// The error of a process that `by` has stopped, "operator" for example.
Error stopped(const std::vector<int>& hosted, const std::string& by);

/// What a process says of rounds that its peers left out: the run is not complete.
std::string left_out_text(const std::vector<int>& hosted, gossip::Round left_out,
                          gossip::Round rounds);

/// A process with keys says that it refused connections, if it did.
void report_refused(const net::NetOptions& options, const net::RefusedConnections& refused,
                    const std::function<void(const std::string&)>& message);

/// What a process says that has finished and relays for `pairs` pairs of others.
std::string relays_text(const std::vector<int>& hosted, std::size_t pairs);

/// What a process says that has no checkpoint of the round from which the others resume; nor have
/// `without` nodes, with it.
std::string joins_resumed_text(const Setup& setup, std::size_t without, gossip::Round round);

/// The error of a process that finds a running network, in a run that no process can join.
Error cannot_join(const Setup& setup);

}  // namespace gossamer::peer
