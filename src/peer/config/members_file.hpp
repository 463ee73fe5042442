// The file of members (net.members): the public key of each peer, and perhaps its address.
//
//   [[member]]
//   id = 0                       # or ids = [0, 1], of a process that hosts several peers
//   key = "…"                    # its public key
//   address = "10.0.0.5:7000"    # may be omitted
//   expires = 2027-03-01         # may be omitted: when this entry ends; a day begins at midnight
//                                # UTC, and 2027-03-01T12:00:00Z is a time
//
// An id may be that of several entries, with several keys, which are then all valid: so a key is
// rotated. Of several entries of an id with one key, the one that ends last counts.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "net/tls/members.hpp"

namespace gossamer::peer {

/// What the file says of all times.
struct MembersFile {
  struct Key {
    net::PublicKey key;
    std::chrono::sys_seconds expires;  ///< sys_seconds::max(): never
  };
  std::map<int, std::vector<Key>> keys;  ///< by the id of their peer
  std::map<int, std::string> addresses;  ///< of the peers that have one

  /// The members at a time. A peer of which all keys have expired is a member without a key.
  net::MemberList at(std::chrono::sys_seconds now) const;
  /// The first time after `now` at which a key expires, or sys_seconds::max().
  std::chrono::sys_seconds next_expiry(std::chrono::sys_seconds now) const;
};

/// Errors: (data) the file cannot be read; (invalid) it is no list of members; the message names
/// the file, the line and the key.
Result<MembersFile> read_members(const std::string& path);

/// The time of this machine's clock.
std::chrono::sys_seconds wall_time();

}  // namespace gossamer::peer
