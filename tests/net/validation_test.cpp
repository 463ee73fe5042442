// Over TCP: a peer that sends what must not be mixed, or rows that are not due, loses its link, is
// named, and the others go on.
#include <bit>
#include <limits>

#include "gossip/algorithm.hpp"
#include "gossip/engine/peer_group.hpp"
#include "gpu/cpu_device.hpp"
#include "tests/net/test_util.hpp"
#include "topology/mixing_matrix.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

constexpr std::size_t kLength = 5000, kChunk = 700;
constexpr int kPeers = 3, kHostile = 1;
constexpr gossip::Round kRounds = 30, kBad = 7;
/// An honest peer in a process of its own, which averages with the others.
class Honest final : private gossip::EngineHooks {
 public:
  Honest(World& world, gossip::Compute& compute, const topology::MixingSchedule& schedule,
         const gossip::Codec& codec, int id)
      : algorithm_(
            gossip::make_algorithm("consensus", {{"length", static_cast<std::int64_t>(kLength)}})
                .value()),
        group_(request(world, compute, schedule, codec, id), *this,
               [this](Error error) { faults.push_back(std::move(error)); }) {
    group_.tolerate_loss([&](int) {
      return gossip::Membership::Options{
          gossip::partners_of_all(*algorithm_, schedule, kPeers),
          [this](const std::string& line) { messages.push_back(line); }};
    });
    Process& process = world.add({id}, kTriangle);
    process.memory.receiver = &group_.exchange();
    group_.exchange().faults().on_protocol_violation = [&process](int here, int there,
                                                                  const Error& why) {
      process.network->end_link(here, there, Network::Blame::violation, why);
    };
    process.on_lost = [this](int other, const Error& why) {
      engine().membership().on_link_lost(other, why.message);
    };
    for (int other = 0; other < kPeers; ++other)
      if (other != id) group_.exchange().connect(id, other, process.network->link(id, other));
  }

  void start() { engine().start(); }
  bool done() const { return group_.finished(); }
  std::span<const float> x() { return engine().node().x(); }
  std::vector<gossip::Deviation> deviations() {
    return engine().node().endpoint().take_deviations();
  }

  std::vector<Error> faults;
  std::vector<std::string> messages;

 private:
  gossip::GroupRequest request(World& world, gossip::Compute& compute,
                               const topology::MixingSchedule& schedule, const gossip::Codec& codec,
                               int id) {
    gossip::GroupRequest request{world.scheduler, compute, compute.device(), schedule, *algorithm_};
    request.exchange.chunk_values = kChunk;
    request.exchange.rounds = kRounds;
    request.exchange.codec = &codec;
    request.hosted = {id};
    request.engine = {kPeers, kRounds, 0};
    request.layout = {.length = kLength, .gradient = false};
    request.initialise = [](int node, std::span<float> parameters) {
      std::ranges::fill(parameters, static_cast<float>(node));
    };
    return request;
  }
  gossip::PeerEngine& engine() { return *group_.engines().front(); }

  std::unique_ptr<gossip::Algorithm> algorithm_;
  gossip::PeerGroup group_;
};

/// Three processes that average: two honest ones and a hostile one, which sends what it is told to.
struct Meeting {
  explicit Meeting(const char* kind)
      : codec(gossip::make_codec(kind, {}, {}).value()),
        schedule(topology::make_schedule({"complete", {}, {}, {kPeers, 0}}).value()),
        words(codec->words(kLength)) {
    hostile = &world.add({kHostile}, kTriangle);
    world.join();
    for (Row* row : {&sound, &spoiled, &longer, &shorter})
      std::ranges::fill(
          row->values,
          std::bit_cast<float>(0x40004000U));  // 2 as a float, nearly, and twice 2 as bf16
  }
  ~Meeting() { world.processes.clear(); }  // before the rows that they read

  void send(int to, Row& row, gossip::Round t) {
    for (std::size_t at = 0; at < row.values.size(); at += kChunk)
      send(to, row.chunk(kHostile, to, t, at, kChunk));
  }
  void send(int to, gossip::Chunk chunk) {
    hostile->network->link(kHostile, to).send(std::move(chunk));
  }

  /// To peer 0, in round kBad.
  void send_on_channel(gossip::Channel channel) {
    gossip::Chunk chunk = sound.chunk(kHostile, 0, kBad, 0, kChunk);
    chunk.header.channel = channel;
    send(0, std::move(chunk));
  }

