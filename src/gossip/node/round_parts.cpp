#include "gossip/node/round_parts.hpp"

#include "gossip/row_slice.hpp"

namespace gossamer::gossip {

task<void> push_and_pull(Node& node, Round t, int servers) {
  constexpr int kX = 0;
  const std::span<float> x = node.x(), g = node.row(kGradientRow);
  const int n = node.peers();
  co_await node.gradient(x, g);
  node.skip_update();
  for (int k = 0; k < servers; ++k) node.send(n + k, t, kGradientRow, row_slice(g, k, servers));
  for (int k = 0; k < servers; ++k)
    co_await node.receive(n + k, t, kX, row_slice(x, k, servers), Combine::replace);
  co_await node.sent(kGradientRow);
}

task<void> push_sum_steps(Node& node, int sum, int steps) {
  const std::span<float> z = node.x(), g = node.row(kGradientRow),
                         x = node.row(sum).first(z.size());
  for (int step = 0; step < steps; ++step) {
    if (step > 0) co_await divide_by_weight(node, sum);
    co_await node.gradient(z, g);
    co_await node.update(x, g);
  }
}

task<void> divide_by_weight(Node& node, int sum) {
  const std::span<float> z = node.x(), row = node.row(sum);
  co_await node.divide(row.first(z.size()), &row[z.size()], z);
}

}  // namespace gossamer::gossip
