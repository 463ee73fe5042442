// Coded rows on one channel of a peer: the message going out, the one coming in, and, for mixing,
// what they decode to. Internal to the exchange.
//
// Memory: two messages, a word, and two rows where the channel mixes, whatever the number of
// neighbours, who are taken one by one in ascending order. Chunks that have come early wait in
// their links' buffers, as ever.
#pragma once

#include <optional>

#include "gossip/exchange/exchange.hpp"
#include "gpu/device_rows.hpp"
#include "gpu/fault_word.hpp"

namespace gossamer::gossip {

class CodedChannel {
 public:
  /// `words` of a message; all lies on GPU `gpu_index` of the device, as the peer's rows do.
  CodedChannel(Scheduler& scheduler, gpu::Device& device, int gpu_index, std::size_t words)
      : device_(device),
        gpu_index_(gpu_index),
        fault_(device),
        messages_(gpu::DeviceRows<float>::on_gpu(device, gpu_index, 2, words)) {
    outgoing_.attach(scheduler, messages_.row(0));
  }

  LeasedRow& outgoing() { return outgoing_; }
  std::span<float> incoming() const { return messages_.row(1); }

  /// To `into`, from a message of peer `from` in round t (below 2⁴⁰). Where it is none,
  /// unreadable() is going to say so.
  DecodeRequest decode(std::span<const float> message, std::span<float> into, int from, Round t,
                       Combine combine) const {
    const std::uint64_t tag = (static_cast<std::uint64_t>(from) + 1) << kRoundBits | t;
    return {message.data(), into.data(), into.size(), from, t, combine, fault_.word(), tag};
  }
  /// The first message that was none, as far as the device has told by now.
  std::optional<MessageOrigin> unreadable() const {
    const std::uint64_t tag = fault_.tag();
    if (tag == 0) return {};
    return MessageOrigin{static_cast<int>(tag >> kRoundBits) - 1,
                         tag & ((std::uint64_t{1} << kRoundBits) - 1)};
  }

  // ---- a mix under way
  /// Begins a mix of a row of `length` values.
  void begin(Round t, std::size_t length) {
    GOSSAMER_CHECK(!mixing, "a row is mixed twice at once");
    if (rows_.count() == 0) rows_ = gpu::DeviceRows<float>::on_gpu(device_, gpu_index_, 2, length);
    mixing = true;
    round = t;
  }
  /// What this peer's own message decodes to, and a neighbour's.
  std::span<float> own() const { return rows_.row(0); }
  std::span<float> theirs() const { return rows_.row(1); }
  bool mixing = false;
  Round round = 0;

 private:
  static constexpr int kRoundBits = 40;

  gpu::Device& device_;
  int gpu_index_;
  gpu::FaultWord fault_;  // outlives the rows, whose release waits for what may write it
  gpu::DeviceRows<float> messages_, rows_;
  LeasedRow outgoing_;
};

}  // namespace gossamer::gossip
