// Numbers from rows: a card against the CPU in double, the same bits every time.
#include "cuda_words.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

TEST_CASE_TEMPLATE("card: dot and squared distance, in double", Real, float, double) {
  GOSSAMER_CARD(card);
  CpuDevice cpu(1);
  std::vector<Held<Real>> held;
  std::vector<std::vector<double>> on_cpu;
  std::vector<ReduceRequest<Real>> requests;
  std::vector<ReduceRequest<double>> cpu_requests;
  std::vector<double> sizes;
  for (const std::size_t length : kLengths)
    for (const std::size_t offset : {0, 1}) {
      const auto a = normal<Real>(length, 2 * held.size()), b = normal<Real>(length, 2 * held.size() + 1);
      held.emplace_back(*card, a, offset);
      held.emplace_back(*card, b);
      on_cpu.push_back(as<double>(a));
      on_cpu.push_back(as<double>(b));
      sizes.push_back(1 + static_cast<double>(length));
    }
  for (std::size_t i = 0; i < held.size(); i += 2) {
    requests.push_back({held[i].get(), held[i + 1].get(), held[i].length(), NAN});
    cpu_requests.push_back({on_cpu[i].data(), on_cpu[i + 1].data(), on_cpu[i].size(), NAN});
  }
  const auto compare = [&] {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(requests[i].length);
      CHECK(std::abs(requests[i].result - cpu_requests[i].result) <= 1e-13 * sizes[i]);
    }
  };
  card->dot(requests);
  cpu.dot(cpu_requests);
  compare();
  std::vector<double> first;
  for (const auto& request : requests) first.push_back(request.result);
  card->dot(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) CHECK(requests[i].result == first[i]);
  for (std::size_t i = 0; i < requests.size(); ++i) {  // whatever else is asked for in the same call
    card->dot(std::span(&requests[i], 1));
    CHECK(requests[i].result == first[i]);
  }
  card->squared_distance(requests);
  cpu.squared_distance(cpu_requests);
  compare();
  card->dot(std::span<ReduceRequest<Real>>());
  card->squared_distance(std::span<ReduceRequest<Real>>());
}

TEST_CASE_TEMPLATE("card: all_finite finds a single bad value anywhere", Real, float, double) {
  GOSSAMER_CARD(card);
  const std::size_t length = 2501;
  Held<Real> row(*card, length, 1);
  const std::vector<Real> good(length, std::numeric_limits<Real>::max());
  const auto finite = [&](std::size_t values) {
    FiniteRequest<Real> requests[] = {{row.get(), values, false}, {row.get(), 0, false}, {row.get() + 5, 2, true}};
    card->all_finite(requests);
    CHECK(requests[1].finite);
    return requests[0].finite;
  };
  row.set(good);
  CHECK(finite(length));
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{2047}, length - 1})
    for (const Real bad : {std::numeric_limits<Real>::infinity(), -std::numeric_limits<Real>::infinity(),
                           std::numeric_limits<Real>::quiet_NaN()}) {
      auto values = good;
      values[at] = bad;
      row.set(values);
      CHECK_FALSE(finite(length));
      CHECK(finite(at));
    }
  card->all_finite(std::span<FiniteRequest<Real>>());
}

TEST_CASE_TEMPLATE("card: sketches are the CPU's", Real, float, double) {
  GOSSAMER_CARD(card);
  CpuDevice cpu(1);
  std::vector<Held<Real>> held;
  std::vector<std::vector<Real>> rows;
  for (const std::size_t length : kLengths) {
    if (length == 0) continue;
    rows.push_back(normal<Real>(length, rows.size()));
    held.emplace_back(*card, rows.back(), length % 2);
  }
  for (const std::uint64_t seed : {1ULL, 0xFFFF'FFFF'0000'0007ULL}) {
    std::vector<std::vector<double>> sketches, expected;
    for (const auto& row : rows) {
      sketches.emplace_back(sketch_length(row.size()), NAN);
      expected.emplace_back(sketch_length(row.size()), NAN);
    }
    std::vector<SketchRequest<Real>> requests, cpu_requests;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      requests.push_back({held[i].get(), rows[i].size(), seed, sketches[i].data()});
      cpu_requests.push_back({rows[i].data(), rows[i].size(), seed, expected[i].data()});
    }
    card->sketch(requests);
    cpu.sketch(cpu_requests);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(rows[i].size());
      CHECK(worst_error(sketches[i], expected[i]) < 1e-12);
    }
    const auto first = sketches;
    card->sketch(requests);
    CHECK(sketches == first);
  }
  card->sketch(std::span<const SketchRequest<Real>>());
}
