#include "net/wire/hello.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/hash.hpp"

namespace gossamer::net {

namespace {

constexpr std::uint32_t kHelloMagic = 0x68534F47;  // "GOSh"
constexpr std::uint32_t kBookMagic = 0x62534F47;   // "GOSb"
constexpr std::uint32_t kRelayMagic = 0x72534F47;  // "GOSr"
constexpr std::size_t kTextBytes = 64;             // with a zero at the end

// Little-endian, as all supported machines are.
struct Wire {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t result;
  std::int32_t from, to, peers;
  std::uint32_t failure_timeout_milliseconds;
  std::uint32_t running;  // 0 or 1
  std::uint32_t session[2], resumes;
  char run_id[kTextBytes], topology[kTextBytes], model[kTextBytes], configuration[kTextBytes];
  std::uint32_t settings_bytes;  // that follow
};
static_assert(sizeof(Wire) == kHelloBytes);
static_assert(offsetof(Wire, from) == kHelloPrefixBytes);

/// Safe to print, with the line ends.
void make_printable(std::string& text) {
  for (char& c : text)
    if ((c < 0x20 || c > 0x7E) && c != '\n') c = '?';
}

/// `text` as its field has it and the partner reads it. One that is long, or that is not safe to
/// print, becomes its beginning and its hash.
std::string fitted(const std::string& text) {
  std::string safe = text;
  std::ranges::replace(safe, '\n', '?');
  make_printable(safe);
  if (text.size() < kTextBytes && safe == text) return text;
  return safe.substr(0, kTextBytes - 1 - 33) + "#" + hash_hex(text);
}

void put(const std::string& text, char (&field)[kTextBytes]) {
  const std::string shown = fitted(text);
  std::memcpy(field, shown.data(), shown.size());
}

/// Text of another process, safe to print.
std::string get(const char (&field)[kTextBytes]) {
  std::string text(field, strnlen(field, kTextBytes - 1));
  std::ranges::replace(text, '\n', '?');
  make_printable(text);
  return text;
}

std::array<std::byte, kHelloPrefixBytes> encode_prefix(std::uint32_t magic,
                                                       HandshakeResult result) {
  const std::uint16_t words[2] = {kProtocolVersion, static_cast<std::uint16_t>(result)};
  std::array<std::byte, kHelloPrefixBytes> bytes;
  std::memcpy(bytes.data(), &magic, sizeof magic);
  std::memcpy(bytes.data() + sizeof magic, words, sizeof words);
  return bytes;
}

using Settings = std::map<std::string_view, std::string_view>;

Settings settings_of(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto equals = line.find('='); equals != std::string_view::npos)
      settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

/// A value of `settings` for a message.
std::string value_in(const Settings& settings, std::string_view name) {
  constexpr std::size_t kShown = 80;
  const auto found = settings.find(name);
  if (found == settings.end()) return "not set";
  if (found->second.empty()) return "empty";
  return std::string(found->second.substr(0, kShown)) + (found->second.size() > kShown ? "…" : "");
}

constexpr const char* kRejectionAdvice =
    " (every machine needs the same file; the other process prints a setting that differs)";

std::string differ(const char* what, const std::string& theirs, const std::string& ours) {
  return fmt::format("its {} is {}, ours is {}", what, fitted(theirs), fitted(ours));
}

/// What follows a difference of hashes.
std::string why_they_differ(HandshakeResult result, const Identity& theirs, const Identity& ours) {
  if (theirs.settings.empty() || ours.settings.empty()) return {};
  const std::string difference = first_difference(theirs.settings, ours.settings);
  if (!difference.empty()) return "; " + difference;
  return result == HandshakeResult::wrong_configuration
             ? "; the settings are the same, and the contents of the data differ"
             : "";
}

}  // namespace

std::vector<std::byte> encode_hello(const Hello& hello) {
  const std::string& settings = hello.identity.settings;
  Wire wire{};
  wire.settings_bytes =
      settings.size() <= kMaxSettingsBytes ? static_cast<std::uint32_t>(settings.size()) : 0;
  wire.magic = kHelloMagic;
  wire.version = hello.identity.protocol;
  wire.result = static_cast<std::uint16_t>(hello.result);
  wire.from = hello.from;
  wire.to = hello.to;
  wire.peers = hello.identity.peers;
  wire.failure_timeout_milliseconds = static_cast<std::uint32_t>(hello.failure_timeout.count());
  wire.running = hello.running ? 1 : 0;
  wire.session[0] = static_cast<std::uint32_t>(hello.session);
  wire.session[1] = static_cast<std::uint32_t>(hello.session >> 32);
  wire.resumes = hello.resumes ? 1 : 0;
  put(hello.identity.run_id, wire.run_id);
  put(hello.identity.topology, wire.topology);
  put(hello.identity.model, wire.model);
  put(hello.identity.configuration, wire.configuration);
  std::vector<std::byte> bytes(kHelloBytes + wire.settings_bytes);
  std::memcpy(bytes.data(), &wire, sizeof wire);
  std::memcpy(bytes.data() + sizeof wire, settings.data(), wire.settings_bytes);
  return bytes;
}

std::array<std::byte, kHelloPrefixBytes> encode_rejection(HandshakeResult result) {
  return encode_prefix(kHelloMagic, result);
}

std::array<std::byte, kHelloPrefixBytes> encode_book_prefix() {
  return encode_prefix(kBookMagic, HandshakeResult::accepted);
}

std::array<std::byte, kHelloPrefixBytes> encode_relay_prefix() {
  return encode_prefix(kRelayMagic, HandshakeResult::accepted);
}

std::optional<HelloPrefix> decode_hello_prefix(
    std::span<const std::byte, kHelloPrefixBytes> bytes) {
  std::uint32_t magic;
  std::uint16_t words[2];
  std::memcpy(&magic, bytes.data(), sizeof magic);
  std::memcpy(words, bytes.data() + sizeof magic, sizeof words);
  if (magic != kHelloMagic && magic != kBookMagic && magic != kRelayMagic) return std::nullopt;
  const Opening opening = magic == kBookMagic    ? Opening::book
                          : magic == kRelayMagic ? Opening::relay
                                                 : Opening::hello;
  return HelloPrefix{opening, words[0], static_cast<HandshakeResult>(words[1])};
}

std::optional<std::size_t> settings_bytes(std::span<const std::byte, kHelloBytes> bytes) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.magic != kHelloMagic || wire.version != kProtocolVersion) return std::nullopt;
  if (wire.settings_bytes > kMaxSettingsBytes) return std::nullopt;
  return wire.settings_bytes;
}

