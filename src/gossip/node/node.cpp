#include "gossip/node/node.hpp"

#include <algorithm>

namespace gossamer::gossip {

task<void> Node::mix(Round t, int k) {
  const Time begin = exchange_.scheduler().now();
  co_await begin_mix(t, k);
  times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
  co_await finish_mix(k);
}

task<void> Node::begin_mix(Round t, int k) {
  return endpoint_.mixer().begin(t, channel(k), mixed_row(k));
}

task<void> Node::finish_mix(int k) {
  const Time begin = exchange_.scheduler().now();
  const double mixing = endpoint_.mix_seconds();
  co_await endpoint_.mixer().finish(channel(k), mixed_row(k));
  const double seconds = gossip::seconds(exchange_.scheduler().now() - begin);
  times_.wait_seconds += std::max(0.0, seconds - (endpoint_.mix_seconds() - mixing));
}

task<std::vector<NeighbourRow>> Node::share(Round since, int k) {
  const Time begin = exchange_.scheduler().now();
  const SharedRow shared{endpoint_.round(), since, channel(k), row(k), leased(k)};
  std::vector<NeighbourRow> rows = co_await endpoint_.mixer().share(shared);
  times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
  co_return rows;
}

// With the first row of a restored neighbour, this peer only learns where the neighbour is: it
// shares nothing with it in the round in which the link takes effect.
bool Node::accepts_share(int peer, Round t) const {
  const PeerView& view = endpoint_.view();
  const Round since = view.present_since(peer);
  const bool just_restored = since > 0 && since == t;
  return view.is_present(peer, t) && !just_restored && !endpoint_.mixer().has_left(peer);
}

void Node::send(int to, Round t, int k, std::span<const float> part) {
  endpoint_.messenger().send(std::span(&to, 1), t, channel(k), part, leased(k));
}

task<void> Node::receive(int from, Round t, int k, std::span<float> into, Combine combine) {
  const Time begin = exchange_.scheduler().now();
  co_await endpoint_.messenger().receive(from, t, channel(k), into, combine);
  times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
}

task<MessageOrigin> Node::receive_any(int k, std::span<float> into, Combine combine) {
  const Time begin = exchange_.scheduler().now();
  const MessageOrigin received =
      co_await endpoint_.messenger().receive_any(channel(k), into, combine);
  times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
  co_return received;
}

task<void> Node::wait_event(std::optional<int> from) {
  const Time begin = exchange_.scheduler().now();
  const bool waits = !local_steps_running();
  co_await endpoint_.messenger().wait_event(waits ? from : std::nullopt);
  if (waits) times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
}

task<void> Node::send_coded(Round t, int k, std::span<float> own) {
  co_await endpoint_.coded().send(t, channel(k), row(k), own, Combine::add);
}

task<void> Node::receive_coded(int from, Round t, int k, std::span<float> into) {
  const Time begin = exchange_.scheduler().now();
  const double mixing = endpoint_.mix_seconds();
  const bool whole = co_await endpoint_.coded().receive(from, t, channel(k), into, Combine::add);
  GOSSAMER_CHECK(whole, "a peer was lost under an algorithm that needs all peers");
  const double seconds = gossip::seconds(exchange_.scheduler().now() - begin);
  times_.wait_seconds += std::max(0.0, seconds - (endpoint_.mix_seconds() - mixing));
}

void Node::send_state(int to, Channel channel, Round t) {
  for (std::size_t k = 0; k < specs_.size(); ++k)
    if (specs_[k].is_transferred())
      endpoint_.messenger().send_copy(to, t, channel, row(static_cast<int>(k)));
}

task<bool> Node::receive_state(int donor, Channel channel, Round t) {
  bool whole = true;
  forget_copy();
  for (std::size_t k = 0; k < specs_.size() && whole; ++k)
    if (specs_[k].is_transferred()) {
      const std::span<float> row = this->row(static_cast<int>(k));
      whole =
          co_await endpoint_.messenger().receive_whole(donor, t, channel, row, Combine::replace);
    }
  co_return whole;
}

void Node::record_staleness(std::uint64_t updates) {
  ++staleness_.pushes;
  staleness_.sum += updates;
  staleness_.largest = std::max(staleness_.largest, updates);
}

}  // namespace gossamer::gossip
