// Properties of the device that only the emulation shows: the host never waits within a round,
// steps are replayed as graphs, no order of threads, blocks or streams changes a bit, no memory
// leaks, and errors of CUDA are reported.
#include <future>
#include <string>

#include "cuda_runtime.h"
#include "gpu/fault_word.hpp"
#include "tests/cuda/training_test_util.hpp"
#include "tests/cuda_emulation/control.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;
using emulation::Order;
using emulation::Settings;
using emulation::With;

namespace {

constexpr ModelContext kColourImage{.channels = 2, .height = 6, .width = 6, .classes = 3};

ModelSpec layers_of_every_kind() {
  return chain({Convolution{.channels = 6, .kernel = 3, .padding = 1},
                GroupNorm{.groups = 3, .activation = Activation::relu}, MaxPool{.size = 2},
                Dense{.units = 19, .activation = Activation::tanh}, Dense{.units = 3}},
               Loss::softmax_cross_entropy);
}

const Plan kSteps{.pass = gpu::Pass::step,
                  .steps = 3,
                  .rule = {.momentum = 0.9},
                  .noise = {.deviation = 0.1, .seed = 4}};

std::unique_ptr<Device> device() {
  auto made = gpu::cuda::make_cuda_device({});
  if (!made.ok()) FAIL(made.error().message);
  return std::move(made).value();
}

/// The results of codecs, of what mixing rules ask for, and of an optimizer with matrices.
std::vector<double> rows_of_every_kind(Device& device) {
  std::vector<double> all;
  const auto keep = [&](const auto& values) {
    for (const auto value : values) all.push_back(static_cast<double>(value));
  };
  constexpr std::size_t kLength = 20'011, kChosen = 700;
  std::vector<Held<float>> rows;
  std::vector<const float*> pointers;
  for (std::uint64_t k = 0; k < 5; ++k) {
    rows.emplace_back(device, gpu::normal<float>(kLength, 10 + k), k % 2);
    pointers.push_back(rows.back().get());
  }
  const Held<float> out(device, kLength), chosen(device, kChosen),
      scales(device, gpu::sign_blocks(kLength));
  const Held<std::uint32_t> indices(device, kChosen), bits(device, gpu::sign_words(kLength));
  const Held<std::uint16_t> halves(device, kLength, 1);
  const auto ask = [&](const auto& request) { device.execute(std::span(&request, 1)); };

  ask(gpu::EncodeBf16Request{pointers[0], halves.get(), kLength});
  ask(gpu::DecodeBf16Request{halves.get(), out.get(), kLength});
  ask(gpu::EncodeSignsRequest{pointers[1], bits.get(), scales.get(), kLength});
  ask(gpu::DecodeSignsRequest{bits.get(), scales.get(), out.get(), kLength, true});
  ask(gpu::TopKRequest{pointers[2], kLength, chosen.get(), indices.get(), kChosen});
  keep(chosen.values());
  keep(indices.values());
  const gpu::FaultWord fault(device);
  ask(gpu::ScatterAddRequest{chosen.get(), indices.get(), kChosen, out.get(), kLength, fault.word(),
                             3});
  const gpu::StratifiedSample sample{kChosen, 5, 6, Purpose::codec, 7};
  ask(gpu::SampleRequest{pointers[3], kLength, chosen.get(), sample});
  ask(gpu::AddSampledRequest{chosen.get(), out.get(), kLength, sample});
  ask(gpu::OrderStatisticsRequest<float>{out.get(), out.get(), pointers, 1, 3, 0.5F, kLength});
  keep(out.values());
  std::vector<double> distances(10);
  ask(gpu::DistancesRequest<float>{pointers, false, kLength, distances.data()});
  keep(distances);

  const Held<float> momentum(device, std::vector<float>(kLength));
  const gpu::UpdateJob<float> job{.parameters = rows[0].get(),
                                  .state = {momentum.get(), nullptr},
                                  .gradient = pointers[1],
                                  .length = 140 * 60,
                                  .rate = 0.1,
                                  .columns = 60};
  device.update({.momentum = 0.9, .kind = gpu::UpdateRule::Kind::muon}, std::span(&job, 1));
  keep(rows[0].values());
  return all;
}

/// The results of many operations, as numbers.
std::vector<double> everything(Device& device) {
  std::vector<double> all;
  const auto keep = [&](const auto& values) {
    for (const auto value : values) all.push_back(static_cast<double>(value));
  };
  const std::size_t length = 3001;
  const Held<float> x(device, gpu::normal<float>(length, 1)),
      y(device, gpu::normal<float>(length, 2)), out(device, length),
      scales(device, gpu::int8_blocks(length));
  const Held<std::int8_t> coded(device, length);
  const gpu::MixSource source{y.get(), 0.3F};
  const gpu::MixRequest mix{x.get(), out.get(), std::span(&source, 1), length};
  device.execute(std::span(&mix, 1));
  const gpu::FaultWord fault(device);
  for (const float largest : {2.0F, 10.0F}) {
    const gpu::RangeCheckRequest check_range{x.get(), length, largest, fault.word(), 7};
    device.execute(std::span(&check_range, 1));
  }
  device.finish();
  all.push_back(static_cast<double>(fault.tag()));
  std::vector<double> sketch(gpu::sketch_length(length));
  const gpu::SketchRequest<float> sketched{out.get(), length, 3, sketch.data()};
  device.execute(std::span(&sketched, 1));
  keep(sketch);
  const gpu::EncodeInt8Request int8{out.get(), coded.get(), scales.get(), length};
  device.execute(std::span(&int8, 1));
  keep(coded.values());
  keep(scales.values());
  keep(out.values());

  for (const double value : rows_of_every_kind(device)) all.push_back(value);

  const CompiledModel network = compiled(layers_of_every_kind(), kColourImage, 5);
  const Samples samples(kColourImage, 40);
  Fleet<float> fleet(device, network, samples, 4);
  fleet.run(kSteps, {5, 3});
  fleet.run({.pass = gpu::Pass::evaluate}, {4});
  const Outcome outcome = fleet.outcome();
  for (const auto* rows :
       {&outcome.parameters, &outcome.first, &outcome.second, &outcome.gradients})
    for (const auto& row : *rows) keep(row);
  keep(outcome.losses);
  keep(outcome.hits);
  return all;
}

}  // namespace

