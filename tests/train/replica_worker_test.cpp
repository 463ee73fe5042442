// Workers of a replica that have nothing but messages of each other: the bits of the whole model,
// losses and scores at every worker, and what a worker that is gone, or lies, does to the others.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "tests/train/split_test_util.hpp"
#include "train/split/replica_worker.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// The streams of messages between the workers of a replica, each of which runs in a thread.
class Replica {
 public:
  using Stream = std::pair<int, int>;  ///< from, to

  void send(Stream stream, std::vector<float> values) {
    {
      const std::lock_guard lock(mutex_);
      streams_[stream].push_back(std::move(values));
      ++messages_;
    }
    changed_.notify_all();
  }
  void receive(Stream stream, std::span<float> values) {
    std::unique_lock lock(mutex_);
    std::deque<std::vector<float>>& waiting = streams_[stream];
    changed_.wait(lock, [&] { return closed_ || !waiting.empty(); });
    if (waiting.empty()) throw WorkerLost("gone");
    if (waiting.front().size() != values.size()) throw WorkerLost("another length");
    std::ranges::copy(waiting.front(), values.begin());
    waiting.pop_front();
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  std::size_t unread() const {
    std::size_t count = 0;
    for (const auto& [stream, waiting] : streams_) count += waiting.size();
    return count;
  }
  std::size_t messages() const { return messages_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Stream, std::deque<std::vector<float>>> streams_;
  std::size_t messages_ = 0;
  bool closed_ = false;
};

class Links final : public WorkerLinks<float> {
 public:
  Links(Replica& replica, int part) : replica_(replica), part_(part) {}
  void send(int part, std::span<const float> values) override {
    if (on_send) on_send(part);
    replica_.send({part_, part}, {values.begin(), values.end()});
  }
  void receive(int part, std::span<float> values) override {
    replica_.receive({part, part_}, values);
  }
  bool trains(std::uint64_t, std::uint64_t) override { return true; }
  bool is_whole() override { return true; }
  void close() override { replica_.close(); }

  std::function<void(int part)> on_send;

 private:
  Replica& replica_;
  int part_;
};

/// A worker in a thread, on its part of a row.
struct WorkerThread {
  WorkerThread(Replica& replica, const Bench& bench, const SplitOptions& options, int part)
      : links(replica, part),
        training(split_of(bench.network, options, bench.batch)),
        worker({part, &links}, training, training_for_scores(bench, options), options, device),
        row(part_of(bench.parameters<float>(), training.parts()[static_cast<std::size_t>(part)])),
        gradient(row.size(), NAN) {}

  /// For pieces of whole batches, with the cuts of training.
  SplitModel training_for_scores(const Bench& bench, const SplitOptions& options) const {
    SplitOptions whole = options;
    whole.microbatches = 1, whole.cuts = training.cuts();
    return split_of(bench.network, whole, bench.batch);
  }
  static std::vector<float> part_of(const std::vector<float>& whole, const ModelPart& part) {
    std::vector<float> own(part.parameters);
    take_part<float>(part, whole, own.data());
    return own;
  }

  Links links;
  gpu::CpuDevice device{1};
  SplitModel training;
  ReplicaWorker<float> worker;
  std::vector<float> row, gradient;
  double loss = 0;
  ScoreRequest<float> scores;
};

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int k = 0; k < count; ++k) threads.emplace_back(work, k);
  for (std::thread& thread : threads) thread.join();
}

