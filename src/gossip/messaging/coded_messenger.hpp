// One peer's coded messages: a row is sent as a message of the run's codec, and a message that
// arrives is decoded on the device.
//
// A message is received whole before it is decoded. Whether a message is malformed is known only
// when the device has decoded it, and no round waits for that: the run ends, perhaps some rounds
// later.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "gossip/codec.hpp"
#include "gossip/messaging/messenger.hpp"
#include "gossip/peer_view.hpp"
#include "gpu/device_rows.hpp"
#include "gpu/fault_word.hpp"

namespace gossamer::gossip {

/// Memory: two messages, the codec's scratch memory and a word for each channel in use, whatever
/// the number of neighbours. Thread: the scheduler's.
class CodedMessenger {
 public:
  /// All outlive this object.
  CodedMessenger(const ProcessContext& process, Messenger& messenger, PeerView& view)
      : process_(process), messenger_(messenger), view_(view) {}

  /// Sends the codec's message of `values` to the out-neighbours of round t, and puts its decoded
  /// values into, or adds them to, `own`. Returns when `values` may change.
  task<void> send(Round t, Channel channel, std::span<const float> values, std::span<float> own,
                  Combine combine);
  /// Waits for the message of `from` in round t, and puts its decoded values into, or adds them to,
  /// `into`. One at a time on a channel. Returns false if `from` is lost.
  task<bool> receive(int from, Round t, Channel channel, std::span<float> into, Combine combine);

  /// The results of decoding that are known by now; an error (lost_peer) names the sender of the
  /// first malformed message.
  Status all_decoded() const;
  /// Time spent in coding so far, in seconds of the scheduler's clock.
  double seconds() const { return seconds_; }

 private:
  /// The message that goes out on a channel and the one that comes in.
  struct Stream {
    Stream(const ProcessContext& process, int gpu_index, std::size_t length);
    std::span<float> incoming() const { return messages.row(1); }
    DecodeRequest decoding(std::span<const float> message, std::span<float> into, int from, Round t,
                           Combine combine);

    gpu::FaultWord fault;  // outlives the messages, whose release waits for the device
    gpu::DeviceRows<float> messages, scratch;  // scratch: of one coding at a time
    LeasedRow outgoing;
  };

  Stream& stream(Channel channel, std::size_t length);

  const ProcessContext& process_;
  Messenger& messenger_;
  PeerView& view_;
  std::map<Channel, std::unique_ptr<Stream>> streams_;
  double seconds_ = 0;
};

}  // namespace gossamer::gossip
