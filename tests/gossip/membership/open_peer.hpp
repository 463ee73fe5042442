// One peer of an open run with its membership, to which a test sends the messages of its partners.
#pragma once

#include <memory>
#include <vector>

#include "tests/gossip/membership/lone_peer.hpp"

namespace gossamer::gossip::testing {

/// Takes what is sent, and keeps the headers.
struct RecordingLink final : Link {
  void send(Chunk chunk) override { sent.push_back(chunk.header); }
  std::vector<ChunkHeader> sent;
};

/// Peer 0 of an open run of three on a path, of which 0 and 1 take part at the start.
struct OpenPeer {
  explicit OpenPeer(Time row_limit = Time(0)) : options(LonePeer::of_hundred_rounds(nullptr)) {
    options.row_limit = row_limit;
    exchange.emplace(scheduler, compute, *changing, options, std::vector<int>{0},
                     [](const Error&) {});
    exchange->connect(0, 1, to_1), exchange->connect(0, 2, to_2);
    node.emplace(*exchange, 0, 3, specs, NodeMemory{{rows.row(0)}, {rows.row(1)}, {}, {}});
    membership.emplace(*exchange, *node,
                       Membership::Options{.partners = std::make_shared<const LonePeer::Partners>(
                                               LonePeer::Partners{{1, 2}, {0, 2}, {0, 1}}),
                                           .changing = changing.get()});
  }
  static std::unique_ptr<topology::ChangingSchedule> path() {
    topology::ScheduleRequest request{"path", {}, {}, {3, 1}, {"0,1"}};
    request.open = true;
    return topology::make_schedule(request).value()->copy_if_open();
  }
  Status receive(int from, ControlMessage message, Round round, const LinkState& state = {}) {
    return exchange->deliver(control_chunk(from, 0, message, round, state));
  }
  /// Peer 1 says that with this version `peer` takes part, or no part, from round `first` on.
  Status receive_change(int peer, std::uint32_t version, Round first) {
    return receive(1, ControlMessage::participant, first, {peer, 0, version, false});
  }
  /// Begins round t, which follows the one before.
  void begin_round(Round t) {
    endpoint().begin_at(t);
    task<bool> begun = membership->begin_round(t);
    begun.start(scheduler);
    scheduler.run();
    CHECK(begun.done());
  }
  Endpoint& endpoint() { return exchange->endpoint(0); }
  std::vector<int> at(Round t) const { return changing->participants().at(t).peers; }

  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  std::unique_ptr<topology::ChangingSchedule> changing = path();
  ExchangeOptions options;
  RecordingLink to_1, to_2;
  std::optional<Exchange> exchange;
  Rows<float> rows{2, kFloodedLength};
  std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  std::optional<Node> node;
  std::optional<Membership> membership;
};

// Neighbours are at most a round apart, so that news takes two rounds, and one to spare.
inline constexpr Round kNotice = 3;

}  // namespace gossamer::gossip::testing
