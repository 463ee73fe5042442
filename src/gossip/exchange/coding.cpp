// The endpoint's half that deals in coded rows.
#include "gossip/exchange/coding.hpp"

#include <fmt/format.h>

namespace gossamer::gossip {

bool Endpoint::mixes_coded() const {
  const Codec* codec = exchange_.options().codec;
  return codec != nullptr && codec->fidelity() != Fidelity::exact;
}

CodedChannel& Endpoint::coded(Channel channel, std::size_t length) {
  auto& coded = coded_[channel];
  if (!coded)
    coded = std::make_unique<CodedChannel>(exchange_.scheduler(), exchange_.compute().device(),
                                           exchange_.options().gpu_of(peer_),
                                           exchange_.options().codec->words(length));
  return *coded;
}

task<void> Endpoint::send_coded(Round t, Channel channel, std::span<const float> values,
                                std::span<float> own, Combine combine) {
  const auto matrix = exchange_.schedule().at(t);
  const bool sound =
      exchange_.validate_before_coding(peer_, t, channel, values, out_neighbours(*matrix, t));
  if (!sound) co_await std::suspend_always{};  // the run ends; this coroutine is destroyed
  CodedChannel& coded = this->coded(channel, values.size());
  LeasedRow& message = coded.outgoing();
  co_await message.writable();
  const Time begin = exchange_.scheduler().now();
  const Codec& codec = *exchange_.options().codec;
  const EncodeRequest encode{values.data(), values.size(), message.values().data(), peer_, t};
  co_await exchange_.compute().encode(codec, encode);
  send(out_neighbours(*matrix, t), t, channel, message.values(), message);
  const DecodeRequest decode = coded.decode(message.values(), own, peer_, t, combine);
  co_await exchange_.compute().decode(codec, decode);
  mix_seconds_ += std::chrono::duration<double>(exchange_.scheduler().now() - begin).count();
}

task<bool> Endpoint::receive_coded(int from, Round t, Channel channel, std::span<float> into,
                                   Combine combine) {
  CodedChannel& coded = this->coded(channel, into.size());
  const std::span<float> message = coded.incoming();
  const bool whole = co_await receive_whole(from, t, channel, message, Combine::replace);
  if (!whole) co_return false;
  const Time begin = exchange_.scheduler().now();
  const DecodeRequest decode = coded.decode(message, into, from, t, combine);
  co_await exchange_.compute().decode(*exchange_.options().codec, decode);
  if (const Status read = coded_rows_read(); !read.ok()) {
    exchange_.fault(read.error());
    co_await std::suspend_always{};  // the run ends; this coroutine is destroyed
  }
  mix_seconds_ += std::chrono::duration<double>(exchange_.scheduler().now() - begin).count();
  co_return true;
}

Status Endpoint::coded_rows_read() const {
  for (const auto& [channel, coded] : coded_)
    if (const std::optional<MessageOrigin> unreadable = coded->unreadable()) {
      GOSSAMER_CHECK(unreadable->from != peer_, "a codec cannot read its own message");
      const ChunkHeader head{unreadable->from, peer_, unreadable->round,
                             channel,          0,     coded->incoming().size()};
      return protocol_error(head, fmt::format("a coded row that cannot be read: {}",
                                              exchange_.options().codec->refusal()));
    }
  return {};
}

task<void> Endpoint::begin_coded_mix(Round t, Channel channel, MixedRow& row) {
  const auto matrix = exchange_.schedule().at(t);
  const bool in_neighbours = !matrix->in_neighbours(peer_).empty();
  if (!in_neighbours && matrix->out_neighbours(peer_).empty()) co_return;
  CodedChannel& coded = this->coded(channel, row.values().size());
  coded.begin(t, row.values().size());
  co_await send_coded(t, channel, row.values(), coded.own(), Combine::replace);
  const gpu::CopyRequest<float> copy{row.values().data(), row.back().values().data(),
                                     row.values().size()};
  if (in_neighbours) co_await exchange_.compute().copy(copy);
  else coded.mixing = false;
}

// x_i + Σ_j W_t[i][j] (Q(x_j) − Q(x_i)): what an edge adds at one end it takes at the other,
// whatever Q does.
task<void> Endpoint::finish_coded_mix(Channel channel, MixedRow& row) {
  CodedChannel& coded = this->coded(channel, row.values().size());
  if (!coded.mixing) co_return;  // nobody is heard in this round
  const std::span<float> out = row.back().values(), own = coded.own(), theirs = coded.theirs();
  const auto matrix = exchange_.schedule().at(coded.round);
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(peer_)) {
    bool heard = present(neighbour.peer, coded.round);
    if (heard)
      heard =
          co_await receive_coded(neighbour.peer, coded.round, channel, theirs, Combine::replace);
    if (!heard) {
      deviations_.push_back({coded.round, neighbour.peer, channel, true});
      continue;
    }
    const gpu::DifferenceRequest<float> add{out.data(), theirs.data(), own.data(), out.size(),
                                            static_cast<float>(neighbour.weight)};
    co_await exchange_.compute().add_difference(add);
  }
  coded.mixing = false;
  row.swap();
}

}  // namespace gossamer::gossip
