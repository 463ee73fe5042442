// Vocabulary of the tests of devices of several GPUs: rows on each GPU in turn, and work in which
// GPUs depend on each other.
#pragma once

#include <vector>

#include "tests/cuda/test_util.hpp"

namespace gossamer::gpu {

/// A row for each peer, peer p's on GPU p mod gpus: neighbours are on different GPUs; and the
/// same on the CPU.
template <class Real>
class TurnRows {
 public:
  TurnRows(Memory& device, std::size_t peers, std::size_t length, std::uint64_t stream) {
    const auto gpus = static_cast<std::size_t>(device.gpu_count());
    for (std::size_t p = 0; p < peers; ++p) {
      cpu.push_back(normal<Real>(length, stream + p));
      rows_.emplace_back(device, cpu.back(), p % 2, static_cast<int>(p % gpus));
    }
  }
  Real* operator[](std::size_t peer) const { return rows_[peer % rows_.size()].get(); }
  Real* on_cpu(std::size_t peer) { return cpu[peer % cpu.size()].data(); }
  void check() const {
    for (std::size_t p = 0; p < cpu.size(); ++p) CHECK(same_bits(rows_[p].values(), cpu[p]));
  }

  std::vector<std::vector<Real>> cpu;

 private:
  std::vector<Held<Real>> rows_;
};

/// Serves the requests of a call.
inline constexpr auto kExecute = [](auto& device, const auto& requests) {
  device.execute(requests);
};

/// One call of `peers` requests make(p, on_cpu), on the device and on the CPU.
template <class Real, class Make, class Serve>
void both(BasicDevice<Real>& device, BasicCpuDevice<Real>& cpu, std::size_t peers, Make make,
          Serve serve) {
  std::vector<decltype(make(0, false))> requests, cpu_requests;
  for (std::size_t p = 0; p < peers; ++p) {
    requests.push_back(make(p, false));
    cpu_requests.push_back(make(p, true));
  }
  serve(device, requests);
  serve(static_cast<BasicDevice<Real>&>(cpu), cpu_requests);
}

/// Rounds in which each call reads rows that the previous call wrote on other GPUs, and overwrites
/// rows that other GPUs have just read. The CPU's bits.
inline void check_relay(Device& device, int rounds) {
  constexpr std::size_t kPeers = 6, kLength = 3001;
  CpuDevice cpu(1);
  TurnRows<float> x(device, kPeers, kLength, 10), out(device, kPeers, kLength, 20);
  const auto at = [](auto& rows, std::size_t p, bool on_cpu) {
    return on_cpu ? rows.on_cpu(p) : rows[p];
  };
  std::vector<MixSource> sources(2 * kPeers);
  for (int round = 0; round < rounds; ++round) {
    both(
        device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {
          MixSource& source = sources[2 * p + on_cpu];
          source = {at(x, p + 1, on_cpu), 0.3F};
          return MixRequest{at(x, p, on_cpu), at(out, p, on_cpu), std::span(&source, 1), kLength};
        },
        kExecute);
    both(
        device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {  // overwrites x of the next GPU
          return CopyRequest<float>{at(out, p, on_cpu), at(x, p + 1, on_cpu), kLength};
        },
        kExecute);
    both(
        device, cpu, 2,
        [&](std::size_t p, bool on_cpu) {  // work of single GPUs in between
          return ScaleRequest<float>{1.5F, at(x, p, on_cpu), kLength};
        },
        kExecute);
  }
  x.check();
  out.check();
}

/// A busy GPU has yet to read a row of an idle GPU when the idle GPU overwrites or frees the row.
inline void check_late_reader(Device& device) {
  constexpr std::size_t kLength = 100'000;
  const auto values = normal<float>(kLength, 1);
  const Held<float> work(device, std::vector<float>(kLength, 1)), out(device, kLength),
      last(device, kLength);
  const auto keep_busy = [&] {
    for (int i = 0; i < 50; ++i) {
      const ScaleRequest<float> same{1, work.get(), kLength};
      device.execute(std::span(&same, 1));
    }
  };
  {
    const Held<float> row(device, values, 0, 1);
    keep_busy();
    const CopyRequest<float> copy{row.get(), out.get(), kLength};
    device.execute(std::span(&copy, 1));
    const FillRequest<float> fill{7, row.get(), kLength};
    device.execute(std::span(&fill, 1));
    keep_busy();
    const CopyRequest<float> again{row.get(), last.get(), kLength};
    device.execute(std::span(&again, 1));
  }
  CHECK(same_bits(out.values(), values));
  CHECK(same_bits(last.values(), std::vector<float>(kLength, 7)));
}

}  // namespace gossamer::gpu
