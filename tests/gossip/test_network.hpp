// A network of peers in virtual time, on any topology and with any links, driven by the same engine
// as the program.
//   Network network("ring", 5, …);  network.run("consensus", {}, rounds);  network.rows[3]
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossip/compute.hpp"
#include "gossip/engine/peer_group.hpp"
#include "gossip/links/simulated_link.hpp"
#include "tests/gossip/network_options.hpp"
#include "tests/gossip/test_util.hpp"

namespace gossamer::gossip::testing {

/// A row of `length` values as the tensors of a model: a matrix, if it is long enough, and a
/// vector.
inline std::vector<gpu::MatrixShape> tensors_of(std::size_t length) {
  constexpr gpu::MatrixShape matrix{0, 6, 4};
  if (length <= matrix.length()) return {{0, length, 1}};
  return {matrix, {matrix.length(), 1, length - matrix.length()}};
}

class Network {
 public:
  static constexpr std::uint64_t kCodecSeed = 3;
  static constexpr Time kTick = std::chrono::milliseconds(10);
  static constexpr Time kReconnection = std::chrono::milliseconds(3);

  Network(const std::string& kind, int n, std::size_t length, NetworkOptions options = {},
          const topology::WeightOptions& weights = {})
      : Network(schedule(kind, n, weights), length, std::move(options)) {}

  Network(std::unique_ptr<topology::MixingSchedule> schedule_in, std::size_t length,
          NetworkOptions options_in = {})
      : schedule_(std::move(schedule_in)),
        options_(std::move(options_in)),
        length_(length),
        device_(options_.threads, options_.on_gpu) {
    for (int i = 0; i < peers(); ++i) {
      RandomStream random(1, static_cast<std::uint32_t>(i), Purpose::initial_rows);
      std::vector<float> row(length);
      for (float& value : row) value = static_cast<float>(random.next_normal());
      start.push_back(std::move(row));
    }
  }

  int peers() const { return schedule_->peers(); }
  const topology::MixingSchedule& matrices() const { return *schedule_; }
  /// Of what the exchange and the algorithms allocate; the peers' own rows lie elsewhere.
  const CountingDevice& device() const { return device_; }

  /// Runs rounds first … last−1 of the algorithm from `start`, with fresh nodes, and leaves the
  /// result in `rows`: the peers' and then the servers', which start as peer 0 where `start` has no
  /// row for them. A run with first > 0 goes on from the states that the last run left.
  Network& run(const std::string& algorithm, const ParameterValues& values, Round last,
               Trainer* trainer = nullptr, Round first = 0);

  /// The same rounds, but every node, coroutine, inbox and buffer is destroyed after each round and
  /// made anew from the rows that the algorithm says survive.
  Network& run_in_single_rounds(const std::string& algorithm, const ParameterValues& values,
                                Round last, Trainer* trainer) {
    for (Round t = 0; t < last; ++t) {
      run(algorithm, values, t + 1, trainer, t);
      start = rows;
    }
    return *this;
  }

  std::vector<std::vector<float>> start, rows;
  std::vector<std::vector<std::vector<float>>>
      every_row;  ///< by row of the algorithm and node, as the last run left them
  std::vector<std::uint64_t> bytes_sent;
  std::uint64_t values_sent = 0;  ///< by all peers
  struct PeersDeviation : Deviation {
    PeersDeviation(const Deviation& deviation, int peer_in) : Deviation(deviation), peer(peer_in) {}
    int peer;
  };
  std::vector<PeersDeviation> deviations;
  /// Called when a node has done a round: the number of rounds that it has done, and the time.
  std::function<void(int node, Round done, Time now)> watch = [](int, Round, Time) {};
  std::vector<Node*> live;  ///< while it runs
  Staleness staleness;      ///< of the last server
  std::string fault;
  std::map<int, std::string> faults;  ///< by peer that is apart: why it ended
  std::vector<std::string> refused;   ///< why chunks were refused
  struct Overdue {
    int here, there;
    Time when;
    std::string why;
  };
  std::vector<Overdue> overdue;  ///< links that were lost because rows were overdue
  int resets = 0;                ///< links that a peer made anew
  int finished = 0;
  std::set<int> stranded;  ///< peers that joined, and know that no partner is there to be asked
  Time virtual_time{0};

