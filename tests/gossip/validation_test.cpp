// Validation in a network: no value that is not finite, or beyond the bound, enters a row or leaves
// a peer.
#include <algorithm>
#include <limits>

#include "tests/gossip/codec_test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kValidatedLength = 40, kChunk = 7;
constexpr int kPeers = 6;
constexpr float kBound = 1e18F;

const std::vector<float>& bad_values() {
  using Limits = std::numeric_limits<float>;
  static const std::vector<float> values{Limits::quiet_NaN(), Limits::infinity(),
                                         -Limits::infinity(), 2e18F, -3e38F};
  return values;
}

bool is_sound(const std::vector<float>& row) {
  return std::ranges::all_of(row, [](float value) { return std::fabs(value) <= kBound; });
}

/// No row of a peer other than `peer` has an invalid value.
void check_all_sound(const Network& network, int but = -1) {
  for (std::size_t k = 0; k < network.every_row.size(); ++k)
    for (std::size_t i = 0; i < network.every_row[k].size(); ++i)
      if (static_cast<int>(i) != but)
        CHECK_MESSAGE(is_sound(network.every_row[k][i]), "row ", k, " of peer ", i);
}

/// Puts a bad value into one chunk that `from` sends in round `round` or later.
struct Hostile {
  int from = 0;
  Round round = 0;
  std::uint64_t chunk = 0;  ///< of those that it sends from then on
  float value = 0;
  std::uint64_t seen = 0;
  int receiver = -1;

  auto tamper() {
    return [this](const ChunkHeader& header, std::span<float> values) {
      if (header.from != from || header.round < round || seen++ != chunk) return;
      receiver = header.to;
      values[values.size() / 2] = value;
    };
  }
};

/// Peer `victim`'s parameters take a bad value in its local step `step`.
class PoisonedTrainer final : public Trainer {
 public:
  PoisonedTrainer(int victim, std::uint64_t step, float value)
      : victim_(victim), step_(step), value_(value) {}
  void run(TrainOperation operation, std::span<TrainRequest* const> requests) override {
    inner.run(operation, requests);
    if (operation == TrainOperation::take_loss || operation == TrainOperation::evaluate) return;
    for (TrainRequest* request : requests) {
      if (request->peer != victim_ || request->step < step_) continue;
      const std::span<float> out =
          operation == TrainOperation::gradient ? request->gradient : request->x;
      out[out.size() / 3] = value_;
    }
  }
  double rate(int peer, std::uint64_t step) const override { return inner.rate(peer, step); }
  std::size_t shard_size(int peer) const override { return inner.shard_size(peer); }
  std::uint64_t batches_per_epoch(int peer) const override { return inner.batches_per_epoch(peer); }

  PullTrainer inner{kPeers, kValidatedLength, 0.1F};

 private:
  int victim_;
  std::uint64_t step_;
  float value_;
};

struct Judged {
  std::string algorithm, graph, codec = "none";
  Policy policy = Policy::sync;
  bool tolerates_peer_loss = false;
  ParameterValues values = {};

  NetworkOptions options() const {
    NetworkOptions options;
    options.policy = policy;
    options.chunk_values = kChunk;
    options.codec = codec;
    options.step_time = 10ms;
    if (tolerates_peer_loss) options.links = {2ms, 0};
    options.tolerates_peer_loss = tolerates_peer_loss;
    options.apart = true;
    return options;
  }
};

