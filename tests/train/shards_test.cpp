#include "train/shards.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/philox.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// A data set of `per_class` training samples of each class, classes taking turns, and one feature;
/// two test samples.
Dataset labelled(int classes, int per_class) {
  Dataset data;
  data.name = "labelled";
  data.classes = classes;
  data.train_count = static_cast<std::size_t>(classes * per_class);
  data.count = data.train_count + 2;
  data.features.assign(data.count, 0);
  for (std::size_t i = 0; i < data.count; ++i) data.labels.push_back(static_cast<int>(i) % classes);
  return data;
}

Dataset digits_data() { return make_dataset("digits", {}, {}).value(); }

ShardOptions dirichlet(double alpha, int batch = 1) {
  return {.partition = "dirichlet", .alpha = alpha, .batch = batch};
}
ShardOptions by_label(int k, int batch = 1) {
  return {.partition = "label", .classes_per_peer = k, .batch = batch};
}
ShardOptions iid(int batch = 1) { return {.partition = "iid", .batch = batch}; }

Shards cut(const Dataset& data, const ShardOptions& options, int peers, std::uint64_t seed = 0) {
  auto shards = make_shards(data, options, peers, seed);
  REQUIRE_MESSAGE(shards.ok(), (shards.ok() ? "" : shards.error().message));
  return *shards;
}

std::string shards_refusal(const Dataset& data, const ShardOptions& options, int peers,
                           std::uint64_t seed = 0) {
  const auto shards = make_shards(data, options, peers, seed);
  REQUIRE_FALSE(shards.ok());
  CHECK(shards.error().kind == ErrorKind::invalid);
  return shards.error().message;
}