 private:
  class Run;

  std::unique_ptr<topology::MixingSchedule> schedule_;
  NetworkOptions options_;
  std::size_t length_;
  CountingDevice device_;
  std::unique_ptr<Algorithm> algorithm_;
  std::vector<PeerState> states_;  ///< as the last run left them, by node
};

/// One run of a network: what is made anew for it.
class Network::Run final : private EngineHooks {
 public:
  Run(Network& network, const ParameterValues& codec_values, Round first, Round last,
      Trainer* trainer)
      : network_(network),
        options_(network.options_),
        algorithm_(*network.algorithm_),
        compute_(scheduler_, executor_, network.device_, trainer,
                 {options_.step_time,
                  options_.slow_peers,
                  options_.slow_factor,
                  {.width = options_.step_spread},
                  kSeed}) {
    auto codec = make_codec(options_.codec, codec_values, {kCodecSeed});
    REQUIRE(codec.ok());
    codec_ = std::move(codec).value();
    const int nodes = algorithm_.requirements().one_node
                          ? 1
                          : network.peers() + algorithm_.requirements().servers;
    for (int i = 0; i < nodes; ++i) nodes_.push_back(i);
    ports_.assign(nodes_.size(), SimulatedPort(options_.ports));
    make_groups(last);
    if (first > 0)
      for (const int i : nodes_) restore(i, first);
    for (const int i : nodes_) {
      connect(i);
      network_.live.push_back(&engine(i).node());
    }
    if (options_.tolerates_peer_loss) tolerate_losses();
    plan_losses();
    if (options_.row_limit > Time(0)) watch_rows();
  }

  void execute() {
    for (const int i : nodes_) engine(i).start();
    scheduler_.run();
  }

  void collect() {
    network_.virtual_time = scheduler_.now();
    network_.stranded.clear();
    for (const auto& [joiner, when] : options_.joins)
      if (engine(joiner).membership().donor_search() == Membership::DonorSearch::no_neighbour)
        network_.stranded.insert(joiner);
    network_.rows.clear();
    network_.deviations.clear();
    network_.states_.clear();
    network_.staleness = {};
    network_.every_row.assign(algorithm_.rows(*network_.schedule_).size(), {});
    for (const int i : nodes_) {
      Node& node = engine(i).node();
      network_.rows.emplace_back(node.x().begin(), node.x().end());
      network_.states_.push_back(engine(i).state());
      if (node.is_server()) network_.staleness = node.take_staleness();
      for (const Deviation& deviation : node.endpoint().take_deviations())
        network_.deviations.push_back({deviation, i});
      for (std::size_t k = 0; k < network_.every_row.size(); ++k) {
        const std::span<float> row = node.row(static_cast<int>(k));
        network_.every_row[k].emplace_back(row.begin(), row.end());
      }
    }
    network_.bytes_sent.clear();
    for (const SimulatedPort& port : ports_) network_.bytes_sent.push_back(port.traffic.bytes_sent);
    network_.values_sent = 0;
    for (const auto& [ends, link] : counted_) network_.values_sent += link->values;
  }

 private:
  PeerGroup& group_of(int i) { return *groups_[options_.apart ? static_cast<std::size_t>(i) : 0]; }
  PeerEngine& engine(int i) { return group_of(i).engine(i); }

  /// One group of all nodes, or one of each.
  void make_groups(Round last) {
    ExchangeOptions exchange;
    exchange.policy = options_.policy;
    exchange.chunk_values = options_.chunk_values;
    exchange.staleness = options_.staleness;
    exchange.codec = codec_.get();
    exchange.rule = options_.rule;
    exchange.attack = options_.attack;
    exchange.seed = kSeed;
    exchange.row_limit = options_.row_limit;
    for (std::size_t i = 0; i < (options_.apart ? nodes_.size() : 1); ++i) {
      GroupRequest request{scheduler_,          compute_,   row_device_,
                           *network_.schedule_, algorithm_, exchange};
      request.hosted = options_.apart ? std::vector<int>{nodes_[i]} : nodes_;
      request.engine = {network_.peers(), last, 0};
      request.layout = {.length = network_.length_, .row_offset = options_.row_offset};
      request.initialise = [this](int node, std::span<float> parameters) {
        const auto index = static_cast<std::size_t>(node);
        std::ranges::copy(
            index < network_.start.size() ? network_.start[index] : network_.start.front(),
            parameters.begin());
      };
      EngineHooks& hooks = *this;
      groups_.push_back(std::make_unique<PeerGroup>(
          std::move(request), hooks,
          [this, node = nodes_[i]](const Error& error) { on_fault(node, error); }));
    }
  }

