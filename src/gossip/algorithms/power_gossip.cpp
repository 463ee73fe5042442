// PowerGossip: D-PSGD with messages that are products of the model's matrices and vectors. The
// two ends of an edge multiply their matrices M by a common unit vector v, and exchange M v; the
// difference of the two products is that of the matrices times v, and each end moves along its part
// in that direction, W[i,j] (M_j v − M_i v) vᵀ. The difference of the products, normalised, is the
// vector of the next product, which multiplies from the other side: these are steps of a power
// iteration, so v turns to the direction in which the two models differ most. The ends hold the
// same bits of every v and add opposite terms, so the mean of the models stays where it is.
//
// Vectors (biases) travel whole.
#include <algorithm>

#include "gossip/node/node.hpp"
#include "topology/kind.hpp"

namespace gossamer::gossip::algorithms::power_gossip {
namespace {

struct Options {
  int products = 1;
  int local_steps = 1;
};

constexpr int kPeerBits = 17;  ///< of a peer's number
static_assert(topology::kMaximumPeers <= 1 << kPeerBits);

/// kLeft and kRight: of each edge the vectors that multiply from the left and from the right; kOwn:
/// products for each neighbour; kTheirs: those of one neighbour.
enum Row { kX, kLeft, kRight, kOwn, kTheirs };

class PowerGossip final : public Algorithm {
 public:
  explicit PowerGossip(const Options& options)
      : products_(options.products), steps_(options.local_steps) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule& schedule) const override {
    const auto w = schedule.at(0);  // of every round: fixed_matrix
    std::size_t neighbours = 1;
    for (int i = 0; i < w->peers(); ++i)
      neighbours = std::max(neighbours, w->in_neighbours(i).size());
    const auto vectors = [&](const char* name, std::size_t length, bool survives) {
      return RowSpec{.name = name,
                     .survives = survives,
                     .rejoin = RowSpec::Rejoin::reinitialise,
                     .extra = std::max<std::size_t>(1, length),
                     .extra_initial = 0,
                     .parts = 0};
    };
    return {{.name = "x", .initial = RowSpec::Initial::parameters},
            vectors("left directions", neighbours * directions(true), true),
            vectors("right directions", neighbours * directions(false), true),
            vectors("products", neighbours * longest_product(), false),
            vectors("a neighbour's products", longest_product(), false)};
  }
  AlgorithmRequirements requirements() const override {
    return {.fixed_matrix = true, .synchronous = true, .averages = true};
  }
  void set_model(ModelRows model) override { matrices_ = std::move(model.matrices); }
  bool multiplies_matrices() const override { return true; }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  /// The mean length of a product from the left and one from the right, which take turns.
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t) const override {
    const std::size_t length = (products(true) + products(false) + 1) / 2;
    return std::vector<ExchangeVolume>(static_cast<std::size_t>(products_),
                                       neighbour_volume(w, length));
  }

  // x ← x − γ ∇f(x; batch), H times;  then, P times, with v of each edge: p_j = M_j v;  M ← M +
  // Σ_j W[i,j] (p_j − p) vᵀ;  v ← p_j − p of the end with the lower id, normalised
  task<void> round(Node& node, Round t) const override {
    co_await node.local_steps(node.x(), steps_);
    const auto w = node.matrix(t);
    const auto products = static_cast<std::uint64_t>(products_);
    for (std::uint64_t k = 0; k < products; ++k)
      co_await multiply(node, t, w->in_neighbours(node.id()), t * products + k);
  }

 private:
  std::size_t sum(auto lengths) const {
    std::size_t sum = 0;
    for (const gpu::MatrixShape& shape : matrices_) sum += lengths(shape);
    return sum;
  }
  std::size_t directions(bool left) const {
    return sum([&](const gpu::MatrixShape& shape) { return shape.direction(left); });
  }
  std::size_t products(bool left) const {
    return sum([&](const gpu::MatrixShape& shape) { return shape.product(left); });
  }
  std::size_t longest_product() const { return std::max(products(true), products(false)); }

  /// The product of number `number` since the start, with all neighbours.
  task<void> multiply(Node& node, Round t, std::span<const topology::Neighbour> neighbours,
                      std::uint64_t number) const {
    const bool left = number % 2 == 1;
    const std::size_t length = products(left), direction = directions(left),
                      next = directions(!left);
    const auto directions_of = [&](std::size_t e) {
      return node.row(left ? kLeft : kRight).subspan(e * direction, direction);
    };
    const auto own = [&](std::size_t e) { return node.row(kOwn).subspan(e * length, length); };
    for (std::size_t e = 0; e < neighbours.size(); ++e) {
      const auto low = static_cast<std::uint32_t>(std::min(node.id(), neighbours[e].peer));
      const auto high = static_cast<std::uint64_t>(std::max(node.id(), neighbours[e].peer));
      const gpu::ProjectRequest<float> projection{
          .x = node.x().data(),
          .length = node.x().size(),
          .matrices = matrices_,
          .left = left,
          .directions = directions_of(e).data(),
          .products = own(e).data(),
          .signs = {node.seed(), low, (number << kPeerBits) | high}};
      co_await node.run(projection);
      node.send_copy(neighbours[e].peer, t, kOwn, own(e));
    }
    const std::span<float> theirs = node.row(kTheirs).first(length);
    for (std::size_t e = 0; e < neighbours.size(); ++e) {
      co_await node.receive(neighbours[e].peer, t, kOwn, theirs, Combine::replace);
      const gpu::AddProductRequest<float> update{
          .x = node.x().data(),
          .length = node.x().size(),
          .matrices = matrices_,
          .left = left,
          .directions = directions_of(e).data(),
          .own = own(e).data(),
          .theirs = theirs.data(),
          .next = node.row(left ? kRight : kLeft).subspan(e * next, next).data(),
          .reversed = node.id() > neighbours[e].peer,
          .factor = static_cast<float>(neighbours[e].weight)};
      co_await node.run(update);
    }
  }

  int products_, steps_;
  std::vector<gpu::MatrixShape> matrices_;
};
}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("products", &Options::products,
               {.help = "P: products that are exchanged in a round, each a step of the power "
                        "iteration; from the right and from the left in turn",
                .minimum = 1,
                .maximum = 1000})
          .add(
              "local_steps", &Options::local_steps,
              {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {.name = "power_gossip",
          .summary =
              "PowerGossip: mixes differences of the models' matrices along one direction in a "
              "message; needs a static symmetric W",
          .source = "Vogels, Karimireddy and Jaggi 2020, PowerGossip of rank 1",
          .parameters = parameters.specs(),
          .make = make_with<PowerGossip>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::power_gossip
