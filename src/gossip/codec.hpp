// The interface of a codec, which encodes a row as a message of fewer bytes and decodes the message
// to a row. Each file of gossip/codecs/ is one kind. A message is a whole number of 4-byte words
// and travels as values do, in chunks of any size; it is encoded and decoded whole, on the device,
// so a codec's blocks are independent of chunks.
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
#include "gossip/link.hpp"
#include "gpu/device.hpp"

namespace gossamer::gossip {

/// How a received value is combined with the target: into ← value, or into ← into + value.
enum class Combine { replace, add };

/// What a message keeps of a row, the best first.
enum class Fidelity {
  exact,    ///< every bit
  rounded,  ///< every value, to within a small part of itself or of its block's largest: mixing
            ///< stalls at that floor
  partial,  ///< a few values, or a bit of each: converges only if what was left out is sent later
            ///< (error feedback)
};

/// Rows and messages are device memory and do not overlap. `peer` and `round` are the sender's:
/// random choices are keyed by them, so that the receiver makes the same choices.
struct EncodeRequest {
  const float* values = nullptr;
  std::size_t length = 0;    ///< d
  float* message = nullptr;  ///< out: [words(d)]
  int peer = 0;
  Round round = 0;
  float* scratch = nullptr;  ///< [Codec::scratch(d)], for the codec's use until it has encoded
};
struct DecodeRequest {
  const float* message = nullptr;  ///< [words(d)], any bits at all
  float* values = nullptr;         ///< [d]
  std::size_t length = 0;
  int peer = 0;
  Round round = 0;
  Combine combine = Combine::replace;
  std::uint64_t* fault =
      nullptr;            ///< a gpu::FaultWord's, of no other request of the call; null: no report
  std::uint64_t tag = 1;  ///< not 0: what `fault` becomes where this is no message of this codec;
                          ///< `values` are undefined then
  float* scratch = nullptr;  ///< [Codec::scratch(d)]
};

/// Words of a message, from word `first` on, of `total`. Host memory.
struct MessagePart {
  std::span<const float> words;
  std::size_t first = 0, total = 0;
};

/// One codec with its parameters read. Immutable; shared by all nodes of a process. A value that is
/// not finite in a row is not finite after decoding, so that divergence is detected.
/// Thread: the scheduler's.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual Fidelity fidelity() const = 0;
  /// Words of the message of a row of `length` ≥ 1 values. The same for every row of this length.
  virtual std::size_t words(std::size_t length) const = 0;
  /// Values of device memory that a request for a row of `length` values needs beside row and
  /// message.
  virtual std::size_t scratch(std::size_t) const { return 0; }
  /// Whether it encodes each value by itself, so that a row whose parts were encoded one by one
  /// decodes to the same bits.
  virtual bool is_valuewise() const { return false; }
  virtual void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const = 0;
  virtual void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const = 0;
  /// Index of the first of `part`'s words that decodes to a value outside [−largest, largest]; the
  /// number of words if there is none.
  virtual std::size_t first_beyond(const MessagePart& part, float largest) const = 0;
  /// The reason why decode() refuses a message; null if any bits can be decoded.
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

/// The option of the codecs that send a part of a row.
struct FractionOptions {
  double fraction = 0.1;
};
const ParameterSet<FractionOptions>& fraction_parameters();
/// k, the number of values sent: fraction · d, rounded, and 1 at least.
std::size_t sent_values(double fraction, std::size_t length);

/// to(request) for each of `requests`: the device requests.
template <class Request, class To>
auto device_requests(std::span<Request> requests, To to) {
  std::vector<decltype(to(requests[0]))> made;
  made.reserve(requests.size());
  for (Request& request : requests) made.push_back(to(request));
  return made;
}

/// Codec::first_beyond() of a codec whose first `numbers` words of a message are numbers, and whose
/// other words may have any bits.
std::size_t first_number_beyond(const MessagePart& part, std::size_t numbers, float largest);

/// Sets the rows of requests with Combine::replace to 0.
void clear_replaced(gpu::Device& device, std::span<const DecodeRequest> requests);

}  // namespace gossamer::gossip