/// Every algorithm under every policy, and with every codec, that it takes.
std::vector<Judged> all_cases() {
  std::vector<Judged> cases;
  for (const AlgorithmKind& kind : algorithms::catalog()) {
    Judged each{kind.name, ""};
    for (const ParameterSpec& spec : kind.parameters)
      if (spec.name == "length")
        each.values["length"] = static_cast<std::int64_t>(kValidatedLength);
    auto made = kind.make(each.values);
    REQUIRE(made.ok());
    const AlgorithmRequirements needs = (*made)->requirements();
    if (needs.one_node) continue;  // it sends nothing
    for (const char* graph : {"complete", "ring", "path", "random_matching"})
      if (each.graph.empty() && (*made)->check(*schedule(graph, kPeers)).ok()) each.graph = graph;
    REQUIRE_FALSE(each.graph.empty());
    each.tolerates_peer_loss = needs.tolerates_peer_loss;
    cases.push_back(each);
    const std::vector<RowSpec> rows = (*made)->rows(*schedule(each.graph, kPeers));
    const bool conserves_sums = std::ranges::any_of(rows, &RowSpec::mixed) &&
                                std::any_of(rows.begin() + 1, rows.end(),
                                            [](const RowSpec& row) { return row.conserved_sum; });
    for (const Policy policy : {Policy::deadline, Policy::stale, Policy::async})
      // Rows that are mixed whole have d values.
      if (needs.mixing_matrix && !needs.synchronous &&
          std::ranges::all_of(rows,
                              [](const RowSpec& row) { return !row.mixed || row.extra == 0; }) &&
          !(policy == Policy::deadline ? needs.fixed_matrix : conserves_sums)) {
        cases.push_back(each);
        cases.back().policy = policy;
      }
    for (const CodecKind& codec : codecs::catalog()) {
      auto built = codec.make({}, {});
      REQUIRE(built.ok());
      if ((*built)->fidelity() == Fidelity::exact || (*built)->fidelity() > needs.codec) continue;
      cases.push_back(each);
      cases.back().codec = codec.name;
    }
  }
  return cases;
}

}  // namespace

TEST_CASE(
    "a peer that sends what is not finite, or too large: it is named, and no other peer's rows "
    "ever have it") {
  std::uint32_t number = 0;
  for (const Judged& each : all_cases())
    for (const float value : bad_values()) {
      RandomStream random(21, number++, Purpose::test);
      Hostile hostile{static_cast<int>(random.next_u32() % kPeers), 2 + random.next_u32() % 4,
                      random.next_u32() % 6, value};
      CAPTURE(each.algorithm);
      CAPTURE(static_cast<int>(each.policy));
      CAPTURE(each.codec);
      CAPTURE(value);
      PullTrainer trainer(kPeers, kValidatedLength, 0.05F);
      NetworkOptions options = each.options();
      options.tamper = hostile.tamper();
      Network network(each.graph, kPeers, kValidatedLength, options);
      network.run(each.algorithm, each.values, 12, &trainer);
      if (hostile.receiver < 0) continue;  // one that sends little
      check_all_sound(network);
      const bool harmless =
          network.refused
              .empty();  // in a coded message a word may be any bits, which decode to something
      CHECK((!harmless || each.codec == "int8" || each.codec == "sign" || each.codec == "topk" ||
             each.codec == "bf16"));
      if (harmless) continue;
      const std::string sentence =
          fmt::format("peer {} broke the protocol towards peer {}", hostile.from, hostile.receiver);
      CHECK(network.refused.front().find(sentence) == 0);
      CHECK(network.refused.front().find("not finite, or beyond algorithm.largest_value = 1e+18") !=
            std::string::npos);
      if (!each.tolerates_peer_loss) {
        CHECK(network.fault.find(sentence) == 0);
        continue;
      }
      CHECK(network.fault == "");
      CHECK(network.faults.empty());
      CHECK(network.finished == kPeers);
    }
}

