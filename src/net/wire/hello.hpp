// The handshake: each end of a fresh connection sends one hello, which begins with magic and
// protocol version, so that any version can reject any other in words. The
// connecting peer names itself and its run. The answer of a peer that accepts is the same struct
// with a result; the answer of a peer that rejects is the first 8 bytes alone, so that nothing of a
// run can be learned from it, unless the other end has proved a key. docs/WIRE.md has the bytes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gossamer::net {

inline constexpr std::uint16_t kProtocolVersion = 20;

/// What all processes of a run must have in common. Texts are compared, and printed when they
/// differ, so a text is best a hash, or a name and a hash. A text of more than 63 bytes travels as
/// its beginning and its hash.
struct Identity {
  std::string run_id;
  int peers = 0;              ///< n
  std::string topology;       ///< hash of the mixing matrices
  std::string model;          ///< hash of its shape
  std::string configuration;  ///< hash of everything else that is shared
  /// What the hashes are made of, for messages: lines "section.key=value" in ascending order; empty
  /// if it is not known. Not compared. More than kMaxSettingsBytes do not travel.
  std::string settings = {};
  std::uint16_t protocol = kProtocolVersion;
};

enum class HandshakeResult : std::uint16_t {
  accepted = 0,
  wrong_version = 1,
  wrong_run = 2,
  wrong_peers = 3,
  wrong_topology = 4,
  wrong_model = 5,
  wrong_configuration = 6,
  unknown_id = 7,
  not_hosted = 8,
  not_a_partner = 9,
  duplicate_id = 10,
  still_connected = 11,    ///< retry: the network runs, and the old connection still looks alive
  retry_later = 12,        ///< retry: no new session is accepted at present
  resumed = 13,            ///< accepted: the session continues over this connection
  unknown_session = 14,    ///< another process answers, or this one has given the session up
  callee_dials_back = 15,  ///< retry: this end connects, and does so now
  wrong_key = 16,          ///< the key that this process has proved is not that of the peer
  does_not_wait = 17,      ///< of a relay: the peer that is called does not wait here
  relays_nothing = 18,     ///< of a relay: it relays nothing, or nothing more
};

/// The connection belongs to a session from now on.
inline bool is_accepted(HandshakeResult result) {
  return result == HandshakeResult::accepted || result == HandshakeResult::resumed;
}

/// The connecting peer tries again.
inline bool is_retried(HandshakeResult result) {
  return result == HandshakeResult::still_connected || result == HandshakeResult::retry_later ||
         result == HandshakeResult::callee_dials_back;
}

struct Hello {
  HandshakeResult result = HandshakeResult::accepted;  ///< of an answer
  int from = 0, to = 0;
  std::chrono::milliseconds failure_timeout{0};  ///< of the sender's failure detector
  Identity identity;
  bool running = false;  ///< the network of the sender has begun its rounds
  /// Of the connecting peer: the session to begin, or, if `resumes`, the one session to resume.
  /// Drawn at random; 0 is a session that cannot be resumed.
  std::uint64_t session = 0;
  bool resumes = false;
};

/// Magic, version and result: the same bytes in every version.
inline constexpr std::size_t kHelloPrefixBytes = 8;
/// A hello without its settings, and the most that these may be: a process of another version reads
/// as much of a hello before it closes the connection (HandshakeStream::kMaxDrainedBytes).
inline constexpr std::size_t kHelloBytes = 300;
inline constexpr std::size_t kMaxSettingsBytes = 3584;

/// kHelloBytes and the settings.
std::vector<std::byte> encode_hello(const Hello& hello);

/// What a connection begins with.
enum class Opening { hello, book, relay };

/// The first 8 bytes of a hello, of an address book (book_message.hpp), or of a request to a relay
/// (relay_request.hpp), of any version.
struct HelloPrefix {
  Opening opening = Opening::hello;
  std::uint16_t version = 0;
  HandshakeResult result = HandshakeResult::accepted;
};
/// A whole rejection: the first 8 bytes of an answer of this version.
std::array<std::byte, kHelloPrefixBytes> encode_rejection(HandshakeResult result);
/// The first 8 bytes of an address book of this version.
std::array<std::byte, kHelloPrefixBytes> encode_book_prefix();
/// The first 8 bytes of a request to a relay of this version.
std::array<std::byte, kHelloPrefixBytes> encode_relay_prefix();
/// Nothing if the bytes are none of the three.
std::optional<HelloPrefix> decode_hello_prefix(std::span<const std::byte, kHelloPrefixBytes> bytes);

/// The bytes of settings that follow the first kHelloBytes of a hello; nothing if these are none of
/// this version, or announce too many.
std::optional<std::size_t> settings_bytes(std::span<const std::byte, kHelloBytes> bytes);
/// A whole hello of this version, its texts made printable. Nothing if the bytes are none.
std::optional<Hello> decode_hello(std::span<const std::byte> bytes);

/// The first difference of `theirs` from `ours`; accepted if there is none.
HandshakeResult compare(const Identity& ours, const Identity& theirs);

/// The first setting that differs, and the number of others: "optimizer.rate is 0.1 there and 0.01
/// here". Empty if there is none, or the settings of one side are not known.
std::string first_difference(const std::string& theirs, const std::string& ours);

/// The result in words, as a clause: "its topology is ring-8 (77ab), ours is torus-8 (91cd)", with
/// the first setting that differs.
/// `theirs` is the identity of the process that "its" refers to, `id` the peer that connects.
std::string describe(HandshakeResult result, const Identity& theirs, const Identity& ours, int id);
/// That the other end has another protocol version, as a clause.
std::string describe_version(std::uint16_t theirs);
/// A rejection of `ours` in words, as far as this process knows them: the other end has sent the
/// result and nothing else. "its topology is not ours, ring-8 (77ab)".
std::string describe_rejection(HandshakeResult result, const Identity& ours, int id);

}  // namespace gossamer::net
