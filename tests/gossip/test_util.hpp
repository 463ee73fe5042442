// The vocabulary of the protocol's tests: a network of peers in virtual time, on any topology, with
// any links.
//   Network network("ring", 5);  network.rows(4, …).run("consensus", {}, rounds);  network.row(3)
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/compute.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/membership/membership.hpp"
#include "gossip/node.hpp"
#include "gpu/cpu_device.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip::testing {

inline constexpr std::uint64_t kSeed = 5;

inline std::unique_ptr<topology::MixingSchedule> schedule(
    const std::string& kind, int n, const topology::WeightOptions& weights = {}) {
  auto made = topology::make_schedule({kind, {}, weights, {n, 0}});
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  return std::move(made).value();
}

/// Peer i minimises ½ ‖x − b_i‖², b_i random: gradients x − b_i, whose mean has its optimum at the
/// mean of the b_i. It says that its shard has 3 + i samples, and two batches.
class PullTrainer final : public Trainer {
 public:
  PullTrainer(int peers, std::size_t length, float rate)
      : rate_(rate), targets_(static_cast<std::size_t>(peers), length) {
    for (int i = 0; i < peers; ++i) {
      RandomStream random(9, static_cast<std::uint32_t>(i), Purpose::test);
      for (float& value : targets_.row(static_cast<std::size_t>(i)))
        value = static_cast<float>(random.next_normal());
    }
  }
  void run(TrainOperation operation, std::span<TrainRequest* const> requests) override {
    if (operation == TrainOperation::take_loss) return;
    ++batches;
    largest_batch = std::max(largest_batch, requests.size());
    if (operation == TrainOperation::evaluate) return;
    for (TrainRequest* request : requests)
      for (int step = 0; step < request->steps; ++step)
        for (std::size_t k = 0; k < request->x.size(); ++k) {
          if (operation != TrainOperation::update)
            request->gradient[k] = request->x[k] - target(request->shard_of)[k];
          if (operation != TrainOperation::gradient) request->x[k] -= rate_ * request->gradient[k];
        }
  }
  double rate(int, std::uint64_t) const override { return rate_; }
  std::size_t shard_size(int peer) const override { return 3 + static_cast<std::size_t>(peer); }
  std::uint64_t batches_per_epoch(int) const override { return 2; }
  /// b_i
  std::span<const float> target(int peer) const {
    return targets_.row(static_cast<std::size_t>(peer));
  }
  std::vector<double> optimum() const {
    std::vector<double> mean(targets_.length());
    for (std::size_t i = 0; i < targets_.count(); ++i)
      for (std::size_t k = 0; k < mean.size(); ++k)
        mean[k] += targets_.row(i)[k] / static_cast<double>(targets_.count());
    return mean;
  }

  int batches = 0;
  std::size_t largest_batch = 0;

 private:
  float rate_;
  Rows<float> targets_;
};

/// Of rows from what a reference in double says of them.
inline double largest_difference(const std::vector<std::vector<float>>& rows,
                                 const std::vector<std::vector<double>>& expected) {
  REQUIRE(rows.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == expected[i].size());
    for (std::size_t k = 0; k < rows[i].size(); ++k)
      largest = std::max(largest, std::abs(rows[i][k] - expected[i][k]));
  }
  return largest;
}

/// Counts what is allocated. As a GPU, it says that the host cannot read its memory.
class CountingDevice final : public gpu::CpuDevice {
 public:
  explicit CountingDevice(int threads, bool as_gpu = false) : CpuDevice(threads), as_gpu_(as_gpu) {}
  bool host_accessible() const override { return !as_gpu_; }
  void* allocate(std::size_t bytes, int gpu_index = 0) override {
    void* memory = CpuDevice::allocate(bytes, gpu_index);
    sizes_[memory] = bytes;
    bytes_ += bytes;
    most_bytes_ = std::max(most_bytes_, bytes_);
    return memory;
  }
  void release(void* memory) override {
    if (const auto found = sizes_.find(memory); found != sizes_.end()) {
      bytes_ -= found->second;
      sizes_.erase(found);
    }
    CpuDevice::release(memory);
  }
  std::size_t bytes() const { return bytes_; }
  std::size_t most_bytes() const { return most_bytes_; }

