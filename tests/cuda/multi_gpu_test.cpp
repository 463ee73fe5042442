// Several GPUs as one device: where rows lie, and that work in which GPUs need each other has the
// CPU's bits.
#include <future>

#include "gpu/device_rows.hpp"
#include "tests/cuda/multi_gpu_test_util.hpp"
#include "train/learner.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// Softmax regression of three classes on random points.
std::shared_ptr<train::Dataset> points(std::size_t count) {
  auto data = std::make_shared<train::Dataset>();
  data->name = "points";
  data->height = 1, data->width = 6, data->classes = 3;
  data->count = count;
  data->train_count = count * 3 / 4;
  data->features = normal<float>(count * 6, 1);
  RandomStream random(3, kNoPeer, Purpose::test, 3);
  for (std::size_t i = 0; i < count; ++i)
    data->labels.push_back(static_cast<std::int32_t>(random.below(3)));
  return data;
}

/// What `peers` peers of a learner on the device end with: parameters, and each one's evaluation.
std::vector<float> trained(Device& device, std::size_t peers) {
  train::LearnerRequest request{.data = points(100), .shards = {}, .model = {}};
  auto model = train::make_model("softmax", {1, 1, 6, 3}, {});
  REQUIRE(model.ok());
  request.model = std::move(model).value();
  request.shards.resize(peers);
  for (std::uint32_t i = 0; i < 75; ++i) request.shards[i % peers].push_back(i);
  request.sampling.batch = 5;
  request.optimizer = {.rate = 0.1, .rule = {.momentum = 0.9}};
  auto learner = train::make_learner<float>(std::move(request), device);
  REQUIRE(learner.ok());
  const std::size_t d = (*learner)->parameters();
  const DeviceRows<float> x(device, peers, d), momentum(device, peers, d),
      gradient(device, peers, d);
  const DeviceRows<double> losses(device, peers, 1);
  std::vector<float> row(d), all;
  std::vector<train::StepRequest<float>> steps;
  std::vector<train::EvaluateRequest<float>> evaluations;
  for (std::size_t p = 0; p < peers; ++p) {
    (*learner)->initialise(static_cast<int>(p), row);
    device.upload(x.row(p).data(), row.data(), d * sizeof(float));
    steps.push_back({static_cast<int>(p),
                     0,
                     4,
                     x.row(p).data(),
                     {momentum.row(p).data()},
                     gradient.row(p).data(),
                     losses.row(p).data()});
    evaluations.push_back({x.row(p).data(), {}});
  }
  (*learner)->local_steps(steps);
  (*learner)->evaluate(evaluations);
  for (std::size_t p = 0; p < peers; ++p) {
    double loss = 0;
    device.download(row.data(), x.row(p).data(), d * sizeof(float));
    device.download(&loss, losses.row(p).data(), sizeof loss);
    all.insert(all.end(), row.begin(), row.end());
    all.push_back(static_cast<float>(loss));
    all.push_back(static_cast<float>(evaluations[p].result.loss));
    all.push_back(static_cast<float>(evaluations[p].result.accuracy));
  }
  return all;
}

}  // namespace

TEST_CASE("GPUs: rows are spread in blocks, as evenly as may be") {
  for (const int gpus : {2, 3}) {
    const auto device = gpus_or_skip(gpus);
    if (device == nullptr) return;
    CHECK(device->gpu_count() == gpus);
    for (const std::size_t count : {1, 2, 3, 7, 64}) {
      const DeviceRows<float> rows(*device, count, 100);
      std::vector<std::size_t> on(static_cast<std::size_t>(gpus));
      for (std::size_t i = 0; i < count; ++i) {
        const auto gpu_index = static_cast<std::size_t>(device->gpu_of(rows.row(i).data()));
        CHECK(gpu_index == i * static_cast<std::size_t>(gpus) / count);
        CHECK(reinterpret_cast<std::uintptr_t>(rows.row(i).data()) % 64 == 0);
        ++on[gpu_index];
      }
      for (std::size_t gpu_index = 0; gpu_index < on.size(); ++gpu_index) {
        CHECK(on[gpu_index] == DeviceRows<float>::count_on(gpu_index, on.size(), count));
        CHECK(on[gpu_index] <= (count + on.size() - 1) / on.size());
      }
    }
    const auto mine = DeviceRows<float>::on_gpu(*device, gpus - 1, 3, 10);
    for (std::size_t i = 0; i < 3; ++i) CHECK(device->gpu_of(mine.row(i).data()) == gpus - 1);
    CHECK(DeviceRows<float>(*device, 3, 0).row(2).empty());
    CHECK(device->description().find(gpus == 2 ? "cuda:0-1, " : "cuda:0-2, ") == 0);
  }
}

