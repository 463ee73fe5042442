// Rows that travel as a codec's messages: mixing, CHOCO-SGD, bytes, and memory.
#include "tests/gossip/codec_test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

NetworkOptions with_codec(const CodecCase& codec) {
  NetworkOptions options;
  options.codec = codec.kind;
  options.codec_values = codec.values();
  return options;
}

LinkModel uneven_coded_link(int from, int to) {
  return {1ms * ((from * 7 + to * 3) % 11), 1e6 * (1 + (from + to) % 3)};
}

std::vector<double> mean_of(const std::vector<std::vector<float>>& rows) {
  std::vector<double> mean(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t k = 0; k < mean.size(); ++k)
      mean[k] += row[k] / static_cast<double>(rows.size());
  return mean;
}

double consensus_distance(const std::vector<std::vector<float>>& rows) {
  const auto mean = mean_of(rows);
  double sum = 0;
  for (const auto& row : rows)
    for (std::size_t k = 0; k < mean.size(); ++k) sum += (row[k] - mean[k]) * (row[k] - mean[k]);
  return std::sqrt(sum / static_cast<double>(rows.size()));
}

const std::vector<CodecCase> kRounding{{"bf16"}, {"int8"}};

/// CHOCO-SGD as the paper writes it (Koloskova, Stich and Jaggi 2019, Alg. 2), all peers at once,
/// in float32: from `start`, on PullTrainer's losses.
std::vector<std::vector<float>> choco_reference(const Network& network, PullTrainer& trainer,
                                                const CodecCase& codec, double consensus_rate,
                                                Round rounds) {
  auto x = network.start;
  std::vector<std::vector<float>> estimates(x.size(), std::vector<float>(x.front().size()));
  for (Round t = 0; t < rounds; ++t) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      TrainRequest request;
      std::vector<float> gradient(x[i].size());
      request.shard_of = static_cast<int>(i);
      request.x = x[i];
      request.gradient = gradient;
      TrainRequest* requests[] = {&request};
      trainer.run(TrainOperation::local_steps, requests);
      std::vector<float> difference(x[i].size());
      for (std::size_t k = 0; k < difference.size(); ++k) difference[k] = x[i][k] - estimates[i][k];
      const auto q = compressed(codec, difference, static_cast<int>(i), t);
      for (std::size_t k = 0; k < q.size(); ++k) estimates[i][k] += q[k];
    }
    const auto w = network.matrices().at(t);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (const topology::Neighbour& j : w->in_neighbours(static_cast<int>(i))) {
        const auto factor = static_cast<float>(consensus_rate * j.weight);
        const auto& theirs = estimates[static_cast<std::size_t>(j.peer)];
        for (std::size_t k = 0; k < theirs.size(); ++k)
          x[i][k] += factor * (theirs[k] - estimates[i][k]);
      }
  }
  return x;
}

}  // namespace

TEST_CASE(
    "mixing through a codec is x + Σ W (Q(x_j) − Q(x_i)), keeps the mean, and stalls where the "
    "codec's error is") {
  for (const CodecCase& codec : kRounding)
    for (const char* graph : {"ring", "star", "one_peer_exponential", "exponential"}) {
      CAPTURE(codec.kind);
      CAPTURE(graph);
      constexpr std::size_t kLength = 700;
      Network network(graph, 8, kLength, with_codec(codec));
      network.run("consensus", {}, 1);
      const auto w = network.matrices().at(0);
      for (int i = 0; i < 8; ++i) {
        const auto index = static_cast<std::size_t>(i);
        auto expected = network.start[index];
        const auto own = compressed(codec, expected, i, 0);
        for (const topology::Neighbour& j : w->in_neighbours(i)) {
          const auto theirs =
              compressed(codec, network.start[static_cast<std::size_t>(j.peer)], j.peer, 0);
          for (std::size_t k = 0; k < kLength; ++k)
            expected[k] += static_cast<float>(j.weight) * (theirs[k] - own[k]);
        }
        CHECK(network.rows[index] == expected);
      }
      const auto mean = mean_of(network.start);
      network.run("consensus", {}, 300);
      const auto after = mean_of(network.rows);
      for (std::size_t k = 0; k < kLength; ++k)
        CHECK(std::abs(after[k] - mean[k]) <
              1e-5);  // float32's roundings; the codec errs by a thousand times that
      CHECK(consensus_distance(network.rows) < 1e-2 * consensus_distance(network.start));
      CHECK(consensus_distance(network.rows) > 0);
    }
}