void check_replica(Bench& bench, const SplitOptions& options) {
  const std::vector<float> row = bench.parameters<float>();
  double loss = 0;
  const std::vector<float> expected = bench.gradient(row, &loss);
  gpu::CpuDevice whole(1);
  const std::span<const std::uint32_t> all(bench.table.all);
  const auto batch = static_cast<std::size_t>(bench.batch);
  const std::vector<Piece> pieces{all.first(batch), all.first(1), all.first(batch)};
  ScoreRequest<float> reference{row.data(), pieces, {}};
  score<float>(whole, bench.task(), std::span(&reference, 1));

  Replica replica;
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (int part = 0; part < options.workers(); ++part)
    workers.push_back(std::make_unique<WorkerThread>(replica, bench, options, part));
  in_threads(options.workers(), [&](int part) {
    WorkerThread& own = *workers[static_cast<std::size_t>(part)];
    for (int time = 0; time < 2; ++time) {
      own.worker.gradient(bench.task(), {.samples = bench.table.all.data(),
                                         .batch = bench.batch,
                                         .parameters = own.row.data(),
                                         .gradient = own.gradient.data(),
                                         .loss = &own.loss});
      own.scores = {own.row.data(), pieces, {}};
      own.worker.score(bench.task(), own.scores);
    }
  });
  CHECK(replica.unread() == 0);
  for (const auto& own : workers) {
    CHECK(own->loss == loss + loss);
    const ModelPart& part = own->training.parts()[static_cast<std::size_t>(&own - workers.data())];
    const std::vector<float> of_part = WorkerThread::part_of(expected, part);
    CHECK(std::memcmp(own->gradient.data(), of_part.data(), of_part.size() * sizeof(float)) == 0);
    REQUIRE(own->scores.scores.size() == pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      CHECK(own->scores.scores[i].loss == reference.scores[i].loss);
      CHECK(own->scores.scores[i].hits == reference.scores[i].hits);
    }
  }
}

/// Of the segments that send gradients to another stage.
void count_first_layers(const SplitModel& split, std::map<std::string, int>& counts) {
  for (const Message& message : split.gradients()) {
    if (message.is_begun) continue;
    const Segment& segment = split.segments()[static_cast<std::size_t>(message.from)];
    const auto& first = segment.program.layers.front().operation;
    const bool is_dense = std::holds_alternative<gpu::DenseOperation>(first);
    const bool is_convolution = std::holds_alternative<gpu::ConvolutionOperation>(first);
    ++counts[is_dense ? "dense" : is_convolution ? "convolution" : "neither"];
  }
}

Bench mlp_bench() {
  return Bench(chain({Dense{.units = 5, .activation = Activation::relu},
                      Dense{.units = 4, .activation = Activation::tanh}, Dense{.units = 3}},
                     Loss::softmax_cross_entropy),
               kSmallImage, 4);
}

}  // namespace

TEST_CASE("workers apart have the gradients, losses and scores of the whole model to the bit") {
  std::map<std::string, int> in_two;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed, false);
    RandomStream random(seed, kNoPeer, Purpose::test, 11);
    Bench bench = random_bench(graph, random);
    const int most = parameterised(bench.network);
    for (const int slices : {1, 2})
      for (int layers = slices == 1 ? 2 : 1; layers <= std::min(most, 4 / slices); ++layers) {
        SplitOptions options{.layers = layers,
                             .parameters = slices,
                             .microbatches = 1 + static_cast<int>(random.below(9))};
        if (!SplitModel::make(bench.network, options, bench.batch).ok()) continue;
        CAPTURE(layers);
        CAPTURE(slices);
        for (const char* const schedule : {"1f1b", "eager_1f1b"})
          for (const bool overlap : {true, false}) {
            options.schedule = schedule;
            options.overlap = overlap;
            check_replica(bench, options);
          }
        count_first_layers(split_of(bench.network, options, bench.batch), in_two);
      }
  }
  CHECK(in_two["dense"] > 0);
  CHECK(in_two["convolution"] > 0);
  CHECK(in_two["neither"] > 0);
}

TEST_CASE("a stage sends its gradients before it makes those of its first layer's parameters") {
  Bench bench = mlp_bench();
  for (const bool overlap : {true, false}) {
    CAPTURE(overlap);
    const SplitOptions options{
        .layers = 2, .microbatches = 1, .cuts = {"1.dense"}, .overlap = overlap};
    Replica replica;
    WorkerThread first(replica, bench, options, 0), second(replica, bench, options, 1);
    REQUIRE(second.training.segments().back().sends_before_parameters == overlap);
    int gradients = 0;
    second.links.on_send = [&](int part) {
      if (part != 0 || gradients++ > 0) return;  // the loss follows
      CHECK(std::isnan(second.gradient.front()) == overlap);
      CHECK(!std::isnan(second.gradient.back()));
    };
    in_threads(2, [&](int part) {
      WorkerThread& own = part == 0 ? first : second;
      own.worker.gradient(bench.task(), {.samples = bench.table.all.data(),
                                         .batch = bench.batch,
                                         .parameters = own.row.data(),
                                         .gradient = own.gradient.data(),
                                         .loss = &own.loss});
    });
    CHECK(gradients == 2);
    CHECK(!std::isnan(second.gradient.front()));
  }
}

