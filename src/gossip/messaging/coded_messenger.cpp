#include "gossip/messaging/coded_messenger.hpp"

#include <fmt/format.h>

#include "gossip/process/protocol_error.hpp"

namespace gossamer::gossip {
namespace {

/// A decoding's tag holds the sender, counted from 1, and the round.
constexpr int kRoundBits = 40;

}  // namespace

CodedMessenger::Stream::Stream(const ProcessContext& process, int gpu_index, std::size_t length)
    : fault(process.device()),
      messages(gpu::DeviceRows<float>::on_gpu(process.device(), gpu_index, 2,
                                              process.options.codec->words(length))),
      scratch(gpu::DeviceRows<float>::on_gpu(process.device(), gpu_index, 1,
                                             process.options.codec->scratch(length))) {
  outgoing.attach(process.scheduler, messages.row(0));
}

DecodeRequest CodedMessenger::Stream::decoding(std::span<const float> message,
                                               std::span<float> into, int from, Round t,
                                               Combine combine) {
  return {.message = message.data(),
          .values = into.data(),
          .length = into.size(),
          .peer = from,
          .round = t,
          .combine = combine,
          .fault = fault.word(),
          .tag = (static_cast<std::uint64_t>(from) + 1) << kRoundBits | t,
          .scratch = scratch.row(0).data()};
}

CodedMessenger::Stream& CodedMessenger::stream(Channel channel, std::size_t length) {
  auto& stream = streams_[channel];
  if (!stream)
    stream = std::make_unique<Stream>(process_, process_.options.gpu_of(messenger_.peer()), length);
  return *stream;
}

task<void> CodedMessenger::send(Round t, Channel channel, std::span<const float> values,
                                std::span<float> own, Combine combine) {
  const auto matrix = process_.schedule.at(t);
  const int peer = messenger_.peer();
  const bool valid = process_.validator.validate_before_coding(peer, t, channel, values,
                                                               view_.out_neighbours(*matrix, t));
  if (!valid) co_await std::suspend_always{};  // the run ends; this coroutine is destroyed
  Stream& stream = this->stream(channel, values.size());
  LeasedRow& message = stream.outgoing;
  co_await message.writable();
  const Time begin = process_.scheduler.now();
  const Codec& codec = *process_.options.codec;
  const EncodeRequest encode{.values = values.data(),
                             .length = values.size(),
                             .message = message.values().data(),
                             .peer = peer,
                             .round = t,
                             .scratch = stream.scratch.row(0).data()};
  co_await process_.compute.encode(codec, encode);
  messenger_.send(view_.out_neighbours(*matrix, t), t, channel, message.values(), message);
  const DecodeRequest decode = stream.decoding(message.values(), own, peer, t, combine);
  co_await process_.compute.decode(codec, decode);
  seconds_ += gossip::seconds(process_.scheduler.now() - begin);
}

task<bool> CodedMessenger::receive(int from, Round t, Channel channel, std::span<float> into,
                                   Combine combine) {
  Stream& stream = this->stream(channel, into.size());
  const std::span<float> message = stream.incoming();
  const bool whole = co_await messenger_.receive_whole(from, t, channel, message, Combine::replace);
  if (!whole) co_return false;
  const Time begin = process_.scheduler.now();
  const DecodeRequest decode = stream.decoding(message, into, from, t, combine);
  co_await process_.compute.decode(*process_.options.codec, decode);
  if (const Status decoded = all_decoded(); !decoded.ok()) {
    process_.faults.fault(decoded.error());
    co_await std::suspend_always{};  // the run ends; this coroutine is destroyed
  }
  seconds_ += gossip::seconds(process_.scheduler.now() - begin);
  co_return true;
}

Status CodedMessenger::all_decoded() const {
  for (const auto& [channel, stream] : streams_) {
    const std::uint64_t tag = stream->fault.tag();
    if (tag == 0) continue;
    const int from = static_cast<int>(tag >> kRoundBits) - 1, peer = messenger_.peer();
    const Round round = tag & ((std::uint64_t{1} << kRoundBits) - 1);
    GOSSAMER_CHECK(from != peer, "a codec cannot read its own message");
    return protocol_error(
        {from, peer, round, channel, 0, stream->incoming().size()},
        fmt::format("a coded row that cannot be read: {}", process_.options.codec->refusal()));
  }
  return {};
}

}  // namespace gossamer::gossip
