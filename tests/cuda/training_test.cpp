// Training on a GPU: steps against the CPU in double, the same bits every time, rows that
// alternate, many kinds of calls.
#include "tests/cuda/training_test_util.hpp"
#include "tests/train/optimizer_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr ModelContext kTwoChannels{.channels = 2, .height = 6, .width = 6, .classes = 3};

/// All kinds of layers.
ModelSpec varied() {
  return chain({Convolution{.channels = 6, .kernel = 3, .padding = 1},
                GroupNorm{.groups = 3, .activation = Activation::tanh}, MaxPool{.size = 2},
                Dense{.units = 19, .activation = Activation::tanh}, Dense{.units = 3}},
               Loss::softmax_cross_entropy);
}

constexpr gpu::UpdateRule kHeavy{.momentum = 0.9, .nesterov = false, .weight_decay = 1e-2};
constexpr gpu::UpdateRule kNesterov{.momentum = 0.9, .nesterov = true, .weight_decay = 1e-2};
// Their ε is large, so that where a gradient is nothing but roundings it does not become a step.
constexpr gpu::UpdateRule kSoftAdam{
    .weight_decay = 1e-2, .kind = gpu::UpdateRule::Kind::adam, .epsilon = 1e-2};
constexpr gpu::UpdateRule kSoftAdamW{
    .weight_decay = 1e-2, .kind = gpu::UpdateRule::Kind::adamw, .epsilon = 1e-2};
constexpr gpu::GradientNoise kNoise{.deviation = 0.1, .seed = 4};

}  // namespace

TEST_CASE_TEMPLATE("GPU: five steps with every rule, with and without noise", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  struct Kind {
    gpu::UpdateRule rule;
    gpu::GradientNoise noise;
  };
  for (const Kind& kind : {Kind{{}, {}},
                           {{}, kNoise},
                           {{.weight_decay = 1e-2}, {}},
                           {kHeavy, kNoise},
                           {kNesterov, {}},
                           {kSoftAdam, {}},
                           {kSoftAdam, kNoise},
                           {kSoftAdamW, {}}}) {
    CAPTURE(kind.rule.momentum);
    CAPTURE(kind.rule.state_rows());
    CAPTURE(kind.noise.deviation);
    const Plan plan{.pass = gpu::Pass::step,
                    .steps = 5,
                    .rule = kind.rule,
                    .noise = kind.noise,
                    .first_step = 17};
    check_parity<Real>(*gpu_device, varied(), kTwoChannels, plan, {4, 3}, 3, 5);
  }
}

TEST_CASE_TEMPLATE("GPU: images are seen in views, with the labels of whole images", Real, float,
                   double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const int channels : {1, 2})
    for (const auto& [crop, flip] : {std::pair(2, false), {0, true}, {5, true}}) {
      CAPTURE(channels);
      CAPTURE(crop);
      const ModelContext data{.channels = channels, .height = 6, .width = 8, .classes = 3};
      const Plan plan{.pass = gpu::Pass::step,
                      .steps = 3,
                      .views = {.crop = crop, .flip = flip, .height = 6, .width = 8}};
      check_parity<Real>(*gpu_device, varied(), data, plan, {4, 3}, 3, 5);
    }
}

TEST_CASE_TEMPLATE("GPU: gradients with noise leave the parameters alone", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  const Plan plan{.pass = gpu::Pass::gradient, .noise = kNoise, .first_step = 1ULL << 40};
  check_parity<Real>(*gpu_device, varied(), kTwoChannels, plan, {5}, 3);
}

TEST_CASE_TEMPLATE("GPU: gradients with a weight for each peer", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const gpu::Pass pass : {gpu::Pass::gradient, gpu::Pass::step})
    for (const int batch : {5, 600})  // 600: the loss in pieces
      check_parity<Real>(*gpu_device, varied(), kTwoChannels, {.pass = pass, .weighted = true},
                         {batch}, 3);
}

TEST_CASE("GPU: a call that repeats another one with other weights has its own") {
  GOSSAMER_GPU(gpu_device);
  const CompiledModel network = compiled(varied(), kTwoChannels, 4);
  const Samples samples(kTwoChannels, 40);
  gpu::BasicCpuDevice<double> cpu(1);
  Fleet<float> on_gpu(*gpu_device, network, samples, 3);
  Fleet<double> on_cpu(cpu, network, samples, 3);
  for (const bool weighted : {true, false, true}) {
    const Plan plan{.pass = gpu::Pass::gradient, .weighted = weighted};
    on_gpu.run(plan, {4});
    on_cpu.run(plan, {4});
    check_close(network, on_gpu.outcome(), on_cpu.outcome(), kTrainingError<float>, plan.pass);
  }
}