TEST_CASE("messages to one worker that its layers take in another order than they are sent") {
  // `stem` goes from slice 0 to `late` of slice 1 before what `early` takes.
  TestGraph graph;
  const int stem = graph.add("stem", Dense{.units = 6}, {kSampleInput});
  const int early = graph.add("early", Dense{.units = 5, .activation = Activation::tanh}, {stem});
  const int middle = graph.add("middle", Dense{.units = 6}, {early});
  const int sum = graph.add("sum", Add{}, {middle, stem});
  const int late = graph.add("late", Dense{.units = 4}, {stem});
  const int other = graph.add("other", Dense{.units = 4}, {sum});
  graph.add("both", Add{}, {late, other});
  graph.add("out", Dense{.units = 3});
  Bench bench(graph.spec, kSmallImage, 5);
  for (const int slices : {2, 3})
    for (const int layers : {1, 2})
      check_replica(bench, {.layers = layers, .parameters = slices, .microbatches = 2});
}

TEST_CASE("an evaluation sends no more ahead than the pieces of a group") {
  Bench bench = mlp_bench();
  const SplitOptions options{.layers = 2, .microbatches = 1};
  Replica replica;
  WorkerThread first(replica, bench, options, 0);
  const std::vector<Piece> pieces(100, Piece(bench.table.all).first(1));
  std::thread thread([&] {
    first.scores = {first.row.data(), pieces, {}};
    CHECK_THROWS_AS(first.worker.score(bench.task(), first.scores), WorkerLost);
  });
  WorkerThread second(replica, bench, options, 1);
  second.scores = {second.row.data(), {pieces.begin(), pieces.begin() + 32}, {}};
  second.worker.score(bench.task(), second.scores);
  replica.close();
  thread.join();
  CHECK(replica.messages() <= 1 + 32 + 1 + 1 + 32);  // call, outputs, scores; call, outputs
}

TEST_CASE("workers whose calls differ say so, and train on nothing of each other") {
  Bench bench = mlp_bench();
  const SplitOptions options{.layers = 2, .microbatches = 1};
  Replica replica;
  WorkerThread second(replica, bench, options, 1);
  replica.send({0, 1}, {7, 0, 0, 0});  // no step's number, and no evaluation
  std::string why;
  try {
    second.worker.gradient(bench.task(), {.step = 3,
                                          .samples = bench.table.all.data(),
                                          .batch = bench.batch,
                                          .parameters = second.row.data(),
                                          .gradient = second.gradient.data(),
                                          .loss = &second.loss});
  } catch (const WorkerLost& lost) {
    why = lost.what();
  }
  CHECK(why.find("that of part 1 begins local step 3") != std::string::npos);
  CHECK(second.loss == 0);
}

TEST_CASE("a worker that is gone, and numbers that are none, end the others' calls") {
  Bench bench = mlp_bench();
  const SplitOptions options{.layers = 2, .microbatches = 1};
  Replica replica;
  WorkerThread first(replica, bench, options, 0);
  std::vector<float> values(first.training.outputs()[0].values * 4, 1.0F);
  replica.send({1, 0}, values);
  SUBCASE("gone") { replica.close(); }
  SUBCASE("negative") { replica.send({1, 0}, {0, 0, -1, 0}); }
  SUBCASE("too large") { replica.send({1, 0}, {0, 65536, 0, 0}); }
  SUBCASE("not finite") { replica.send({1, 0}, {NAN, 0, 0, 0}); }
  CHECK_THROWS_AS(first.worker.gradient(bench.task(), {.samples = bench.table.all.data(),
                                                       .batch = bench.batch,
                                                       .parameters = first.row.data(),
                                                       .gradient = first.gradient.data(),
                                                       .loss = &first.loss}),
                  WorkerLost);
}
