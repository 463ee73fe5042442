// The options of a test network, and its links.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/parameter.hpp"
#include "gossip/links/network_model.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/process/options.hpp"

namespace gossamer::gossip::testing {

struct NetworkOptions {
  LinkModel links = {};
  NodeModel ports = {};
  Policy policy = Policy::sync;
  Round staleness = 4;
  std::size_t chunk_values = 1 << 18;
  std::size_t row_offset = 0;
  int threads = 1;
  Time step_time{0};
  int slow_peers = 0;
  double slow_factor = 1;
  double step_spread = 0;
  std::function<LinkModel(int from, int to)> link_model = {};  ///< instead of `links`
  /// Messages, of one chunk each, that never arrive.
  std::function<bool(const ChunkHeader&)> loses = {};
  bool tolerates_peer_loss = false;
  /// Peers that end at a time: from then on they do nothing, and their links are lost at both ends.
  std::map<int, Time> deaths = {};
  /// Links that are cut, with what is under way on them, and restored later.
  struct Cut {
    int a = 0, b = 0;
    Time from{0}, until{0};
  };
  std::vector<Cut> cuts = {};
  bool goodbyes = false;  ///< what a peer sends after its drain is dropped
  /// Peers that join at a time: before it their links are lost.
  std::map<int, Time> joins = {};
  /// Messages of the memberships.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// Every peer is a process of its own: incoming values are validated, and the peer that causes a
  /// fault ends, while the others go on.
  bool apart = false;
  bool on_gpu = false;
  Time row_limit{0};  ///< RowDeadline's; a link whose rows are overdue is lost
  /// May change the values of chunks on their way.
  std::function<void(const ChunkHeader&, std::span<float>)> tamper = {};
  std::string codec = "none";
  ParameterValues codec_values = {};
  const MixingRule* rule = nullptr;  ///< null: the mean
  const AttackPlan* attack = nullptr;
};

/// Counts the values that are sent over a link.
class CountedLink final : public Link {
 public:
  CountedLink(Link& link, std::function<bool(const ChunkHeader&)> loses)
      : link_(link), loses_(std::move(loses)) {}
  void send(Chunk chunk) override {
    if (cut || (loses_ && chunk.header.control == ControlMessage::none && loses_(chunk.header)))
      return;
    values += chunk.values.size();
    if (tamper && !chunk.values.empty()) {
      std::vector<float>& copy = copies_.emplace_back(chunk.values.begin(), chunk.values.end());
      tamper(chunk.header, copy);
      chunk = Chunk(chunk.header, copy, {});
    }
    link_.send(std::move(chunk));
  }
  std::uint64_t values = 0;
  std::function<void(const ChunkHeader&, std::span<float>)> tamper;
  bool cut = false;  ///< nothing more goes out

 private:
  Link& link_;
  std::deque<std::vector<float>> copies_;
  std::function<bool(const ChunkHeader&)> loses_;
};

}  // namespace gossamer::gossip::testing
