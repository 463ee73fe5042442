// Where a process listens.
#pragma once

#include <cstdint>
#include <vector>

#include "net/io/socket.hpp"
#include "net/options.hpp"
#include "net/wire/book_message.hpp"

namespace gossamer::net {

struct Listening {
  OpenPort port;
  /// That other processes connect to (net.advertise, or where it listens); a host 0.0.0.0 or ::
  /// stands for any address of this machine, and none for a process that cannot be called.
  Address address;
  std::uint64_t process;  ///< the number of this process in address books (AddressRecord)
  std::vector<AddressRecord> book = {};  ///< the records that it knows already
};

/// Opens the port of listen_address(). With net.seeds, and neither net.listen nor
/// net.peers, it opens the first seed that is free and local (a number that this machine has,
/// localhost, or the machine's name), so that all machines can have the same file. Error (network):
/// names the address and says what to do.
Result<Listening> open_listening(const NetOptions& options, const std::vector<int>& hosted);

}  // namespace gossamer::net