void check_partition(const Shards& shards, const Dataset& data, int peers) {
  REQUIRE(shards.size() == static_cast<std::size_t>(peers));
  std::vector<std::uint32_t> all;
  for (const auto& shard : shards) {
    CHECK(std::is_sorted(shard.begin(), shard.end()));
    all.insert(all.end(), shard.begin(), shard.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<std::uint32_t> expected(data.train_count);
  std::iota(expected.begin(), expected.end(), 0U);
  CHECK(all == expected);
}

std::size_t spread(const Shards& shards) {
  const auto [low, high] =
      std::minmax_element(shards.begin(), shards.end(),
                          [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return high->size() - low->size();
}

std::set<int> classes_of(const std::vector<std::uint32_t>& shard, const Dataset& data) {
  std::set<int> classes;
  for (std::uint32_t sample : shard) classes.insert(data.labels[sample]);
  return classes;
}

/// Mean over the peers of Σ_k (share of class k)²: 1 for one class a peer, 1/K for equal shares.
double concentration(const Shards& shards, const Dataset& data) {
  double sum = 0;
  for (const auto& shard : shards) {
    std::map<int, double> counts;
    for (std::uint32_t sample : shard)
      counts[data.labels[sample]] += 1.0 / static_cast<double>(shard.size());
    for (const auto& [label, share] : counts) sum += share * share;
  }
  return sum / static_cast<double>(shards.size());
}

}  // namespace

TEST_CASE(
    "every rule puts every training sample into exactly one shard, and depends on the seed alone") {
  for (const Dataset& data : {labelled(3, 40), labelled(10, 100), digits_data()})
    for (int peers : {1, 2, 7, 16})
      for (const ShardOptions& options :
           {iid(), dirichlet(1e-4), dirichlet(0.1), dirichlet(1e6), by_label(1), by_label(3),
            ShardOptions{.partition = "dirichlet_over_peers", .alpha = 5, .batch = 1},
            ShardOptions{.partition = "sorted", .batch = 1},
            ShardOptions{.partition = "sorted", .groups = 1, .batch = 1}})
        for (std::uint64_t seed : {0, 1, 2}) {
          if (options.partition == "label" && peers * options.classes_per_peer < data.classes)
            continue;
          CAPTURE(options.partition);
          CAPTURE(options.alpha);
          CAPTURE(peers);
          const Shards shards = cut(data, options, peers, seed);
          check_partition(shards, data, peers);
          CHECK(shards == cut(data, options, peers, seed));
          if (peers > 3) CHECK(shards != cut(data, options, peers, seed + 10));
          if (options.partition == "iid" || options.partition == "dirichlet")
            CHECK(spread(shards) <= 1);
        }
}

// 1, 1/2, 1/3 and 1/4 of 48/25 of 1,000 samples.
TEST_CASE("shard sizes follow Zipf's law, in an order that the seed decides") {
  const Dataset data = labelled(10, 100);
  for (const char* partition : {"iid", "dirichlet"}) {
    const ShardOptions options{.partition = partition, .size_exponent = 1, .batch = 1};
    std::set<std::size_t> first;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Shards shards = cut(data, options, 4, seed);
      check_partition(shards, data, 4);
      first.insert(shards[0].size());
      std::vector<std::size_t> sizes;
      for (const auto& shard : shards) sizes.push_back(shard.size());
      std::ranges::sort(sizes, std::greater());
      CHECK(sizes == std::vector<std::size_t>{480, 240, 160, 120});
    }
    CHECK(first.size() == 4);
  }
  for (const char* partition : {"iid", "dirichlet"}) {
    const std::string few =
        shards_refusal(data, {.partition = partition, .size_exponent = 8, .batch = 4}, 8);
    CHECK(contains(few, "fewer than a batch of 4"));
    CHECK(contains(few, "a smaller data.size_exponent"));
    CHECK(contains(shards_refusal(data, {.partition = partition, .batch = 1}, 1200),
                   "has no training sample"));
  }
  for (const char* partition : {"label", "dirichlet_over_peers", "sorted"})
    CHECK(
        contains(shards_refusal(data, {.partition = partition, .size_exponent = 1, .batch = 1}, 4),
                 "only the partitions iid and dirichlet"));
}

// The share of a class that a peer gets has mean 1/n and variance (n − 1) / (n² (nα + 1)).
TEST_CASE("Dirichlet over peers divides each class in proportions of their own") {
  constexpr int kPeers = 5, kClasses = 10, kPerClass = 200, kSeeds = 60;
  const Dataset data = labelled(kClasses, kPerClass);
  const double n = kPeers, alpha = 2;
  double variance = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Shards shards =
        cut(data, {.partition = "dirichlet_over_peers", .alpha = alpha, .batch = 1}, kPeers, seed);
    for (const auto& shard : shards) {
      std::map<int, double> share;
      for (const std::uint32_t sample : shard) share[data.labels[sample]] += 1.0 / kPerClass;
      for (int k = 0; k < kClasses; ++k)
        variance += std::pow(share[k] - 1 / n, 2) / (kPeers * kClasses * kSeeds);
    }
  }
  CHECK(variance == doctest::Approx((n - 1) / (n * n * (n * alpha + 1))).epsilon(0.1));
  CHECK(contains(
      shards_refusal(data, {.partition = "dirichlet_over_peers", .alpha = 1e-4, .batch = 1}, 40),
      "a larger data.alpha"));
}

TEST_CASE("sorted samples: groups of peers have classes of their own, and share them at random") {
  const Dataset data = labelled(10, 100);
  const auto sorted = [](int groups) {
    return ShardOptions{.partition = "sorted", .groups = groups, .batch = 1};
  };
  const std::set<int> low{0, 1, 2, 3, 4}, high{5, 6, 7, 8, 9};
  const Shards halves = cut(data, sorted(2), 20, 3);
  for (std::size_t peer = 0; peer < 20; ++peer) {
    CHECK(classes_of(halves[peer], data) == (peer < 10 ? low : high));
    CHECK(halves[peer].size() == 50);
  }
  for (const int groups : {0, 20}) {  // two peers a class
    const Shards pieces = cut(data, sorted(groups), 20, 3);
    for (std::size_t peer = 0; peer < 20; ++peer)
      CHECK(classes_of(pieces[peer], data) == std::set<int>{static_cast<int>(peer / 2)});
  }
  const Shards uneven = cut(data, sorted(4), 10, 3);  // 3, 3, 2 and 2 peers; 2.5 classes a group
  CHECK(classes_of(uneven[2], data) == std::set<int>{0, 1, 2});
  CHECK(classes_of(uneven[3], data) == std::set<int>{2, 3, 4});
  CHECK(uneven[5].size() == 83);
  CHECK(uneven[6].size() == 125);
  CHECK(contains(shards_refusal(data, sorted(5), 4),
                 "data.groups: 4 peers cannot form 5 groups; set data.groups = 4 or less"));
  CHECK(contains(shards_refusal(data, {.partition = "sorted", .groups = 3, .batch = 200}, 6),
                 "a smaller data.groups"));
}

// Peers of a group are told apart by chance alone: the largest class of a shard of 50 samples of
// five classes has 10 of them on average, and hardly ever 25.
TEST_CASE("sorted samples: within a group the shards are alike") {
  const Dataset data = labelled(10, 100);
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const auto& shard :
         cut(data, {.partition = "sorted", .groups = 2, .batch = 1}, 20, seed)) {
      std::map<int, int> counts;
      for (const std::uint32_t sample : shard) ++counts[data.labels[sample]];
      for (const auto& [label, count] : counts) CHECK(count < 25);
    }
}

