#include "gossip/mixing/coded_mixer.hpp"

namespace gossamer::gossip {

task<void> CodedMixer::begin(Round t, Channel channel, MixedRow& row) {
  co_await row.back().writable();
  const auto matrix = context_.process.schedule.at(t);
  const bool receives = !matrix->in_neighbours(context_.peer()).empty();
  if (!receives && matrix->out_neighbours(context_.peer()).empty()) co_return;
  Mix& mix = mixes_[channel];
  GOSSAMER_CHECK(!mix.active, "a row is mixed twice at once");
  if (mix.decoded.count() == 0)
    mix.decoded = gpu::DeviceRows<float>::on_gpu(context_.process.device(), context_.gpu(), 2,
                                                 row.values().size());
  mix.active = true;
  mix.round = t;
  co_await context_.coded.send(t, channel, row.values(), mix.decoded.row(0), Combine::replace);
  const std::span<float> x = row.values(), out = row.back().values();
  Compute& compute = context_.process.compute;
  if (!receives) mix.active = false;
  else if (context_.process.options.channels[channel].as_difference)
    co_await compute.fill({0.0F, out.data(), out.size()});
  else co_await compute.copy({x.data(), out.data(), x.size()});
}

task<void> CodedMixer::finish(Channel channel, MixedRow& row) {
  Mix& mix = mixes_[channel];
  if (!mix.active) co_return;  // no in-neighbours in this round
  const std::span<float> out = row.back().values(), own = mix.decoded.row(0),
                         theirs = mix.decoded.row(1);
  const auto matrix = context_.process.schedule.at(mix.round);
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(context_.peer())) {
    bool whole = context_.view.is_present(neighbour.peer, mix.round);
    if (whole)
      whole = co_await context_.coded.receive(neighbour.peer, mix.round, channel, theirs,
                                              Combine::replace);
    if (!whole) {
      context_.view.record({mix.round, neighbour.peer, channel, true});
      continue;
    }
    const gpu::DifferenceRequest<float> add{out.data(), theirs.data(), own.data(), out.size(),
                                            static_cast<float>(neighbour.weight)};
    co_await context_.process.compute.add_difference(add);
  }
  mix.active = false;
  row.swap();
}

}  // namespace gossamer::gossip