TEST_CASE(
    "a peer whose own values are no longer finite, or too large, sends none of them and ends with "
    "the reason; "
    "the others continue") {
  std::uint32_t number = 0;
  for (const Judged& each : all_cases())
    for (const float value : bad_values()) {
      if (each.algorithm == "consensus") continue;  // it does not train
      RandomStream random(22, number++, Purpose::test);
      const int victim = static_cast<int>(random.next_u32() % kPeers);
      CAPTURE(each.algorithm);
      CAPTURE(static_cast<int>(each.policy));
      CAPTURE(each.codec);
      CAPTURE(victim);
      CAPTURE(value);
      PoisonedTrainer trainer(victim, 3, value);
      bool sound = true;
      NetworkOptions options = each.options();
      const auto codec = make_codec(each.codec, {}, {});
      options.tamper = [&](const ChunkHeader& header,
                           std::span<float> values) {  // tampers with nothing
        sound = sound && (*codec)->first_beyond({values, header.offset, header.total}, kBound) ==
                             values.size();
      };
      Network network(each.graph, kPeers, kValidatedLength, options);
      network.run(each.algorithm, each.values, 12, &trainer);
      CHECK(sound);
      check_all_sound(network, victim);
      CHECK(network.refused.empty());
      const std::string said = each.tolerates_peer_loss ? network.faults[victim] : network.fault;
      CHECK_MESSAGE(said.find(fmt::format("peer {} diverged: in round ", victim)) == 0, said);
      CHECK(said.find("and it was not sent") != std::string::npos);
      if (!each.tolerates_peer_loss) continue;
      CHECK(network.faults.size() == 1);
      CHECK(network.finished == kPeers - 1);
    }
}

TEST_CASE(
    "peers of one process on a GPU: the first that diverges is named, however its row was shared, "
    "and the run ends") {
  std::uint32_t number = 0;
  for (const Judged& each : all_cases())
    for (const float value : bad_values()) {
      if (each.algorithm == "consensus") continue;
      RandomStream random(23, number++, Purpose::test);
      const int victim = static_cast<int>(random.next_u32() % kPeers);
      CAPTURE(each.algorithm);
      CAPTURE(static_cast<int>(each.policy));
      CAPTURE(each.codec);
      CAPTURE(victim);
      CAPTURE(value);
      PoisonedTrainer trainer(victim, 3, value);
      NetworkOptions options = each.options();
      options.apart = options.tolerates_peer_loss = false;
      options.on_gpu = true;
      Network network(each.graph, kPeers, kValidatedLength, options);
      network.run(each.algorithm, each.values, 40, &trainer);
      CHECK_MESSAGE(network.fault.find(fmt::format("peer {} diverged: in round ", victim)) == 0,
                    network.fault);
      CHECK(network.fault.find(
                "a value of its row is not finite, or beyond algorithm.largest_value = 1e+18") !=
            std::string::npos);
      CHECK(network.fault.find("and the run ends") != std::string::npos);
      CHECK(network.finished < kPeers);
    }
}

TEST_CASE(
    "tracked gradients, D² and EXTRA end at the optimum of the peers that are left, or of all "
    "where all "
    "are") {
  for (const std::string algorithm : {"gradient_tracking", "d2", "extra"})
    for (const bool hostile : {true, false}) {
      CAPTURE(algorithm);
      CAPTURE(hostile);
      PoisonedTrainer trainer(hostile ? -1 : 4, 30, std::numeric_limits<float>::quiet_NaN());
      Hostile sender{4, 30, 3, std::numeric_limits<float>::infinity()};
      Judged each{algorithm, "complete"};
      each.tolerates_peer_loss = true;
      NetworkOptions options = each.options();
      if (hostile) options.tamper = sender.tamper();
      Network network("complete", kPeers, kValidatedLength, options);
      network.run(algorithm, {}, 800, &trainer);
      CHECK(network.finished == (hostile ? kPeers : kPeers - 1));
      CHECK(network.refused.size() == (hostile ? 1 : 0));
      std::vector<double> optimum(kValidatedLength);
      for (int i = 0; i < kPeers; ++i)
        for (std::size_t k = 0; k < kValidatedLength; ++k)
          if (hostile || i != 4)
            optimum[k] += trainer.inner.target(i)[k] / (hostile ? kPeers : kPeers - 1);
      for (int i = 0; i < kPeers; ++i) {
        if (!hostile && i == 4) continue;
        double distance = 0;
        for (std::size_t k = 0; k < kValidatedLength; ++k)
          distance = std::max(distance,
                              std::abs(network.rows[static_cast<std::size_t>(i)][k] - optimum[k]));
        CHECK(distance < 1e-4);
      }
    }
}

