#include "net/wire/book_message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

namespace {

constexpr std::size_t kNetworkBytes = 32;
constexpr std::size_t kMaxAddressBytes = 255;
constexpr std::uint8_t kStandingBits = 3, kSettledBit = 4, kSignedBit = 8, kClaimedBit = 16;

// Little-endian, as all supported machines are.
struct HeaderWire {
  std::array<std::byte, kHelloPrefixBytes> prefix;
  char network[kNetworkBytes];
  std::uint32_t bytes, unused;
};
static_assert(sizeof(HeaderWire) == kBookHeaderBytes);

/// What precedes the address, and the signature if there is one.
struct RecordWire {
  std::uint32_t peer;
  std::uint32_t process[2], version[2], view[2];
  std::uint8_t flags, address_bytes;
  std::uint16_t unused;
};
static_assert(sizeof(RecordWire) == 32);

std::uint64_t joined(const std::uint32_t (&words)[2]) {
  return std::uint64_t{words[1]} << 32 | words[0];
}

void split(std::uint64_t value, std::uint32_t (&words)[2]) {
  words[0] = static_cast<std::uint32_t>(value);
  words[1] = static_cast<std::uint32_t>(value >> 32);
}

template <class Value>
void append(std::vector<std::byte>& bytes, const Value* values, std::size_t count) {
  const auto* first = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), first, first + count * sizeof(Value));
}

/// The record at the beginning of `bytes`, which it is removed from.
std::optional<AddressRecord> take_record(std::span<const std::byte>& bytes) {
  RecordWire wire;
  if (bytes.size() < sizeof wire) return std::nullopt;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  bytes = bytes.subspan(sizeof wire);
  const bool is_signed = (wire.flags & kSignedBit) != 0;
  const std::size_t more = wire.address_bytes + (is_signed ? sizeof(Signature) : 0);
  if (bytes.size() < more || wire.unused != 0 || wire.flags >= 2 * kClaimedBit ||
      (wire.flags & kStandingBits) > 2)
    return std::nullopt;
  const auto address =
      parse_address(std::string(reinterpret_cast<const char*>(bytes.data()), wire.address_bytes));
  const bool none = wire.address_bytes == 0;
  if (!none && (!address.ok() || address->port == 0)) return std::nullopt;
  AddressRecord record;
  record.peer = static_cast<int>(wire.peer & INT32_MAX);
  record.process = joined(wire.process);
  record.version = joined(wire.version);
  record.view = joined(wire.view);
  if (!none) record.address = *address;
  record.settled = (wire.flags & kSettledBit) != 0;
  record.claimed = (wire.flags & kClaimedBit) != 0 && !is_signed;  // keys leave nothing to claim
  record.standing = static_cast<Standing>(wire.flags & kStandingBits);
  if (is_signed)
    std::memcpy(record.signature.emplace().data(), bytes.data() + wire.address_bytes,
                sizeof(Signature));
  bytes = bytes.subspan(more);
  const bool in_range = wire.peer <= INT32_MAX && record.process != 0 && record.version != 0 &&
                        record.version <= AddressRecord::kMaxVersion;
  return in_range ? std::optional(record) : std::nullopt;
}

}  // namespace

std::string signed_text(const std::string& network, const AddressRecord& record) {
  return fmt::format("gossamer address record\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", network, record.peer,
                     record.process, record.version, to_string(record.address),
                     record.settled ? "settled" : "unsettled", record.view);
}

std::string book_network(const std::string& run_id, int nodes) {
  return hash_hex(fmt::format("{}\n{}", nodes, run_id));
}

std::size_t most_book_bytes(int nodes) {
  return 2 * static_cast<std::size_t>(nodes) *
         (sizeof(RecordWire) + kMaxAddressBytes + sizeof(Signature));
}

std::vector<std::byte> encode_book(const std::string& network,
                                   std::span<const AddressRecord> records) {
  GOSSAMER_CHECK(network.size() == kNetworkBytes, "a network as of book_network()");
  std::vector<std::byte> payload;
  for (const AddressRecord& record : records) {
    const std::string address = record.address.is_none() ? "" : to_string(record.address);
    GOSSAMER_CHECK(address.size() <= kMaxAddressBytes, "an address of 255 characters at most");
    RecordWire wire{};
    wire.peer = static_cast<std::uint32_t>(record.peer);
    split(record.process, wire.process);
    split(record.version, wire.version);
    split(record.view, wire.view);
    wire.flags = static_cast<std::uint8_t>(
        static_cast<unsigned>(record.standing) | (record.settled ? kSettledBit : 0u) |
        (record.claimed ? kClaimedBit : 0u) | (record.signature ? kSignedBit : 0u));
    wire.address_bytes = static_cast<std::uint8_t>(address.size());
    append(payload, &wire, 1);
    append(payload, address.data(), address.size());
    if (record.signature) append(payload, record.signature->data(), record.signature->size());
  }
  HeaderWire header{};
  header.prefix = encode_book_prefix();
  std::memcpy(header.network, network.data(), kNetworkBytes);
  header.bytes = static_cast<std::uint32_t>(payload.size());
  std::vector<std::byte> bytes;
  append(bytes, &header, 1);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

std::optional<BookHeader> decode_book_header(std::span<const std::byte, kBookHeaderBytes> bytes) {
  HeaderWire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  const auto prefix = decode_hello_prefix(bytes.first<kHelloPrefixBytes>());
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!prefix || prefix->opening != Opening::book || prefix->version != kProtocolVersion ||
      prefix->result != HandshakeResult::accepted || wire.unused != 0 ||
      !std::ranges::all_of(wire.network, is_digit))
    return std::nullopt;
  return BookHeader{std::string(wire.network, kNetworkBytes), wire.bytes};
}

std::optional<std::vector<AddressRecord>> decode_book(std::span<const std::byte> bytes, int nodes) {
  std::vector<AddressRecord> records;
  while (!bytes.empty()) {
    auto record = take_record(bytes);
    const int first = records.empty() ? 0 : records.back().peer;
    if (!record || record->peer < first || record->peer >= nodes) return std::nullopt;
    // A record, and one that its process has retracted.
    if (records.size() >= 2 && records[records.size() - 2].peer == record->peer)
      return std::nullopt;
    records.push_back(*std::move(record));
  }
  return records;
}

}  // namespace gossamer::net
