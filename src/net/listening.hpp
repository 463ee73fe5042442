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
  /// Under which other processes reach it; a host 0.0.0.0 or :: stands for any address of this
  /// machine.
  Address address;
  std::uint64_t process;  ///< the number of this process in address books (AddressRecord)
  std::vector<AddressRecord> book = {};  ///< what it knows of the others
};

/// Opens the port of listen_address(). Of a process that is to find the others from net.seeds and
/// has no address of its own: the first seed that is an address of this machine and has no process
/// yet, so that all machines can have the same file. Error (network): names the address and says
/// what to do.
Result<Listening> open_listening(const NetOptions& options, const std::vector<int>& hosted);

}  // namespace gossamer::net