  void on_fault(int node, const Error& error) {
    if (options_.apart && options_.tolerates_peer_loss) {
      network_.faults[node] = error.message;
      return die(node);
    }
    network_.fault = error.message;
    scheduler_.stop();
  }

  void restore(int i, Round first) {
    const auto index = static_cast<std::size_t>(i);
    const std::vector<RowSpec> specs = algorithm_.rows(*network_.schedule_);
    const std::vector<std::span<float>> rows = engine(i).state_rows();
    for (std::size_t k = 1; k < specs.size(); ++k)
      if (specs[k].survives) std::ranges::copy(network_.every_row[k][index], rows[k].begin());
    PeerState state = network_.states_[index];
    state.round = first;
    engine(i).restore(state);
    engine(i).begin_at(first);
  }

  void connect(int i) {
    for (const int to : algorithm_.partners(i, *network_.schedule_)) {
      const LinkModel model = options_.link_model ? options_.link_model(i, to) : options_.links;
      links_.push_back(std::make_unique<SimulatedLink>(
          scheduler_, group_of(to).exchange(), model, ports_[static_cast<std::size_t>(i)],
          ports_[static_cast<std::size_t>(to)], [this, i, to](const Error& error) {
            network_.refused.push_back(error.message);
            if (options_.apart && options_.tolerates_peer_loss) return refuse(i, to);
            network_.fault = error.message;
            if (options_.apart) scheduler_.stop();
          }));
      auto& counted = counted_[{i, to}];
      counted = std::make_unique<CountedLink>(*links_.back(), options_.loses);
      counted->tamper = options_.tamper;
      group_of(i).exchange().connect(i, to, *counted);
    }
  }