TEST_CASE_TEMPLATE("GPU: one update with a gradient from elsewhere", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  gpu::BasicCpuDevice<double> cpu(1);
  for (const gpu::UpdateRule& rule : {gpu::UpdateRule{}, gpu::UpdateRule{.weight_decay = 1e-2},
                                      kHeavy, kNesterov, kSoftAdam, kSoftAdamW}) {
    std::vector<Held<Real>> x, v, w, g;
    std::vector<std::vector<double>> cpu_x, cpu_v, cpu_w, cpu_g;
    for (const std::size_t length : gpu::kLengths) {
      const auto values = [&](std::uint64_t stream) {
        return gpu::normal<Real>(length, 10 * length + stream);
      };
      x.emplace_back(*gpu_device, values(1), length % 2);
      v.emplace_back(*gpu_device, values(2), length % 2);
      g.emplace_back(*gpu_device, values(3), length % 2);
      std::vector<Real> squares = values(4);
      for (Real& value : squares) value *= value;
      w.emplace_back(*gpu_device, squares, length % 2);
      cpu_w.push_back(gpu::as<double>(squares));
      cpu_x.push_back(gpu::as<double>(values(1)));
      cpu_v.push_back(gpu::as<double>(values(2)));
      cpu_g.push_back(gpu::as<double>(values(3)));
    }
    std::vector<gpu::UpdateJob<Real>> jobs;
    std::vector<gpu::UpdateJob<double>> cpu_jobs;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t rows = rule.state_rows();
      const double rate = 0.1 / static_cast<double>(i + 1);
      jobs.push_back({.parameters = x[i].get(),
                      .state = {rows > 0 ? v[i].get() : nullptr, rows > 1 ? w[i].get() : nullptr},
                      .gradient = g[i].get(),
                      .length = x[i].length(),
                      .rate = rate,
                      .step = 10 * i});
      cpu_jobs.push_back({.parameters = cpu_x[i].data(),
                          .state = {cpu_v[i].data(), cpu_w[i].data()},
                          .gradient = cpu_g[i].data(),
                          .length = x[i].length(),
                          .rate = rate,
                          .step = 10 * i});
    }
    gpu_device->update(rule, jobs);
    cpu.update(rule, cpu_jobs);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(gpu::worst_error(x[i].values(), cpu_x[i]) < gpu::kRoundings<Real>);
      CHECK(gpu::worst_error(v[i].values(), cpu_v[i]) < gpu::kRoundings<Real>);
      CHECK(gpu::worst_error(w[i].values(), cpu_w[i]) < gpu::kRoundings<Real>);
      CHECK(gpu::worst_error(g[i].values(), cpu_g[i]) == 0);
    }
  }
  gpu_device->update({}, std::span<const gpu::UpdateJob<Real>>());
}

TEST_CASE_TEMPLATE("GPU: Adam follows its recurrence for 100 steps", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  constexpr std::size_t kLength = 1029;
  for (const gpu::UpdateRule& rule : {kAdam, kAdamW}) {
    std::vector<Coordinate> expected(kLength);
    std::vector<Real> start(kLength), gradient(kLength);
    for (std::size_t i = 0; i < kLength; ++i)
      expected[i].x = start[i] = static_cast<Real>(std::cos(3.0 * static_cast<double>(i)));
    const Held<Real> x(*gpu_device, start), first(*gpu_device, std::vector<Real>(kLength)),
        second(*gpu_device, std::vector<Real>(kLength));
    for (int step = 0; step < 100; ++step) {
      const std::vector<Real> at = x.values();
      for (std::size_t i = 0; i < kLength; ++i) {
        expected[i].take(rule, 0.02, step, pull(i, expected[i].x));
        gradient[i] = static_cast<Real>(pull(i, static_cast<double>(at[i])));
      }
      const Held<Real> g(*gpu_device, gradient);
      const gpu::UpdateJob<Real> job{.parameters = x.get(),
                                     .state = {first.get(), second.get()},
                                     .gradient = g.get(),
                                     .length = kLength,
                                     .rate = 0.02,
                                     .step = static_cast<std::uint64_t>(step)};
      gpu_device->update(rule, std::span(&job, 1));
    }
    const std::vector<Real> end = x.values();
    double worst = 0;
    for (std::size_t i = 0; i < kLength; ++i)
      worst = std::max(worst, std::abs(static_cast<double>(end[i]) - expected[i].x));
    CHECK(worst < (sizeof(Real) == 4 ? 2e-5 : 1e-12));
  }
}

