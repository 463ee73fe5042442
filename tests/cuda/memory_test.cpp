// Memory, transfers and threads on a GPU.
#include <atomic>
#include <condition_variable>
#include <future>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// Host memory for transfers.
template <class Value>
class Pinned {
 public:
  Pinned(Memory& device, std::size_t length)
      : device_(device),
        values_(static_cast<Value*>(device.allocate_host(length * sizeof(Value))), length) {}
  ~Pinned() { device_.release_host(values_.data()); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  Value* get() const { return values_.data(); }
  std::span<Value> values() const { return values_; }

 private:
  Memory& device_;
  std::span<Value> values_;
};

std::vector<float> counting(std::size_t length, float from) {
  std::vector<float> values(length);
  std::iota(values.begin(), values.end(), from);
  return values;
}

}  // namespace

TEST_CASE("GPU: the discovery, and GPUs that there are not") {
  GOSSAMER_GPU(gpu_device);
  const cuda::Discovery discovery = cuda::discover_gpus_with_memory();
  CHECK(discovery.built);
  CHECK(discovery.runtime_version >= 12000);
  CHECK(discovery.driver_version >= discovery.runtime_version / 1000 * 1000);
  CHECK_FALSE(discovery.blas.empty());
  REQUIRE_FALSE(discovery.gpus.empty());
  for (std::size_t i = 0; i < discovery.gpus.size(); ++i) {
    const cuda::GpuInfo& info = discovery.gpus[i];
    CHECK(info.index == static_cast<int>(i));
    CHECK_FALSE(info.name.empty());
    CHECK(info.compute_major >= 8);
    CHECK(info.memory_total >= info.memory_free);
    CHECK(info.memory_free > 0);
    CHECK(info.multiprocessors > 0);
  }
  CHECK(gpu_device->description().find("cuda:0, " + discovery.gpus[0].name) == 0);
  for (const int index : {-1, static_cast<int>(discovery.gpus.size())}) {
    const auto none = cuda::make_cuda_device({.gpus = {index}});
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().kind == ErrorKind::invalid);
    CHECK(none.error().message.find(std::to_string(index)) != std::string::npos);
  }
}

