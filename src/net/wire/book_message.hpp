// The message in which processes exchange address books, to find each other (net/discovery/). A
// connection carries one in each direction, in place of hellos, unless the first is rejected.
// docs/WIRE.md has the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/io/address.hpp"

namespace gossamer::net {

/// The state of a process, as others record it (SWIM: Das, Gupta and Motivala 2002).
enum class Standing : std::uint8_t {
  alive = 0,
  suspected = 1,  ///< it did not answer a process, and has not refuted that yet
  lost = 2,       ///< it did not refute the suspicion in time
};

/// Ed25519.
using Signature = std::array<std::uint8_t, 64>;

/// Where the process that hosts a peer listens, as that process says.
struct AddressRecord {
  int peer = 0;
  std::uint64_t process = 0;  ///< a number that the process has drawn at its start; not 0
  std::uint64_t version = 0;  ///< raised by that process alone; from 1 to kMaxVersion
  Address address;            ///< with a port, or none
  bool settled = false;       ///< the process does not give the id up to another one
  /// The process has claimed the id, and has no other: of its records, the one with the highest
  /// version holds, whatever their peers.
  bool claimed = false;
  std::uint64_t view = 0;               ///< hash of which process has which id; 0: none yet
  Standing standing = Standing::alive;  ///< what others believe; not signed
  std::optional<Signature> signature;   ///< with the key of the process, in a network with keys

  static constexpr std::uint64_t kMaxVersion = std::uint64_t{1} << 62;

  bool operator==(const AddressRecord&) const = default;
};

/// The bytes that a record's signature covers: all but its standing. `network` is book_network().
std::string signed_text(const std::string& network, const AddressRecord& record);

/// What two processes must have in common to exchange books: a hash of run id and number of nodes,
/// as 32 hexadecimal digits.
std::string book_network(const std::string& run_id, int nodes);

inline constexpr std::size_t kBookHeaderBytes = 48;
/// What follows the header, at most, in a network of `nodes` nodes.
std::size_t most_book_bytes(int nodes);

/// A whole message. The records are of ascending peers, two of one peer at most.
std::vector<std::byte> encode_book(const std::string& network,
                                   std::span<const AddressRecord> records);

struct BookHeader {
  std::string network;
  std::size_t bytes = 0;  ///< that follow
};
/// Nothing if the bytes are no header of this version.
std::optional<BookHeader> decode_book_header(std::span<const std::byte, kBookHeaderBytes> bytes);
/// The records after the header, which are of ascending peers below `nodes`, two of one peer at
/// most, with addresses that can be called. Nothing if the bytes are none.
std::optional<std::vector<AddressRecord>> decode_book(std::span<const std::byte> bytes, int nodes);

}  // namespace gossamer::net
