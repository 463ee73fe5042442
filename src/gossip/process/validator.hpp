// Validation: values that are not finite, or beyond the bound `largest_value`, neither leave a peer
// nor enter one.
//
// A peer validates a message before its first chunk goes out; a violation ends its run. A chunk
// from another process is validated as it arrives, right after its bytes were read and before any
// of them is mixed: the chunk is refused, and the sender loses the link. Between peers of one
// process the sender's validation is enough. All of this reads host memory. On a GPU, messages to
// and from the network are validated where they are staged (peer/runtime/staging.hpp). Messages to
// peers of this process are checked on the device, and no round waits for the result: the run ends
// some rounds later, but before anything computed from the values is recorded, stored in a
// checkpoint, or sent to another process.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/result.hpp"
#include "gossip/compute.hpp"
#include "gossip/link.hpp"
#include "gossip/process/fault_reporter.hpp"
#include "gossip/process/options.hpp"
#include "gpu/fault_word.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class Validator {
 public:
  /// `hosted`: the peers of this process. All outlive the validator.
  Validator(const ExchangeOptions& options, Compute& compute, const std::set<int>& hosted,
            FaultReporter& faults);
  ~Validator();
  Validator(const Validator&) = delete;
  Validator& operator=(const Validator&) = delete;

  /// Of a chunk from another process; `values` are its values, in host memory. An error (lost_peer)
  /// names the sender.
  Status validate_incoming(const ChunkHeader& header, std::span<const float> values) const;
  /// The same of a chunk that a hosted peer is about to send: the error is `diverged`.
  Status validate_outgoing_chunk(const ChunkHeader& header, std::span<const float> values) const;
  /// Whether a whole message may be sent to the peers `to`. Where not, the run ends with a fault.
  /// In device memory that the host cannot read, the check is enqueued and the result is true.
  bool validate_outgoing(int peer, Round t, Channel channel, std::span<const float> message,
                         std::span<const int> to);
  /// The same of a row that is about to be coded: its message may leave the wrong values out.
  bool validate_before_coding(int peer, Round t, Channel channel, std::span<const float> row,
                              std::span<const int> to);

  /// The results of the device's checks that are known by now; an error (diverged) names the first
  /// peer with a wrong value.
  Status checks_passed() const;
  /// Waits until the device has finished all checks, then returns their result.
  Status flush_checks() const;

 private:
  bool is_coded(Channel channel) const;
  std::optional<std::string> violation(const ChunkHeader& header,
                                       std::span<const float> values) const;
  bool enqueue_check(int peer, Round t, Channel channel, std::span<const float> row,
                     std::span<const int> to);
  std::uint64_t tag_of(int peer, Round t, Channel channel) const;
  std::uint64_t peer_count() const { return static_cast<std::uint64_t>(*hosted_.rbegin()) + 1; }
  std::uint64_t channel_count() const { return options_.channel_count(); }

  const ExchangeOptions& options_;
  Compute& compute_;
  const std::set<int>& hosted_;
  FaultReporter& faults_;
  std::optional<gpu::FaultWord> wrong_row_;  ///< set by the device, to a tag of tag_of()
};

}  // namespace gossamer::gossip