 private:
  bool as_gpu_;
  std::map<void*, std::size_t> sizes_;
  std::size_t bytes_ = 0, most_bytes_ = 0;
};

struct NetworkOptions {
  LinkModel links = {};
  NodeModel ports = {};
  Policy policy = Policy::sync;
  Round staleness = 4;
  std::size_t chunk_values = 1 << 18;
  std::size_t row_offset = 0;
  int threads = 1;
  Time step_time{0};
  int slow_peers = 0;
  double slow_factor = 1;
  double step_spread = 0;
  std::function<LinkModel(int from, int to)> link_model = {};  ///< instead of `links`
  std::function<bool(const ChunkHeader&)> loses =
      {};  ///< messages that never arrive: of one chunk each
  bool tolerates_peer_loss = false;
  std::map<int, Time> deaths =
      {};  ///< of peers: from then on they do nothing, and their links are lost on both sides
  /// Links that are cut, what is under way on them with it, and come back.
  struct Cut {
    int a = 0, b = 0;
    Time from{0}, until{0};
  };
  std::vector<Cut> cuts = {};
  bool goodbyes = false;           ///< what a peer sends after its farewell is dropped
  std::map<int, Time> joins = {};  ///< of peers: nobody hears of them before
  std::function<void(const std::string&)> message = [](const std::string&) {
  };  ///< of the memberships
  /// Every peer is a process of its own: what comes is judged, and who is to blame for a fault
  /// dies, while the others go on.
  bool apart = false;
  bool on_gpu = false;
  /// May change the values of chunks on their way.
  std::function<void(const ChunkHeader&, std::span<float>)> tamper = {};
  std::string codec = "none";
  ParameterValues codec_values = {};
};

/// Counts what goes over a link.
class CountedLink final : public Link {
 public:
  CountedLink(Link& link, std::function<bool(const ChunkHeader&)> loses)
      : link_(link), loses_(std::move(loses)) {}
  void send(Chunk chunk) override {
    if (cut || (loses_ && chunk.head.control == ControlMessage::none && loses_(chunk.head))) return;
    values += chunk.values.size();
    if (tamper && !chunk.values.empty()) {
      std::vector<float>& copy = copies_.emplace_back(chunk.values.begin(), chunk.values.end());
      tamper(chunk.head, copy);
      chunk = Chunk(chunk.head, copy, {});
    }
    link_.send(std::move(chunk));
  }
  std::uint64_t values = 0;
  std::function<void(const ChunkHeader&, std::span<float>)> tamper;
  bool cut = false;  ///< nothing more goes out

 private:
  Link& link_;
  std::deque<std::vector<float>> copies_;
  std::function<bool(const ChunkHeader&)> loses_;
};

class Network {
 public:
  static constexpr std::uint64_t kCodecSeed = 3;

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
  const CountingDevice& device() const { return device_; }

