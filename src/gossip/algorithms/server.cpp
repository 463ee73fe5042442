// Synchronous parameter server: workers send their gradients to servers, which take one step with
// the mean and send the parameters back. Each of s servers owns a contiguous part of the
// parameters. All start from the same parameters, so the broadcast that a round would begin with
// ends the round before, and a worker's record is of what the servers hold.
#include "gossip/node/node.hpp"
#include "gossip/node/round_parts.hpp"
#include "gossip/row_slice.hpp"

namespace gossamer::gossip::algorithms::server {
namespace {

struct Options {
  int servers = 1;
};

enum Row { kX };

class Server final : public Algorithm {
 public:
  explicit Server(const Options& options) : servers_(options.servers) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .initial = RowSpec::Initial::parameters}};
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false,
            .data_weights = DataWeights::mean_gradients,
            .sends_gradients = true,
            .common_start = true,
            .servers = servers_};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return server_partners(i, schedule.peers(), servers_);
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
  // g ← (1/n) Σ_i g_i, added in ascending order;  x ← x − γ g, which goes to the workers
  task<void> serve(Node& node, Round t) const {
    const int n = node.peers(), me = node.id() - n;
    const std::span<float> x = row_slice(node.x(), me, servers_),
                           g = row_slice(node.row(kGradientRow), me, servers_);
    for (int i = 0; i < n; ++i)
      co_await node.receive(i, t, kGradientRow, g, i == 0 ? Combine::replace : Combine::add);
    co_await node.scale(g, 1.0F / static_cast<float>(n));
    co_await node.update_part(x, g, static_cast<std::size_t>(x.data() - node.x().data()), t);
    for (int i = 0; i < n; ++i) node.send(i, t, kX, x);
    co_await node.sent(kX);
  }

  int servers_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>().add("servers", &Options::servers,
                                  {.help = "s: each owns a contiguous part of the parameters",
                                   .minimum = 1,
                                   .maximum = 1024,
                                   .unit = "servers"});
  return {
      .name = "server",
      .summary =
          "synchronous parameter server: peers send gradients to servers, which step with the mean "
          "gradient",
      .source = "Li et al. 2014 (Scaling distributed machine learning with the parameter server)",
      .parameters = parameters.specs(),
      .make = make_with<Server>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::server