TEST_CASE("with a codec too, consensus is exactly a fixed point") {
  for (const CodecCase& codec : kRounding) {
    Network network("torus", 9, 500, with_codec(codec));
    std::fill(network.start.begin(), network.start.end(), network.start.front());
    CHECK(network.run("consensus", {}, 20).rows == network.start);
  }
  // Peers that train alike stay alike: CHOCO's estimates are the same bits everywhere.
  for (const CodecCase& codec : codec_cases()) {
    CAPTURE(codec.kind);
    if (codec.kind == "randk") continue;  // each sender has places of its own
    Network network("ring", 5, 500, with_codec(codec));
    std::fill(network.start.begin(), network.start.end(), network.start.front());
    class Still final : public Trainer {
      void run(TrainOperation, std::span<TrainRequest* const>) override {}
      double rate(int, std::uint64_t) const override { return 0; }
      std::size_t shard_size(int) const override { return 1; }
      std::uint64_t batches_per_epoch(int) const override { return 1; }
    } still;
    CHECK(network.run("choco", {}, 20, &still).rows == network.start);
  }
}

TEST_CASE("CHOCO-SGD's trajectory is the paper's, bit by bit, with every codec") {
  for (const CodecCase& codec : codec_cases())
    for (const char* graph : {"ring", "star"}) {
      CAPTURE(codec.kind);
      CAPTURE(codec.fraction);
      CAPTURE(graph);
      PullTrainer trainer(6, 1100, 0.1F);
      Network network(graph, 6, 1100, with_codec(codec));
      for (const Round rounds : {1, 2, 25}) {
        network.run("choco", {{"consensus_rate", 0.4}}, rounds, &trainer);
        CHECK(network.rows == choco_reference(network, trainer, codec, 0.4, rounds));
      }
    }
}

TEST_CASE("CHOCO-SGD goes where it would go without a codec, its mean to the optimum") {
  PullTrainer trainer(8, 300, 0.01F);
  Network exact("ring", 8, 300);
  exact.run("choco", {}, 2500, &trainer);
  const auto optimum = trainer.optimum();
  for (const CodecCase& codec :
       {CodecCase{"topk", 0.1}, CodecCase{"randk", 0.1}, CodecCase{"sign"}, CodecCase{"int8"}}) {
    CAPTURE(codec.kind);
    Network network("ring", 8, 300, with_codec(codec));
    network.run("choco", {}, 2500, &trainer);
    const auto mean = mean_of(network.rows);
    for (std::size_t k = 0; k < 300; ++k) {
      CHECK(std::abs(mean[k] - optimum[k]) < 1e-4);
      for (std::size_t i = 0; i < 8; ++i)
        CHECK(std::abs(network.rows[i][k] - exact.rows[i][k]) < 2e-3);
    }
  }
}

TEST_CASE(
    "with a codec: the same bits for every chunk size, link, thread count and alignment, and from "
    "round to round") {
  PullTrainer trainer(6, 1003, 0.1F);
  for (const CodecCase& codec : codec_cases())
    for (const std::string algorithm : {"choco", "gradient_tracking"}) {
      CAPTURE(codec.kind);
      if (algorithm != "choco" && codec.kind != "int8" && codec.kind != "bf16") continue;
      Network plain("ring", 6, 1003, with_codec(codec));
      plain.run(algorithm, {}, 6, &trainer);
      CHECK(plain.finished == 6);
      NetworkOptions small_chunks = with_codec(codec), slow = small_chunks, threads = small_chunks,
                     misaligned = small_chunks;
      small_chunks.chunk_values = 7;
      slow.link_model = uneven_coded_link;
      slow.chunk_values = 100;
      threads.threads = 3;
      misaligned.row_offset = 1;
      for (const NetworkOptions& options : {small_chunks, slow, threads, misaligned}) {
        Network other("ring", 6, 1003, options);
        CHECK(other.run(algorithm, {}, 6, &trainer).rows == plain.rows);
        CHECK(other.fault == "");
      }
      Network pieces("ring", 6, 1003, with_codec(codec));
      pieces.run_in_single_rounds(algorithm, {}, 6, &trainer);
      CHECK(pieces.rows == plain.rows);
    }
}

