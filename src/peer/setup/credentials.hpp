// The keys of a networked process, read from the files that its configuration names.
#pragma once

#include <optional>
#include <vector>

#include "net/options.hpp"
#include "net/tls/members.hpp"

namespace gossamer::peer {

/// The members by net.members or net.keys. Error: as of read_members, or (invalid) a key is none.
Result<net::MemberList> load_members(const net::NetOptions& options);

/// The key of this process and the members; nothing if the network has no keys. Errors: as of
/// net::KeyPair::load and load_members, or (invalid) the key is not that of a peer of this process.
Result<std::optional<net::Credentials>> load_credentials(const net::NetOptions& options,
                                                         const std::vector<int>& hosted);

/// The ids of the key of this process, ascending; of a configuration with net.key. Errors: as of
/// load_credentials, or (invalid) the key is that of no peer.
Result<std::vector<int>> ids_of_key(const net::NetOptions& options);

/// Error (invalid): net.peers, which has no {peer}, has another address for a peer than
/// net.members. Errors too as of read_members.
Status check_member_addresses(const net::NetOptions& options);

/// Fills net.peers with the addresses in net.members if net.peers is empty and all members have
/// one. Errors as of read_members.
Status add_addresses(net::NetOptions& options);

}  // namespace gossamer::peer
