// The file of members (net.members): the public key of each peer, and perhaps its address.
//
//   [[member]]
//   id = 0                       # or ids = [0, 1], of a process that hosts several peers
//   key = "…"                    # its public key
//   address = "10.0.0.5:7000"    # may be omitted
//
// An id may be that of several entries, whose keys are then all valid: so a key is rotated.
#pragma once

#include <string>

#include "net/tls/members.hpp"

namespace gossamer::peer {

/// Errors: (data) the file cannot be read; (invalid) it is no list of members; the message names
/// the file, the line and the key.
Result<net::MemberList> read_members(const std::string& path);

}  // namespace gossamer::peer
