// The first thing said on a connection: a struct of fixed size, magic and protocol version first,
// so that any version can refuse any other in words. The caller says who it is and what it runs;
// the answer is the same struct with a verdict.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace gossamer::net {

inline constexpr std::uint16_t kProtocolVersion = 5;

/// What all processes of a run must agree on. Texts are compared, and shown when they differ: best
/// a hash, or a name and a hash. What is longer than 63 bytes travels as its beginning and its
/// hash.
struct Identity {
  std::string run_id;
  int peers = 0;              ///< n
  std::string topology;       ///< of the mixing matrices' values
  std::string model;          ///< of the shape
  std::string configuration;  ///< of all that is shared beside these
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
  present = 11,  ///< not yet, come again: of a network that runs, whose connection to the caller
                 ///< still looks alive
  later = 12,    ///< not now, come again
  resumed =
      13,     ///< accepted, and what the session has not carried yet goes on over this connection
  gone = 14,  ///< the session is not known: another process lives here, or this one has given it up
  calls = 15,  ///< whoever was called calls itself
};

/// Whether the connection is a session's from now on.
inline bool takes(HandshakeResult verdict) {
  return verdict == HandshakeResult::accepted || verdict == HandshakeResult::resumed;
}

/// Whether the caller that is told so tries again.
inline bool comes_again(HandshakeResult verdict) {
  return verdict == HandshakeResult::present || verdict == HandshakeResult::later ||
         verdict == HandshakeResult::calls;
}

struct Hello {
  HandshakeResult verdict = HandshakeResult::accepted;  ///< of an answer
  int from = 0, to = 0;
  std::chrono::milliseconds failure_timeout{
      0};  ///< after which the speaker takes the other for lost
  Identity identity;
  bool running = false;  ///< the speaker's network has begun
  /// Of the caller: the session that it wishes to begin, or, if `resumes`, to go on with and no
  /// other. Drawn at random; 0: one that cannot be gone on with.
  std::uint64_t session = 0;
  bool resumes = false;
};

inline constexpr std::size_t kHelloPrefixBytes =
    8;  // magic, version, verdict: the same in every version
inline constexpr std::size_t kHelloBytes = 296;

std::array<std::byte, kHelloBytes> encode_hello(const Hello& hello);

/// What any version's first 8 bytes say; nothing if they are no hello.
struct HelloPrefix {
  std::uint16_t version = 0;
  HandshakeResult verdict = HandshakeResult::accepted;
};
std::optional<HelloPrefix> decode_hello_prefix(std::span<const std::byte, kHelloPrefixBytes> bytes);

/// A whole hello of our version; texts are made printable. Nothing if it is none.
std::optional<Hello> decode_hello(std::span<const std::byte, kHelloBytes> bytes);

/// How `theirs` differs from `ours`, first difference first; accepted if it does not.
HandshakeResult compare(const Identity& ours, const Identity& theirs);

/// The verdict in words, as a clause: "its topology is ring-8 (77ab), ours is torus-8 (91cd)".
/// `theirs` belongs to the process that "its" means.
std::string describe(HandshakeResult verdict, const Identity& theirs, const Identity& ours, int id);

}  // namespace gossamer::net