TEST_CASE("bytes: the frames of the messages") {
  PullTrainer trainer(5, 1003, 0.1F);
  for (const CodecCase& codec : codec_cases()) {
    CAPTURE(codec.kind);
    NetworkOptions options = with_codec(codec);
    options.chunk_values = 30;
    const std::size_t words = expected_words(codec, 1003), chunks = (words + 29) / 30;
    Network network("ring", 5, 1003, options);
    network.run("choco", {}, 3, &trainer);
    for (std::uint64_t bytes : network.bytes_sent)
      CHECK(bytes == 3 * 2 * (4 * words + chunks * kFrameOverheadBytes));
    if (codec.kind != "int8" && codec.kind != "bf16") continue;
    network.run("gradient_tracking", {}, 3, &trainer);
    for (std::uint64_t bytes : network.bytes_sent)
      CHECK(bytes == 3 * 2 * 2 * (4 * words + chunks * kFrameOverheadBytes));
  }
}

TEST_CASE(
    "memory: two messages, two rows and a fault word a peer, however many neighbours and rounds") {
  constexpr std::size_t kLength = 4096;
  const std::size_t bytes =
      9 * (4 * (2 * kLength + 2 * expected_words({"int8"}, kLength)) + sizeof(std::uint64_t));
  for (const char* graph : {"ring", "complete"}) {
    Network network(graph, 9, kLength, with_codec({"int8"}));
    network.run("consensus", {}, 2);
    CHECK(network.device().most_bytes() == bytes);
    network.run("consensus", {}, 100);
    CHECK(network.device().most_bytes() == bytes);
    CHECK(network.device().bytes() == 0);
  }
}

TEST_CASE("a coded row that cannot be read ends the run with the reason and the sender") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device(1);
  Compute compute(scheduler, executor, device, nullptr, StepTimes{});
  const auto matrices = schedule("path", 2);
  auto codec = make_codec("topk", {{"fraction", 0.3}}, {});
  REQUIRE(codec.ok());
  struct Case {
    std::vector<std::uint32_t> indices;
    std::size_t words;
    const char* says;
  };
  for (const Case& c :
       {Case{{1, 2, 10}, 6, "its indices do not ascend, or do not all lie within the row"},
        Case{{3, 2, 1}, 6, "its indices do not ascend"},
        Case{{7, 7, 7}, 6, "its indices do not ascend"},
        Case{{0, 1, 2}, 5, "a message of 5 values of round 0 where 6 of round 0 were due"},
        Case{{0, 4, 9}, 6, ""}}) {
    std::string fault;
    ExchangeOptions options;
    options.channels = channels_of({{.name = "x"}}, 10);
    options.codec = codec->get();
    Exchange exchange(scheduler, compute, *matrices, options, {0},
                      [&](Error error) { fault = error.message; });
    Rows<float> rows(2, 10);
    const std::vector<RowSpec> specs{{.name = "x"}};
    const NodeMemory memory{{rows.row(0)}, {}, {}, {}};
    Node node(exchange, 0, 2, specs, memory);
    std::vector<float> message{5, 6, 7};
    for (std::uint32_t index : c.indices) message.push_back(std::bit_cast<float>(index));
    message.resize(c.words);
    CHECK(exchange.deliver(Chunk({1, 0, 0, 0, 0, c.words}, message, Lease())).ok());
    task<void> receiving = node.receive_coded(1, 0, 0, rows.row(1));
    receiving.start(scheduler);
    scheduler.run();
    const std::string expected = c.says;
    CHECK(receiving.done() == expected.empty());
    CHECK((fault.find("peer 1 broke the protocol towards peer 0") == 0) == !expected.empty());
    CHECK(fault.find(expected) != std::string::npos);
    if (expected.empty()) CHECK(rows.row(1)[4] == 6);
  }
}