TEST_CASE("GPU: memory is aligned, zero, there and back") {
  GOSSAMER_GPU(gpu_device);
  CHECK_FALSE(gpu_device->host_accessible());
  for (const std::size_t bytes : {1, 4, 63, 4096, 1'000'003}) {
    auto* memory = static_cast<unsigned char*>(gpu_device->allocate(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    std::vector<unsigned char> back(bytes, 1), sent(bytes);
    gpu_device->download(back.data(), memory, bytes);
    CHECK(back == std::vector<unsigned char>(bytes));
    for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<unsigned char>(7 * i + 1);
    const std::vector<unsigned char> kept = sent;
    gpu_device->upload(memory, sent.data(), bytes);
    std::fill(sent.begin(), sent.end(),
              0);  // the call has returned: the host's memory is the caller's again
    gpu_device->download(back.data(), memory, bytes);
    CHECK(back == kept);
    gpu_device->upload(memory, nullptr, 0);
    gpu_device->download(nullptr, memory, 0);
    gpu_device->release(memory);
  }
  gpu_device->release(gpu_device->allocate(0));
  gpu_device->release(nullptr);
  gpu_device->release_host(gpu_device->allocate_host(0));
  const MemoryInfo info = gpu_device->memory_info();
  CHECK(info.free > 0);
  CHECK(info.free <= info.total);
}

TEST_CASE("GPU: memory that there is not is std::bad_alloc, and the device goes on") {
  GOSSAMER_GPU(gpu_device);
  const std::size_t total = gpu_device->memory_info().total;
  CHECK_THROWS_AS(gpu_device->allocate(2 * total), std::bad_alloc);
  CHECK_THROWS_AS(gpu_device->allocate(std::numeric_limits<std::size_t>::max() / 2),
                  std::bad_alloc);
  const Held<float> row(*gpu_device, counting(5, 1));
  CHECK(row.values() == counting(5, 1));
}

TEST_CASE(
    "GPU: transfers come after what was asked for before them, in order, and say when they are "
    "done") {
  GOSSAMER_GPU(gpu_device);
  constexpr std::size_t kLength = 50'000, kPieces = 10, kPiece = kLength / kPieces;
  const Held<float> row(*gpu_device, counting(kLength, 0)), back(*gpu_device, kLength);
  const Pinned<float> down(*gpu_device, kLength);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::size_t> downs, ups;
  const auto note = [&](std::vector<std::size_t>& list, std::size_t piece) {
    return [&, piece](const Status&) {
      const std::lock_guard lock(mutex);
      list.push_back(piece);
      changed.notify_all();
    };
  };
  const auto wait = [&](const std::vector<std::size_t>& list) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return list.size() == kPieces; });
  };
  const ScaleRequest<float> twice{2, row.get(), kLength};
  for (int i = 0; i < 3; ++i) gpu_device->execute(std::span(&twice, 1));  // × 8
  for (std::size_t p = 0; p < kPieces; ++p)
    gpu_device->begin_download(down.get() + p * kPiece, row.get() + p * kPiece,
                               kPiece * sizeof(float), note(downs, p));
  wait(downs);
  std::vector<std::size_t> in_order(kPieces);
  std::iota(in_order.begin(), in_order.end(), 0);
  CHECK(downs == in_order);
  for (std::size_t i = 0; i < kLength; i += 997)
    CHECK(down.values()[i] == 8 * static_cast<float>(i));
  // Up again, onto a row that an operation asked for before still writes.
  const FillRequest<float> fill{-1, back.get(), kLength};
  gpu_device->execute(std::span(&fill, 1));
  for (std::size_t p = 0; p < kPieces; ++p)
    gpu_device->begin_upload(back.get() + p * kPiece, down.get() + p * kPiece,
                             kPiece * sizeof(float), note(ups, p));
  wait(ups);
  CHECK(ups == in_order);
  const auto values = back.values();
  CHECK(std::equal(values.begin(), values.end(), down.values().begin()));
  // What another thread asks for once it is done sees it.
  std::vector<float> seen;
  std::thread([&] { seen = back.values(); }).join();
  CHECK(seen == values);
}

TEST_CASE("GPU: an empty transfer is done too") {
  GOSSAMER_GPU(gpu_device);
  std::promise<void> down, up;
  const Held<float> row(*gpu_device, 1);
  gpu_device->begin_download(nullptr, row.get(), 0, [&](const Status&) { down.set_value(); });
  down.get_future().wait();
  gpu_device->begin_upload(row.get(), nullptr, 0, [&](const Status&) { up.set_value(); });
  up.get_future().wait();
}

TEST_CASE("GPU: threads at once, each with its own order") {
  GOSSAMER_GPU_OF(double, gpu_device);
  constexpr int kThreads = 4;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const std::size_t length = 1000 + 37 * static_cast<std::size_t>(t);
      auto* x = static_cast<double*>(gpu_device->allocate(length * sizeof(double)));
      auto* y = static_cast<double*>(gpu_device->allocate(length * sizeof(double)));
      double expected = 1;
      for (int round = 0; round < 30; ++round) {
        const FillRequest<double> fill{expected, x, length};
        gpu_device->execute(std::span(&fill, 1));
        const CopyRequest<double> copy{x, y, length};
        gpu_device->execute(std::span(&copy, 1));
        std::vector<double> copied(length);
        gpu_device->download(copied.data(), y, length * sizeof(double));
        if (copied != std::vector<double>(length, expected)) ++wrong;
        expected += t + 1;
      }
      gpu_device->finish();
      gpu_device->release(x);
      gpu_device->release(y);
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