TEST_CASE("GPU: empty calls") {
  GOSSAMER_GPU(gpu_device);
  const CompiledModel network = compiled(varied(), kTwoChannels, 2);
  const gpu::Task task{.program = &network.program()};
  gpu_device->train(task, gpu::Pass::step, std::span<const gpu::Job<float>>());
  gpu_device->train(task, gpu::Pass::gradient, std::span<const gpu::Job<float>>());
  gpu_device->train(task, gpu::Pass::evaluate, std::span<const gpu::Job<float>>());
  gpu_device->finish();
}

TEST_CASE_TEMPLATE("GPU: training twice gives the same bits, in calls of three steps or of one",
                   Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  const CompiledModel network = compiled(varied(), kTwoChannels, 5);
  const Samples samples(kTwoChannels, 40);
  gpu::UpdateRule rule;
  const auto train = [&](gpu::BasicDevice<Real>& device, int steps) {
    Fleet<Real> fleet(device, network, samples, 5);
    for (std::uint64_t first = 0; first < 6; first += static_cast<std::uint64_t>(steps))
      fleet.run({.pass = gpu::Pass::step,
                 .steps = steps,
                 .rule = rule,
                 .noise = kNoise,
                 .first_step = first},
                {4});
    return fleet.outcome();
  };
  const auto another = gpu::gpu_or_skip<Real>();
  for (const gpu::UpdateRule& each : {kNesterov, kAdam}) {
    rule = each;
    const Outcome first = train(*gpu_device, 3);
    CHECK(first == train(*gpu_device, 1));
    CHECK(first == train(*another, 3));
  }
}

TEST_CASE("GPU: calls of all kinds and shapes, more than any cache holds, stay right") {
  GOSSAMER_GPU(gpu_device);
  const ModelContext data{.width = 5, .classes = 3};
  const ModelSpec spec =
      chain({Dense{.units = 4, .activation = Activation::tanh}, Dense{.units = 3}},
            Loss::softmax_cross_entropy);
  const CompiledModel network = compiled(spec, data, 20);
  const Samples samples(data, 40);
  gpu::BasicCpuDevice<double> cpu(1);
  Fleet<float> on_gpu(*gpu_device, network, samples, 5);
  Fleet<double> on_cpu(cpu, network, samples, 5);
  std::uint64_t step = 0;
  for (int round = 0; round < 2; ++round)
    for (int batch = 1; batch <= 20; ++batch)
      for (std::size_t peers = 1; peers <= 5; ++peers) {
        std::vector<std::size_t> who;
        for (std::size_t p = 0; p < peers; ++p) who.push_back((p * 2 + 1) % 5);
        const Plan plan{.pass = batch % 4 == 0 ? gpu::Pass::evaluate : gpu::Pass::step,
                        .rule = batch % 2 != 0 ? kHeavy : gpu::UpdateRule{},
                        .first_step = step++,
                        .rate = 0.01};
        on_gpu.run(plan, {batch}, who);
        on_cpu.run(plan, {batch}, who);
      }
  check_close(network, on_gpu.outcome(), on_cpu.outcome(), 1e-4, gpu::Pass::step);
}