TEST_CASE("emulated: there is always a GPU, so that no test is skipped") {
  const gpu::cuda::Discovery discovery = gpu::cuda::discover_gpus_with_memory();
  CHECK(discovery.built);
  CHECK(discovery.problem == "");
}

TEST_CASE("emulated: no order of threads and blocks, and no delay, changes a bit") {
  const auto gpu_device = device();
  const auto expected = everything(*gpu_device);
  for (const Order order : {Order::descending, Order::shuffled}) {
    const With with({.order = order});
    CHECK(everything(*gpu_device) == expected);
  }
  for (const std::uint64_t seed : {1, 2, 3}) {
    const With with({.order = Order::shuffled, .seed = seed, .late = true});
    CHECK(everything(*device()) == expected);
  }
}

TEST_CASE("emulated: late transfers come after what was asked for before them") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const With with({.seed = seed, .late = true});
    const auto gpu_device = device();
    const Held<float> row(*gpu_device, std::vector<float>(100, 1));
    auto* host = static_cast<float*>(gpu_device->allocate_host(100 * sizeof(float)));
    const gpu::ScaleRequest<float> twice{2, row.get(), 100};
    for (int i = 0; i < 20; ++i) gpu_device->execute(std::span(&twice, 1));
    std::promise<void> down, up;
    gpu_device->begin_download(host, row.get(), 100 * sizeof(float),
                               [&](const Status&) { down.set_value(); });
    down.get_future().wait();
    CHECK(std::vector<float>(host, host + 100) == std::vector<float>(100, 1 << 20));
    const gpu::FillRequest<float> fill{-1, row.get(), 100};
    gpu_device->execute(std::span(&fill, 1));
    gpu_device->begin_upload(row.get(), host, 100 * sizeof(float),
                             [&](const Status&) { up.set_value(); });
    up.get_future().wait();
    CHECK(row.values() == std::vector<float>(100, 1 << 20));
    gpu_device->release_host(host);
  }
}