TEST_CASE("GPUs: each one's memory there and back") {
  const auto device = gpus_or_skip(2);
  if (device == nullptr) return;
  std::vector<Held<float>> rows;
  for (const int gpu_index : {0, 1, 1, 0})
    rows.emplace_back(*device, normal<float>(1000, rows.size()), 0, gpu_index);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].values() == normal<float>(1000, i));
  for (const int gpu_index : {0, 1}) {
    const MemoryInfo info = device->memory_info(gpu_index);
    CHECK(info.free > 0);
    CHECK(info.free <= info.total);
    CHECK_THROWS_AS(device->allocate(2 * info.total, gpu_index), std::bad_alloc);
  }
}

TEST_CASE_TEMPLATE("GPUs: operations on rows of several GPUs have the CPU's bits", Real, float,
                   double) {
  const auto device = gpus_or_skip<Real>(3);
  if (device == nullptr) return;
  constexpr std::size_t kPeers = 7;
  BasicCpuDevice<Real> cpu(1);
  for (const std::size_t length : {0, 1, 1000, 200'003}) {
    CAPTURE(length);
    TurnRows<Real> x(*device, kPeers, length, 10), y(*device, kPeers, length, 20),
        z(*device, kPeers, length, 30), copied(*device, kPeers, length, 40);
    const auto at = [](auto& rows, std::size_t p, bool on_cpu) {
      return on_cpu ? rows.on_cpu(p) : rows[p];
    };
    std::vector<BasicMixSource<Real>> sources(4 * kPeers);
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          BasicMixSource<Real>* mine = &sources[4 * p + 2 * on_cpu];
          mine[0] = {at(x, p + 1, on_cpu), Real(0.3)};
          mine[1] = {at(x, p + 2, on_cpu), Real(0.2)};
          return BasicMixRequest<Real>{at(x, p, on_cpu), at(y, p, on_cpu), std::span(mine, 2),
                                       length};
        },
        kExecute);
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          return AxpyRequest<Real>{Real(0.75), at(y, p + 2, on_cpu), at(x, p, on_cpu), length};
        },
        kExecute);
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          return DifferenceRequest<Real>{at(z, p, on_cpu), at(x, p + 1, on_cpu),
                                         at(y, p + 2, on_cpu), length};
        },
        kExecute);
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          return DifferenceRequest<Real>{.out = at(z, p, on_cpu),
                                         .a = at(x, p + 1, on_cpu),
                                         .b = at(y, p + 2, on_cpu),
                                         .length = length,
                                         .copy = at(y, p + 2, on_cpu)};
        },
        kExecute);
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          return CopyRequest<Real>{at(z, p + 1, on_cpu), at(copied, p, on_cpu), length};
        },
        kExecute);
    for (const auto* rows : {&x, &y, &z, &copied}) rows->check();
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          return DivideRequest<Real>{at(x, p + 1, on_cpu), at(y, p + 2, on_cpu),
                                     at(copied, p, on_cpu), length};
        },
        kExecute);
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          return FillRequest<Real>{static_cast<Real>(p), at(z, p, on_cpu), length / 2};
        },
        kExecute);
    both(
        *device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          return UpdateJob<Real>{.parameters = at(x, p, on_cpu),
                                 .state = {at(y, p, on_cpu)},
                                 .gradient = at(z, p + 1, on_cpu),
                                 .length = length,
                                 .rate = 0.1};
        },
        [](BasicDevice<Real>& some, auto& jobs) { some.update({.momentum = 0.9}, jobs); });
    for (const auto* rows : {&x, &y, &z, &copied}) rows->check();
  }
}