  /// Runs rounds first … last−1 of the algorithm from `start`, with fresh nodes, and leaves the
  /// result in `rows`: the peers' and then the servers', which start as peer 0 where `start` does
  /// not say. Steps done and counters survive too.
  Network& run(const std::string& algorithm, const ParameterValues& values, Round last,
               Trainer* trainer = nullptr, Round first = 0) {
    auto made = make_algorithm(algorithm, values);
    REQUIRE(made.ok());
    algorithm_ = std::move(made).value();
    const std::vector<RowSpec> specs = algorithm_->rows(*schedule_);
    VirtualScheduler scheduler;
    scheduler_ = &scheduler;
    InlineExecutor executor;
    Compute compute(scheduler, executor, device_, trainer,
                    {options_.step_time,
                     options_.slow_peers,
                     options_.slow_factor,
                     {.width = options_.step_spread},
                     kSeed});
    auto codec = make_codec(options_.codec, options_.codec_values, {kCodecSeed});
    REQUIRE(codec.ok());
    ExchangeOptions exchange_options;
    exchange_options.policy = options_.policy;
    exchange_options.chunk_values = options_.chunk_values;
    exchange_options.row_lengths = row_lengths(specs, length_);
    exchange_options.keeps_sum = rows_that_keep_sums(specs);
    exchange_options.channels = channels_of(specs);
    exchange_options.staleness = options_.staleness;
    exchange_options.codec = codec->get();
    exchange_options.seed = kSeed;
    const int nodes = algorithm_->needs().one_node ? 1 : peers() + algorithm_->needs().servers;
    std::vector<int> hosted;
    for (int i = 0; i < nodes; ++i) hosted.push_back(i);
    faults.clear();
    refused.clear();
    std::function<void(int)> die;
    std::function<void(int, int)> refuse;
    std::vector<std::unique_ptr<Node>> members;        // outlive what has leases on their rows
    std::vector<std::unique_ptr<Exchange>> exchanges;  // of all, or one for each
    for (int i = 0; i < (options_.apart ? nodes : 1); ++i)
      exchanges.push_back(std::make_unique<Exchange>(
          scheduler, compute, *schedule_, exchange_options,
          options_.apart ? std::vector<int>{i} : hosted, [&, i](Error error) {
            if (options_.apart && options_.tolerates_peer_loss) {
              faults[i] = error.message;
              return die(i);
            }
            fault = error.message;
            scheduler.stop();
          }));
    const auto exchange_of = [&](int i) -> Exchange& {
      return *exchanges[options_.apart ? static_cast<std::size_t>(i) : 0];
    };
    std::vector<Rows<float>> fronts, backs;
    for (const RowSpec& spec : specs) {
      fronts.emplace_back(nodes, spec.length(length_), options_.row_offset);
      backs.emplace_back(spec.mixed ? nodes : 0, spec.length(length_), options_.row_offset);
    }
    Rows<float> gradients(static_cast<std::size_t>(nodes), length_, options_.row_offset);
    std::vector<SimulatedPort> ports(static_cast<std::size_t>(nodes),
                                     SimulatedPort(options_.ports));
    std::vector<std::unique_ptr<SimulatedLink>> links;
    std::vector<std::unique_ptr<CountedLink>> counters;
    std::vector<task<void>> drivers;
    for (int i = 0; i < nodes; ++i) {
      const auto index = static_cast<std::size_t>(i);
      NodeMemory memory;
      for (std::size_t k = 0; k < specs.size(); ++k) {
        memory.front.push_back(fronts[k].row(index));
        memory.back.push_back(specs[k].mixed ? backs[k].row(index) : std::span<float>());
      }
      for (std::size_t k = 0; k < specs.size(); ++k) {
        const std::span<float> row = memory.front[k];
        std::fill(row.end() - static_cast<std::ptrdiff_t>(specs[k].extra), row.end(),
                  specs[k].extra_start);
        const bool kept = k > 0 && first > 0 && specs[k].survives;
        const std::vector<float>& values = kept                   ? every_row[k][index]
                                           : index < start.size() ? start[index]
                                                                  : start.front();
        if (kept || specs[k].initial == RowSpec::Initial::parameters)
          std::copy(values.begin(), values.end(), row.begin());
      }
      memory.gradient = gradients.row(index);
      memory.counters = algorithm_->counters(i, *schedule_);
      members.push_back(std::make_unique<Node>(exchange_of(i), i, peers(), specs, memory));
      if (first > 0) {
        members.back()->endpoint().begin_at(first);
        members.back()->set_steps_done(steps_done_[index]);
        std::copy(counters_[index].begin(), counters_[index].end(),
                  members.back()->counters().begin());
      }
      for (int to : algorithm_->partners(i, *schedule_)) {
        const LinkModel model = options_.link_model ? options_.link_model(i, to) : options_.links;
        links.push_back(std::make_unique<SimulatedLink>(
            scheduler, exchange_of(to), model, ports[index], ports[static_cast<std::size_t>(to)],
            [&, i, to](Error error) {
              refused.push_back(error.message);
              if (options_.apart && options_.tolerates_peer_loss) return refuse(i, to);
              fault = error.message;
              if (options_.apart) scheduler.stop();
            }));
        counters.push_back(std::make_unique<CountedLink>(*links.back(), options_.loses));
        counters.back()->tamper = options_.tamper;
        exchange_of(i).connect(i, to, *counters.back());
        counted_links_[{i, to}] = counters.back().get();
      }
    }
    live.clear();
    for (auto& node : members) live.push_back(node.get());
    finished = 0;
    left_.clear();
    memberships_.clear();
    if (options_.tolerates_peer_loss) {
      auto partners = std::make_shared<std::vector<std::vector<int>>>();
      for (int i = 0; i < nodes; ++i) partners->push_back(algorithm_->partners(i, *schedule_));
      for (auto& node : members)
        memberships_.push_back(std::make_unique<Membership>(
            exchange_of(node->id()), *node, Membership::Plan{partners, options_.message}));
    }
    const auto set_cut = [&](int a, int b, bool cut) {
      counted_links_.at({a, b})->cut = counted_links_.at({b, a})->cut = cut;
    };
    const auto membership = [&](int i) -> Membership& {
      return *memberships_[static_cast<std::size_t>(i)];
    };
    const auto lose_link = [&](int a, int b) {
      set_cut(a, b, true);
      membership(a).lost(b, fmt::format("peer {} is cut off", b));
      membership(b).lost(a, fmt::format("peer {} is cut off", a));
    };
    const auto return_link = [&](int a, int b) {
      set_cut(a, b, false);
      membership(a).back(b);
      membership(b).back(a);
    };
    for (const NetworkOptions::Cut& cut : options_.cuts) {
      scheduler.at(cut.from, [&, cut] { set_cut(cut.a, cut.b, true); });
      scheduler.at(cut.from + options_.links.latency, [&, cut] { lose_link(cut.a, cut.b); });
      scheduler.at(cut.until, [&, cut] { return_link(cut.a, cut.b); });
    }
    for (const auto& [joiner, when] : options_.joins) {
      for (const int other : algorithm_->partners(joiner, *schedule_)) {
        const auto joins_too = options_.joins.find(other);
        if (joins_too == options_.joins.end())
          membership(other).lost(joiner, "it is not there yet");
        else if (other < joiner) continue;  // the link between the two is made once
        set_cut(joiner, other, true);
        const Time both =
            joins_too == options_.joins.end() ? when : std::max(when, joins_too->second);
        scheduler.at(both, [&, joiner, other] {
          if (!left_.contains(other)) return_link(joiner, other);
        });
      }
      membership(joiner).join();
    }
    die = [&](int victim) {
      dead_.insert(victim);
      for (const int other : algorithm_->partners(victim, *schedule_)) {
        set_cut(victim, other, true);
        scheduler.after(options_.links.latency,
                        [&, victim, other] {  // what the victim had sent has come by then
                          if (!dead_.contains(other))
                            membership(other).lost(victim, fmt::format("peer {} died", victim));
                          if (options_.apart)
                            membership(victim).lost(other,
                                                    "it died");  // and with it what had come to it
                        });
      }
    };
    refuse = [&](int from, int to) {  // the receiver ends the connection, and the sender sees that
      set_cut(from, to, true);
      membership(to).lost(from, refused.back());
      scheduler.after(Time(0), [&, from, to] {
        membership(from).lost(to, fmt::format("peer {} closed the connection", to));
      });
    };
    for (const auto& [victim, when] : options_.deaths)
      scheduler.at(when, [&, victim] { die(victim); });
    for (auto& node : members) {
      drivers.push_back(drive(*node, first, last));
      drivers.back().start(scheduler);
    }
    scheduler.run();
    virtual_time = scheduler.now();
    stranded.clear();
    for (const auto& [joiner, when] : options_.joins)
      if (membership(joiner).help() == gossip::Membership::Help::nobody) stranded.insert(joiner);
    rows.clear();
    deviations.clear();
    steps_done_.clear();
    counters_.clear();
    staleness = {};
    for (auto& node : members) {
      rows.emplace_back(node->x().begin(), node->x().end());
      steps_done_.push_back(node->steps_done());
      counters_.emplace_back(node->counters().begin(), node->counters().end());
      if (node->is_server()) staleness = node->take_staleness();
      for (const Deviation& deviation : node->endpoint().take_deviations())
        deviations.push_back({deviation, node->id()});
    }
    every_row.clear();
    for (std::size_t k = 0; k < specs.size(); ++k) {
      every_row.emplace_back();
      for (auto& node : members)
        every_row.back().emplace_back(node->row(static_cast<int>(k)).begin(),
                                      node->row(static_cast<int>(k)).end());
    }
    bytes_sent.clear();
    for (const SimulatedPort& port : ports) bytes_sent.push_back(port.traffic.bytes_sent);
    values_sent = 0;
    for (const auto& counter : counters) values_sent += counter->values;
    return *this;
  }

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
  /// Told when a node has done a round: how many it has done, and when.
  std::function<void(int node, Round done, Time now)> watch = [](int, Round, Time) {};
  std::vector<Node*> live;  ///< while it runs
  Staleness staleness;      ///< of the last server
  std::string fault;
  std::map<int, std::string> faults;  ///< of peers that are apart: why they ended
  std::vector<std::string> refused;   ///< why chunks were
  int finished = 0;
  std::set<int> stranded;  ///< those who joined and know that nobody is there to be asked
  Time virtual_time{0};

