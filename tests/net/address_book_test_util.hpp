// Words of the tests of address books.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "net/discovery/address_book.hpp"

namespace gossamer::net::words {

using namespace std::chrono_literals;

inline AddressBookOptions options_of(std::uint64_t process, int nodes = 4) {
  AddressBookOptions options;
  options.nodes = nodes;
  options.network = book_network("run-1", nodes);
  options.process = process;
  options.suspicion_time = 5s;
  return options;
}

inline Address address_of(std::uint64_t process) {
  return {fmt::format("10.{}.{}.{}", process >> 24 & 255, process >> 16 & 255, process >> 8 & 255),
          static_cast<std::uint16_t>(7000 + process % 256)};
}

inline AddressBook host(std::uint64_t process, std::vector<int> peers, int nodes = 4) {
  AddressBook book(options_of(process, nodes));
  book.host(peers);
  book.listen_at(address_of(process));
  return book;
}

inline AddressBook claimer(std::uint64_t process, int nodes) {
  AddressBook book(options_of(process, nodes));
  book.listen_at(address_of(process));
  return book;
}

/// Both ends send what they knew before.
inline void exchange(AddressBook& a, AddressBook& b, gossip::Time now = 0s) {
  const auto of_a = a.records();
  b.merge(of_a, now);
  a.merge(b.records(), now);
}

inline AddressRecord record_of(int peer, std::uint64_t process, std::uint64_t version) {
  AddressRecord record;
  record.peer = peer;
  record.process = process;
  record.version = version;
  record.address = address_of(process);
  return record;
}

}  // namespace gossamer::net::words
