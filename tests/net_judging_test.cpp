// Over TCP: a peer that sends what must not be mixed loses its link, is named, and the others go on.
#include <bit>
#include <limits>

#include "base/rows.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/membership.hpp"
#include "gpu/cpu_device.hpp"
#include "net_words.hpp"
#include "topology/mixing_matrix.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

constexpr std::size_t kLength = 5000, kChunk = 700;
constexpr int kPeers = 3, kHostile = 1;
constexpr gossip::Round kRounds = 30, kBad = 7;
const World::Pairs kTriangle = {{0, 1}, {0, 2}, {1, 2}};

/// An honest peer in a process of its own, which averages with the others.
class Honest {
 public:
  Honest(World& world, gossip::Compute& compute, const topology::MixingSchedule& schedule, const gossip::Codec& codec, int id)
      : algorithm_(gossip::make_algorithm("consensus", {{"length", static_cast<std::int64_t>(kLength)}}).value()),
        exchange_(world.scheduler, compute, schedule, options(codec), {id},
                  [this](Error error) { faults.push_back(std::move(error)); }),
        rows_(2, kLength),
        node_(exchange_, id, kPeers, algorithm_->rows(schedule), memory()),
        membership_(exchange_, node_, {partners(), [this](const std::string& line) { said.push_back(line); }}) {
    for (std::size_t i = 0; i < kLength; ++i) rows_.row(0)[i] = static_cast<float>(id);
    Process& process = world.add({id}, kTriangle);
    process.memory.receiver = &exchange_;
    process.on_lost = [this](int other, const Error& why) { membership_.lost(other, why.message); };
    for (int other = 0; other < kPeers; ++other)
      if (other != id) exchange_.connect(id, other, process.network->link(id, other));
  }

  void start(World& world) {
    driver_ = drive();
    driver_.start(world.scheduler);
  }
  bool done() const { return driver_.done(); }
  std::span<const float> x() { return node_.x(); }
  std::vector<gossip::Deviation> deviations() { return node_.endpoint().take_deviations(); }

  std::vector<Error> faults;
  std::vector<std::string> said;

 private:
  static gossip::ExchangeOptions options(const gossip::Codec& codec) {
    gossip::ExchangeOptions options;
    options.chunk_values = kChunk;
    options.row_lengths = {kLength, kLength};
    options.channels = 2;
    options.codec = &codec;
    return options;
  }
  static std::shared_ptr<const std::vector<std::vector<int>>> partners() {
    return std::make_shared<const std::vector<std::vector<int>>>(std::vector<std::vector<int>>{{1, 2}, {0, 2}, {0, 1}});
  }
  gossip::NodeMemory memory() {
    gossip::NodeMemory memory;
    memory.front.push_back(rows_.row(0));
    memory.back.push_back(rows_.row(1));
    return memory;
  }
  gossip::task<void> drive() {
    for (gossip::Round t = 0; t < kRounds; t = node_.endpoint().next_round(t, kRounds)) {
      co_await membership_.attend(t);
      co_await algorithm_->round(node_, t);
    }
  }

  std::unique_ptr<gossip::Algorithm> algorithm_;
  gossip::Exchange exchange_;
  Rows<float> rows_;
  gossip::Node node_;
  gossip::Membership membership_;
  gossip::task<void> driver_;
};

}  // namespace

TEST_CASE("a peer that sends what is not finite, or too large, over TCP: named, left out, and never mixed") {
  using Limits = std::numeric_limits<float>;
  for (const char* kind : {"none", "bf16"})
    for (const float bad : {Limits::quiet_NaN(), Limits::infinity(), -3e38F}) {
      CAPTURE(kind);
      CAPTURE(bad);
      auto codec = gossip::make_codec(kind, {}, {});
      auto schedule = topology::make_schedule({"complete", {}, {}, {kPeers, 0}});
      REQUIRE(codec.ok());
      REQUIRE(schedule.ok());
      World world(kPeers);
      world.bears = true;
      gpu::CpuDevice device(1);
      gossip::InlineExecutor executor;
      gossip::Compute compute(world.scheduler, executor, device, nullptr, gossip::StepTimes{});
      Honest zero(world, compute, **schedule, **codec, 0), two(world, compute, **schedule, **codec, 2);
      Process& hostile = world.add({kHostile}, kTriangle);
      world.join();
      // Sound rows to peer 2, to peer 0 one that is bad in its last chunk.
      const std::size_t words = (*codec)->words(kLength), last = (words - 1) / kChunk * kChunk;
      Row sound(words), spoiled(words);
      std::ranges::fill(sound.values, std::bit_cast<float>(0x40004000U));  // 2 as a float, nearly, and twice 2 as bf16
      spoiled.values = sound.values;
      spoiled.values[last + 5] = bad;
      for (gossip::Round t = 0; t < kRounds; ++t)
        for (const int to : {0, 2})
          for (std::size_t at = 0; at < words; at += kChunk)
            if (to == 2 || t <= kBad)
              hostile.network->link(kHostile, to).send((to == 0 && t == kBad ? spoiled : sound).chunk(kHostile, to, t, at, kChunk));
      zero.start(world), two.start(world);
      world.run_until([&] { return zero.done() && two.done() && hostile.count("lost 1-0") > 0; });

      for (Honest* peer : {&zero, &two}) {
        CHECK(peer->faults.empty());
        for (const float value : peer->x()) REQUIRE(std::fabs(value) <= 2.1F);
      }
      REQUIRE_FALSE(zero.said.empty());
      const std::string place = fmt::format("peer 1 broke the protocol towards peer 0 (round {}, channel 0): ", kBad);
      CHECK(zero.said.front().find(place) == 0);
      CHECK(zero.said.front().find(fmt::format("{} of its row is not finite, or beyond", last + 5)) != std::string::npos);
      for (const gossip::Deviation& deviation : zero.deviations()) {
        CHECK(deviation.from == kHostile);
        CHECK(deviation.round >= kBad);
        CHECK(deviation.missing);
      }
      CHECK(two.deviations().empty());
      world.processes.clear();  // before the rows that they read
    }
}
