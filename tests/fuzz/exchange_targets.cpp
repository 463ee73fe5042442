// Messages of a peer that holds a key: rows, and the messages of policies and membership, in any
// order and with any fields.
#include <algorithm>
#include <array>
#include <functional>

#include "gossip/algorithm.hpp"
#include "gossip/engine/peer_group.hpp"
#include "gossip/membership/membership.hpp"
#include "gossip/rule.hpp"
#include "gpu/cpu_device.hpp"
#include "tests/fuzz/target.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::fuzz {
namespace {

using namespace std::chrono_literals;
using namespace gossip;

constexpr int kPeers = 6, kRounds = 12;
constexpr std::size_t kLength = 24;

/// Takes what the peer under test sends.
class Sink final : public Link {
 public:
  void send(Chunk chunk) override {
    require(chunk.values.size() <= kLength, "a peer sends no more than its row");
  }
};

/// Peer 0 of a ring, whose neighbours are the input.
class Victim final : private EngineHooks {
 public:
  /// `rule`: a mixing rule; empty: the mean.
  Victim(Policy policy, bool joins, const std::string& rule)
      : schedule_(std::move(topology::make_schedule({"ring", {}, {}, {kPeers, 0}}).value())),
        algorithm_(std::move(make_algorithm("consensus", {}).value())),
        rule_(rule.empty() ? MixingRule{} : find_rule(rule).value().make({}).value()),
        compute_(scheduler_, executor_, device_, nullptr, StepTimes{0ms, 0, 1, {}, 1}) {
    ExchangeOptions exchange;
    exchange.policy = policy;
    exchange.chunk_values = 10;
    exchange.rounds = kRounds;
    exchange.row_limit = 1s;
    if (!rule_.is_mean()) exchange.rule = &rule_;
    GroupRequest request{scheduler_, compute_, device_, *schedule_, *algorithm_, exchange};
    request.hosted = {0};
    request.engine = {kPeers, kRounds, 0};
    request.layout = {.length = kLength};
    request.initialise = [](int, std::span<float> row) { std::ranges::fill(row, 1.0F); };
    EngineHooks& hooks = *this;
    group_ = std::make_unique<PeerGroup>(std::move(request), hooks, [this](const Error& error) {
      require(!error.message.empty(), "a fault has a reason");
      scheduler_.stop();
    });
    for (const int to : {1, kPeers - 1}) group_->exchange().connect(0, to, sink_);
    const auto partners = partners_of_all(*algorithm_, *schedule_, kPeers);
    group_->tolerate_loss(
        [&](int) { return Membership::Options{partners, [](const std::string&) {}}; });
    group_->exchange().faults().on_protocol_violation = [this](int, int from, const Error&) {
      scheduler_.after(0ns, [this, from] { lose(from); });
    };
    group_->exchange().faults().on_overdue = [this](int, int from, const Error&) {
      scheduler_.after(0ns, [this, from] { lose(from); });
    };
    if (joins) {
      group_->join({{0, 1}});
      up_[kPeers - 1] = false;
    }
    group_->engine(0).start();
  }

  void deliver(Chunk chunk) {
    const int from = chunk.header.from;
    if (!up_[static_cast<std::size_t>(from)]) return;
    const Status status = group_->exchange().deliver(std::move(chunk));
    if (status.ok()) return;
    require(!status.error().message.empty(), "a violation has a reason");
    lose(from);
  }
  void lose(int from) {
    if (!std::exchange(up_[static_cast<std::size_t>(from)], false)) return;
    group_->engine(0).membership().on_link_lost(from, "lost");
  }
  void restore(int from) {
    if (std::exchange(up_[static_cast<std::size_t>(from)], true)) return;
    group_->engine(0).membership().on_link_restored(from);
  }
  void leave(int from) {
    if (up_[static_cast<std::size_t>(from)]) group_->engine(0).membership().on_peer_left(from);
  }
  void tick() { group_->exchange().on_tick(100ms); }
  /// Calls `action` at a time, unless the run has ended.
  void at(Time time, std::function<void()> action) { scheduler_.at(time, std::move(action)); }
  void run() { scheduler_.run(); }