  // ---- links that are lost and restored
  void tolerate_losses() {
    const auto partners =
        partners_of_all(algorithm_, *network_.schedule_, static_cast<int>(nodes_.size()));
    for (const auto& group : groups_) {
      group->tolerate_loss([&](int) { return Membership::Options{partners, options_.message}; });
      group->exchange().faults().on_reset = [this](int here, int there, const Error&) {
        ++network_.resets;
        scheduler_.after(Time(0), [this, here, there] { lose_link(here, there); });
        scheduler_.after(kReconnection, [this, here, there] { restore_link(here, there); });
      };
    }
  }
  void set_cut(int a, int b, bool cut) {
    counted_.at({a, b})->cut = counted_.at({b, a})->cut = cut;
  }
  void lose_link(int a, int b) {
    set_cut(a, b, true);
    engine(a).membership().on_link_lost(b, fmt::format("peer {} is cut off", b));
    engine(b).membership().on_link_lost(a, fmt::format("peer {} is cut off", a));
  }
  void restore_link(int a, int b) {
    set_cut(a, b, false);
    engine(a).membership().on_link_restored(b);
    engine(b).membership().on_link_restored(a);
  }
  void plan_losses() {
    for (const NetworkOptions::Cut& cut : options_.cuts) {
      scheduler_.at(cut.from, [this, cut] { set_cut(cut.a, cut.b, true); });
      scheduler_.at(cut.from + options_.links.latency, [this, cut] { lose_link(cut.a, cut.b); });
      scheduler_.at(cut.until, [this, cut] { restore_link(cut.a, cut.b); });
    }
    for (const auto& [joiner, when] : options_.joins) plan_join(joiner, when);
    for (const auto& [victim, when] : options_.deaths)
      scheduler_.at(when, [this, victim = victim] { die(victim); });
  }
  void plan_join(int joiner, Time when) {
    for (const int other : algorithm_.partners(joiner, *network_.schedule_)) {
      const auto joins_too = options_.joins.find(other);
      if (joins_too == options_.joins.end())
        engine(other).membership().on_link_lost(joiner, "it is not there yet");
      else if (other < joiner) continue;  // the link between the two is made once
      set_cut(joiner, other, true);
      const Time both =
          joins_too == options_.joins.end() ? when : std::max(when, joins_too->second);
      scheduler_.at(both, [this, joiner, other] {
        if (!left_.contains(other)) restore_link(joiner, other);
      });
    }
    engine(joiner).join();
  }
  /// Ticks, as of a network, until every node has finished.
  void watch_rows() {
    for (const auto& group : groups_)
      group->exchange().faults().on_overdue = [this](int here, int there, const Error& why) {
        network_.overdue.push_back({here, there, scheduler_.now(), why.message});
        scheduler_.after(Time(0), [this, here, there] { lose_link(here, there); });
      };
    scheduler_.after(kTick, [this] { tick(); });
  }
  void tick() {
    if (network_.finished == static_cast<int>(nodes_.size())) return;
    for (const auto& group : groups_) group->exchange().on_tick(kTick);
    scheduler_.after(kTick, [this] { tick(); });
  }
  /// The links of the victim are lost once what it had sent has arrived.
  void die(int victim) {
    dead_.insert(victim);
    for (const int other : algorithm_.partners(victim, *network_.schedule_)) {
      set_cut(victim, other, true);
      scheduler_.after(options_.links.latency, [this, victim, other] {
        if (!dead_.contains(other))
          engine(other).membership().on_link_lost(victim, fmt::format("peer {} died", victim));
        if (options_.apart)
          engine(victim).membership().on_link_lost(other,
                                                   "it died");  // and with it what had come to it
      });
    }
  }
  /// The receiver ends the connection, and the sender sees that.
  void refuse(int from, int to) {
    set_cut(from, to, true);
    engine(to).membership().on_link_lost(from, network_.refused.back());
    scheduler_.after(Time(0), [this, from, to] {
      engine(from).membership().on_link_lost(to, fmt::format("peer {} closed the connection", to));
    });
  }

  // ---- EngineHooks
  bool after_round(PeerEngine& engine) override {
    if (dead_.contains(engine.id())) return false;
    network_.watch(engine.id(), engine.round() + 1, scheduler_.now());
    return true;
  }
  void finished(PeerEngine& engine) override {
    const int id = engine.id();
    if (options_.goodbyes)
      for (auto& [ends, link] : counted_)
        if (ends.first == id) link->cut = true;
    left_.insert(id);
    for (const int other : nodes_)
      if (this->engine(other).tolerates_loss() && counted_.contains({id, other}))
        scheduler_.after(options_.links.latency,
                         [this, other, id] { this->engine(other).membership().on_peer_left(id); });
    ++network_.finished;
  }

  Network& network_;
  const NetworkOptions& options_;
  const Algorithm& algorithm_;
  VirtualScheduler scheduler_;
  InlineExecutor executor_;
  Compute compute_;
  std::unique_ptr<Codec> codec_;
  gpu::CpuDevice row_device_{1};
  std::vector<int> nodes_;
  std::set<int> dead_, left_;
  std::vector<std::unique_ptr<PeerGroup>> groups_;
  std::vector<SimulatedPort> ports_;
  std::vector<std::unique_ptr<SimulatedLink>> links_;
  std::map<std::pair<int, int>, std::unique_ptr<CountedLink>> counted_;  ///< by sender, receiver
};

inline Network& Network::run(const std::string& algorithm, const ParameterValues& values,
                             Round last, Trainer* trainer, Round first) {
  auto made = make_algorithm(algorithm, values);
  REQUIRE(made.ok());
  algorithm_ = std::move(made).value();
  algorithm_->set_model({.matrices = tensors_of(length_)});
  faults.clear();
  refused.clear();
  overdue.clear();
  resets = 0;
  live.clear();
  finished = 0;
  Run run(*this, options_.codec_values, first, last, trainer);
  run.execute();
  run.collect();
  return *this;
}

}  // namespace gossamer::gossip::testing