std::optional<Hello> decode_hello(std::span<const std::byte> bytes) {
  if (bytes.size() < kHelloBytes) return std::nullopt;
  const auto more = settings_bytes(bytes.first<kHelloBytes>());
  if (!more || bytes.size() != kHelloBytes + *more) return std::nullopt;
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  Hello hello;
  hello.result = static_cast<HandshakeResult>(wire.result);
  hello.from = wire.from;
  hello.to = wire.to;
  hello.failure_timeout = std::chrono::milliseconds(wire.failure_timeout_milliseconds);
  hello.identity = {get(wire.run_id),        wire.peers, get(wire.topology), get(wire.model),
                    get(wire.configuration), {},         wire.version};
  hello.identity.settings.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof wire, *more);
  make_printable(hello.identity.settings);
  hello.running = wire.running != 0;
  hello.session = std::uint64_t{wire.session[1]} << 32 | wire.session[0];
  hello.resumes = wire.resumes != 0;
  return hello;
}

HandshakeResult compare(const Identity& ours, const Identity& theirs) {
  if (ours.protocol != theirs.protocol) return HandshakeResult::wrong_version;
  if (fitted(ours.run_id) != fitted(theirs.run_id)) return HandshakeResult::wrong_run;
  if (ours.peers != theirs.peers) return HandshakeResult::wrong_peers;
  if (fitted(ours.topology) != fitted(theirs.topology)) return HandshakeResult::wrong_topology;
  if (fitted(ours.model) != fitted(theirs.model)) return HandshakeResult::wrong_model;
  if (fitted(ours.configuration) != fitted(theirs.configuration))
    return HandshakeResult::wrong_configuration;
  return HandshakeResult::accepted;
}