TEST_CASE("emulated: a host far ahead writes over nothing that the GPU has yet to read") {
  const With with({.late = true});
  const auto gpu_device = device();
  constexpr std::size_t kLength = 20'000,
                        kCalls =
                            12;  // megabytes of requests per call: more than the upload ring holds
  std::vector<Held<float>> rows;
  for (std::size_t call = 0; call < kCalls; ++call) rows.emplace_back(*gpu_device, kLength);
  for (std::size_t call = 0; call < kCalls; ++call) {
    std::vector<gpu::FillRequest<float>> fills;
    for (std::size_t i = 0; i < kLength; ++i)
      fills.push_back({static_cast<float>(call * kLength + i), rows[call].get() + i, 1});
    gpu_device->execute(fills);
  }
  gpu_device->finish();
  for (std::size_t call = 0; call < kCalls; ++call) {
    std::vector<float> expected;
    for (std::size_t i = 0; i < kLength; ++i)
      expected.push_back(static_cast<float>(call * kLength + i));
    CHECK(rows[call].values() == expected);
  }
}

TEST_CASE("emulated: a round of training and mixing never waits, and its steps are replayed") {
  const auto gpu_device = device();
  const CompiledModel network = compiled(layers_of_every_kind(), kColourImage, 5);
  const Samples samples(kColourImage, 40);
  Fleet<float> fleet(*gpu_device, network, samples, 4);
  const Held<float> x(*gpu_device, std::vector<float>(1000, 1)), out(*gpu_device, 1000);
  const gpu::MixSource source{x.get(), 0.3F};
  const gpu::MixRequest mix{x.get(), out.get(), std::span(&source, 1), 1000};
  const auto round = [&](std::uint64_t number) {
    Plan plan = kSteps;
    plan.first_step = 3 * number;
    fleet.run(plan, {5});
    gpu_device->execute(std::span(&mix, 1));
  };
  round(0);
  gpu_device->finish();
  const emulation::Counts before = emulation::counts();
  for (std::uint64_t number = 1; number <= 5; ++number) round(number);
  const emulation::Counts after = emulation::counts();
  CHECK(after.synchronisations == before.synchronisations);
  CHECK(after.pageable_copies == before.pageable_copies);
  CHECK(after.bytes_down == before.bytes_down);
  CHECK(after.captures == before.captures);
  CHECK(after.allocations == before.allocations);
  CHECK(after.graph_launches == before.graph_launches + 5 * 3);
  CHECK(after.launches - before.launches <= 5 * 4);
  CHECK(after.kernels > after.launches + before.kernels - before.launches);
}

TEST_CASE("emulated: a step that CUDA does not capture runs kernel by kernel, to the same bits") {
  const CompiledModel network = compiled(layers_of_every_kind(), kColourImage, 5);
  const Samples samples(kColourImage, 40);
  const auto trained = [&](const char* fails) {
    const auto gpu_device = device();
    Fleet<float> fleet(*gpu_device, network, samples, 4);
    if (fails != nullptr) emulation::fail(fails, cudaErrorStreamCaptureUnsupported);
    const std::uint64_t before = emulation::counts().graph_launches;
    for (std::uint64_t number = 0; number < 2; ++number) {
      Plan plan = kSteps;
      plan.first_step = 3 * number;
      fleet.run(plan, {5});
    }
    CHECK((emulation::counts().graph_launches == before) == (fails != nullptr));
    return fleet.outcome();
  };
  const auto captured = trained(nullptr);
  for (const char* call :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate"}) {
    CAPTURE(call);
    const auto launched = trained(call);
    CHECK(launched.parameters == captured.parameters);
    CHECK(launched.losses == captured.losses);
  }
}

TEST_CASE("emulated: a device gives back all it took") {
  const emulation::Holdings before = emulation::holdings();
  {
    const auto gpu_device = device();
    everything(*gpu_device);
  }
  CHECK(emulation::holdings() == before);
}