TEST_CASE("a row of which a part had come is on record with how much of it was mixed") {
  Hostile hostile{1, 5, 4, std::numeric_limits<float>::quiet_NaN()};
  Judged each{"consensus",  "path", "none",
              Policy::sync, true,   {{"length", static_cast<std::int64_t>(kValidatedLength)}}};
  NetworkOptions options = each.options();
  options.tamper = hostile.tamper();
  Network network("path", 2, kValidatedLength, options);
  network.run("consensus", each.values, 8);
  REQUIRE(network.refused.size() == 1);
  CHECK(network.refused.front() ==
        "peer 1 broke the protocol towards peer 0 (round 5, channel 0): value 31 of its row is not "
        "finite, or beyond "
        "algorithm.largest_value = 1e+18");
  bool found = false;
  for (const auto& deviation : network.deviations)
    if (deviation.peer == 0 && deviation.round == 5) {
      CHECK(deviation.from == 1);
      CHECK(deviation.missing);
      CHECK(deviation.values == 4 * kChunk);
      found = true;
    }
  CHECK(found);
}

TEST_CASE(
    "codecs: what is judged to be sound decodes to sound values, whatever its bits and wherever it "
    "was cut") {
  gpu::CpuDevice device(1);
  for (const CodecCase& each : codec_cases())
    for (std::uint32_t attempt = 0; attempt < 60; ++attempt) {
      CAPTURE(each.kind);
      CAPTURE(attempt);
      RandomStream random(31, attempt, Purpose::test);
      const std::size_t d = 1 + random.next_u32() % 3000;
      const auto codec = make_codec(each.kind, each.values(), {Network::kCodecSeed});
      REQUIRE(codec.ok());
      std::vector<float> row(d), message((*codec)->words(d)), decoded(d);
      for (float& value : row) value = static_cast<float>(random.next_normal());
      const bool spoiled = attempt % 3 == 1, noise = attempt % 3 == 2;
      const float bad = bad_values()[attempt / 3 % bad_values().size()];
      if (spoiled) std::ranges::fill(row, bad);
      (*codec)->encode(device, std::vector{EncodeRequest{row.data(), d, message.data(), 2, 7}});
      for (float& word : message)
        if (noise && random.next_u32() % 64 == 0) word = std::bit_cast<float>(random.next_u32());
      // In pieces, as chunks come.
      bool sound = true;
      for (std::size_t first = 0; first < message.size();) {
        const std::size_t count =
            std::min<std::size_t>(1 + random.next_u32() % 300, message.size() - first);
        const std::span<const float> part = std::span<const float>(message).subspan(first, count);
        sound = sound && (*codec)->first_beyond({part, first, message.size()}, kBound) == count;
        first += count;
      }
      CHECK(sound ==
            ((*codec)->first_beyond({message, 0, message.size()}, kBound) == message.size()));
      (*codec)->decode(device, std::vector{DecodeRequest{message.data(), decoded.data(), d, 2, 7}});
      if (sound) CHECK(is_sound(decoded));
      if (spoiled) CHECK_FALSE(sound);
      if (!spoiled && !noise) CHECK(sound);
    }
}

TEST_CASE("rows handed over to a peer that joins are judged as they are, with a codec too") {
  for (const char* codec : {"none", "int8", "bf16"}) {
    CAPTURE(codec);
    int given = 0;
    Judged each{"dpsgd", "complete", codec, Policy::sync, true};
    NetworkOptions options = each.options();
    options.joins = {{3, 100ms}};
    options.tamper = [&](const ChunkHeader& header, std::span<float> values) {
      if (header.to == 3 && header.total == kValidatedLength && header.round == 0 && ++given == 2)
        values[0] = std::numeric_limits<float>::quiet_NaN();
    };
    PullTrainer trainer(kPeers, kValidatedLength, 0.05F);
    Network network("complete", kPeers, kValidatedLength, options);
    network.run("dpsgd", {}, 60, &trainer);
    CHECK(given > 2);  // the first donor was refused, and another one asked
    REQUIRE(network.refused.size() == 1);
    CHECK(network.refused.front().find("value 7 of its row is not finite") != std::string::npos);
    CHECK(network.finished == kPeers);
    check_all_sound(network);
  }
}
