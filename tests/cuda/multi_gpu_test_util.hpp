// The words of the tests of devices of several GPUs: rows in turn on each, and work in which GPUs
// need each other.
#pragma once

#include <vector>

#include "tests/cuda/test_util.hpp"

namespace gossamer::gpu {

/// A row for each peer, peer p's on GPU p mod gpus: neighbours are on different GPUs; and the
/// same on the CPU.
template <class Real>
class TurnRows {
 public:
  TurnRows(Device& device, std::size_t peers, std::size_t length, std::uint64_t stream) {
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

/// One call of `peers` requests, request(p, rows(…)) on the device and on the CPU.
template <class Make, class Serve>
void both(Device& device, CpuDevice& cpu, std::size_t peers, Make make, Serve serve) {
  std::vector<decltype(make(0, false))> requests, cpu_requests;
  for (std::size_t p = 0; p < peers; ++p) {
    requests.push_back(make(p, false));
    cpu_requests.push_back(make(p, true));
  }
  serve(static_cast<Device&>(device), requests);
  serve(static_cast<Device&>(cpu), cpu_requests);
}

/// Rounds in which each call needs what the last one wrote on other GPUs, and writes over what
/// others have just read. The CPU's bits.
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
        [](Device& some, auto& requests) { some.mix(std::span<const MixRequest>(requests)); });
    both(
        device, cpu, kPeers,
        [&](std::size_t p, bool on_cpu) {  // x of the next GPU is written over by this one's
          return CopyRequest<float>{at(out, p, on_cpu), at(x, p + 1, on_cpu), kLength};
        },
        [](Device& some, auto& requests) {
          some.copy(std::span<const CopyRequest<float>>(requests));
        });
    both(
        device, cpu, 2,
        [&](std::size_t p, bool on_cpu) {  // some GPUs have work of their own in between
          return ScaleRequest<float>{1.5F, at(x, p, on_cpu), kLength};
        },
        [](Device& some, auto& requests) {
          some.scale(std::span<const ScaleRequest<float>>(requests));
        });
  }
  x.check();
  out.check();
}

/// A busy GPU is still to read another one's row when that one, which has nothing else to do,
/// writes over it or frees it.
inline void check_late_reader(Device& device) {
  constexpr std::size_t kLength = 100'000;
  const auto values = normal<float>(kLength, 1);
  const Held<float> work(device, std::vector<float>(kLength, 1)), out(device, kLength),
      last(device, kLength);
  const auto keep_busy = [&] {
    for (int i = 0; i < 50; ++i) {
      const ScaleRequest<float> same{1, work.get(), kLength};
      device.scale(std::span(&same, 1));
    }
  };
  {
    const Held<float> row(device, values, 0, 1);
    keep_busy();
    const CopyRequest<float> copy{row.get(), out.get(), kLength};
    device.copy(std::span(&copy, 1));
    const FillRequest<float> fill{7, row.get(), kLength};
    device.fill(std::span(&fill, 1));
    keep_busy();
    const CopyRequest<float> again{row.get(), last.get(), kLength};
    device.copy(std::span(&again, 1));
  }
  CHECK(same_bits(out.values(), values));
  CHECK(same_bits(last.values(), std::vector<float>(kLength, 7)));
}

}  // namespace gossamer::gpu
