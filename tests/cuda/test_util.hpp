// Vocabulary of the tests of the CUDA device: a device if there is a GPU, values in its memory
// between guards, and comparisons. The same tests run on a GPU and, on every machine, on the
// emulation.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/philox.hpp"
#include "gpu/cpu_device.hpp"
#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu {

/// The first GPU as a device. Null, with a message, if there is none.
template <class Real = float>
std::unique_ptr<BasicDevice<Real>> gpu_or_skip() {
  const cuda::Discovery discovery = cuda::discover_gpus_with_memory();
  if (!discovery.problem.empty()) {
    std::printf("skipped: %s (%s)\n", discovery.problem.c_str(),
                doctest::getContextOptions()->currentTest->m_name);
    return nullptr;
  }
  auto device = cuda::make_cuda_device<Real>({});
  if (!device.ok()) FAIL(device.error().message);
  return std::move(device).value();
}

/// The first `count` GPUs as one device. Null, with a message, if there are fewer.
template <class Real = float>
std::unique_ptr<BasicDevice<Real>> gpus_or_skip(int count) {
  const cuda::Discovery discovery = cuda::discover_gpus();
  const int there = discovery.problem.empty() ? static_cast<int>(discovery.gpus.size()) : 0;
  if (there < count) {
    std::printf("skipped: %d GPUs are needed, %d are here (%s)\n", count, there,
                doctest::getContextOptions()->currentTest->m_name);
    return nullptr;
  }
  cuda::Options options{.gpus = {}};
  for (int gpu = 0; gpu < count; ++gpu) options.gpus.push_back(gpu);
  auto device = cuda::make_cuda_device<Real>(options);
  if (!device.ok()) FAIL(device.error().message);
  return std::move(device).value();
}

/// Declares `name`, the device of the test case, for rows of Real. The test case ends if there is
/// no GPU.
#define GOSSAMER_GPU_OF(Real, name)                     \
  const auto name = gossamer::gpu::gpu_or_skip<Real>(); \
  if (name == nullptr) return
#define GOSSAMER_GPU(name) GOSSAMER_GPU_OF(float, name)

/// The lengths with which every operation on rows is tested: none, one, and around the sizes of a
/// thread, a vector and a block.
inline const std::vector<std::size_t> kLengths{0, 1, 3, 4, 255, 256, 1023, 1025, 100'003};

/// Normal values, different for each test and stream.
template <class Real>
std::vector<Real> normal(std::size_t count, std::uint64_t stream, double deviation = 1) {
  std::uint64_t seed = 5;  // of the test's name
  for (const char* c = doctest::getContextOptions()->currentTest->m_name; *c != 0; ++c)
    seed = seed * 1'099'511'628'211ULL + static_cast<unsigned char>(*c);
  RandomStream random(seed, kNoPeer, Purpose::test, stream);
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(deviation * random.next_normal());
  return values;
}

template <class To, class From>
std::vector<To> as(const std::vector<From>& values) {
  std::vector<To> converted;
  for (const From& value : values) converted.push_back(static_cast<To>(value));
  return converted;
}

/// Values in a device's memory (of one GPU), off alignment by `offset` values, between guards that
/// no operation may write to. The device outlives them.
template <class Value>
class Held {
 public:
  /// Uninitialised values: NaN.
  Held(Memory& device, std::size_t length, std::size_t offset = 0, int gpu_index = 0)
      : device_(&device), length_(length), offset_(offset) {
    const std::size_t total = offset_ + kGuard + length_ + kGuard;
    memory_ = static_cast<Value*>(device.allocate(total * sizeof(Value), gpu_index));
    const std::vector<unsigned char> poison(total * sizeof(Value), 0xFF);
    device.upload(memory_, poison.data(), poison.size());
  }
  Held(Memory& device, const std::vector<Value>& values, std::size_t offset = 0, int gpu_index = 0)
      : Held(device, values.size(), offset, gpu_index) {
    set(values);
  }
  Held(Held&& other) noexcept
      : device_(other.device_),
        length_(other.length_),
        offset_(other.offset_),
        memory_(std::exchange(other.memory_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(length_, other.length_);
    std::swap(offset_, other.offset_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Held() {
    if (memory_ != nullptr) device_->release(memory_);
  }

  Value* get() const { return memory_ + offset_ + kGuard; }
  std::size_t length() const { return length_; }
  void set(const std::vector<Value>& values) {
    device_->upload(get(), values.data(), values.size() * sizeof(Value));
  }

  /// The current values. Checks that the guards are unchanged.
  std::vector<Value> values() const {
    std::vector<Value> all(offset_ + kGuard + length_ + kGuard);
    device_->download(all.data(), memory_, all.size() * sizeof(Value));
    const auto untouched = [](const Value* from, std::size_t count) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(from);
      return std::all_of(bytes, bytes + count * sizeof(Value),
                         [](unsigned char byte) { return byte == 0xFF; });
    };
    CHECK(untouched(all.data(), offset_ + kGuard));
    CHECK(untouched(all.data() + offset_ + kGuard + length_, kGuard));
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(offset_ + kGuard);
    return {begin, begin + static_cast<std::ptrdiff_t>(length_)};
  }

 private:
  static constexpr std::size_t kGuard = 64;  // values: keeps the alignment of the memory
  Memory* device_;
  std::size_t length_, offset_;
  Value* memory_ = nullptr;
};

/// The same bits, NaN included.
template <class Value>
bool same_bits(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0);
}

/// The largest |a − b| / (1 + |b|); NaN if any value is NaN.
template <class A, class B>
double worst_error(const std::vector<A>& a, const std::vector<B>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    const double error = std::abs(x - y) / (1 + std::abs(y));
    if (!(error <= worst)) worst = error;
    if (std::isnan(worst)) break;
  }
  return worst;
}

/// Error bound of a few roundings of values around 1.
template <class Real>
constexpr double kRoundings = sizeof(Real) == 4 ? 2e-6 : 4e-15;

}  // namespace gossamer::gpu