TEST_CASE("emulated: why there is no GPU, in one line") {
  const auto problem = [](const Settings& settings) {
    const With with(settings);
    const gpu::cuda::Discovery discovery = gpu::cuda::discover_gpus_with_memory();
    CHECK(discovery.built);
    CHECK_FALSE(discovery.problem.empty());
    CHECK(discovery.problem.find('\n') == std::string::npos);
    const auto made = gpu::cuda::make_cuda_device({});
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().kind == ErrorKind::invalid);
    CHECK(contains(made.error().message, discovery.problem));
    return discovery.problem;
  };
  CHECK(contains(problem({.driver_version = 0}), "driver"));
  const std::string old = problem({.driver_version = 12040});
  CHECK(contains(old, "12.4"));
  CHECK(contains(old, "13.0"));
  CHECK(contains(problem({.gpus = 0}), "GPU"));
  CHECK(contains(problem({.blas_installed = false}), "cuBLAS"));
}

TEST_CASE("emulated: several GPUs") {
  const With with({.gpus = 3, .memory_per_gpu = 64 << 20});
  const gpu::cuda::Discovery discovery = gpu::cuda::discover_gpus_with_memory();
  REQUIRE(discovery.gpus.size() == 3);
  CHECK(discovery.gpus[2].memory_total == 64 << 20);
  auto second = gpu::cuda::make_cuda_device({.gpus = {1}});
  REQUIRE(second.ok());
  CHECK(contains((*second)->description(), "cuda:1"));
  const auto first = device();
  CHECK(everything(**second) == everything(*first));
}

TEST_CASE("emulated: a GPU that is too small says so, and lives on") {
  const With with({.memory_per_gpu = 16 << 20});
  const auto gpu_device = device();
  std::vector<void*> blocks;
  CHECK_THROWS_AS(for (;;) blocks.push_back(gpu_device->allocate(1 << 19)), std::bad_alloc);
  CHECK(blocks.size() >= 4);
  CHECK(gpu_device->memory_info().total == 16 << 20);
  for (void* block : blocks) gpu_device->release(block);
  const Held<float> row(*gpu_device, std::vector<float>{1, 2});
  CHECK(row.values() == std::vector<float>{1, 2});
}

TEST_CASE("emulated: training that does not fit is std::bad_alloc") {
  const auto gpu_device = device();
  const CompiledModel network = compiled(layers_of_every_kind(), kColourImage, 5);
  const Samples samples(kColourImage, 40);
  Fleet<float> fleet(*gpu_device, network, samples, 4);
  {
    const With with({.memory_per_gpu = emulation::holdings().gpu_bytes + 1024});
    CHECK_THROWS_AS(fleet.run(kSteps, {5}), std::bad_alloc);
  }
  fleet.run(kSteps, {5});
  CHECK(std::isfinite(fleet.outcome().losses[0]));
}

TEST_CASE("emulated: a GPU that fails ends every copy with its error, and frees without a word") {
  const auto before = emulation::holdings();
  const With with({});  // whose end brings the GPU back
  {
    const auto gpu_device = device();
    const Held<float> row(*gpu_device, std::vector<float>(100, 1));
    auto* host = static_cast<float*>(gpu_device->allocate_host(100 * sizeof(float)));
    emulation::lose_gpus("cudaEventSynchronize");
    std::promise<Status> down;
    gpu_device->begin_download(host, row.get(), 100 * sizeof(float),
                               [&](const Status& copied) { down.set_value(copied); });
    const Status copied = down.get_future().get();
    REQUIRE_FALSE(copied.ok());
    CHECK(contains(copied.error().message, "cuda:0: cudaEventSynchronize: unspecified launch"));
    bool called = false;
    CHECK_THROWS_AS(gpu_device->begin_upload(row.get(), host, 100 * sizeof(float),
                                             [&](const Status&) { called = true; }),
                    std::runtime_error);
    CHECK_FALSE(called);
    gpu_device->release_host(host);
    gpu_device->release_host(nullptr);
  }
  CHECK(emulation::holdings() == before);
}

TEST_CASE("emulated: CUDA's errors come with the call's name and CUDA's words") {
  const auto gpu_device = device();
  const Held<float> row(*gpu_device, std::vector<float>{1, 2, 3});
  emulation::fail("cudaLaunchKernel", cudaErrorLaunchFailure);
  std::string message;
  try {
    const gpu::ScaleRequest<float> scale{2, row.get(), 3};
    gpu_device->execute(std::span(&scale, 1));
    gpu_device->finish();
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK(contains(message, "cudaLaunchKernel"));
  CHECK(contains(message, "unspecified launch failure"));
}