std::string first_difference(const std::string& theirs, const std::string& ours) {
  if (theirs.empty() || ours.empty()) return {};
  std::string printable[] = {theirs, ours};
  for (std::string& each : printable) make_printable(each);
  const Settings there = settings_of(printable[0]), here = settings_of(printable[1]);
  std::set<std::string_view> names;
  for (const Settings* side : {&there, &here})
    for (const auto& [name, value] : *side) names.insert(name);
  std::erase_if(names, [&](std::string_view name) {
    const auto a = there.find(name), b = here.find(name);
    return a != there.end() && b != here.end() && a->second == b->second;
  });
  if (names.empty()) return {};
  // A setting of both sides is preferred: a different kind, for example, brings different keys.
  const auto both = std::ranges::find_if(
      names, [&](std::string_view name) { return there.contains(name) && here.contains(name); });
  const std::string_view first = both == names.end() ? *names.begin() : *both;
  std::string text = fmt::format("{} is {} there and {} here", first.substr(0, kTextBytes),
                                 value_in(there, first), value_in(here, first));
  if (names.size() > 1) text += fmt::format(", and {} more differ", names.size() - 1);
  return text;
}

std::string describe(HandshakeResult result, const Identity& theirs, const Identity& ours, int id) {
  const auto why = [&] { return why_they_differ(result, theirs, ours); };
  switch (result) {
    case HandshakeResult::accepted: return "nothing is wrong";
    case HandshakeResult::wrong_version:
      return differ("protocol version", std::to_string(theirs.protocol),
                    std::to_string(ours.protocol));
    case HandshakeResult::wrong_run: return differ("run", theirs.run_id, ours.run_id) + why();
    case HandshakeResult::wrong_peers:
      return differ("number of peers", std::to_string(theirs.peers), std::to_string(ours.peers)) +
             why();
    case HandshakeResult::wrong_topology:
      return differ("topology", theirs.topology, ours.topology) + why();
    case HandshakeResult::wrong_model: return differ("model", theirs.model, ours.model) + why();
    case HandshakeResult::wrong_configuration:
      return differ("shared configuration", theirs.configuration, ours.configuration) + why();
    case HandshakeResult::unknown_id:
      return fmt::format("there is no peer {} in a network of {}", id, ours.peers);
    case HandshakeResult::not_hosted: return "the requested peer does not live at this address";
    case HandshakeResult::not_a_partner:
      return fmt::format("peer {} is no neighbour of the requested peer", id);
    case HandshakeResult::duplicate_id:
      return fmt::format("the id is taken: a peer {} is connected already", id);
    case HandshakeResult::still_connected: return fmt::format("a peer {} is still connected", id);
    case HandshakeResult::retry_later: return "it accepts no new session at present";
    case HandshakeResult::resumed: return "the session is resumed";
    case HandshakeResult::unknown_session: return "it does not know the session";
    case HandshakeResult::callee_dials_back: return "it connects itself";
    case HandshakeResult::wrong_key: return fmt::format("the key is not that of peer {}", id);
    case HandshakeResult::does_not_wait: return "the peer that was called does not wait there";
    case HandshakeResult::relays_nothing: return "it relays nothing more";
  }
  return fmt::format("it gave a reason that this version does not know ({})",
                     static_cast<int>(result));
}

std::string describe_version(std::uint16_t theirs) {
  return fmt::format("its protocol version is {}, ours is {}", theirs, kProtocolVersion);
}

std::string describe_rejection(HandshakeResult result, const Identity& ours, int id) {
  const auto differs = [](const char* what, const std::string& own) {
    return fmt::format("its {} is not ours, {}{}", what, fitted(own), kRejectionAdvice);
  };
  switch (result) {
    case HandshakeResult::wrong_version:
      return fmt::format("its protocol version is not ours, {}", ours.protocol);
    case HandshakeResult::wrong_run: return differs("run", ours.run_id);
    case HandshakeResult::wrong_peers:
      return differs("number of peers", std::to_string(ours.peers));
    case HandshakeResult::wrong_topology: return differs("topology", ours.topology);
    case HandshakeResult::wrong_model: return differs("model", ours.model);
    case HandshakeResult::wrong_configuration:
      return differs("shared configuration", ours.configuration);
    default: return describe(result, ours, ours, id);
  }
}

}  // namespace gossamer::net