TEST_CASE("GPU: rows that alternate between two places, as mixing has them") {
  GOSSAMER_GPU(gpu_device);
  const CompiledModel network = compiled(varied(), kTwoChannels, 4);
  const Samples samples(kTwoChannels, 40);
  GOSSAMER_GPU_OF(double, double_device);
  gpu::BasicCpuDevice<double> cpu(1);
  // The rows of peers 0–2 and 3–5 are used in turn, each copied to the other's place in between.
  const auto train = [&]<class Real>(gpu::BasicDevice<Real>& device) {
    const std::size_t d = network.parameters();
    std::vector<Held<Real>> rows, gradients;
    const Held<double> losses(device, std::vector<double>(3));
    const Held<float> features(device, samples.features);
    const Held<std::int32_t> labels(device, samples.labels);
    for (std::uint32_t p = 0; p < 6; ++p) {
      std::vector<double> start(d);
      network.initialise<double>(7, p, start);
      rows.emplace_back(device, gpu::as<Real>(gpu::as<float>(start)));
      gradients.emplace_back(device, d);
    }
    const gpu::Task task{.program = &network.program(),
                         .tables = {{features.get(), labels.get(), nullptr}}};
    for (std::uint64_t round = 0; round < 10; ++round) {
      const std::size_t here = round % 2 * 3, there = 3 - here;
      std::vector<gpu::Job<Real>> jobs;
      std::vector<gpu::CopyRequest<Real>> copies;
      std::vector<std::uint32_t> batch;
      RandomStream random(1, kNoPeer, Purpose::test, round);
      for (int i = 0; i < 12; ++i) batch.push_back(random.below(40));
      const double rate = 0.1;
      for (std::size_t p = 0; p < 3; ++p) {
        jobs.push_back({.parameters = rows[here + p].get(),
                        .gradient = gradients[p].get(),
                        .samples = &batch[4 * p],
                        .batch = 4,
                        .rates = &rate,
                        .peer = static_cast<std::uint32_t>(p),
                        .first_step = round,
                        .loss = losses.get() + p});
        copies.push_back({rows[here + p].get(), rows[there + p].get(), d});
      }
      device.train(task, gpu::Pass::step, jobs);
      device.execute(copies);
    }
    device.finish();
    std::vector<double> all = losses.values();
    for (const auto& row : rows)
      for (const Real value : row.values()) all.push_back(static_cast<double>(value));
    return all;
  };
  const auto on_gpu = train(*gpu_device),
             on_cpu = train(static_cast<gpu::BasicDevice<double>&>(cpu)),
             in_double = train(*double_device);
  CHECK(relative_error(on_gpu, on_cpu) < 1e-4);
  CHECK(relative_error(in_double, on_cpu) < 1e-11);
}

TEST_CASE("GPU: fifty rounds of training and mixing, losses as on the CPU to 1e-3") {
  GOSSAMER_GPU(gpu_device);
  const ModelContext data{.channels = 1, .height = 8, .width = 8, .classes = 10};
  const CompiledModel network =
      compiled(model("mlp", data, {{"hidden", std::vector<std::int64_t>{16}}}), data, 8);
  const Samples samples(data, 64);
  gpu::CpuDevice cpu(1);
  constexpr std::size_t kPeers = 4;
  const auto losses = [&](Device& device) {
    using Real = float;
    const std::size_t d = network.parameters();
    std::vector<Held<Real>> rows, mixed, momenta, gradients;
    const Held<double> loss(device, std::vector<double>(50 * kPeers));
    const Held<float> features(device, samples.features);
    const Held<std::int32_t> labels(device, samples.labels);
    for (std::uint32_t p = 0; p < kPeers; ++p) {
      std::vector<double> start(d);
      network.initialise<double>(7, 0, start);
      rows.emplace_back(device, gpu::as<Real>(gpu::as<float>(start)));
      mixed.emplace_back(device, d);
      momenta.emplace_back(device, std::vector<Real>(d));
      gradients.emplace_back(device, d);
    }
    const gpu::Task task{.program = &network.program(),
                         .tables = {{features.get(), labels.get(), nullptr}},
                         .rule = {.momentum = 0.9}};
    for (std::uint64_t round = 0; round < 50; ++round) {
      std::vector<std::vector<std::uint32_t>> batches(kPeers);
      std::vector<std::vector<gpu::BasicMixSource<Real>>> sources(kPeers);
      std::vector<gpu::Job<Real>> jobs;
      std::vector<gpu::BasicMixRequest<Real>> mixes;
      const double rates[] = {0.02, 0.02};
      for (std::size_t p = 0; p < kPeers; ++p) {
        RandomStream random(1, static_cast<std::uint32_t>(p), Purpose::test, round);
        for (int i = 0; i < 16; ++i) batches[p].push_back(random.below(64));
        jobs.push_back({.parameters = rows[p].get(),
                        .state = {momenta[p].get()},
                        .gradient = gradients[p].get(),
                        .samples = batches[p].data(),
                        .batch = 8,
                        .steps = 2,
                        .rates = rates,
                        .loss = loss.get() + round * kPeers + p});
        sources[p] = {{rows[(p + 1) % kPeers].get(), Real(1) / 3},
                      {rows[(p + 3) % kPeers].get(), Real(1) / 3}};
        mixes.push_back({rows[p].get(), mixed[p].get(), sources[p], d});
      }
      device.train(task, gpu::Pass::step, jobs);
      device.execute(mixes);
      std::swap(rows, mixed);
    }
    return loss.values();
  };
  const auto on_gpu = losses(*gpu_device), on_cpu = losses(cpu);
  for (std::size_t i = 0; i < on_cpu.size(); ++i) CHECK(std::abs(on_gpu[i] - on_cpu[i]) < 1e-3);
  CHECK(on_cpu.back() < 0.5 * on_cpu.front());
}