  /// Sound rows to peer 2, to peer 0 until round kBad, and then what `bad` sends; until the honest
  /// ones have done all rounds. Peer 0 says whose fault it is, and what is wrong.
  void run(const std::function<void()>& bad, const std::string& what) {
    for (gossip::Round t = 0; t < kRounds; ++t) {
      send(2, sound, t);
      if (t < kBad) send(0, sound, t);
    }
    bad();
    zero.start(), two.start();
    world.run_until([&] { return zero.done() && two.done() && hostile->count("lost 1-0") > 0; });
    for (Honest* peer : {&zero, &two}) {
      CHECK(peer->faults.empty());
      for (const float value : peer->x()) REQUIRE(std::fabs(value) <= 2.1F);
    }
    REQUIRE_FALSE(zero.messages.empty());
    CAPTURE(zero.messages.front());
    CHECK(zero.messages.front().find("peer 1 broke the protocol towards peer 0 (round ") == 0);
    CHECK(zero.messages.front().find(what) != std::string::npos);
    const auto missing = zero.deviations();
    CHECK_FALSE(missing.empty());
    for (const gossip::Deviation& deviation : missing) {
      CHECK(deviation.from == kHostile);
      CHECK(deviation.round + 1 >=
            kBad);  // what is lent to a connection holds no row, so it is no further behind
      CHECK(deviation.missing);
    }
    CHECK(two.deviations().empty());
  }

  std::unique_ptr<gossip::Codec> codec;
  std::unique_ptr<topology::MixingSchedule> schedule;
  std::size_t words;
  Row sound{words}, spoiled{words}, longer{words + kChunk}, shorter{words - 1};
  struct Bearing : World {
    Bearing() : World(kPeers) { tolerates_loss = true; }
  };
  Bearing world;
  gpu::CpuDevice device{1};
  gossip::InlineExecutor executor;
  gossip::Compute compute{world.scheduler, executor, device, nullptr, gossip::StepTimes{}};
  Honest zero{world, compute, *schedule, *codec, 0}, two{world, compute, *schedule, *codec, 2};
  Process* hostile = nullptr;
};

}  // namespace

TEST_CASE(
    "a peer that sends what is not finite, or too large, over TCP: named, left out, and never "
    "mixed") {
  using Limits = std::numeric_limits<float>;
  for (const char* kind : {"none", "bf16"})
    for (const float bad : {Limits::quiet_NaN(), Limits::infinity(), -3e38F}) {
      CAPTURE(kind);
      CAPTURE(bad);
      Meeting meeting(kind);
      const std::size_t last = (meeting.words - 1) / kChunk * kChunk;
      meeting.spoiled.values[last + 5] = bad;
      meeting.run(
          [&] { meeting.send(0, meeting.spoiled, kBad); },
          fmt::format("(round {}, channel 0): {} {} of its row is not finite, or beyond", kBad,
                      std::string_view(kind) == "none" ? "value" : "a value encoded in word",
                      last + 5));
    }
}

TEST_CASE(
    "a peer that sends a row of the wrong length or round over TCP: named, left out, and never "
    "mixed") {
  struct Case {
    const char* description;
    std::function<void(Meeting&)> send;
    const char* what;
  };
  const Case cases[] = {
      {"too long", [](Meeting& m) { m.send(0, m.longer, kBad); }, "values of round 7 where "},
      {"too short", [](Meeting& m) { m.send(0, m.shorter, kBad); }, "values of round 7 where "},
      {"a round is left out", [](Meeting& m) { m.send(0, m.sound, kBad + 1); },
       "values of round 8 where "},
      {"far ahead", [](Meeting& m) { m.send(0, m.sound, gossip::Round(1) << 60); },
       "the run has 30 rounds"},
      {"again", [](Meeting& m) { m.send(0, m.sound, kBad - 2); }, "round 6 has been sent already"},
      {"from the middle",
       [](Meeting& m) { m.send(0, m.sound.chunk(kHostile, 0, kBad, kChunk, kChunk)); },
       "a chunk at value 700 where 0 was due"},
      {"with a gap",
       [](Meeting& m) {
         m.send(0, m.sound.chunk(kHostile, 0, kBad, 0, kChunk));
         m.send(0, m.sound.chunk(kHostile, 0, kBad, 2 * kChunk, kChunk));
       },
       "a chunk at value 1400 where 700 was due"},
      {"of another length in the middle",
       [](Meeting& m) {
         m.send(0, m.sound.chunk(kHostile, 0, kBad, 0, kChunk));
         m.send(0, m.longer.chunk(kHostile, 0, kBad, kChunk, kChunk));
       },
       "a chunk of another message in the middle of one"},
      {"on a channel that there is not", [](Meeting& m) { m.send_on_channel(4); },
       "there are 4 channels"},
      {"as rows of a change of participants that there is not",
       [](Meeting& m) { m.send_on_channel(3); }, "rows that it does not give this peer"},
      {"a word of another policy",
       [](Meeting& m) {
         gossip::Chunk chunk = m.sound.chunk(kHostile, 0, kBad, 0, kChunk);
         chunk.header.control = gossip::ControlMessage::commit;
         chunk.values = {};
         m.send(0, std::move(chunk));
       },
       "a control message of another policy"}};
  for (const char* kind : {"none", "bf16"})
    for (const Case& bad : cases) {
      CAPTURE(kind);
      CAPTURE(bad.description);
      Meeting meeting(kind);
      meeting.run([&] { bad.send(meeting); }, bad.what);
    }
}