TEST_CASE("Dirichlet at 0.1 gives each of 16 peers a batch of 16 digits, whatever the seed") {
  const Dataset data = digits_data();
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (double alpha : {1e-4, 0.1, 1.0})
      check_partition(cut(data, dirichlet(alpha, 16), 16, seed), data, 16);
}

// For q ~ Dir(α, …, α) over K classes, E Σ q² = (α + 1) / (Kα + 1): the closed form holds while
// classes are not used up, and the forced leftovers of the last peers keep the measure near it.
TEST_CASE("a peer's class mix is as concentrated as its Dirichlet distribution says") {
  const Dataset data = labelled(10, 400);
  for (double alpha : {0.1, 1.0, 10.0}) {
    double mean = 0;
    constexpr int kSeeds = 60;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
      mean += concentration(cut(data, dirichlet(alpha), 20, seed), data) / kSeeds;
    CAPTURE(alpha);
    CHECK(mean == doctest::Approx((alpha + 1) / (10 * alpha + 1)).epsilon(0.15));
  }
  CHECK(concentration(cut(data, dirichlet(1e-4), 10), data) > 0.9);
  CHECK(concentration(cut(data, dirichlet(1e6), 10), data) < 0.105);
}

TEST_CASE(
    "by label: k classes a peer, each class held by as many peers as every other, and cut evenly") {
  const Dataset data = digits_data();
  for (int peers : {5, 10, 16, 40})
    for (int k : {2, 3, 10}) {
      const Shards shards = cut(data, by_label(k), peers, 3);
      std::map<int, int> holders;
      for (const auto& shard : shards) {
        const std::set<int> classes = classes_of(shard, data);
        CHECK(classes.size() == static_cast<std::size_t>(k));
        for (int label : classes) ++holders[label];
      }
      CHECK(holders.size() == 10);
      for (const auto& [label, count] : holders) {
        CHECK(count >= peers * k / 10);
        CHECK(count <= (peers * k + 9) / 10);
      }
    }
}

TEST_CASE("by label: classes can be dealt evenly for every number of peers and classes") {
  for (int classes = 1; classes <= 7; ++classes) {
    const Dataset data = labelled(classes, 12);
    for (int k = 1; k <= classes; ++k)
      for (int peers = (classes + k - 1) / k; peers <= 12; ++peers) {
        std::vector<int> holders(static_cast<std::size_t>(classes));
        const Shards shards = cut(data, by_label(k), peers, 1);
        check_partition(shards, data, peers);
        for (const auto& shard : shards) {
          const std::set<int> held = classes_of(shard, data);
          CHECK(held.size() == static_cast<std::size_t>(k));
          for (int label : held) ++holders[static_cast<std::size_t>(label)];
        }
        const auto [low, high] = std::minmax_element(holders.begin(), holders.end());
        CHECK(*high - *low <= 1);
      }
  }
}

TEST_CASE("classes without training samples have no owner") {
  Dataset data = labelled(4, 50);
  data.classes = 9;
  for (const auto& shard : cut(data, by_label(2), 8)) CHECK(classes_of(shard, data).size() == 2);
  check_partition(cut(data, dirichlet(0.1), 8), data, 8);
}

TEST_CASE("natural shards are kept, whatever the partition") {
  Dataset data = labelled(2, 3);
  data.natural_shards = {{5, 1}, {0, 2, 3, 4}};
  CHECK(contains(shards_refusal(data, {.size_exponent = 1, .batch = 1}, 2),
                 "set data.size_exponent = 0"));
  for (const ShardOptions& options : {iid(), dirichlet(0.1), by_label(9)})
    CHECK(cut(data, options, 2) == Shards{{1, 5}, {0, 2, 3, 4}});
  CHECK(contains(shards_refusal(data, iid(), 3), "made for 2 peers, and the run has 3"));
  CHECK(contains(shards_refusal(data, iid(3), 2),
                 "peer 0 has 2 training samples, fewer than a batch of 3"));
}

TEST_CASE("a refusal gives the peer, the numbers and what would help") {
  const Dataset data = labelled(10, 10);
  const std::string text = shards_refusal(data, iid(16), 8);
  CHECK(contains(text, "has 12 training samples, fewer than a batch of 16"));
  CHECK(contains(text, "at most 6 peers"));
  CHECK(contains(text, "a smaller data.batch"));
  CHECK(shards_refusal(data, iid(64), 8).ends_with("or at most 1 peer"));
  CHECK(shards_refusal(data, iid(128), 8).ends_with("or more training samples"));
  CHECK(contains(shards_refusal(data, iid(0), 101), "peer 100 has no training sample"));
  CHECK(contains(shards_refusal(data, by_label(11), 4),
                 "11 classes a peer, and 'labelled' has 10 classes"));
  const std::string few = shards_refusal(data, by_label(2), 4);
  CHECK(contains(few, "4 peers with 2 classes each hold at most 8 of the 10 classes"));
  CHECK(contains(few, "at least 3 classes a peer or 5 peers"));
  Dataset regression = labelled(2, 10);
  regression.classes = 0;
  CHECK(contains(shards_refusal(regression, dirichlet(1), 2), "needs classes"));
  CHECK(contains(shards_refusal(data, {.partition = "zipf"}, 2), "'zipf' is not one of"));
  CHECK(contains(shards_refusal(data, iid(), 0), "0 peers"));
}