 private:
  task<void> drive(Node& node, Round first, Round last) {
    Membership* membership =
        memberships_.empty() ? nullptr : memberships_[static_cast<std::size_t>(node.id())].get();
    Round t = first;
    if (options_.joins.contains(node.id())) {
      const Round joined = co_await membership->await_admission();
      t = joined;
    }
    for (; t < last; t = node.endpoint().next_round(t, last)) {
      if (membership != nullptr) co_await membership->begin_round(t);
      co_await algorithm_->round(node, t);
      if (dead_.contains(node.id())) co_await std::suspend_always{};
      watch(node.id(), t + 1, scheduler_->now());
    }
    co_await node.endpoint().send_rest();
    co_await algorithm_->drain(node);
    if (options_.goodbyes)
      for (auto& [ends, link] : counted_links_)
        if (ends.first == node.id()) link->cut = true;
    left_.insert(node.id());
    for (std::size_t other = 0; other < memberships_.size(); ++other)
      if (counted_links_.contains({node.id(), static_cast<int>(other)}))
        scheduler_->after(options_.links.latency,
                          [this, other, id = node.id()] { memberships_[other]->left(id); });
    ++finished;
  }

  std::unique_ptr<topology::MixingSchedule> schedule_;
  Scheduler* scheduler_ = nullptr;  ///< of the run under way
  std::vector<std::unique_ptr<Membership>> memberships_;
  std::map<std::pair<int, int>, CountedLink*> counted_links_;
  std::set<int> dead_, left_;
  NetworkOptions options_;
  std::size_t length_;
  CountingDevice device_;
  std::unique_ptr<Algorithm> algorithm_;
  std::vector<std::uint64_t> steps_done_;  ///< as the last run left them, by node
  std::vector<std::vector<std::uint64_t>> counters_;
};

/// W^k x in double, by the difference form.
inline std::vector<std::vector<double>> mixed_in_double(
    const topology::MixingSchedule& schedule, const std::vector<std::vector<float>>& start,
    Round rounds) {
  std::vector<std::vector<double>> rows;
  for (const auto& row : start) rows.emplace_back(row.begin(), row.end());
  for (Round t = 0; t < rounds; ++t) {
    const auto before = rows;
    const auto matrix = schedule.at(t);
    for (int i = 0; i < schedule.peers(); ++i)
      for (const topology::Neighbour& j : matrix->in_neighbours(i))
        for (std::size_t k = 0; k < rows.front().size(); ++k)
          rows[static_cast<std::size_t>(i)][k] +=
              j.weight * (before[static_cast<std::size_t>(j.peer)][k] -
                          before[static_cast<std::size_t>(i)][k]);
  }
  return rows;
}

}  // namespace gossamer::gossip::testing
