// One peer with its membership, to which a test sends the messages of its partner.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gossip/links/simulated_link.hpp"
#include "gossip/membership/membership.hpp"
#include "tests/gossip/test_util.hpp"

namespace gossamer::gossip::testing {

inline constexpr std::size_t kFloodedLength = 10;

/// Peer `here` of a path of two or three; the test sends the messages of peer 0, or of the other of
/// two.
struct LonePeer {
  explicit LonePeer(int here_in, int peers_in = 2, const MixingRule* rule = nullptr)
      : here(here_in), peers(peers_in), options(of_hundred_rounds(rule)) {
    if (peers == 2) exchange.connect(here, 1 - here, dead_end);
  }
  using Partners = std::vector<std::vector<int>>;
  Partners partners() const {
    if (peers == 2) return {{1}, {0}};
    return {{1}, {0, 2}, {1}};
  }
  static ExchangeOptions of_hundred_rounds(const MixingRule* rule) {
    ExchangeOptions options;
    options.rule = rule;
    options.channels = channels_of({{.name = "x", .mixed = true}}, kFloodedLength);
    options.rounds = 100;
    return options;
  }
  Status receive(ControlMessage message, Round round, const LinkState& state = {}) {
    return exchange.deliver(control_chunk(1 - here, here, message, round, state));
  }
  Status receive_catch_up(Round from, Round resumes_at) {
    Chunk chunk = control_chunk(1 - here, here, ControlMessage::catch_up, from);
    chunk.header.resumes_at = resumes_at;
    return exchange.deliver(std::move(chunk));
  }

  int here, peers;
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  std::unique_ptr<topology::MixingSchedule> matrices = schedule("path", peers);
  ExchangeOptions options;
  Exchange exchange{scheduler, compute, *matrices, options, {here}, [](const Error&) {}};
  SimulatedPort port;
  SimulatedLink dead_end{scheduler, exchange, {std::chrono::hours(1), 0},
                         port,      port,     [](const Error&) {}};
  Rows<float> rows{2, kFloodedLength};
  std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  Node node{exchange, here, peers, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}}};
  Membership membership{
      exchange,
      node,
      {.partners = std::make_shared<const Partners>(partners()), .exchanges_both_ways = true}};
};

}  // namespace gossamer::gossip::testing
