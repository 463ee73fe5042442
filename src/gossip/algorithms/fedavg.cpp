// Federated averaging: in each round a server has a few clients train its model on their own data,
// and takes the average of their models, weighted as their data in the objective (data.weights).
// Option: FedProx's term, which keeps clients near the server's model.
//
// The clients that are chosen, and those of them that vanish, are drawn from seed and round, so
// every node knows them without a message. All nodes start from the same parameters; after each
// round the server sends its model to the clients chosen for the next. A client's x is the model
// that it was last sent, and its record is of that; the server's own record is of the newest.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::fedavg {
namespace {

struct Options {
  double fraction = 1;
  double dropout = 0;
  int local_epochs = 1;
  int local_steps = 0;
  double prox = 0;
};

/// At a client: the server's model, its own as it trains, and y − x; at the server: its model, what
/// a client sent, and unused.
enum Row { kX, kLocal, kWay };

class FedAvg final : public Algorithm {
 public:
  explicit FedAvg(const Options& options) : options_(options) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    std::vector<RowSpec> rows{{.name = "x", .initial = RowSpec::Initial::parameters},
                              {.name = "local", .survives = false}};
    if (options_.prox > 0) rows.push_back({.name = "way", .survives = false});
    return rows;
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false,
            .linear_steps = true,
            .data_weights = DataWeights::models,
            .common_start = true,
            .servers = 1,
            .bounded_lead = options_.fraction == 1};
  }
  int steps_per_round() const override { return options_.local_steps; }
  int epochs_per_round() const override {
    return options_.local_steps > 0 ? 0 : options_.local_epochs;
  }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return server_partners(i, schedule.peers(), 1);
  }

  /// Of clients that are chosen and report: the others send nothing.
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    return server_volumes(d, w.peers(), chosen_clients(w.peers()), 1);
  }

  task<void> round(Node& node, Round t) const override {
    return node.is_server() ? serve(node, t) : work(node, t);
  }

 private:
  // y ← x after local steps, which goes to the server;  x ← the server's new model, where the next
  // round needs it
  task<void> work(Node& node, Round t) const {
    const int server = node.peers();
    if (reports(node, t, node.id())) {
      co_await train(node, t, node.row(kLocal));
      node.send(server, t, kLocal, node.row(kLocal));
    }
    if (is_chosen(node, t + 1, node.id()))
      co_await node.receive(server, t, kX, node.x(), Combine::replace);
    co_await node.sent(kLocal);
  }

  // y ← y − γ (∇f_i(y; batch) + μ (y − x)), from y = x. Clients keep nothing of their optimizer
  // from round to round, and γ is the round's: as if the client had been chosen for all of them.
  task<void> train(Node& node, Round t, std::span<float> y) const {
    const std::span<const float> x = node.x();
    const std::span<float> g = node.row(kGradientRow);
    co_await node.copy(x, y);
    co_await node.reset_optimizer();
    const int steps = local_steps(node);
    if (options_.prox == 0) {
      co_await node.local_steps(y, steps);
      co_return;
    }
    const std::span<float> way = node.row(kWay);
    for (int s = 0; s < steps; ++s) {
      co_await node.gradient(y, g);
      co_await node.copy(y, way);
      co_await node.axpy(-1.0F, x, way);
      co_await node.axpy(static_cast<float>(options_.prox), way, g);
      co_await node.update(y, g);
    }
  }

  // x ← x + Σ_k (w_k / Σ w) (y_k − x) over the clients that report, w_k the weight of client k's
  // data: by differences, so that consensus is a fixed point
  task<void> serve(Node& node, Round t) const {
    const std::span<float> x = node.x(), y = node.row(kLocal), sum = node.row(kGradientRow);
    std::vector<int> reporting;
    double weights = 0;
    for (int k : chosen(node, t))
      if (!vanishes(node, t, k)) {
        reporting.push_back(k);
        weights += node.data_weight(k);
      }
    co_await node.fill(sum, 0.0F);
    for (int k : reporting) {
      co_await node.receive(k, t, kLocal, y, Combine::replace);
      co_await node.axpy(-1.0F, x, y);
      co_await node.axpy(static_cast<float>(node.data_weight(k) / weights), y, sum);
    }
    co_await node.axpy(1.0F, sum, x);
    for (int k : chosen(node, t + 1)) node.send(k, t, kX, x);
    co_await node.sent(kX);
  }

  std::size_t chosen_clients(int n) const {
    return static_cast<std::size_t>(std::max(1.0, std::round(options_.fraction * n)));
  }
  /// max(1, C n) clients without replacement, ascending.
  std::vector<int> chosen(const Node& node, Round t) const {
    std::vector<std::uint32_t> order(static_cast<std::size_t>(node.peers()));
    std::iota(order.begin(), order.end(), 0);
    RandomStream(node.seed(), kNoPeer, Purpose::clients, t).shuffle(order);
    std::vector<int> clients(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(chosen_clients(node.peers())));
    std::sort(clients.begin(), clients.end());
    return clients;
  }
  bool is_chosen(const Node& node, Round t, int client) const {
    const std::vector<int> clients = chosen(node, t);
    return std::binary_search(clients.begin(), clients.end(), client);
  }
  bool vanishes(const Node& node, Round t, int client) const {
    return RandomStream(node.seed(), static_cast<std::uint32_t>(client), Purpose::clients, t)
               .next_double() < options_.dropout;
  }
  bool reports(const Node& node, Round t, int client) const {
    return is_chosen(node, t, client) && !vanishes(node, t, client);
  }

  int local_steps(const Node& node) const {
    if (options_.local_steps > 0) return options_.local_steps;
    return options_.local_epochs * static_cast<int>(node.batches_per_epoch(node.id()));
  }

  Options options_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("fraction", &Options::fraction,
               {.help = "C: fraction of the clients chosen for a round, at least one",
                .minimum = 0,
                .maximum = 1,
                .minimum_excluded = true})
          .add("dropout", &Options::dropout,
               {.help = "probability that a chosen client fails in the round and returns no model",
                .minimum = 0,
                .maximum = 1})
          .add("local_epochs", &Options::local_epochs,
               {.help = "E: passes over its shard that a client takes in a round",
                .minimum = 1,
                .maximum = 1e4,
                .unit = "epochs"})
          .add(
              "local_steps", &Options::local_steps,
              {.help =
                   "steps of a client in a round, instead of local_epochs; 0: local_epochs decides",
               .minimum = 0,
               .maximum = 1e6,
               .unit = "steps"})
          .add("prox", &Options::prox,
               {.help = "μ of FedProx: adds μ/2 |x − x_server|² to a client's loss",
                .minimum = 0,
                .maximum = 1e6});
  return {.name = "fedavg",
          .summary =
              "federated averaging: in each round a fraction of the clients trains the server's "
              "model, and the average of their models replaces it",
          .source = "McMahan et al. 2017, Alg. 1; Li et al. 2020 for the proximal term",
          .parameters = parameters.specs(),
          .make = make_with<FedAvg>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::fedavg
