// What a codec is: how a row becomes a message of fewer bytes, and a message a row again. One file
// of gossip/codecs/ is one kind. Messages are whole numbers of 4-byte words and travel as values
// do, in chunks of any size; they are made and read whole, on the device, so a codec's blocks have
// nothing to do with chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "gossip/links/link.hpp"
#include "gpu/device.hpp"

namespace gossamer::gossip {

/// What becomes of a received value: into ← value, or into ← into + value.
enum class Combine { replace, add };

/// What is left of a row in its message, the best first.
enum class Fidelity {
  exact,    ///< every bit
  rounded,  ///< every value, to within a small part of itself or of its block's largest: mixing
            ///< stalls at that floor
  partial,  ///< a few values, or a bit of each: sound only where what was left out is sent later
            ///< (error feedback)
};

/// Rows and messages are device memory and do not overlap. `peer` and `round` are the sender's:
/// what random choices are keyed by, so that the receiver makes the same.
struct EncodeRequest {
  const float* values = nullptr;
  std::size_t length = 0;    ///< d
  float* message = nullptr;  ///< out: [words(d)]
  int peer = 0;
  Round round = 0;
};
struct DecodeRequest {
  const float* message = nullptr;  ///< [words(d)], any bits at all
  float* values = nullptr;         ///< [d]
  std::size_t length = 0;
  int peer = 0;
  Round round = 0;
  Combine combine = Combine::replace;
  std::uint64_t* fault =
      nullptr;  ///< a gpu::FaultWord's, of no other request of the call; null: nobody is told
  std::uint64_t tag = 1;  ///< not 0: what `fault` becomes where this is no message of this codec;
                          ///< `values` are undefined then
};

/// Words of a message, from word `first` on, of `total`. Host memory.
struct MessagePart {
  std::span<const float> words;
  std::size_t first = 0, total = 0;
};

/// One codec with its parameters read. Immutable; shared by all nodes of a process. What is not
/// finite in a row is not finite in what is decoded, so that a run that diverges is seen to.
/// Thread: the scheduler's.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual Fidelity fidelity() const = 0;
  /// Words of the message of a row of `length` ≥ 1 values: of nothing but its length.
  virtual std::size_t words(std::size_t length) const = 0;
  virtual void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const = 0;
  virtual void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const = 0;
  /// Index of the first of `part`'s words that decodes to what is not within [−largest, largest];
  /// its size where there is none.
  virtual std::size_t first_beyond(const MessagePart& part, float largest) const = 0;
  /// What is wrong with a message that decode refuses; null where any bits decode to something.
  virtual const char* refusal() const { return nullptr; }
};

struct CodecContext {
  std::uint64_t seed = 0;  ///< the run's
};

struct CodecKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;
  std::function<Result<std::unique_ptr<Codec>>(const ParameterValues&, const CodecContext&)> make;
};

/// CodecKind::make of a codec without parameters.
template <class Kind>
Result<std::unique_ptr<Codec>> make_plain_codec(const ParameterValues& values,
                                                const CodecContext&) {
  GOSSAMER_TRY_STATUS(check_values("codec", {}, values));
  return std::unique_ptr<Codec>(std::make_unique<Kind>());
}

namespace codecs {
std::vector<CodecKind> catalog();
}  // namespace codecs

/// Builds codec `kind`; an unknown kind is an error that lists the kinds.
Result<std::unique_ptr<Codec>> make_codec(const std::string& kind, const ParameterValues& values,
                                          const CodecContext& context);

/// What the codecs that send a part of a row have in common: which part.
struct FractionOptions {
  double fraction = 0.1;
};
const ParameterSet<FractionOptions>& fraction_parameters();
/// k = fraction · d, rounded, and 1 at least.
std::size_t part_of(double fraction, std::size_t length);

/// One device request of each: to(request) for every one of `requests`.
template <class Request, class To>
auto device_requests(std::span<Request> requests, To to) {
  std::vector<decltype(to(requests[0]))> made;
  made.reserve(requests.size());
  for (Request& request : requests) made.push_back(to(request));
  return made;
}

/// Codec::first_beyond where the first `numbers` words of a message are numbers, and any bits do in
/// the others.
std::size_t first_number_beyond(const MessagePart& part, std::size_t numbers, float largest);

/// Sets the rows to 0 that a decoded message replaces.
void clear_replaced(gpu::Device& device, std::span<const DecodeRequest> requests);

}  // namespace gossamer::gossip
