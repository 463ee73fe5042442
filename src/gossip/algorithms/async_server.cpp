// Asynchronous parameter server: each worker pushes its gradient and pulls the parameters alone,
// and a server applies each push as it arrives (Downpour SGD). With a staleness bound s a worker
// waits for its pull while it is more than s rounds ahead of the slowest (stale-synchronous): s = 0
// is synchronous SGD whose step is the sum of the gradients, not their mean.
//
// In virtual time arrival, and so the result, is deterministic; over TCP it is a matter of timing.
#include <algorithm>
#include <numeric>

#include "gossip/node/node.hpp"
#include "gossip/node/round_parts.hpp"
#include "gossip/row_slice.hpp"

namespace gossamer::gossip::algorithms::async_server {
namespace {

constexpr int kUnbounded = -1;

struct Options {
  int servers = 1;
  int staleness_bound = kUnbounded;
};

enum Row { kX };

/// What a server knows of each worker, from round to round: three counters of Node::counters a
/// worker.
struct Clocks {
  Clocks(std::span<std::uint64_t> counters, int workers) {
    const auto n = static_cast<std::size_t>(workers);
    pushes = counters.subspan(0, n);
    pulls = counters.subspan(n, n);
    version = counters.subspan(2 * n, n);
  }
  std::span<std::uint64_t> pushes;   ///< its gradients that were applied
  std::span<std::uint64_t> pulls;    ///< answers sent to it
  std::span<std::uint64_t> version;  ///< updates of the server when it pulled last

  std::uint64_t updates() const {
    return std::accumulate(pushes.begin(), pushes.end(), std::uint64_t{0});
  }
  std::uint64_t slowest() const { return *std::min_element(pushes.begin(), pushes.end()); }
};

class AsyncServer final : public Algorithm {
 public:
  explicit AsyncServer(const Options& options)
      : servers_(options.servers), bound_(options.staleness_bound) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .initial = RowSpec::Initial::parameters}};
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false,
            .linear_steps = true,
            .sends_gradients = true,
            .common_start = true,
            .servers = servers_,
            .bounded_lead = false,
            .lockstep = false};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return server_partners(i, schedule.peers(), servers_);
  }
  std::size_t counters(int i, const topology::MixingSchedule& schedule) const override {
    return i >= schedule.peers() ? 3 * static_cast<std::size_t>(schedule.peers()) : 0;
  }

  /// A worker may have been ahead of the server's t rounds or behind them. All begin round t now: t
  /// pushes of each were applied and answered.
  void resume(int i, Round t, std::span<std::uint64_t> counters,
              const topology::MixingSchedule& schedule) const override {
    if (i < schedule.peers()) return;
    const Clocks clocks(counters, schedule.peers());
    std::ranges::fill(clocks.pushes, t);
    std::ranges::fill(clocks.pulls, t);
  }

  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    return server_volumes(d, w.peers(), static_cast<std::size_t>(w.peers()), servers_);
  }

  task<void> round(Node& node, Round t) const override {
    return node.is_server() ? serve(node, t) : push_and_pull(node, t, servers_);
  }

 private:
  // x ← x − γ g for each push as it arrives. A round of the server is n pushes, whosever they are.
  task<void> serve(Node& node, Round t) const {
    const int n = node.peers(), me = node.id() - n;
    const std::span<float> x = row_slice(node.x(), me, servers_),
                           g = row_slice(node.row(kGradientRow), me, servers_);
    if (x.empty()) co_return;
    const auto first = static_cast<std::size_t>(x.data() - node.x().data());
    const Clocks clocks(node.counters(), n);
    const std::uint64_t last = (t + 1) * static_cast<std::uint64_t>(n);
    for (std::uint64_t updates = clocks.updates(); updates < last;) {
      const MessageOrigin push = co_await node.receive_any(kGradientRow, g, Combine::replace);
      const auto worker = static_cast<std::size_t>(push.from);
      node.record_staleness(updates - clocks.version[worker]);
      co_await node.update_part(x, g, first, push.round);
      ++clocks.pushes[worker];
      ++updates;
      answer(node, clocks, x, updates);
    }
  }

  /// Sends the parameters to the workers that have pushed and may continue.
  void answer(Node& node, const Clocks& clocks, std::span<const float> x,
              std::uint64_t updates) const {
    const std::uint64_t slowest = clocks.slowest();
    for (std::size_t i = 0; i < clocks.pushes.size(); ++i) {
      const bool waits = clocks.pulls[i] < clocks.pushes[i];
      const bool ahead =
          bound_ != kUnbounded && clocks.pushes[i] > slowest + static_cast<std::uint64_t>(bound_);
      if (!waits || ahead) continue;
      node.send_copy(static_cast<int>(i), clocks.pulls[i], kX, x);  // of the worker's round
      ++clocks.pulls[i];
      clocks.version[i] = updates;
    }
  }

  int servers_, bound_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("servers", &Options::servers,
               {.help = "s: each owns a contiguous part of the parameters",
                .minimum = 1,
                .maximum = 1024,
                .unit = "servers"})
          .add("staleness_bound", &Options::staleness_bound,
               {.help =
                    "a worker waits while it is more than this many rounds ahead of the slowest; "
                    "-1: never",
                .minimum = kUnbounded,
                .maximum = 1e9,
                .unit = "rounds"});
  return {
      .name = "async_server",
      .summary =
          "asynchronous parameter server: each worker pushes and pulls independently, and every "
          "push is one step",
      .source = "Dean et al. 2012 (Downpour SGD); Recht et al. 2011; Ho et al. 2013 for the bound",
      .parameters = parameters.specs(),
      .make = make_with<AsyncServer>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::async_server
