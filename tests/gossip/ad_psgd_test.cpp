// AD-PSGD against its paper's iteration in double, in the order of events; what it keeps, and where
// it ends.
#include <algorithm>
#include <map>

#include "tests/gossip/pace_test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

/// In double, by the clock.
class AdPsgdByTheClock {
 public:
  /// `colours`: of a bipartite graph, 0 for the peers that ask.
  AdPsgdByTheClock(const topology::MixingSchedule& schedule, const NetworkOptions& options,
                   const PullTrainer& trainer, std::vector<int> colours)
      : w_(*schedule.at(0)), options_(options), trainer_(trainer), colours_(std::move(colours)) {}

  std::vector<Values> run(const std::vector<std::vector<float>>& start, Round rounds) {
    rounds_ = rounds;
    for (const auto& row : start)
      peers_.push_back({Values(row.begin(), row.end()), {}, 0, false, false, {}});
    for (int i = 0; i < w_.peers(); ++i) begin_round(i, Time(0));
    while (!events_.empty()) {
      const auto first = events_.begin();
      const auto [when, event] = *first;
      events_.erase(first);
      happen(event, when);
    }
    std::vector<Values> x;
    for (const Peer& peer : peers_) x.push_back(peer.x);
    return x;
  }

 private:
  enum class What { steps_done, question, answer, parting };
  struct Event {
    What what;
    int at, from;
    Values values;
  };
  struct Peer {
    Values x, before;
    Round round;
    bool waits, stepping;
    std::map<int, bool> parted;
  };

  Peer& at(int i) { return peers_[static_cast<std::size_t>(i)]; }
  bool asks(int i) const { return colours_[static_cast<std::size_t>(i)] == 0; }
  void send(What what, int from, int to, const Values& values, Time now) {
    events_.insert({now + options_.links.latency, {what, to, from, values}});
  }

  void begin_round(int i, Time now) {
    Peer& me = at(i);
    if (me.round == rounds_) {
      for (const int j : w_.out_neighbours(i))
        if (!asks(i)) send(What::parting, i, j, {}, now);
      return;
    }
    me.before = me.x;
    std::vector<int> candidates;
    for (const int j : w_.out_neighbours(i))
      if (asks(i) && !me.parted[j]) candidates.push_back(j);
    me.waits = !candidates.empty();
    if (me.waits) {
      RandomStream random(kSeed, static_cast<std::uint32_t>(i), Purpose::topology, me.round);
      send(What::question, i,
           candidates[random.below(static_cast<std::uint32_t>(candidates.size()))], me.x, now);
    }
    me.stepping = true;
    events_.insert({now + step_time(options_, i, me.round), {What::steps_done, i, i, {}}});
  }

  void happen(const Event& event, Time now) {
    Peer& me = at(event.at);
    if (event.what == What::parting) {
      me.parted[event.from] = true;
      return;
    }
    if (event.what == What::question) {
      const bool final = me.round == rounds_;
      for (std::size_t k = 0; k < me.x.size() && !final; ++k)
        me.x[k] = (me.x[k] + event.values[k]) / 2;
      return send(What::answer, event.at, event.from, final ? event.values : me.x, now);
    }
    if (event.what == What::answer) me.x = event.values, me.waits = false;
    else me.stepping = false;
    if (me.waits || me.stepping) return;
    descend(me.x, me.before, trainer_.target(event.at));
    ++me.round;
    begin_round(event.at, now);
  }

  const topology::MixingMatrix& w_;
  const NetworkOptions& options_;
  const PullTrainer& trainer_;
  std::vector<int> colours_;
  Round rounds_ = 0;
  std::vector<Peer> peers_;
  std::multimap<Time, Event> events_;
};

}  // namespace

TEST_CASE("AD-PSGD is its paper's iteration, in the order of events") {
  const NetworkOptions options = at_their_own_pace(Policy::sync, 3ms);
  PullTrainer trainer(8, kLength, kRate);
  for (const Round rounds : {Round{1}, Round{2}, Round{5}, Round{120}}) {
    CAPTURE(rounds);
    Network network("ring", 8, kLength, options);
    AdPsgdByTheClock reference(network.matrices(), options, trainer, {0, 1, 0, 1, 0, 1, 0, 1});
    const auto expected = reference.run(network.start, rounds);
    network.run("ad_psgd", {}, rounds, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 8);
    CHECK(largest_difference(network.rows, expected) < 1e-5);
  }
}