 private:
  VirtualScheduler scheduler_;
  InlineExecutor executor_;
  gpu::CpuDevice device_{1};
  std::unique_ptr<topology::MixingSchedule> schedule_;
  std::unique_ptr<Algorithm> algorithm_;
  MixingRule rule_;
  Compute compute_;
  Sink sink_;
  std::unique_ptr<PeerGroup> group_;
  std::array<bool, kPeers> up_{true, true, true, true, true, true};
};

/// One message, or something that happens to a link.
struct Step {
  std::uint64_t kind = 0;
  int from = 1;
  ChunkHeader header;
  std::array<float, kLength> values{};
  std::size_t count = 0;  ///< of the values that the chunk has
};

constexpr std::size_t kStepBytes = 20;

Step next_step(Source& source) {
  Source bytes(source.take(kStepBytes));
  Step step;
  step.kind = bytes.number(1);
  step.from = (step.kind & 16) != 0 ? kPeers - 1 : 1;
  ChunkHeader& header = step.header;
  header.from = step.from;
  header.round = bytes.number(1);
  header.channel = static_cast<Channel>(bytes.number(1) % 4);
  const std::uint64_t shape = bytes.number(1);
  if ((step.kind & 3) == 0) {
    header.total = (shape & 1) != 0 ? kLength : bytes.number(2);
    header.offset = (shape & 1) != 0 ? (shape >> 1) % 3 * 10 : bytes.number(2);
    step.count = (shape & 1) != 0 ? std::min<std::size_t>(10, kLength - header.offset)
                                  : bytes.number(1) % kLength + 1;
    step.values.fill((shape & 128) != 0 ? ((shape & 64) != 0 ? 1e30F : 1e18F)
                                        : static_cast<float>(shape));
    return step;
  }
  header.control = static_cast<ControlMessage>(1 + shape % (kControlMessages - 1));
  header.link_state.end = static_cast<int>(bytes.number(2) % (2 * kPeers));
  header.link_state.neighbour = static_cast<int>(bytes.number(2) % (2 * kPeers));
  header.link_state.version = static_cast<std::uint32_t>(bytes.number(4));
  header.link_state.reachability_only = (bytes.number(1) & 1) != 0;
  header.chain = static_cast<std::uint8_t>(bytes.number(1));
  header.donor_steps = bytes.number(4);
  header.resumes_at = header.donor_steps % (1 << 16);
  if ((step.kind & 8) != 0) header.round = bytes.number(8);
  return step;
}

void apply(Victim& victim, const Step& step) {
  switch (step.kind & 7) {
    case 3: return victim.lose(step.from);
    case 5: return victim.restore(step.from);
    case 6: return victim.tick();
    case 7: return victim.leave(step.from);
    default: break;
  }
  const auto values =
      std::span(step.values).first(step.header.control == ControlMessage::none ? step.count : 0);
  victim.deliver(Chunk(step.header, values, {}));
}

void run_exchange(std::span<const std::byte> input) {
  constexpr std::size_t kMostSteps = 300;
  Source source(input);
  const std::uint64_t choices = source.number(1);
  std::vector<Step> steps;
  while (!source.empty() && steps.size() < kMostSteps) steps.push_back(next_step(source));
  const std::vector<std::string> rules{"", "geometric_median", "median", "cs_plus"};
  Victim victim(static_cast<Policy>(choices & 3), (choices & 4) != 0, rules[(choices >> 3) & 3]);
  for (std::size_t k = 0; k < steps.size(); ++k)
    victim.at(1ms * static_cast<int>(k + 1), [&victim, &step = steps[k]] { apply(victim, step); });
  victim.run();
}

/// Neighbours that follow the protocol, under each policy, and of a peer that joins.
std::vector<Bytes> exchange_seeds() {
  std::vector<Bytes> seeds;
  for (const int choices : {0, 1, 2, 3, 4, 8, 9, 18, 24}) {
    Bytes seed{static_cast<std::byte>(choices)};
    const auto add = [&seed](std::initializer_list<int> bytes) {
      for (const int byte : bytes) seed.push_back(static_cast<std::byte>(byte));
      seed.resize(seed.size() + kStepBytes - bytes.size());
    };
    if (choices == 4) add({1, 3, 0, static_cast<int>(ControlMessage::resync) - 1});
    for (int round = 0; round < 6; ++round)
      for (const int from : {0, 16})
        for (const int chunk : {0, 1, 2}) add({from, round, 0, 1 + 2 * chunk});
    add({3}), add({5}), add({1, 7, 0, static_cast<int>(ControlMessage::resync) - 1}), add({6});
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace

std::vector<Target> exchange_targets() { return {{"exchange", run_exchange, exchange_seeds}}; }

}  // namespace gossamer::fuzz