TEST_CASE(
    "an epoch holds every sample at most once, all but the remainder, in another order each time") {
  for (int size : {1, 5, 16, 90})
    for (int batch : {1, 3, 16, 90}) {
      if (batch > size) continue;
      std::vector<std::uint32_t> shard(static_cast<std::size_t>(size));
      for (int i = 0; i < size; ++i)
        shard[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(7 * i + 2);
      BatchOrder order(shard, batch, 3, 11);
      CHECK(order.batch_size() == batch);
      REQUIRE(order.batches_per_epoch() == static_cast<std::uint64_t>(size / batch));
      std::uint64_t step = 0;
      std::set<std::vector<std::uint32_t>> orders;
      for (int epoch = 0; epoch < 6; ++epoch) {
        std::vector<std::uint32_t> drawn;
        for (std::uint64_t b = 0; b < order.batches_per_epoch(); ++b) {
          const auto samples = order.batch(step++);
          REQUIRE(samples.size() == static_cast<std::size_t>(batch));
          drawn.insert(drawn.end(), samples.begin(), samples.end());
        }
        orders.insert(drawn);
        const std::set<std::uint32_t> distinct(drawn.begin(), drawn.end());
        CHECK(distinct.size() == drawn.size());
        CHECK(std::includes(shard.begin(), shard.end(), distinct.begin(), distinct.end()));
      }
      if (size >= 16) CHECK(orders.size() == 6);
    }
}

TEST_CASE("any step may be asked for at any time") {
  std::vector<std::uint32_t> shard(53);
  std::iota(shard.begin(), shard.end(), 100U);
  BatchOrder in_order(shard, 8, 2, 5), at_random(shard, 8, 2, 5);
  std::vector<std::vector<std::uint32_t>> expected;
  for (std::uint64_t step = 0; step < 200; ++step) {
    const auto samples = in_order.batch(step);
    expected.emplace_back(samples.begin(), samples.end());
  }
  RandomStream random(1, 0, Purpose::test);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t step = random.below(200);
    const auto samples = at_random.batch(step);
    CHECK(std::equal(samples.begin(), samples.end(), expected[step].begin(), expected[step].end()));
  }
  CHECK(at_random.batch(std::uint64_t{1} << 60).size() == 8);
}

TEST_CASE("the order is keyed by peer and seed") {
  std::vector<std::uint32_t> shard(64);
  std::iota(shard.begin(), shard.end(), 0U);
  std::set<std::vector<std::uint32_t>> orders;
  for (int peer : {0, 1, 2})
    for (std::uint64_t seed : {0, 1, 2}) {
      BatchOrder order(shard, 64, peer, seed);
      const auto samples = order.batch(0);
      orders.insert({samples.begin(), samples.end()});
    }
  CHECK(orders.size() == 9);
}

TEST_CASE("batch 0 is the whole shard, always in the same order") {
  const std::vector<std::uint32_t> shard = {1, 4, 9, 16, 25};
  BatchOrder order(shard, 0, 0, 0);
  CHECK(order.batch_size() == 5);
  CHECK(order.batches_per_epoch() == 1);
  for (std::uint64_t step : {0, 1, 77}) {
    const auto samples = order.batch(step);
    CHECK(std::vector<std::uint32_t>(samples.begin(), samples.end()) == shard);
  }
}

TEST_CASE("the keys of [data] are checked") {
  CHECK(shard_parameters().read("data", {}).ok());
  const auto bad = [](const char* key, ParameterValue value) {
    const auto options = shard_parameters().read("data", {{key, std::move(value)}});
    REQUIRE_FALSE(options.ok());
    return options.error().message;
  };
  CHECK(contains(bad("alpha", 0.0), "data.alpha"));
  CHECK(contains(bad("batch", std::int64_t{-1}), "data.batch"));
  CHECK(contains(bad("classes_per_peer", std::int64_t{0}), "data.classes_per_peer"));
  CHECK(contains(bad("partition", std::string("zipf")), "dirichlet"));
}