TEST_CASE(
    "AD-PSGD: no peer waits for ever on any graph, the sum is kept, and peers come together until "
    "the first are done") {
  struct Case {
    const char* graph;
    int peers;
  };
  for (const Case& each :
       {Case{"ring", 7}, Case{"ring", 1}, Case{"path", 2}, Case{"complete", 6}, Case{"star", 9},
        Case{"torus", 9}, Case{"hypercube", 8}, Case{"grid", 9}, Case{"binary_tree", 10}}) {
    CAPTURE(each.graph);
    CAPTURE(each.peers);
    for (const Time latency : {Time(0), Time(1ms), Time(25ms)}) {
      NetworkOptions options = at_their_own_pace(Policy::sync, latency);
      options.slow_peers = 1;
      options.slow_factor = 4;
      PullTrainer still(each.peers, kLength, 0.0F);
      Network network(each.graph, each.peers, kLength, options);
      const Values sum = sum_of(network.start);
      network.run("ad_psgd", {}, 300, &still);
      CHECK(network.fault == "");
      CHECK(network.finished == each.peers);
      const Values kept = sum_of(network.rows);
      for (std::size_t k = 0; k < kLength; ++k) {
        CHECK(kept[k] == doctest::Approx(sum[k]).epsilon(1e-5).scale(1));
        const auto width = [k](const std::vector<std::vector<float>>& rows) {
          const auto [least, most] =
              std::ranges::minmax(rows, {}, [k](const auto& row) { return row[k]; });
          return most[k] - least[k];
        };
        // Peers that are only asked do not wait for answers; on a slow network they are done long
        // before the others.
        if (latency < 10ms) CHECK(width(network.rows) <= 0.3 * width(network.start));
      }
    }
  }
}

TEST_CASE("AD-PSGD ends where the peers' steps cancel, each counting by its pace") {
  // Σ_i r_i (x − b_i) = 0 to first order in the rate, r_i being how many steps peer i takes in the
  // time of one.
  constexpr int kPeers = 8;
  for (const double slowness : {1.0, 4.0}) {
    CAPTURE(slowness);
    NetworkOptions options = at_their_own_pace(Policy::sync, 1ms);
    options.slow_peers = 1;
    options.slow_factor = slowness;
    PullTrainer trainer(kPeers, kLength, 0.01F);
    Network network("ring", kPeers, kLength, options);
    Values mean(kLength);
    double samples = 0, apart = 0;
    network.watch = [&](int peer, Round done, Time) {
      if (peer != 1 || done < 1000 || done > 1900) return;
      Values now(kLength);
      for (Node* node : network.live)
        for (std::size_t k = 0; k < kLength; ++k) now[k] += node->x()[k] / kPeers;
      for (Node* node : network.live)
        for (std::size_t k = 0; k < kLength; ++k)
          apart = std::max(apart, std::abs(node->x()[k] - now[k]));
      for (std::size_t k = 0; k < kLength; ++k) mean[k] += now[k];
      ++samples;
    };
    network.run("ad_psgd", {}, 2000, &trainer);
    double paces = 0, off = 0, moved = 0;
    Values expected(kLength);
    for (int i = 0; i < kPeers; ++i) {
      const double pace = i == 0 ? 1 / slowness : 1;
      for (std::size_t k = 0; k < kLength; ++k) expected[k] += pace * trainer.target(i)[k];
      paces += pace;
    }
    const Values optimum = trainer.optimum();
    for (std::size_t k = 0; k < kLength; ++k) {
      off = std::max(off, std::abs(mean[k] / samples - expected[k] / paces));
      moved = std::max(moved, std::abs(optimum[k] - expected[k] / paces));
    }
    CHECK(samples > 800);
    CHECK(off < 0.03);
    CHECK((slowness == 1 || moved > 0.06));  // what is measured is more than that
    CHECK(apart < 0.5);
  }
}