TEST_CASE_TEMPLATE("GPUs: sketches of rows of several GPUs come together in order", Real, float,
                   double) {
  const auto device = gpus_or_skip<Real>(3);
  if (device == nullptr) return;
  constexpr std::size_t kPeers = 7, kLength = 5000;
  const TurnRows<Real> x(*device, kPeers, kLength, 10);
  const auto first = gpus_or_skip<Real>(1);
  std::vector<SketchRequest<Real>> sketches;
  std::vector<std::vector<double>> sketched(kPeers, std::vector<double>(kSketchLength)),
      expected = sketched;
  for (std::size_t p = 0; p < kPeers; ++p) {
    sketches.push_back({x[p], kLength, 5, sketched[p].data()});
  }
  device->execute(sketches);
  for (std::size_t p = 0; p < kPeers; ++p) {  // one by one, on one GPU
    CAPTURE(p);
    const Held<Real> a(*first, x.cpu[p]);
    const SketchRequest<Real> sketch{a.get(), kLength, 5, expected[p].data()};
    first->execute(std::span(&sketch, 1));
    CHECK(sketched[p] == expected[p]);
  }
}

TEST_CASE("GPUs: encoding and decoding between GPUs, in both directions") {
  const auto device = gpus_or_skip(2);
  if (device == nullptr) return;
  CpuDevice cpu(1);
  constexpr std::size_t kLength = 1000;
  for (const int gpu_index : {0, 1}) {
    auto values = normal<float>(kLength, 1);
    const Held<float> row(*device, values, 0, gpu_index),
        scales(*device, int8_blocks(kLength), 0, 1 - gpu_index);
    const Held<std::uint16_t> bf16(*device, kLength, 0, 1 - gpu_index);
    const Held<std::int8_t> int8(*device, kLength, 0, 1 - gpu_index);
    std::vector<std::uint16_t> cpu_bf16(kLength);
    std::vector<std::int8_t> cpu_int8(kLength);
    std::vector<float> cpu_scales(int8_blocks(kLength));
    const auto both_ways = [&](float* values, std::uint16_t* halves, std::int8_t* bytes,
                               float* byte_scales, Device& some) {
      const EncodeBf16Request to_halves{values, halves, kLength};
      const DecodeBf16Request from_halves{halves, values, kLength};
      const EncodeInt8Request to_bytes{values, bytes, byte_scales, kLength};
      const DecodeInt8Request from_bytes{bytes, byte_scales, values, kLength};
      some.execute(std::span(&to_halves, 1));
      some.execute(std::span(&from_halves, 1));
      some.execute(std::span(&to_bytes, 1));
      some.execute(std::span(&from_bytes, 1));
    };
    both_ways(row.get(), bf16.get(), int8.get(), scales.get(), *device);
    both_ways(values.data(), cpu_bf16.data(), cpu_int8.data(), cpu_scales.data(), cpu);
    CHECK(same_bits(row.values(), values));
    CHECK(bf16.values() == cpu_bf16);
    CHECK(int8.values() == cpu_int8);
    CHECK(scales.values() == cpu_scales);
  }
}

TEST_CASE("GPUs: what a thread asks of several GPUs is done in that order") {
  for (const int gpus : {2, 3}) {
    const auto device = gpus_or_skip(gpus);
    if (device == nullptr) return;
    check_relay(*device, 20);
    check_late_reader(*device);
  }
}

TEST_CASE("GPUs: what has come up to one GPU is there for the others") {
  const auto device = gpus_or_skip(2);
  if (device == nullptr) return;
  constexpr std::size_t kLength = 10'000;
  const auto values = normal<float>(kLength, 1);
  const Held<float> there(*device, kLength, 0, 1), here(*device, kLength);
  auto* pinned = static_cast<float*>(device->allocate_host(kLength * sizeof(float)));
  std::copy(values.begin(), values.end(), pinned);
  std::promise<void> up, down;
  device->begin_upload(there.get(), pinned, kLength * sizeof(float),
                       [&](const Status&) { up.set_value(); });
  up.get_future().wait();
  std::fill_n(pinned, kLength, 0.0F);
  const CopyRequest<float> copy{there.get(), here.get(), kLength};
  device->execute(std::span(&copy, 1));
  const FillRequest<float> fill{0, there.get(), kLength};
  device->execute(std::span(&fill, 1));
  device->begin_download(pinned, here.get(), kLength * sizeof(float),
                         [&](const Status&) { down.set_value(); });
  down.get_future().wait();
  CHECK(std::equal(values.begin(), values.end(), pinned));
  device->release_host(pinned);
}

TEST_CASE("GPUs: peers of several GPUs train and are evaluated as on the CPU") {
  CpuDevice cpu(1);
  const auto expected = trained(cpu, 7);
  for (const int gpus : {1, 2, 3}) {
    const auto device = gpus_or_skip(gpus);
    if (device == nullptr) return;
    CHECK(worst_error(trained(*device, 7), expected) < 1e-4);
  }
}
