// The message in which address books travel.
#include "net/wire/book_message.hpp"

#include <doctest/doctest.h>

using namespace gossamer;
using namespace gossamer::net;

namespace {

const std::string kBookNetwork = book_network("run-1", 4);

AddressRecord record_with(int peer, std::uint64_t process, std::uint64_t version) {
  AddressRecord record;
  record.peer = peer;
  record.process = process;
  record.version = version;
  record.address = {"10.0.0.1", 7000};
  return record;
}

/// The bytes of a message after its header.
std::vector<std::byte> payload(const std::vector<AddressRecord>& records) {
  const auto message = encode_book(kBookNetwork, records);
  return {message.begin() + kBookHeaderBytes, message.end()};
}

}  // namespace

TEST_CASE("a book travels as it is") {
  AddressRecord one = record_with(1, 77, 3), three = record_with(3, 78, AddressRecord::kMaxVersion);
  one.address = {"node-1.example", 1};
  one.settled = true;
  one.standing = Standing::lost;
  three.address = {"fe80::1", 65535};
  three.signature.emplace().fill(9);
  const std::vector<AddressRecord> records{one, three};
  const auto bytes = encode_book(kBookNetwork, records);
  const auto header = decode_book_header(std::span(bytes).first<kBookHeaderBytes>());
  REQUIRE(header.has_value());
  CHECK(header->network == kBookNetwork);
  CHECK(header->bytes == bytes.size() - kBookHeaderBytes);
  CHECK(decode_book(std::span(bytes).subspan(kBookHeaderBytes), 4) == records);
  CHECK(decode_book({}, 4) == std::vector<AddressRecord>{});
}

TEST_CASE("bytes that are no book are refused") {
  const auto good = payload({record_with(1, 77, 3), record_with(2, 78, 4)});
  REQUIRE(decode_book(good, 4).has_value());
  CHECK_FALSE(decode_book(good, 2).has_value());  // an id beyond n
  CHECK_FALSE(decode_book(payload({record_with(2, 1, 1), record_with(1, 2, 1)}), 4));  // the order
  const auto one = record_with(1, 1, 1);
  CHECK_FALSE(decode_book(payload({one, one, one}), 4));         // three of a peer
  CHECK_FALSE(decode_book(payload({record_with(1, 0, 1)}), 4));  // no process
  CHECK_FALSE(decode_book(payload({record_with(1, 1, 0)}), 4));
  CHECK_FALSE(decode_book(payload({record_with(1, 1, AddressRecord::kMaxVersion + 1)}), 4));
  AddressRecord odd = record_with(1, 1, 1);
  odd.address.port = 0;
  CHECK_FALSE(decode_book(payload({odd}), 4));
  odd.address = {"a b", 7};
  CHECK_FALSE(decode_book(payload({odd}), 4));
  odd.address = {"\x1b[2J", 7};
  CHECK_FALSE(decode_book(payload({odd}), 4));
  for (std::size_t size = 0; size < good.size(); ++size)
    if (size != good.size() / 2 && size != 0)
      CHECK_FALSE(decode_book(std::span(good).first(size), 4));
  auto bytes = encode_book(kBookNetwork, {});
  const auto header = [&] {
    return decode_book_header(std::span(bytes).first<kBookHeaderBytes>());
  };
  REQUIRE(header().has_value());
  for (const std::size_t at : {0, 4, 6, 8, 44}) {
    auto damaged = bytes;
    damaged[at] ^= std::byte{0x80};
    CHECK_FALSE(decode_book_header(std::span(damaged).first<kBookHeaderBytes>()).has_value());
  }
}
