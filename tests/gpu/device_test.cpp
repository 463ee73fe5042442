// The CPU device: memory, row operations, and its thread pool.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gpu/cpu/thread_pool.hpp"
#include "gpu/cpu_device.hpp"
#include "gpu/fault_word.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

TEST_CASE("memory: aligned, zero, there and back") {
  CpuDevice device(1);
  const std::vector<float> values{1, 2, 3};
  auto* memory = static_cast<float*>(device.allocate(3 * sizeof(float)));
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  CHECK(memory[2] == 0);
  std::vector<float> back(3);
  device.upload(memory, values.data(), 3 * sizeof(float));
  device.download(back.data(), memory, 3 * sizeof(float));
  CHECK(back == values);
  device.release(memory);
  device.release(device.allocate(0));
  CHECK(device.host_accessible());
}

TEST_CASE_TEMPLATE("row operations, several requests at once", Real, float, double) {
  BasicCpuDevice<Real> device(3);
  std::vector<Real> x{1, 2, 3}, y{10, 20, 30}, z{5, 5, 5};
  const AxpyRequest<Real> axpy[] = {{2, x.data(), y.data(), 3}, {-1, x.data(), z.data(), 2}};
  device.execute(axpy);
  CHECK(y == std::vector<Real>{12, 24, 36});
  CHECK(z == std::vector<Real>{4, 3, 5});
  const DifferenceRequest<Real> difference[] = {{z.data(), y.data(), x.data(), 3}};
  device.execute(difference);
  CHECK(z == std::vector<Real>{15, 25, 38});
  const DifferenceRequest<Real> onto_itself[] = {{y.data(), y.data(), x.data(), 3}};  // y ← 2y − x
  device.execute(onto_itself);
  CHECK(y == std::vector<Real>{23, 46, 69});
  std::vector<Real> a(19), b(19), sum(19), copy(19);  // whole packs and a remainder
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = Real(i) + Real(0.5);
    b[i] = Real(2 * i);
    sum[i] = Real(100 + i);
  }
  std::vector<Real> expected = sum, onto_a = a, sum_beside_a = sum;
  const DifferenceRequest<Real> plain[] = {{expected.data(), a.data(), b.data(), 19, Real(0.75)}};
  device.execute(plain);
  const DifferenceRequest<Real> copied[] = {
      {sum.data(), a.data(), b.data(), 19, Real(0.75), copy.data()},
      {sum_beside_a.data(), onto_a.data(), b.data(), 19, Real(0.75), onto_a.data()}};
  device.execute(copied);
  for (const auto* result : {&sum, &copy, &sum_beside_a, &onto_a}) CHECK(*result == expected);
  const ScaleRequest<Real> scale[] = {{0.5, y.data(), 2}};
  device.execute(scale);
  CHECK(y == std::vector<Real>{11.5, 23, 69});
  const Real four = 4;
  std::vector<Real> quotient(3);
  const DivideRequest<Real> divide[] = {{y.data(), &four, quotient.data(), 3},
                                        {z.data() + 2, x.data() + 1, z.data() + 2, 1}};
  device.execute(divide);
  CHECK(quotient == std::vector<Real>{2.875, 5.75, 17.25});
  CHECK(z == std::vector<Real>{15, 25, 19});
}

TEST_CASE("a range check reports the first row with a value out of range") {
  CpuDevice device(2);
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> row(100'000, -5);
  FaultWord word(device), other(device);
  const auto check = [&](float largest, std::uint64_t tag, std::size_t length) {
    const RangeCheckRequest requests[] = {{row.data(), length, largest, word.word(), tag},
                                          {row.data(), 0, 0, word.word(), 99}};
    device.execute(requests);
    device.finish();
    return word.tag();
  };
  CHECK(check(5, 1, row.size()) == 0);
  for (const float bad : {nan, inf, -inf, 5.5F, -5.5F}) {
    row.back() = bad;
    CHECK(check(5, 2, row.size() - 1) == 0);
  }
  CHECK(check(5, 3, row.size()) == 3);
  CHECK(check(5, 4, row.size()) == 3);
  std::vector<RangeCheckRequest> many;
  for (std::uint64_t tag = 1; tag <= 50; ++tag)
    many.push_back({row.data(), row.size(), tag % 2 == 0 ? 4.5F : 6, other.word(), tag});
  device.execute(many);
  CHECK(other.tag() > 0);
  CHECK(other.tag() % 2 == 0);
}

TEST_CASE("the pool does every piece once, on any number of threads") {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (std::size_t count : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> done(count);
      pool.parallel_for(count, [&](std::size_t i) { ++done[i]; });
      for (const auto& times : done) CHECK(times == 1);
    }
  }
}

TEST_CASE("a busy pool: calls from other threads and from within run inline") {
  ThreadPool pool(3);
  std::atomic<int> done = 0;
  const auto call = [&] {
    for (int round = 0; round < 200; ++round)
      pool.parallel_for(8,
                        [&](std::size_t) { pool.parallel_for(4, [&](std::size_t) { ++done; }); });
  };
  std::thread other(call);
  call();
  other.join();
  CHECK(done == 2 * 200 * 8 * 4);
}

TEST_CASE("an exception in a piece reaches the caller, and the pool lives on") {
  ThreadPool pool(2);
  for (int i = 0; i < 20; ++i)
    CHECK_THROWS_AS(pool.parallel_for(50,
                                      [](std::size_t piece) {
                                        if (piece == 7) throw std::runtime_error("seven");
                                      }),
                    std::runtime_error);
  std::atomic<int> done = 0;
  pool.parallel_for(50, [&](std::size_t) { ++done; });
  CHECK(done == 50);
}
